//! Messages as lists show them: what the index knows, and the summary that the store is asked for.

use alloc::string::{String, ToString};

use machine::UnixTime;
use message::Summary;
use store::{AccountId, Body, DRAFTS, Flags, MailboxId, MessageInfo, Refusal, SENT};

use super::{Desk, READS_MAX, Step};
use crate::list::Row;
use crate::moments::{exact, few_words};
use crate::{Key, Page, Start};

/// A message, and what is known of it.
#[derive(Debug)]
pub(super) struct Found {
    /// Where it is.
    pub(super) mailbox: MailboxId,
    pub(super) info: MessageInfo,
    pub(super) known: Known,
}

/// What is known of a message beside the index.
#[derive(Debug)]
pub(super) enum Known {
    /// Nothing: it is to be asked for.
    Nothing,
    /// Its summary was asked for.
    Asked,
    /// It has none: its beginning is to be read.
    NoSummary,
    /// Its beginning was asked for.
    BeginningAsked,
    /// What a list shows.
    Summary(Summary),
    /// It cannot be read.
    Lost,
}

impl Found {
    pub(super) fn new(mailbox: MailboxId, info: MessageInfo) -> Found {
        Found { mailbox, info, known: Known::Nothing }
    }

    pub(super) fn key(&self) -> Key {
        Key { mailbox: self.mailbox.0, uid: self.info.uid.0 }
    }

    /// Its summary, if it can be read.
    pub(super) fn summary(&self) -> Option<&Summary> {
        if let Known::Summary(summary) = &self.known { Some(summary) } else { None }
    }
}

/// Asks for what is not known of these messages.
pub(super) fn ask(rows: &mut [Found], account: AccountId, under_way: &mut usize, desk: &mut impl Desk) -> Step {
    let continuation = desk.continuation();
    for row in rows {
        if *under_way >= READS_MAX {
            return Step::Asked;
        }
        let (mailbox, uid) = (row.mailbox, row.info.uid);
        let (asked, next) = match row.known {
            Known::Nothing => (desk.store_mut().read_summary(account, mailbox, uid, continuation), Known::Asked),
            Known::NoSummary => (desk.store_mut().read(account, mailbox, uid, 0, continuation), Known::BeginningAsked),
            _ => continue,
        };
        match asked {
            Ok(()) => {
                row.known = next;
                *under_way += 1;
            }
            Err(Refusal::Busy) => return Step::Busy,
            Err(_) => row.known = Known::Lost,
        }
    }
    Step::Asked
}

/// Some of it has come. The messages are of one mailbox.
pub(super) fn body_arrived(rows: &mut [Found], body: &Body) {
    let Some(row) = rows.iter_mut().find(|row| row.info.uid == body.uid()) else { return };
    row.known = match row.known {
        Known::Asked => Summary::read(body.bytes()).map_or(Known::NoSummary, Known::Summary),
        _ => Known::Summary(Summary::of(body.bytes())),
    };
}

/// A row's words.
pub(super) struct RowText {
    key: String,
    href: String,
    people: String,
    subject: String,
    snippet: String,
    date: String,
    moment: String,
    flags: Flags,
    has_attachment: bool,
}

impl RowText {
    pub(super) fn of(found: &Found, now: UnixTime) -> RowText {
        let shows_recipients = found.mailbox == SENT || found.mailbox == DRAFTS;
        let nothing = Summary::default();
        let summary = found.summary().unwrap_or(&nothing);
        let key = found.key();
        let people = match (shows_recipients, summary.sender_name.is_empty()) {
            (true, _) => &summary.recipients,
            (false, true) => &summary.sender_address,
            (false, false) => &summary.sender_name,
        };
        RowText {
            href: match found.mailbox {
                DRAFTS => Page::Compose(Start::Draft(key)).to_string(),
                _ => Page::Read(key).to_string(),
            },
            key: key.to_string(),
            people: people.clone(),
            subject: match found.summary() {
                Some(summary) => summary.subject.clone(),
                None => "This message cannot be read".into(),
            },
            snippet: summary.snippet.clone(),
            date: few_words(found.info.internal_date, now),
            moment: exact(found.info.internal_date),
            flags: found.info.flags,
            has_attachment: summary.has_attachment,
        }
    }

    pub(super) fn row(&self) -> Row<'_> {
        Row {
            key: &self.key,
            href: &self.href,
            people: &self.people,
            messages: 1,
            subject: &self.subject,
            snippet: &self.snippet,
            date: &self.date,
            moment: &self.moment,
            is_unread: !self.flags.contains(Flags::SEEN),
            is_starred: self.flags.contains(Flags::FLAGGED),
            has_attachment: self.has_attachment,
        }
    }
}
