//! Messages in lists: their state in the index, and the summaries that are read for them.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use message::Summary;
use store::{
    AccountId, Body, CHUNK_OCTETS, DRAFTS, MailboxId, MessageInfo, OUTBOX, PartialMessage, Refusal,
    SENT, Store,
};

use crate::context::JobContext;
use crate::list::{ListRow, RenderedRow, RowTarget};
use crate::moments::LocalClock;
use crate::step::{JobProgress, READS_MAX};
use crate::{ComposeStart, Escaped, MessageKey, PermanentId, WebPage};

use super::row_cache::RowFacts;
use super::row_totals::RowTotals;
use super::undo_send::Transit;

/// A message in a list, and the data that was read for it.
#[derive(Debug)]
pub(super) struct FoundMessage {
    /// The mailbox of the message.
    pub(super) mailbox: MailboxId,
    pub(super) info: MessageInfo,
    /// Whether the message is in transit.
    transit: Transit,
    /// The totals of the messages of its row.
    pub(super) totals: RowTotals,
    pub(super) known: RowState,
}

/// The data of a message that was read in addition to its entry in the index.
#[derive(Debug)]
pub(super) enum RowState {
    /// No data: the summary must be read.
    Nothing,
    /// The summary is being read.
    Asked,
    /// The store has no summary, so more of the message's beginning must be read.
    NoSummary(PartialMessage),
    /// More of the message's beginning is being read.
    BeginningAsked(PartialMessage),
    /// The summary.
    Summary(Summary),
    /// The rendered row, from the cache.
    Rendered(RenderedRow),
    /// The message cannot be read.
    Lost,
}

impl FoundMessage {
    /// The message with this `info` in a mailbox.
    pub(super) fn of(
        store: &Store,
        account: AccountId,
        mailbox: MailboxId,
        info: MessageInfo,
    ) -> FoundMessage {
        let transit = Transit::of(store, account, mailbox, (info.uid, info.flags));
        FoundMessage {
            mailbox,
            info,
            transit,
            totals: RowTotals::alone(mailbox, &info),
            known: RowState::Nothing,
        }
    }

    pub(super) fn key(&self) -> MessageKey {
        MessageKey { mailbox: self.mailbox.0, uid: self.info.uid.0 }
    }

    /// The facts that determine the message's row.
    fn facts(&self, account: AccountId, clock: &LocalClock) -> RowFacts {
        RowFacts::of(account, self.mailbox, self.info, self.totals, clock)
    }

    /// The summary, if it was read.
    pub(super) fn summary(&self) -> Option<&Summary> {
        if let RowState::Summary(summary) = &self.known { Some(summary) } else { None }
    }
}

/// Asks the store for the missing summaries of these messages.
pub(super) fn ask(
    rows: &mut [FoundMessage],
    account: AccountId,
    under_way: &mut usize,
    cx: &mut JobContext<'_, '_>,
) -> JobProgress {
    let continuation = cx.continuation();
    for row in rows {
        if *under_way >= READS_MAX {
            return JobProgress::Waiting;
        }
        let (mailbox, uid) = (row.mailbox, row.info.uid);
        let asked = match &row.known {
            RowState::Nothing => cx.store_mut().read_summary(account, mailbox, uid, continuation),
            RowState::NoSummary(beginning) => {
                cx.store_mut().read(account, mailbox, uid, beginning.next(), continuation)
            }
            _ => continue,
        };
        match asked {
            Ok(()) => {
                row.known = match core::mem::replace(&mut row.known, RowState::Asked) {
                    RowState::NoSummary(beginning) => RowState::BeginningAsked(beginning),
                    _ => RowState::Asked,
                };
                *under_way += 1;
            }
            Err(Refusal::Busy) => return JobProgress::Yield,
            Err(_) => row.known = RowState::Lost,
        }
    }
    JobProgress::Waiting
}

/// Processes a body for one of these messages.
pub(super) fn body_arrived(rows: &mut [FoundMessage], body: &Body) {
    let is_of =
        |row: &&mut FoundMessage| row.info.uid == body.uid() && row.mailbox == body.mailbox();
    let Some(row) = rows.iter_mut().find(is_of) else { return };
    row.known = match core::mem::replace(&mut row.known, RowState::Nothing) {
        RowState::Asked => match Summary::read(body.bytes()) {
            Some(summary) => RowState::Summary(summary),
            None => RowState::NoSummary(PartialMessage::from(row.info.head)),
        },
        RowState::BeginningAsked(mut beginning) => {
            beginning.arrived(body.bytes());
            let first = beginning.octets();
            if first.len() >= CHUNK_OCTETS || beginning.is_all_of(row.info.octets) {
                RowState::Summary(Summary::of(first))
            } else {
                RowState::NoSummary(beginning)
            }
        }
        known => known,
    };
}

/// The texts of a row. Texts of the summary are borrowed.
pub(super) struct RowText<'a> {
    key: String,
    href: String,
    target: RowTarget,
    people: &'a str,
    subject: &'a str,
    snippet: &'a str,
    date: String,
    moment: String,
    totals: RowTotals,
    has_attachment: bool,
}

/// Whether two messages are copies of the same message, by their summaries.
pub(super) fn are_copies(one: Option<&Summary>, other: Option<&Summary>) -> bool {
    one.is_some_and(|one| one.message_id != 0 && Some(one) == other)
}

/// Takes the rows of these messages from the cache.
pub(super) fn recall(rows: &mut [FoundMessage], account: AccountId, cx: &mut JobContext<'_, '_>) {
    let clock = LocalClock { now: cx.now(), zone: cx.zone(account) };
    let written = cx.rows();
    for row in rows {
        if let Some(known) = written.find(&row.facts(account, &clock)) {
            row.known = RowState::Rendered(known.clone());
        }
    }
}

/// Renders the rows of a list.
pub(super) fn write(
    rows: &[FoundMessage],
    account: AccountId,
    cx: &mut JobContext<'_, '_>,
) -> Vec<RenderedRow> {
    let clock = LocalClock { now: cx.now(), zone: cx.zone(account) };
    let write = |found: &FoundMessage| match &found.known {
        RowState::Rendered(row) => row.clone(),
        known => {
            let row = RowText::of(found, &clock).row().written();
            if let RowState::Summary(_) = known {
                cx.rows().keep(found.facts(account, &clock), &row);
            }
            row
        }
    };
    rows.iter().map(write).collect()
}

impl<'a> RowText<'a> {
    /// The row of a message, or of the conversation in which it is the newest message.
    fn of(found: &'a FoundMessage, clock: &LocalClock) -> RowText<'a> {
        let mut text = RowText::with(
            found,
            found.summary(),
            [SENT, DRAFTS, OUTBOX].contains(&found.mailbox),
            clock,
        );
        // The browser scrolls past the folded messages to the opened message.
        if found.totals.messages > 1 && text.target == RowTarget::Message {
            text.target = RowTarget::Conversation;
        }
        text
    }

    /// The line of a message on the page of its conversation. It always names the sender.
    pub(super) fn among_others(found: &'a FoundMessage, clock: &LocalClock) -> RowText<'a> {
        RowText::with(found, found.summary(), false, clock)
    }

    /// The line of a message that cannot be read, on the page of its conversation.
    pub(super) fn lost(found: &FoundMessage, clock: &LocalClock) -> RowText<'static> {
        RowText::with(found, None, false, clock)
    }

    fn with(
        found: &FoundMessage,
        summary: Option<&'a Summary>,
        shows_recipients: bool,
        clock: &LocalClock,
    ) -> RowText<'a> {
        let key = found.key();
        let moment = clock.moment(found.info.internal_date);
        let people = summary.map_or("", |summary| {
            match (shows_recipients, summary.sender_name.is_empty()) {
                (true, _) => &summary.recipients,
                (false, true) => &summary.sender_address,
                (false, false) => &summary.sender_name,
            }
        });
        RowText {
            href: match found.mailbox {
                DRAFTS => {
                    WebPage::Compose(ComposeStart::Draft { draft: key, answers: None }).to_string()
                }
                _ => WebPage::Message(PermanentId::of(&found.info), None).to_string(),
            },
            target: if found.mailbox == DRAFTS { RowTarget::Draft } else { RowTarget::Message },
            key: MessageKey { uid: found.totals.last.0, ..key }.to_string(),
            people,
            subject: summary.map_or("This message cannot be read", |summary| &summary.subject),
            snippet: match summary {
                Some(_) if found.transit == Transit::HeldBack => "Held by an administrator",
                Some(_) if found.transit == Transit::UnderWay => "Sending…",
                Some(_) if found.transit == Transit::Queued => "Waiting to be sent",
                summary => summary.map_or("", |summary| &summary.snippet),
            },
            date: moment.in_few_words(&clock.moment(clock.now)),
            moment: moment.exact(),
            totals: found.totals,
            has_attachment: summary.is_some_and(|summary| summary.has_attachment),
        }
    }

    pub(super) fn row(&self) -> ListRow<'_> {
        ListRow {
            key: Escaped(&self.key),
            href: Escaped(&self.href),
            target: self.target,
            people: Escaped(self.people),
            messages: self.totals.messages,
            subject: Escaped(self.subject),
            snippet: Escaped(self.snippet),
            date: Escaped(&self.date),
            moment: Escaped(&self.moment),
            is_unread: self.totals.is_unread,
            is_starred: self.totals.is_starred,
            is_answered: self.totals.is_answered,
            has_attachment: self.has_attachment,
        }
    }
}
