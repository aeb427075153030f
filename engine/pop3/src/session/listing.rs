//! LIST and UIDL of a whole maildrop: as many lines as there is room for, and then the rest when there is more.
//!
//! A turn visits at most [`super::VISITED_PER_TURN_MAX`] messages, so that a maildrop of any size costs nobody else their turn.
//!
//! Answers to: RFC 1939 sections 5 and 7.

use crate::actions::Actions;
use crate::number::MessageNumber;
use crate::reply::{self, Reply, TEXT_BYTES_MAX, Text};

use super::{AUTOLOGOUT, Expect, Session, VISITED_PER_TURN_MAX, WaitsFor};

/// How far a list has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Listing {
    listed: Listed,
    next: MessageNumber,
}

/// What stands beside each number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Listed {
    Sizes,
    UniqueIds,
}

impl Listing {
    pub(super) fn of(listed: Listed) -> Listing {
        Listing { listed, next: MessageNumber(1) }
    }
}

/// Bytes of lines that are said together: over TLS they share a record, and each call of [`Actions::reply`] costs.
const PAGE_BYTES: usize = 1024;

/// Lines that are said together.
type Page = heapless::Vec<u8, PAGE_BYTES>;

impl Session {
    pub(super) fn begin_listing(&mut self, listing: Listing, actions: &mut impl Actions) {
        self.list(listing, reply::LIST_FOLLOWS, actions);
    }

    pub(super) fn continue_listing(&mut self, listing: Listing, actions: &mut impl Actions) {
        self.list(listing, b"", actions);
    }

    /// Says `before`, for which there is room, and as much of the list as there is room for.
    fn list(&mut self, mut listing: Listing, before: Reply, actions: &mut impl Actions) {
        let messages = self.maildrop.map_or(0, |maildrop| maildrop.all.messages);
        let began_at = listing.next;
        let mut page = Page::new();
        put(&mut page, before);
        loop {
            // Looked at for each page: over TLS it takes more than it has bytes.
            let room = actions.send_room().min(PAGE_BYTES);
            let has_room = |page: &Page| page.len() + ENTRY_BYTES_MAX <= room;
            let had_room = has_room(&page);
            while listing.next.0 <= messages && has_room(&page) && self.visited < VISITED_PER_TURN_MAX {
                listing.write_line(&mut page, actions);
                listing.next.0 += 1;
                self.visited += 1;
            }
            let is_over = listing.next.0 > messages;
            if is_over {
                put(&mut page, reply::END);
            }
            if !page.is_empty() {
                actions.reply(&page);
                page.clear();
            }
            if is_over {
                return self.command_answered(actions);
            }
            if self.visited >= VISITED_PER_TURN_MAX || !had_room {
                self.expect = Expect::Listing(listing);
                self.waits_for = if had_room { WaitsFor::Turn } else { WaitsFor::SendRoom };
                if listing.next != began_at {
                    actions.set_deadline(Some(AUTOLOGOUT));
                }
                return;
            }
        }
    }
}

/// Room for any line, and for the end of a list behind it.
const ENTRY_BYTES_MAX: usize = TEXT_BYTES_MAX + reply::END.len();

impl Listing {
    /// Writes the next message's line, if it has one.
    fn write_line(&self, page: &mut Page, actions: &impl Actions) {
        if actions.is_marked(self.next) {
            return;
        }
        let mut line = Text::new();
        match self.listed {
            Listed::Sizes => line.put_listing(self.next, actions.message_bytes(self.next)),
            Listed::UniqueIds => line.put_unique_id(self.next, &actions.unique_id(self.next)),
        };
        put(page, line.put(b"\r\n").bytes());
    }
}

/// Appends what there is room for.
fn put(page: &mut Page, bytes: &[u8]) {
    let fits = page.extend_from_slice(bytes);
    debug_assert!(fits.is_ok(), "there is room");
}
