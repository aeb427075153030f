//! A search. The job walks the summaries of messages of all mailboxes together, from the newest on,
//! until one page is full.
//!
//! A search covers the data that a list shows: people, subjects, snippets, dates and flags. The
//! walk ends when a page is full or [`LOOKED_AT_MAX`] messages were examined. The page shows how
//! many messages were examined, and its link continues the walk. So each page of a search takes a
//! bounded time.

use alloc::collections::VecDeque;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::cmp::{Ordering, Reverse};

use http::Reply;
use store::{
    AccountId, Body, DatePlace, Flags, JUNK, MailboxId, MessageInfo, OUTBOX, Store, TRASH,
};

use crate::address;
use crate::answer;
use crate::context::JobContext;
use crate::layout::{AuthenticatedClient, PageLayout, display_name};
use crate::list::{ListPage, RenderedRow};
use crate::search::{Candidate, Query};
use crate::step::{JobProgress, READS_MAX};
use crate::zone::Zone;
use crate::{ListPlace, SearchPlace, WebPage};

use super::list::{ROWS_MAX, last_uid};
use super::rows::{self, FoundMessage};

/// The maximum number of messages that are examined for one page.
pub const LOOKED_AT_MAX: u32 = 2000;

/// The number of messages that are read from the index at a time: its limits in one mailbox, and
/// the number in all mailboxes together. If the UIDs of a mailbox are not in the order of the
/// dates, each read looks at all its messages.
const AHEAD_MIN: usize = 32;
const AHEAD_MAX: usize = 256;
const AHEAD_IN_ALL: usize = 2048;

/// A search in progress.
#[derive(Debug)]
pub(crate) struct SearchJob {
    words: String,
    query: Query,
    /// The user's zone, once the search has begun.
    zone: Option<Zone>,
    only: Option<MailboxId>,
    before: Option<SearchPlace>,
    /// The mailboxes of the walk. `None`: the walk has not begun.
    mailboxes: Option<Vec<SearchedMailbox>>,
    /// The last message that was examined.
    at: Option<SearchPlace>,
    /// The messages that are being examined.
    looked_at: Vec<FoundMessage>,
    found: Vec<FoundMessage>,
    count: u32,
}

/// A mailbox that is searched.
#[derive(Debug)]
struct SearchedMailbox {
    id: MailboxId,
    name: String,
    /// The next messages, the newest first.
    next: VecDeque<MessageInfo>,
    /// The messages after those in `next` are older than this place. `None`: the newest is next.
    place: Option<DatePlace>,
    /// Whether there are no messages after those in `next`.
    is_over: bool,
}

impl SearchedMailbox {
    /// The next message. The index is read some messages at a time.
    fn peek(&mut self, account: AccountId, ahead: usize, store: &Store) -> Option<&MessageInfo> {
        if self.next.is_empty() && !self.is_over {
            self.next.extend(store.older(account, self.id, self.place, ahead));
            self.is_over = self.next.len() < ahead;
            self.place = self.next.back().map(MessageInfo::date_place).or(self.place);
        }
        self.next.front()
    }

    /// The place from which a search that has reached `at` goes on in this mailbox. Among messages
    /// of the same second, those in the mailbox with the lowest number come first.
    fn place_after(&self, at: SearchPlace) -> DatePlace {
        let ListPlace(place) = at.place;
        match self.id.0.cmp(&at.mailbox) {
            Ordering::Less => place.start_of_second(),
            Ordering::Equal => place,
            Ordering::Greater => place.end_of_second(),
        }
    }
}

impl SearchJob {
    pub(super) fn new(
        words: String,
        only: Option<MailboxId>,
        before: Option<SearchPlace>,
    ) -> SearchJob {
        let query = Query::parse(&words);
        SearchJob {
            words,
            query,
            zone: None,
            only,
            before,
            mailboxes: None,
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
            let zone = self.zone.get_or_insert_with(|| cx.zone(account)).clone();
            self.judge(&zone);
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
        let mailboxes = self.mailboxes.as_deref().unwrap_or_default();
        for found in self.looked_at.drain(..) {
            let place = ListPlace(found.info.date_place());
            self.at = Some(SearchPlace { mailbox: found.mailbox.0, place });
            let Some(summary) = found.summary() else { continue };
            let mailbox = mailboxes.iter().find(|one| one.id == found.mailbox);
            let candidate = Candidate {
                from: &format!("{} {}", summary.sender_name, summary.sender_address),
                to: &summary.recipients,
                subject: &summary.subject,
                snippet: &summary.snippet,
                text: None,
                mailbox: mailbox.map_or("", |one| display_name(&one.name)),
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

    /// Takes the next messages of all mailboxes, the newest first. Returns false if no messages are
    /// left.
    fn look_on(&mut self, account: AccountId, store: &Store) -> bool {
        let (only, before) = (self.only, self.before);
        let mailboxes =
            self.mailboxes.get_or_insert_with(|| searched_mailboxes(store, account, only, before));
        let ahead = (AHEAD_IN_ALL / mailboxes.len().max(1)).clamp(AHEAD_MIN, AHEAD_MAX);
        while self.looked_at.len() < READS_MAX {
            let heads = mailboxes.iter_mut().enumerate().filter_map(|(index, one)| {
                let date = one.peek(account, ahead, store)?.internal_date;
                Some((date, Reverse(one.id.0), index))
            });
            let Some((.., index)) = heads.max() else { break };
            let Some(one) = mailboxes.get_mut(index) else { break };
            if let Some(info) = one.next.pop_front() {
                self.looked_at.push(FoundMessage::of(store, account, one.id, info));
            }
        }
        self.count += self.looked_at.len() as u32;
        !self.looked_at.is_empty()
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
        let only = self.only.and_then(|only| cx.store().mailbox(client.account, only));
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
            last_uid: only.as_ref().map_or(0, last_uid),
            progress,
        };
        answer::page_with_rows(&page, rows.iter().map(RenderedRow::bytes).sum())
    }
}

/// The mailboxes of a search, each at the place where the search goes on.
fn searched_mailboxes(
    store: &Store,
    account: AccountId,
    only: Option<MailboxId>,
    before: Option<SearchPlace>,
) -> Vec<SearchedMailbox> {
    let known = store.account(account);
    let all = known.iter().flat_map(|known| known.mailboxes());
    // Trash, Junk and the outbox are searched only if the user names them. Messages in the outbox
    // are also in Sent.
    let is_left_out = |id| [TRASH, JUNK, OUTBOX].contains(&id);
    let wanted = all.filter(|(id, _)| only.map_or(!is_left_out(*id), |only| *id == only));
    let begin = |(id, name): (MailboxId, &str)| {
        let (name, next, is_over) = (name.to_string(), VecDeque::new(), false);
        let one = SearchedMailbox { id, name, next, place: None, is_over };
        SearchedMailbox { place: before.map(|at| one.place_after(at)), ..one }
    };
    wanted.map(begin).collect()
}
