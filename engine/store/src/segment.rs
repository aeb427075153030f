//! One segment: its owner and its pages.

use crate::layout::ShardId;

/// The owner of a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SegmentOwner {
    Free,
    Journal(ShardId),
    Body(ShardId),
    /// The segment belongs to another core. This store does not use it.
    Elsewhere,
}

/// A segment, as far as this store knows it. Only `Segments` changes it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment {
    pub(crate) owner: SegmentOwner,
    /// Pages that hold live data.
    pub(crate) live: u32,
    /// Pages that are being written, until their message is visible or given up.
    pub(crate) pinned: u32,
    /// Pages that were allocated to bodies. Unused pages at the end of the segment, where no
    /// further chunk fitted, do not count: compaction cannot regain them. In a segment that opening
    /// has found in use, all pages count.
    pub(crate) given: u32,
    /// Reads in flight.
    pub(crate) reading: u32,
    /// New bodies of the shard go into this segment.
    pub(crate) open: bool,
    /// The segment has chunks that cannot be read and will not be moved.
    pub(crate) damaged: bool,
}

const _: () = assert!(size_of::<Segment>() <= 24);

impl Segment {
    /// Pages that were allocated to a body, and are neither live nor pinned.
    pub(crate) fn dead(&self) -> u32 {
        self.given.saturating_sub(self.live + self.pinned)
    }
}

pub(crate) const FREE: Segment = Segment {
    owner: SegmentOwner::Free,
    live: 0,
    pinned: 0,
    given: 0,
    reading: 0,
    open: false,
    damaged: false,
};
