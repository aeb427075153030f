//! A stretch of bytes that share when they were sent last and what became of them.

use super::sequence::SequenceNumber;

/// What became of bytes that were sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fate {
    OnTheWay,
    /// Acknowledged selectively.
    Arrived,
    /// To be sent again.
    Lost,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Run {
    /// The number after its last byte.
    pub(super) end: SequenceNumber,
    /// When it was sent last, in microseconds on a circle.
    pub(super) sent_at: u32,
    pub(super) fate: Fate,
    /// Its round trip says nothing: it was sent more than once, or parts of it at other times.
    pub(super) vague: bool,
}

impl Run {
    /// Whether the two may be joined, their times aside.
    #[inline]
    pub(super) fn is_like(&self, other: &Run) -> bool {
        self.fate == other.fate && (self.vague == other.vague || self.fate != Fate::OnTheWay)
    }
}
