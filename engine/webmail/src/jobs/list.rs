//! A page of a mailbox. The job walks the index, and takes rows from the cache or renders them from
//! summaries.
//!
//! The messages are in the order of their dates, which a move or its undo does not change. A row is
//! a conversation. Its place in the list is that of its newest message in this mailbox. So the walk
//! takes a row when it meets the newest message of a conversation, and skips the older ones. A
//! message that users sent to themselves counts once (`copies`).

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use http::Reply;
use store::{
    AccountId, Body, DRAFTS, JUNK, MailboxId, MailboxInfo, MessageInfo, OUTBOX, Store, TRASH,
};

use crate::address;
use crate::answer;
use crate::context::JobContext;
use crate::layout::{AuthenticatedClient, PageLayout};
use crate::list::{ListPage, RenderedRow};
use crate::step::JobProgress;
use crate::{ListPlace, ListRange, WebPage};

use super::copies::Copies;
use super::row_totals::RowTotals;
use super::rows::{self, FoundMessage};

/// The maximum number of rows of a page.
pub const ROWS_MAX: usize = 50;

/// The maximum number of messages that are examined for one page.
pub const WALKED_MAX: u32 = 5_000;
/// The maximum number of messages that are examined in one turn.
const WALKED_IN_A_TURN: usize = 500;

/// A page that is being prepared.
#[derive(Debug)]
pub(crate) struct ListJob {
    mailbox: MailboxId,
    range: ListRange,
    rows: Vec<FoundMessage>,
    /// The last message that was examined.
    last: Option<MessageInfo>,
    walked: u32,
    stage: Stage,
}

#[derive(Debug)]
enum Stage {
    /// The index is being read.
    Walking,
    /// The summaries of possible copies are being read.
    Counting(Copies),
    /// The count of each row is known, and the summaries of the rows are being read.
    Counted,
}

impl ListJob {
    pub(super) fn new(mailbox: MailboxId, range: ListRange) -> ListJob {
        ListJob { mailbox, range, rows: Vec::new(), last: None, walked: 0, stage: Stage::Walking }
    }

    pub(super) fn ask(
        &mut self,
        account: AccountId,
        under_way: &mut usize,
        cx: &mut JobContext<'_, '_>,
    ) -> JobProgress {
        if let Stage::Walking = self.stage {
            if !self.walk(account, cx.store()) {
                return JobProgress::Yield;
            }
            self.stage = Stage::Counting(Copies::among(&self.rows, account, cx.store()));
        }
        if let Stage::Counting(copies) = &mut self.stage {
            match copies.ask(account, under_way, cx) {
                JobProgress::Waiting if *under_way == 0 => copies.count_once(&mut self.rows),
                progress => return progress,
            }
            self.stage = Stage::Counted;
            rows::recall(&mut self.rows, account, cx);
        }
        rows::ask(&mut self.rows, account, under_way, cx)
    }

    /// Examines more messages. Returns true if the walk for this page is over.
    fn walk(&mut self, account: AccountId, store: &Store) -> bool {
        let (mailbox, most) = (self.mailbox, WALKED_IN_A_TURN);
        let last = self.last.as_ref().map(MessageInfo::date_place);
        let looked_at = match self.range {
            ListRange::After(ListPlace(place)) => {
                let at = last.unwrap_or(place);
                self.take(account, store, store.newer(account, mailbox, at, most))
            }
            ListRange::Before(ListPlace(place)) => {
                let at = last.or(Some(place));
                self.take(account, store, store.older(account, mailbox, at, most))
            }
            ListRange::Newest => {
                self.take(account, store, store.older(account, mailbox, last, most))
            }
        };
        let is_end = looked_at < WALKED_IN_A_TURN;
        let is_upwards = matches!(self.range, ListRange::After(_));
        let is_over = is_end || self.walked >= WALKED_MAX;
        if is_upwards && (is_end && self.rows.len() < ROWS_MAX || is_over && self.rows.is_empty()) {
            // The newer messages do not fill a page, or the walk has found no row among them, as in
            // a very long conversation. So the job shows the newest page instead.
            *self = ListJob::new(mailbox, ListRange::Newest);
            return false;
        }
        if is_over && is_upwards {
            self.rows.reverse();
            self.last = self.rows.last().map(|row| row.info);
        }
        is_over
    }

    /// Takes the next rows until the page is full: the newest message of each conversation in this
    /// mailbox. Returns how many messages were examined. If they are fewer than
    /// [`WALKED_IN_A_TURN`], the mailbox has no more.
    fn take(
        &mut self,
        account: AccountId,
        store: &Store,
        messages: impl Iterator<Item = MessageInfo>,
    ) -> usize {
        let mut looked_at = 0;
        for info in messages {
            if self.is_row(account, store, &info) {
                if self.rows.len() >= ROWS_MAX {
                    break;
                }
                let mut row = FoundMessage::of(store, account, self.mailbox, info);
                if self.is_grouped() {
                    row.totals = RowTotals::of(store, account, self.mailbox, &info);
                }
                self.rows.push(row);
            }
            self.last = Some(info);
            self.walked += 1;
            looked_at += 1;
        }
        looked_at
    }

    /// Whether the page has a row for this message.
    fn is_row(&self, account: AccountId, store: &Store, info: &MessageInfo) -> bool {
        let newest = || store.newest_of_conversation(account, self.mailbox, info.conversation);
        !self.is_grouped() || newest() == Some(info.uid)
    }

    /// Whether the rows are conversations. Drafts and messages of the outbox are not grouped, since
    /// a user continues each draft separately, and cancels each message separately.
    fn is_grouped(&self) -> bool {
        ![DRAFTS, OUTBOX].contains(&self.mailbox)
    }

    pub(super) fn body_arrived(&mut self, body: &Body) {
        match &mut self.stage {
            Stage::Counting(copies) => copies.body_arrived(body),
            Stage::Walking | Stage::Counted => rows::body_arrived(&mut self.rows, body),
        }
    }

    pub(super) fn page(&self, client: &AuthenticatedClient, cx: &mut JobContext<'_, '_>) -> Reply {
        let account = client.account;
        let rows = rows::write(&self.rows, account, cx);
        let Some(mailbox) = cx.store().mailbox(account, self.mailbox) else {
            return answer::not_found();
        };
        let layout = PageLayout::of(client, cx.store(), Some(self.mailbox));
        let found = &self.rows;
        let path = |range| WebPage::List { mailbox: self.mailbox.0, range }.to_string();
        let older_than = |place| cx.store().count_older(account, self.mailbox, place);
        let newest = found.first().map_or(0, |row| older_than(row.info.date_place()) + 1);
        let above = mailbox.messages.saturating_sub(newest);
        let left = self.last.map_or(0, |info| older_than(info.date_place()));
        let place_of = |info: &MessageInfo| ListPlace(info.date_place());
        let last_examined = self.last.as_ref().filter(|_| left > 0);
        let older = last_examined.map(|info| path(ListRange::Before(place_of(info))));
        let newer = found.first().filter(|_| above > 0).map(|row| match above as usize {
            ..=ROWS_MAX => path(ListRange::Newest),
            _ => path(ListRange::After(place_of(&row.info))),
        });
        // The numbers of the first and last message. If there are fewer rows than messages, the
        // text also counts the rows.
        let last = mailbox.messages.saturating_sub(left);
        let messages = format!("{}–{last} of {}", above + 1, mailbox.messages);
        let extent = match found.len() {
            0 => String::new(),
            rows if rows as u32 == last.saturating_sub(above) => messages,
            1 => format!("1 conversation, messages {messages}"),
            rows => format!("{rows} conversations, messages {messages}"),
        };
        let list = match self.range {
            ListRange::Newest => String::new(),
            range => address::list_query(&path(range)),
        };
        let links = layout.links();
        let page = ListPage {
            frame: layout.frame(client, &links),
            title: &layout.name_of(self.mailbox),
            here: &path(self.range),
            list: &list,
            rows: &rows,
            extent: &extent,
            newer: newer.as_deref(),
            older: older.as_deref(),
            is_trash: self.mailbox == TRASH,
            is_outbox: self.mailbox == OUTBOX,
            is_junk: self.mailbox == JUNK,
            is_grouped: self.is_grouped(),
            last_uid: last_uid(&mailbox),
            progress: None,
        };
        answer::page_with_rows(&page, rows.iter().map(RenderedRow::bytes).sum())
    }
}

/// The highest UID that a message of the mailbox can have. Messages that arrive later have a higher
/// one.
pub(super) fn last_uid(mailbox: &MailboxInfo) -> u32 {
    mailbox.uid_next.0.saturating_sub(1)
}
