//! A run: consecutive bytes with the same time of last transmission and the same state.

use super::sequence::SequenceNumber;

/// The state of sent bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum RunState {
    OnTheWay,
    /// Acknowledged selectively.
    Arrived,
    /// To be retransmitted.
    Lost,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Run {
    /// The number after the last byte of the run.
    pub(super) end: SequenceNumber,
    /// When the run was last sent, in microseconds modulo 2^32.
    pub(super) sent_at: u32,
    pub(super) state: RunState,
    /// Whether the round trip of the run is unusable: the run was sent more than once, or its parts
    /// were sent at different times.
    pub(super) ambiguous: bool,
}

impl Run {
    /// Whether the two runs may be joined, apart from their times.
    #[inline]
    pub(super) fn is_like(&self, other: &Run) -> bool {
        self.state == other.state
            && (self.ambiguous == other.ambiguous || self.state != RunState::OnTheWay)
    }
}
