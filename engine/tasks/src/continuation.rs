//! Continuations, and the counter that joins several events into one.

use crate::FrameId;

/// The waiting point of a frame that a continuation leads to, in a code of the frame's owner.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Entry(pub u32);

/// Who is woken, and where it goes on: given with a request, handed back with its completion.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Continuation {
    /// The frame that waits.
    pub frame: FrameId,
    /// The point at which it waits.
    pub entry: Entry,
}

/// A synchronization counter: several events, of which the last lets the frame go on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Countdown {
    outstanding: u32,
}

impl Countdown {
    /// Waits for `events` events.
    pub const fn new(events: u32) -> Countdown {
        Countdown { outstanding: events }
    }

    /// Waits for one event more.
    pub fn expect_one_more(&mut self) {
        assert!(self.outstanding < u32::MAX, "a countdown of 2^32 events");
        self.outstanding += 1;
    }

    /// Counts one event; true for the last one. An event that nobody expected is a broken invariant.
    pub fn arrived(&mut self) -> bool {
        assert!(self.outstanding > 0, "an event arrived that no one counts on");
        self.outstanding -= 1;
        self.outstanding == 0
    }

    /// Whether nothing is outstanding.
    pub const fn is_done(self) -> bool {
        self.outstanding == 0
    }
}
