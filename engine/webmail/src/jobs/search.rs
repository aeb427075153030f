//! A search. The job walks the summaries of messages, from the newest on, until one page is full.
//!
//! A search covers the data that a list shows: people, subjects, snippets, dates and flags. The
//! walk ends when a page is full or [`LOOKED_AT_MAX`] messages were examined. The page shows how
//! many messages were examined, and its link continues the walk. So each page of a search takes a
//! bounded time.

use alloc::collections::VecDeque;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use http::Reply;
use store::{AccountId, Body, Flags, JUNK, MailboxId, OUTBOX, Store, TRASH, Uid};

use crate::address;
use crate::answer;
use crate::context::JobContext;
use crate::layout::{AuthenticatedClient, PageLayout, display_name};
use crate::list::{ListPage, RenderedRow};
use crate::search::{Candidate, Query};
use crate::step::{JobProgress, READS_MAX};
use crate::zone::Zone;
use crate::{MessageKey, WebPage};

use super::list::ROWS_MAX;
use super::rows::{self, FoundMessage};

/// The maximum number of messages that are examined for one page.
pub const LOOKED_AT_MAX: u32 = 2000;

/// A search in progress.
#[derive(Debug)]
pub(crate) struct SearchJob {
    words: String,
    query: Query,
    only: Option<MailboxId>,
    before: Option<MessageKey>,
    /// The remaining mailboxes, with their names. The walk is in the first mailbox of the list.
    /// `None`: the walk has not begun.
    left: Option<VecDeque<(MailboxId, String)>>,
    /// The last message that was examined.
    at: Option<MessageKey>,
    /// The messages of one mailbox that are being examined.
    looked_at: Vec<FoundMessage>,
    found: Vec<FoundMessage>,
    count: u32,
}

impl SearchJob {
    pub(super) fn new(
        words: String,
        only: Option<MailboxId>,
        before: Option<MessageKey>,
    ) -> SearchJob {
        let query = Query::parse(&words);
        SearchJob {
            words,
            query,
            only,
            before,
            left: None,
            at: None,
            looked_at: Vec::new(),
            found: Vec::new(),
            count: 0,
        }
    }

    pub(super) fn ask(
        &mut self,
        account: AccountId,
        under_way: &mut usize,
        cx: &mut JobContext<'_, '_>,
    ) -> JobProgress {
        loop {
            match rows::ask(&mut self.looked_at, account, under_way, cx) {
                JobProgress::Waiting if *under_way == 0 => {}
                progress => return progress,
            }
            self.judge(&cx.zone(account));
            if self.is_full() || !self.look_on(account, cx.store()) {
                return JobProgress::Waiting;
            }
        }
    }

    pub(super) fn body_arrived(&mut self, body: &Body) {
        rows::body_arrived(&mut self.looked_at, body);
    }

    fn is_full(&self) -> bool {
        self.found.len() + READS_MAX > ROWS_MAX || self.count >= LOOKED_AT_MAX
    }

    /// Keeps the matches among the messages that were read.
    fn judge(&mut self, zone: &Zone) {
        let name = self.left.as_ref().and_then(|left| left.front()).map_or("", |(_, name)| name);
        for found in self.looked_at.drain(..) {
            self.at = Some(found.key());
            let Some(summary) = found.summary() else { continue };
            let candidate = Candidate {
                from: &format!("{} {}", summary.sender_name, summary.sender_address),
                to: &summary.recipients,
                subject: &summary.subject,
                snippet: &summary.snippet,
                text: None,
                mailbox: display_name(name),
                date: zone.local(found.info.internal_date),
                is_unread: !found.info.flags.contains(Flags::SEEN),
                is_starred: found.info.flags.contains(Flags::FLAGGED),
                has_attachment: summary.has_attachment,
            };
            if self.query.matches(&candidate) {
                self.found.push(found);
            }
        }
    }

    /// Takes the next messages. Returns false if no messages are left.
    fn look_on(&mut self, account: AccountId, store: &Store) -> bool {
        let (only, before) = (self.only, self.before);
        let left = self.left.get_or_insert_with(|| {
            let known = store.account(account);
            let all = known.iter().flat_map(|known| known.mailboxes());
            // Trash, Junk and the outbox are searched only if the user names them. Messages in the
            // outbox are also in Sent.
            let is_left_out = |id| [TRASH, JUNK, OUTBOX].contains(&id);
            let wanted = all.filter(|(id, _)| only.map_or(!is_left_out(*id), |only| *id == only));
            let all: VecDeque<(MailboxId, String)> =
                wanted.map(|(id, name)| (id, name.to_string())).collect();
            all.into_iter()
                .skip_while(|(id, _)| before.is_some_and(|before| before.mailbox != id.0))
                .collect()
        });
        while let Some((mailbox, _)) = left.front() {
            let at = self.at.or(before).filter(|at| at.mailbox == mailbox.0).map(|at| Uid(at.uid));
            let next = store.messages_below(account, *mailbox, at).take(READS_MAX);
            self.looked_at
                .extend(next.map(|info| FoundMessage::of(store, account, *mailbox, info)));
            if !self.looked_at.is_empty() {
                self.count += self.looked_at.len() as u32;
                return true;
            }
            left.pop_front();
        }
        false
    }

    pub(super) fn page(&self, client: &AuthenticatedClient, cx: &mut JobContext<'_, '_>) -> Reply {
        let rows = rows::write(&self.found, client.account, cx);
        let layout = PageLayout::of(client, cx.store(), self.only);
        let path = |before| {
            let mailbox = self.only.map(|only| only.0);
            WebPage::Search { words: self.words.as_str().into(), mailbox, before }.to_string()
        };
        let older = self.at.filter(|_| self.is_full()).map(|at| path(Some(at)));
        let results = match self.found.len() {
            1 => "1 result".to_string(),
            count => format!("{count} results"),
        };
        let is_whole = self.before.is_none() && older.is_none();
        let extent = if is_whole { results } else { format!("{results} on this page") };
        let searched = match self.count {
            1 => "1 message was".to_string(),
            count => format!("{count} messages were"),
        };
        let mut progress = String::new();
        let not_understood = Query::not_understood(&self.words);
        if !not_understood.is_empty() {
            progress = format!(
                "Not an operator, and searched as text: “{}”. ",
                not_understood.join("”, “")
            );
        }
        if older.is_some() {
            progress.push_str(&searched);
            progress.push_str(" searched for this page. Older messages may match, too.");
        } else if self.found.is_empty() {
            let place = match self.only {
                Some(_) => "in this folder",
                None => "in all folders except Junk and Trash",
            };
            progress.push_str(&format!(
                "Names, addresses, subjects and first lines of messages were searched {place}."
            ));
        }
        let progress = Some(progress.trim_end()).filter(|progress| !progress.is_empty());
        let links = layout.links();
        let mut frame = layout.frame(client, &links);
        frame.search = &self.words;
        let page = ListPage {
            frame,
            title: "Search results",
            here: &path(self.before),
            list: &address::list_query(&path(self.before)),
            rows: &rows,
            extent: &extent,
            newer: None,
            older: older.as_deref(),
            is_trash: self.only == Some(TRASH),
            is_outbox: false,
            is_junk: self.only == Some(JUNK),
            is_grouped: false,
            progress,
        };
        answer::page_with_rows(&page, rows.iter().map(RenderedRow::bytes).sum())
    }
}
