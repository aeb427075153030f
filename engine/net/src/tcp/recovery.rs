//! The state of loss recovery while data is in flight. `tcb::loss` acts on it.

use super::congestion::{Congestion, Reduction};
use super::rack::Rack;
use super::sequence::SequenceNumber;

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum RecoveryPhase {
    /// No loss is known.
    #[default]
    Open,
    /// A loss was detected and is being repaired.
    Repairing,
    /// The retransmission timer expired. Sending restarts with a window of one segment.
    TimedOut,
}

/// The congestion state before a loss. It is restored if nothing was lost.
#[derive(Clone, Copy)]
pub(super) struct Undo {
    pub(super) congestion: Congestion,
    /// Our timestamp in the first retransmitted segment.
    pub(super) stamp: Option<u32>,
}

/// The loss recovery of one connection while data is in flight.
#[derive(Default)]
pub(super) struct Recovery {
    pub(super) phase: RecoveryPhase,
    pub(super) duplicates: u8,
    /// The number of bytes that have arrived according to duplicate acknowledgments. These do not
    /// tell which bytes have arrived.
    pub(super) assumed: u32,
    pub(super) reduction: Reduction,
    pub(super) rack: Rack,
    pub(super) undo: Option<Undo>,
    /// The next round trip sample needs an acknowledgment beyond this number.
    pub(super) timed_until: Option<SequenceNumber>,
}

impl Recovery {
    /// Asserts the invariants. `is_idle`: nothing is in flight.
    pub(super) fn assert_invariants(&self, is_idle: bool) {
        assert!(
            !is_idle || self.assumed == 0,
            "bytes are assumed to have arrived only while some are in flight"
        );
    }
}
