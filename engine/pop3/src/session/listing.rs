//! LIST and UIDL of a whole maildrop: as many lines as there is room for, and then the rest when there is more.
//!
//! A turn visits at most [`super::VISITED_PER_TURN_MAX`] messages, so that a maildrop of any size costs nobody else their turn.
//!
//! Answers to: RFC 1939 sections 5 and 7.

use crate::actions::Actions;
use crate::number::MessageNumber;
use crate::reply::{self, TEXT_BYTES_MAX, Text};

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

impl Session {
    pub(super) fn begin_listing(&mut self, listing: Listing, actions: &mut impl Actions) {
        actions.reply(reply::LIST_FOLLOWS);
        self.continue_listing(listing, actions);
    }

    pub(super) fn continue_listing(&mut self, mut listing: Listing, actions: &mut impl Actions) {
        let messages = self.maildrop.map_or(0, |maildrop| maildrop.all.messages);
        let began_at = listing.next;
        while listing.next.0 <= messages {
            // Looked at for each line: over TLS each takes more than it has bytes.
            let enough_room = actions.send_room() >= TEXT_BYTES_MAX + reply::END.len();
            if !enough_room || self.visited >= VISITED_PER_TURN_MAX {
                self.expect = Expect::Listing(listing);
                self.waits_for = if enough_room { WaitsFor::Turn } else { WaitsFor::SendRoom };
                if listing.next != began_at {
                    actions.set_deadline(Some(AUTOLOGOUT));
                }
                return;
            }
            listing.write_line(actions);
            listing.next.0 += 1;
            self.visited += 1;
        }
        actions.reply(reply::END);
        self.command_answered(actions);
    }
}

impl Listing {
    /// Writes the next message's line, if it has one.
    fn write_line(&self, actions: &mut impl Actions) {
        if actions.is_marked(self.next) {
            return;
        }
        let mut line = Text::new();
        match self.listed {
            Listed::Sizes => line.put_listing(self.next, actions.message_bytes(self.next)),
            Listed::UniqueIds => line.put_unique_id(self.next, &actions.unique_id(self.next)),
        };
        line.put(b"\r\n").send(actions);
    }
}
