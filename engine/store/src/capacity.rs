//! How full the disk and the index are: for a caller with a message, and for the operator.
//!
//! Each core reports its part to the disk owner when it has changed by enough. So the disk owner
//! knows the use of the whole machine.

use crate::chunk::CHUNK_OCTETS;
use crate::index::RESIDENT_BYTES_PER_MESSAGE;
use crate::indexes::Indexes;
use crate::layout::PIECE_PAGES;
use crate::outcome::Refusal;
use crate::segments::Segments;
use alloc::vec::Vec;
use machine::CoreId;

/// A core reports its use when a part of it has changed by more than the limit / `STEPS`.
const STEPS: u64 = 256;

/// The space for one more body.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BodySpace {
    /// The segments that are free for bodies.
    segments: u32,
    /// The segments that would be free for bodies on an otherwise empty disk. Zero if this store
    /// has no disk.
    segments_max: u32,
    /// The number of whole chunks in a segment.
    chunks: u32,
    is_index_full: bool,
}

impl BodySpace {
    /// No space: no disk is open.
    pub const NONE: BodySpace =
        BodySpace { segments: 0, segments_max: 0, chunks: 0, is_index_full: false };

    pub(crate) fn of(segments: &Segments, indexes: &Indexes) -> BodySpace {
        let geometry = segments.geometry();
        let kept = segments.reserve() + segments.journals();
        BodySpace {
            segments: segments.left_for_bodies(),
            segments_max: geometry.segments().saturating_sub(kept),
            chunks: geometry.segment_pages / PIECE_PAGES,
            is_index_full: indexes.are_full(),
        }
    }

    /// Checks that a body of `octets` is likely to find space.
    ///
    /// Errors: `NotServing` without a disk; `TooLarge` if the body would not fit on an empty disk;
    /// `IndexFull`, `DiskFull`.
    pub fn check(self, octets: u64) -> Result<(), Refusal> {
        if self.segments_max == 0 {
            return Err(Refusal::NotServing);
        }
        if octets > self.octets_max() {
            return Err(Refusal::TooLarge);
        }
        if self.is_index_full {
            return Err(Refusal::IndexFull);
        }
        let chunks = octets / CHUNK_OCTETS as u64 + 1;
        let is_enough = chunks.div_ceil(u64::from(self.chunks)) <= u64::from(self.segments);
        if is_enough { Ok(()) } else { Err(Refusal::DiskFull) }
    }

    /// Whether a body of `octets` is likely to find space.
    pub fn holds(self, octets: u64) -> bool {
        self.check(octets).is_ok()
    }

    /// The size of the largest body that an otherwise empty disk has space for.
    pub fn octets_max(self) -> u64 {
        u64::from(self.segments_max) * u64::from(self.chunks) * CHUNK_OCTETS as u64
    }
}

/// The use of a limited resource.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Fill {
    /// The part in use.
    pub used: u64,
    /// The limit.
    pub limit: u64,
    /// Whether new messages are refused because of this limit.
    pub is_full: bool,
}

impl Fill {
    /// The part in use in percent, rounded down.
    pub fn percent(self) -> u64 {
        (100 * self.used).checked_div(self.limit).unwrap_or(0)
    }
}

/// How full the disk and the index are.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Capacity {
    /// Pages of the disk. The reserve is not part of the limit.
    pub disk: Fill,
    /// Bytes of the index.
    pub index: Fill,
}

impl Capacity {
    /// The number of messages for which these bytes of the index are enough.
    pub fn messages(index_bytes: u64) -> u64 {
        index_bytes / RESIDENT_BYTES_PER_MESSAGE as u64
    }
}

/// The use of one core.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct CoreUse {
    /// Pages of the disk that bodies may still take.
    pages_left: u64,
    reserve_pages: u64,
    /// Bytes of the index in use.
    index_bytes: u64,
    /// Messages are refused because of the disk, or of the index.
    is_disk_full: bool,
    is_index_full: bool,
}

impl CoreUse {
    /// The use of a disk of `all` pages. The reserves are not part of the limit.
    pub(crate) fn disk(self, all: u64) -> Fill {
        let limit = all.saturating_sub(self.reserve_pages);
        let used = limit.saturating_sub(self.pages_left);
        Fill { used, limit, is_full: self.is_disk_full }
    }

    pub(crate) fn index_bytes(self) -> u64 {
        self.index_bytes
    }

    /// Whether messages are refused because of the index.
    pub(crate) fn is_index_full(self) -> bool {
        self.is_index_full
    }

    pub(crate) fn new(segments: &Segments, index_bytes: u64, is_index_full: bool) -> CoreUse {
        let (pages_left, reserve_pages) = (segments.pages_left(), segments.reserve_pages());
        let is_disk_full = segments.has_refused();
        CoreUse { pages_left, reserve_pages, index_bytes, is_disk_full, is_index_full }
    }

    /// Whether the use has changed enough to be reported again.
    pub(crate) fn differs_from(self, told: CoreUse, disk_pages: u64, index_bytes: u64) -> bool {
        let differs = |a: u64, b: u64, limit: u64| a.abs_diff(b) > limit / STEPS;
        differs(self.pages_left, told.pages_left, disk_pages)
            || differs(self.reserve_pages, told.reserve_pages, disk_pages)
            || self.is_disk_full != told.is_disk_full
            || self.is_index_full != told.is_index_full
            || differs(self.index_bytes, told.index_bytes, index_bytes)
    }
}

/// The use of all client cores, as they have reported it.
#[derive(Debug, Default)]
pub(crate) struct ClientUses(Vec<CoreUse>);

impl ClientUses {
    /// `cores`: the number of cores, including the disk owner.
    pub(crate) fn new(cores: u8) -> ClientUses {
        ClientUses((1..cores).map(|_| CoreUse::default()).collect())
    }

    pub(crate) fn reported(&mut self, core: CoreId, core_use: CoreUse) {
        let known = core.index().checked_sub(1).and_then(|index| self.0.get_mut(index));
        let Some(known) = known else { unreachable!("a client that the disk owner does not have") };
        *known = core_use;
    }

    /// The use of all cores together. `own`: the use of the disk owner.
    pub(crate) fn with(&self, own: CoreUse) -> CoreUse {
        self.0.iter().fold(own, |sum, one| CoreUse {
            pages_left: sum.pages_left + one.pages_left,
            reserve_pages: sum.reserve_pages + one.reserve_pages,
            index_bytes: sum.index_bytes + one.index_bytes,
            is_disk_full: sum.is_disk_full || one.is_disk_full,
            is_index_full: sum.is_index_full || one.is_index_full,
        })
    }
}
