//! LIST and UIDL of a whole maildrop: as many lines as there is room for, and then the rest when
//! there is more.
//!
//! A turn visits at most [`super::VISITED_PER_TURN_MAX`] messages, so that a maildrop of any size
//! costs no other session its turn.
//!
//! Answers to: RFC 1939 sections 5 and 7.

use crate::actions::Actions;
use crate::number::MessageNumber;
use crate::reply::{self, Reply, TEXT_BYTES_MAX, Text};

use super::{VISITED_PER_TURN_MAX, WaitsFor};

/// A list under way.
///
/// Invariant, between two calls of [`Listing::send`]: of the messages before `next`, those that are
/// not marked as deleted have a line, and these lines were sent, and no others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Listing {
    column: Column,
    next: MessageNumber,
}

/// What stands beside each number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Column {
    Sizes,
    UniqueIds,
}

/// How far a list has come by a step: all lines were sent that there was room for.
pub(super) enum ListingStep {
    /// Its end was sent too.
    Whole,
    /// The rest follows when this has come.
    InPart(WaitsFor),
}

/// Bytes of lines that are said together: over TLS they share a record, and each call of [`Actions::reply`] costs.
const PAGE_BYTES: usize = 1024;

/// Lines that are said together.
type Page = heapless::Vec<u8, PAGE_BYTES>;

/// Room for any line, and for the end of a list behind it.
const ENTRY_BYTES_MAX: usize = TEXT_BYTES_MAX + reply::END.len();

impl Listing {
    pub(super) fn of(column: Column) -> Listing {
        Listing { column, next: MessageNumber(1) }
    }

    /// Sends `before`, for which there is room, and as many lines as there is room for. `messages`:
    /// messages of the maildrop. `visited`: messages that the session has visited in this turn.
    pub(super) fn send(
        &mut self,
        before: Reply,
        messages: u32,
        visited: &mut u32,
        actions: &mut impl Actions,
    ) -> ListingStep {
        let mut page = Page::new();
        put(&mut page, before);
        loop {
            // Looked at for each page: over TLS it takes more than it has bytes.
            let room = actions.send_room().min(PAGE_BYTES);
            let has_room = |page: &Page| page.len() + ENTRY_BYTES_MAX <= room;
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
                return ListingStep::Whole;
            }
            if *visited >= VISITED_PER_TURN_MAX || !had_room {
                return ListingStep::InPart(if had_room {
                    WaitsFor::Turn
                } else {
                    WaitsFor::SendRoom
                });
            }
        }
    }

    /// Writes the next message's line, if it has one.
    fn write_line(&self, page: &mut Page, actions: &impl Actions) {
        if actions.is_marked(self.next) {
            return;
        }
        let mut line = Text::new();
        match self.column {
            Column::Sizes => line.put_listing(self.next, actions.message_bytes(self.next)),
            Column::UniqueIds => line.put_unique_id(self.next, &actions.unique_id(self.next)),
        };
        put(page, line.put(b"\r\n").bytes());
    }
}

/// Appends what there is room for.
fn put(page: &mut Page, bytes: &[u8]) {
    let fits = page.extend_from_slice(bytes);
    debug_assert!(fits.is_ok(), "there is room");
}
