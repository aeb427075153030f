//! LIST and UIDL of a whole maildrop: sends as many lines as there is space for, and the rest
//! later.
//!
//! A turn visits at most [`super::VISITED_PER_TURN_MAX`] messages. So a maildrop of any size delays
//! no other session.
//!
//! Implements: RFC 1939 sections 5 and 7.

use crate::actions::Actions;
use crate::number::MessageNumber;
use crate::reply::{self, REPLY_TEXT_BYTES_MAX, Reply, ReplyText};

use super::{Pop3WaitsFor, VISITED_PER_TURN_MAX};

/// A list in progress.
///
/// Invariant between two calls of [`MaildropList::send`]: the sent lines are those of the unmarked
/// messages before `next`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct MaildropList {
    column: Column,
    next: MessageNumber,
}

/// The second column, after the number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Column {
    Sizes,
    UniqueIds,
}

/// The progress of a list after [`MaildropList::send`].
pub(super) enum ListStep {
    /// The list is complete.
    Whole,
    /// The rest of the list follows after this event.
    InPart(Pop3WaitsFor),
}

/// The most bytes of lines that are sent together. Over TLS they share a record, and each call of
/// [`Actions::reply`] has a cost.
const PAGE_BYTES: usize = 1024;

/// Lines that are sent together.
type ListPage = heapless::Vec<u8, PAGE_BYTES>;

/// The maximum length of one line together with the end of the list, in bytes.
const ENTRY_BYTES_MAX: usize = REPLY_TEXT_BYTES_MAX + reply::END.len();

impl MaildropList {
    pub(super) fn of(column: Column) -> MaildropList {
        MaildropList { column, next: MessageNumber(1) }
    }

    /// Sends `before`, which must fit, and as many lines as possible. `messages`: the number of
    /// messages in the maildrop. `visited`: the number of messages that the session has visited in
    /// this turn.
    pub(super) fn send(
        &mut self,
        before: Reply,
        messages: u32,
        visited: &mut u32,
        actions: &mut impl Actions,
    ) -> ListStep {
        let mut page = ListPage::new();
        put(&mut page, before);
        loop {
            // Before each page, the free space is read again: over TLS a page takes more space than
            // its bytes.
            let room = actions.send_room().min(PAGE_BYTES);
            let has_room = |page: &ListPage| page.len() + ENTRY_BYTES_MAX <= room;
            let had_room = has_room(&page);
            while self.next.0 <= messages && has_room(&page) && *visited < VISITED_PER_TURN_MAX {
                self.write_line(&mut page, actions);
                self.next.0 += 1;
                *visited += 1;
            }
            let is_over = self.next.0 > messages;
            if is_over {
                put(&mut page, reply::END);
            }
            if !page.is_empty() {
                actions.reply(&page);
                page.clear();
            }
            if is_over {
                return ListStep::Whole;
            }
            if *visited >= VISITED_PER_TURN_MAX || !had_room {
                return ListStep::InPart(if had_room {
                    Pop3WaitsFor::Turn
                } else {
                    Pop3WaitsFor::SendRoom
                });
            }
        }
    }

    /// Writes the line of the next message, unless the message is marked.
    fn write_line(&self, page: &mut ListPage, actions: &impl Actions) {
        if actions.is_marked(self.next) {
            return;
        }
        let mut line = ReplyText::new();
        match self.column {
            Column::Sizes => line.put_listing(self.next, actions.message_bytes(self.next)),
            Column::UniqueIds => line.put_unique_id(self.next, &actions.unique_id(self.next)),
        };
        put(page, line.put(b"\r\n").bytes());
    }
}

/// Appends `bytes`, which must fit.
fn put(page: &mut ListPage, bytes: &[u8]) {
    let fits = page.extend_from_slice(bytes);
    debug_assert!(fits.is_ok(), "there is room");
}
