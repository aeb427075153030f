//! What loss recovery remembers while something is on the way. `tcb::loss` acts on it.

use super::congestion::{Congestion, Reduction};
use super::rack::Rack;
use super::sequence::SequenceNumber;

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Phase {
    /// Nothing is known to be lost.
    #[default]
    Open,
    /// A loss was found; it is being repaired.
    Repairing,
    /// The timer expired; everything starts anew, slowly.
    TimedOut,
}

/// What is taken back when nothing was lost.
#[derive(Clone, Copy)]
pub(super) struct Undo {
    pub(super) congestion: Congestion,
    /// Our timestamp in the first segment that was sent again.
    pub(super) stamp: Option<u32>,
}

/// Loss recovery of one connection while something is on the way.
#[derive(Default)]
pub(super) struct Recovery {
    pub(super) phase: Phase,
    pub(super) duplicates: u8,
    /// Bytes that duplicates tell of, without saying which.
    pub(super) assumed: u32,
    pub(super) reduction: Reduction,
    pub(super) rack: Rack,
    pub(super) undo: Option<Undo>,
    /// The next round trip is measured by what lies beyond.
    pub(super) timed_until: Option<SequenceNumber>,
}

impl Recovery {
    /// Asserts the invariants. `is_idle`: nothing is on the way.
    pub(super) fn assert_invariants(&self, is_idle: bool) {
        assert!(
            !is_idle || self.assumed == 0,
            "of what is on the way some may have arrived, of nothing nothing"
        );
    }
}
