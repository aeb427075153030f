//! The owner of each segment, and the number of its live pages. Both are only in memory: section 2
//! of `docs/format.md`.
//!
//! Invariants:
//! - A body segment is free exactly when no page of it is live, being written or being read, and
//!   the segment is not open. A free segment may be overwritten at once.
//! - Pinned pages and live pages are counted separately.

use crate::layout::{Geometry, PAGE_BYTES, PIECE_PAGES, Page, SegmentIndex, ShardId};
use crate::shards::{PerShard, ShardSet};
use alloc::vec::Vec;

/// The owner of a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SegmentOwner {
    Free,
    Journal(ShardId),
    Body(ShardId),
    /// The segment belongs to another core. This store does not use it.
    Elsewhere,
}

/// The purpose of a new segment. Some free segments are a reserve. Deliveries may not take segments
/// of the reserve. Compaction may take some of them, and journals may take all.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Want {
    Delivery,
    Compaction,
    Journal,
}

/// The part of the reserve that compaction may take. The rest is only for journals and checkpoints.
pub(crate) const COMPACTION_RESERVE: u32 = 3;

#[derive(Clone, Copy, Debug)]
struct Segment {
    owner: SegmentOwner,
    /// Pages that hold live data.
    live: u32,
    /// Pages that are being written, until their message is visible or given up.
    pinned: u32,
    /// Pages that were allocated to bodies. After opening, all pages count. Unused pages at the end
    /// of the segment, where no further chunk fitted, do not count: compaction cannot regain them.
    given: u32,
    /// Reads in flight.
    reading: u32,
    /// New bodies of the shard go into this segment.
    open: bool,
    /// The segment has chunks that cannot be read and will not be moved.
    damaged: bool,
}

const _: () = assert!(size_of::<Segment>() <= 24);

impl Segment {
    /// Pages that were allocated to a body, and are neither live nor pinned.
    fn dead(&self) -> u32 {
        self.given.saturating_sub(self.live + self.pinned)
    }
}

const FREE: Segment = Segment {
    owner: SegmentOwner::Free,
    live: 0,
    pinned: 0,
    given: 0,
    reading: 0,
    open: false,
    damaged: false,
};

/// The disk's space.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DiskSpace {
    /// Bytes of the whole store.
    pub bytes: u64,
    /// Bytes of segments that are free.
    pub free_bytes: u64,
    /// Bytes of pages with message bodies.
    pub body_bytes: u64,
    /// Bytes of journal segments.
    pub journal_bytes: u64,
    /// Free bytes that are reserved for deletions, checkpoints and compaction.
    pub reserve_bytes: u64,
}

/// The size of a body that is likely to find space.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BodySpace {
    pages: u32,
}

impl BodySpace {
    /// No space, not even for an empty body.
    pub const NONE: BodySpace = BodySpace { pages: 0 };

    /// Whether a body of `octets` is likely to find space.
    pub fn holds(self, octets: u64) -> bool {
        octets.div_ceil(PAGE_BYTES as u64) + octets / (PAGE_BYTES as u64 * 64)
            < u64::from(self.pages)
    }
}

/// The segment that a shard's new bodies go to.
#[derive(Clone, Copy, Debug)]
struct OpenSegment {
    segment: SegmentIndex,
    used: u32,
}

/// The segments of the disk.
#[derive(Debug)]
pub(crate) struct Segments {
    geometry: Geometry,
    table: Vec<Segment>,
    /// The open body segment of each shard.
    open: PerShard<Option<OpenSegment>>,
    free: Vec<SegmentIndex>,
    /// Pages that may have died since [`Segments::emptiest`] last found nothing.
    died_pages: u32,
    /// The `dead_min` of the last search that found no segment.
    found_none_of: u32,
    /// The number of free segments that deliveries may not take.
    reserve: u32,
    /// The number of free segments that the disk owner could lend to this core.
    elsewhere: u32,
}

impl Segments {
    /// All segments, with none known to be free yet.
    pub(crate) fn new(geometry: Geometry) -> Segments {
        let table = alloc::vec![FREE; geometry.segments() as usize];
        Segments {
            geometry,
            table,
            open: PerShard::new(|_| None),
            free: Vec::new(),
            died_pages: u32::MAX,
            found_none_of: u32::MAX,
            reserve: 0,
            elsewhere: 0,
        }
    }

    pub(crate) fn geometry(&self) -> Geometry {
        self.geometry
    }

    /// The number of free segments that deliveries may not take.
    pub(crate) fn reserve(&self) -> u32 {
        self.reserve
    }

    pub(crate) fn set_reserve(&mut self, reserve: u32) {
        self.reserve = reserve;
    }

    /// Sets the number of free segments that the disk owner could still lend to this core.
    pub(crate) fn set_elsewhere(&mut self, segments: u32) {
        self.elsewhere = segments;
    }

    /// The space that bodies are likely to find.
    pub(crate) fn room(&self) -> BodySpace {
        let segments = (self.free() + self.elsewhere).saturating_sub(self.reserve);
        BodySpace { pages: segments * (self.geometry.segment_pages - PIECE_PAGES) }
    }

    /// The use of the disk's space, counted over all segments.
    pub(crate) fn space(&self) -> DiskSpace {
        let segment_bytes = u64::from(self.geometry.segment_pages) * PAGE_BYTES as u64;
        let count = |wanted: fn(SegmentOwner) -> bool| u64::from(self.count(wanted));
        DiskSpace {
            bytes: self.geometry.bytes(),
            free_bytes: count(|owner| owner == SegmentOwner::Free) * segment_bytes,
            body_bytes: self.live_pages() * PAGE_BYTES as u64,
            journal_bytes: count(|owner| matches!(owner, SegmentOwner::Journal(_))) * segment_bytes,
            reserve_bytes: u64::from(self.reserve) * segment_bytes,
        }
    }

    /// Ends the opening: every unclaimed segment is free. Segments with low numbers are taken
    /// first.
    pub(crate) fn opened(&mut self) {
        self.free = (0..self.geometry.segments())
            .rev()
            .map(SegmentIndex)
            .filter(|index| self.owner(*index) == SegmentOwner::Free)
            .collect();
    }

    pub(crate) fn owner(&self, index: SegmentIndex) -> SegmentOwner {
        self.get(index).owner
    }

    pub(crate) fn free(&self) -> u32 {
        self.free.len() as u32
    }

    /// The number of free segments that may go to bodies or to another core.
    pub(crate) fn spare(&self) -> u32 {
        self.free().saturating_sub(self.reserve)
    }

    /// The number of pinned pages: 0 when no operation is in progress.
    #[cfg(test)]
    pub(crate) fn pinned_pages(&self) -> u32 {
        self.table.iter().map(|segment| segment.pinned).sum()
    }

    pub(crate) fn count(&self, wanted: impl Fn(SegmentOwner) -> bool) -> u32 {
        self.table.iter().filter(|segment| wanted(segment.owner)).count() as u32
    }

    fn live_pages(&self) -> u64 {
        self.table.iter().map(|segment| u64::from(segment.live)).sum()
    }

    /// Whether segments should be freed: at most an eighth of all segments is free, or at most
    /// twice the reserve.
    pub(crate) fn are_scarce(&self) -> bool {
        let free = self.free.len() + self.elsewhere as usize;
        free <= self.table.len() / 8 || free <= 2 * self.reserve as usize
    }

    /// Whether half of the disk's segments are in use, or belong to other cores.
    pub(crate) fn is_half_full(&self) -> bool {
        2 * self.free.len() <= self.table.len()
    }

    /// Whether a segment is available for this purpose.
    pub(crate) fn may_take(&self, want: Want) -> bool {
        match want {
            Want::Delivery => self.free() > self.reserve,
            Want::Compaction => self.free() > self.reserve.saturating_sub(COMPACTION_RESERVE),
            Want::Journal => self.free() > 0,
        }
    }

    pub(crate) fn take(&mut self, owner: SegmentOwner, want: Want) -> Option<SegmentIndex> {
        if !self.may_take(want) {
            return None;
        }
        let Some(index) = self.free.pop() else {
            unreachable!("a segment that may be taken and is not free")
        };
        let segment = self.get_mut(index);
        assert!(
            segment.owner == SegmentOwner::Free && segment.live == 0,
            "a segment that is free and taken"
        );
        *segment = Segment { owner, open: matches!(owner, SegmentOwner::Body(_)), ..FREE };
        Some(index)
    }

    /// Allocates pages for a chunk in the shard's open segment, pinned until [`Segments::unpin`].
    pub(crate) fn allocate(&mut self, shard: ShardId, pages: u32, want: Want) -> Option<Page> {
        let segment_pages = self.geometry.segment_pages;
        let mut open = match *self.open.of(shard) {
            Some(open) if open.used + pages <= segment_pages => open,
            full => {
                let segment = self.take(SegmentOwner::Body(shard), want)?;
                if let Some(full) = full {
                    self.close(full.segment);
                }
                OpenSegment { segment, used: 0 }
            }
        };
        let page = self.geometry.first_page(open.segment).plus(open.used);
        open.used += pages;
        *self.open.of_mut(shard) = Some(open);
        self.pin(page, pages);
        Some(page)
    }

    /// Gives a free segment to another core.
    pub(crate) fn give_away(&mut self) -> Option<SegmentIndex> {
        let index = self.free.pop()?;
        *self.get_mut(index) = Segment { owner: SegmentOwner::Elsewhere, ..FREE };
        Some(index)
    }

    /// Takes a free segment from another core.
    pub(crate) fn take_back(&mut self, index: SegmentIndex) {
        let segment = self.get_mut(index);
        assert!(
            segment.owner == SegmentOwner::Elsewhere,
            "a returned segment that was not given away"
        );
        *segment = FREE;
        self.free.push(index);
    }

    /// Takes out the segments of the shards `theirs`, and `free` free segments, for another core.
    pub(crate) fn split_off(&mut self, free: u32, theirs: ShardSet) -> Segments {
        let mut others = Segments::new(self.geometry);
        for (other, own) in others.table.iter_mut().zip(&mut self.table) {
            let elsewhere = Segment { owner: SegmentOwner::Elsewhere, ..FREE };
            let is_theirs = match own.owner {
                SegmentOwner::Journal(shard) | SegmentOwner::Body(shard) => theirs.has(shard),
                SegmentOwner::Free | SegmentOwner::Elsewhere => false,
            };
            *other = if is_theirs { core::mem::replace(own, elsewhere) } else { elsewhere };
        }
        for shard in theirs.iter() {
            core::mem::swap(self.open.of_mut(shard), others.open.of_mut(shard));
        }
        for _ in 0..free {
            self.give_away().into_iter().for_each(|index| others.take_back(index));
        }
        others
    }

    /// While opening: assigns the segment to a shard's journal. Returns false if the segment has
    /// another owner.
    pub(crate) fn claim_journal(&mut self, index: SegmentIndex, shard: ShardId) -> bool {
        let segment = self.get_mut(index);
        let is_free = segment.owner == SegmentOwner::Free;
        if is_free {
            segment.owner = SegmentOwner::Journal(shard);
        }
        is_free
    }

    /// Gives back a journal's segment.
    pub(crate) fn release_journal(&mut self, index: SegmentIndex) {
        let segment = self.get_mut(index);
        if matches!(segment.owner, SegmentOwner::Journal(_)) {
            *segment = FREE;
            self.free.push(index);
        }
    }

    /// Closes a segment: new bodies go into another segment.
    fn close(&mut self, index: SegmentIndex) {
        // The pages that died while the segment was open now count for the search.
        let died = self.get(index).dead();
        self.died_pages = self.died_pages.saturating_add(died);
        self.change(index, |segment| segment.open = false);
    }

    pub(crate) fn lives(&mut self, page: Page, pages: u32) {
        self.within(page, |segment| segment.live += pages);
    }

    /// While opening: counts pages as live, and assigns their segment to the bodies of `shard`.
    /// Returns false if the pages cannot belong to a body of this shard.
    pub(crate) fn claim_body(&mut self, page: Page, pages: u32, shard: ShardId) -> bool {
        self.claim(page, pages, shard).map(|segment| segment.live += pages).is_some()
    }

    /// While opening: the segment of a page, if it is not claimed yet.
    pub(crate) fn unclaimed(&self, page: Page) -> Option<SegmentIndex> {
        self.geometry.segment_of(page).filter(|index| self.owner(*index) == SegmentOwner::Free)
    }

    /// While opening: as [`Segments::claim_body`], but pins the pages of a removed message, until
    /// the removal is durable and [`Segments::unpin`] is called.
    pub(crate) fn claim_pinned(&mut self, page: Page, pages: u32, shard: ShardId) -> bool {
        self.claim(page, pages, shard).map(|segment| segment.pinned += pages).is_some()
    }

    /// While opening: whether these pages can belong to a body.
    pub(crate) fn may_hold_body(&self, page: Page, pages: u32) -> bool {
        let segment = self.geometry.segment_of(page).filter(|_| self.geometry.holds(page, pages));
        segment.is_some_and(|index| {
            matches!(self.owner(index), SegmentOwner::Free | SegmentOwner::Body(_))
        })
    }

    fn claim(&mut self, page: Page, pages: u32, shard: ShardId) -> Option<&mut Segment> {
        if !self.may_hold_body(page, pages) {
            return None;
        }
        let all = self.geometry.segment_pages;
        let segment = self.geometry.segment_of(page).map(|index| self.get_mut(index))?;
        segment.owner = SegmentOwner::Body(shard);
        segment.given = all;
        Some(segment)
    }

    pub(crate) fn died(&mut self, page: Page, pages: u32) {
        self.died_pages = self.died_pages.saturating_add(pages);
        // A damaged journal may name a page that does not exist, or one page for two messages. So
        // more pages may die than were live.
        if let Some(index) = self.geometry.segment_of(page) {
            self.change(index, |segment| segment.live = segment.live.saturating_sub(pages));
        }
    }

    fn pin(&mut self, page: Page, pages: u32) {
        self.within(page, |segment| {
            segment.pinned += pages;
            segment.given += pages;
        });
    }

    pub(crate) fn unpin(&mut self, page: Page, pages: u32) {
        self.died_pages = self.died_pages.saturating_add(pages);
        self.within(page, |segment| {
            assert!(segment.pinned >= pages, "more pages unpinned than pinned");
            segment.pinned -= pages;
        });
    }

    pub(crate) fn read_began(&mut self, page: Page) {
        self.within(page, |segment| segment.reading += 1);
    }

    pub(crate) fn read_ended(&mut self, page: Page) {
        // A journal may name a wrong page. The segment of that page may have been freed since then.
        self.within(page, |segment| segment.reading = segment.reading.saturating_sub(1));
    }

    pub(crate) fn damaged(&mut self, index: SegmentIndex) {
        self.change(index, |segment| segment.damaged = true);
    }

    pub(crate) fn live_in(&self, index: SegmentIndex) -> u32 {
        self.get(index).live
    }

    /// Whether another search over all segments is worth its time. It is, if enough pages have died
    /// since the last search that found nothing, or if `dead_min` is lower now.
    pub(crate) fn is_worth_a_look(&self, dead_min: u32) -> bool {
        self.died_pages >= self.geometry.segment_pages / 8 || dead_min < self.found_none_of
    }

    /// Suspends the search until enough pages have died. The caller cannot use a result now.
    pub(crate) fn suspend_search(&mut self) {
        (self.died_pages, self.found_none_of) = (0, 0);
    }

    /// The closed body segment with the fewest live pages, among those with at least `dead_min`
    /// dead pages. So a segment of chunks that were moved stays as it is until enough of them have
    /// died.
    pub(crate) fn emptiest(&mut self, dead_min: u32) -> Option<(SegmentIndex, ShardId)> {
        let candidates =
            self.table.iter().zip(0..).filter_map(|(segment, index)| match segment.owner {
                SegmentOwner::Body(shard)
                    if !segment.open
                        && !segment.damaged
                        && segment.pinned == 0
                        && segment.dead() >= dead_min =>
                {
                    Some((segment.live, SegmentIndex(index), shard))
                }
                _ => None,
            });
        let found =
            candidates.min_by_key(|(live, ..)| *live).map(|(_, index, shard)| (index, shard));
        if found.is_none() {
            (self.died_pages, self.found_none_of) = (0, dead_min);
        }
        found
    }

    fn get(&self, index: SegmentIndex) -> &Segment {
        match self.table.get(index.0 as usize) {
            Some(segment) => segment,
            None => unreachable!("a segment above the last one"),
        }
    }

    fn get_mut(&mut self, index: SegmentIndex) -> &mut Segment {
        match self.table.get_mut(index.0 as usize) {
            Some(segment) => segment,
            None => unreachable!("a segment above the last one"),
        }
    }

    /// Changes the segment of a page. The page must be in a segment.
    fn within(&mut self, page: Page, change: impl FnOnce(&mut Segment)) {
        let Some(index) = self.geometry.segment_of(page) else {
            unreachable!("a page in no segment")
        };
        self.change(index, change);
    }

    /// Changes a segment, and frees it if nothing is left in it.
    fn change(&mut self, index: SegmentIndex, change: impl FnOnce(&mut Segment)) {
        let segment = self.get_mut(index);
        change(segment);
        let empty =
            segment.live == 0 && segment.pinned == 0 && segment.reading == 0 && !segment.open;
        if empty && matches!(segment.owner, SegmentOwner::Body(_)) {
            *segment = FREE;
            self.free.push(index);
        }
    }
}
