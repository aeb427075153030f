//! The state of the store, and whether it retries the disk.
//!
//! Invariant: a retry is requested or in progress only while the store is read-only because of a
//! failed write or flush.

use crate::outcome::{Refusal, State, WhyReadOnly};

/// Whether a read-only store retries the disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Retry {
    #[default]
    No,
    /// The retry begins as soon as nothing is in flight.
    Requested,
    /// The fences of the retry are in flight.
    UnderWay,
}

#[derive(Debug)]
pub(crate) struct Condition {
    state: State,
    retry: Retry,
}

impl Condition {
    pub(crate) fn opening() -> Condition {
        Condition { state: State::Opening, retry: Retry::No }
    }

    pub(crate) fn state(&self) -> State {
        self.state
    }

    pub(crate) fn is_serving(&self) -> bool {
        self.state == State::Serving
    }

    /// Whether the store writes and flushes groups. It does so while it serves, and in a retry.
    pub(crate) fn commits(&self) -> bool {
        self.is_serving() || self.retry == Retry::UnderWay
    }

    /// Whether bodies can be read.
    pub(crate) fn is_open(&self) -> bool {
        !matches!(self.state, State::Opening | State::Refused(_))
    }

    /// Errors: `ReadOnly`, `NotServing`.
    pub(crate) fn check_serving(&self) -> Result<(), Refusal> {
        match self.state {
            State::Serving => Ok(()),
            State::ReadOnly(_) => Err(Refusal::ReadOnly),
            State::Opening | State::Refused(_) => Err(Refusal::NotServing),
        }
    }

    /// Sets the state at the end of opening.
    pub(crate) fn has_opened(&mut self, state: State) {
        assert!(self.state == State::Opening, "a store that was opened twice");
        self.state = state;
    }

    /// Makes the store read-only after a failure of the disk. Returns whether this changes
    /// anything.
    pub(crate) fn has_failed(&mut self, why: WhyReadOnly) -> bool {
        let matters = self.commits();
        if matters {
            *self = Condition { state: State::ReadOnly(why), retry: Retry::No };
        }
        matters
    }

    /// Requests a retry of the disk, if that can help.
    pub(crate) fn request_retry(&mut self) {
        // The flush at the end of opening may have failed. Then data that opening has read may not
        // be durable, and only the next opening can tell.
        let may_retry = matches!(
            self.state,
            State::ReadOnly(WhyReadOnly::WriteFailed | WhyReadOnly::FlushFailed)
        );
        if may_retry && self.retry == Retry::No {
            self.retry = Retry::Requested;
        }
    }

    #[inline]
    pub(crate) fn is_retry_wanted(&self) -> bool {
        self.retry == Retry::Requested
    }

    pub(crate) fn begins_retry(&mut self) {
        assert!(self.retry == Retry::Requested, "a retry that was not requested");
        self.retry = Retry::UnderWay;
    }

    pub(crate) fn is_in_retry(&self) -> bool {
        self.retry == Retry::UnderWay
    }

    /// Ends a retry, after its flush has completed. `has_all`: every journal that needs a fence has
    /// one.
    pub(crate) fn ends_retry(&mut self, has_all: bool) {
        self.retry = Retry::No;
        if has_all {
            self.state = State::Serving;
        }
    }
}
