//! The owner of each segment, and the number of its live pages. Both are only in memory: section 2
//! of `docs/format.md`.
//!
//! Invariants:
//! - A body segment is free exactly when no page of it is live, being written or being read, and
//!   the segment is not open. A free segment may be overwritten at once.
//! - Pinned pages and live pages are counted separately.

use crate::layout::{Geometry, PAGE_BYTES, Page, SegmentIndex, ShardId};
use crate::segment::{FREE, Segment, SegmentOwner};
use crate::shards::{PerShard, ShardSet};
use crate::types::DiskSpace;
use alloc::vec::Vec;

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

/// While at most this many segments are free for deliveries after a refusal, the disk still counts
/// as full: the refused message itself may have given them back.
const SPARE_WHEN_FULL: u32 = 2;

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
    /// The live pages of all segments. `dead`: the dead ones.
    live: u64,
    dead: u64,
    /// The number of journal segments.
    journals: u32,
    /// See [`Segments::has_refused`].
    has_refused: bool,
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
            live: 0,
            dead: 0,
            journals: 0,
            has_refused: false,
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

    pub(crate) fn journals(&self) -> u32 {
        self.journals
    }

    /// The number of segments that bodies may still take, here or from the disk owner.
    pub(crate) fn left_for_bodies(&self) -> u32 {
        (self.free() + self.elsewhere).saturating_sub(self.reserve)
    }

    /// The pages that bodies may still take: of free segments, and those that compaction regains.
    pub(crate) fn pages_left(&self) -> u64 {
        u64::from(self.spare()) * u64::from(self.geometry.segment_pages) + self.dead
    }

    /// The pages of all segments.
    pub(crate) fn pages(&self) -> u64 {
        self.table.len() as u64 * u64::from(self.geometry.segment_pages)
    }

    pub(crate) fn reserve_pages(&self) -> u64 {
        u64::from(self.reserve) * u64::from(self.geometry.segment_pages)
    }

    /// Whether a delivery was refused, and hardly any segment has become free since.
    pub(crate) fn has_refused(&self) -> bool {
        self.has_refused
    }

    /// A message was refused before its delivery began, because no segment is free.
    pub(crate) fn message_refused(&mut self) {
        self.has_refused |= self.spare() == 0;
    }

    /// A delivery was refused for lack of a segment.
    pub(crate) fn delivery_refused(&mut self) {
        self.has_refused = true;
    }

    /// Ends a turn: forgets a refusal if deliveries would find segments again.
    pub(crate) fn turn_ended(&mut self) {
        self.has_refused &= self.spare() <= SPARE_WHEN_FULL;
    }

    /// The use of the disk's space, counted over all segments.
    pub(crate) fn space(&self) -> DiskSpace {
        let segment_bytes = u64::from(self.geometry.segment_pages) * PAGE_BYTES as u64;
        let free = self.count(|owner| owner == SegmentOwner::Free);
        DiskSpace {
            bytes: self.geometry.bytes(),
            free_bytes: u64::from(free) * segment_bytes,
            body_bytes: self.live * PAGE_BYTES as u64,
            journal_bytes: u64::from(self.journals) * segment_bytes,
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
        self.journals += u32::from(matches!(owner, SegmentOwner::Journal(_)));
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
            others.live += u64::from(other.live);
            others.dead += u64::from(other.dead());
            others.journals += u32::from(matches!(other.owner, SegmentOwner::Journal(_)));
        }
        self.live -= others.live;
        self.dead -= others.dead;
        self.journals -= others.journals;
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
            self.journals += 1;
        }
        is_free
    }

    /// Gives back a journal's segment.
    pub(crate) fn release_journal(&mut self, index: SegmentIndex) {
        if matches!(self.owner(index), SegmentOwner::Journal(_)) {
            let segment = core::mem::replace(self.get_mut(index), FREE);
            self.live -= u64::from(segment.live);
            self.dead -= u64::from(segment.dead());
            self.journals -= 1;
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
        self.live += u64::from(pages);
        self.within(page, |segment| segment.live += pages);
    }

    /// While opening: counts pages as live, and assigns their segment to the bodies of `shard`.
    /// Returns false if the pages cannot belong to a body of this shard.
    pub(crate) fn claim_body(&mut self, page: Page, pages: u32, shard: ShardId) -> bool {
        let is_claimed = self.claim(page, pages, shard, |segment| segment.live += pages);
        self.live += if is_claimed { u64::from(pages) } else { 0 };
        is_claimed
    }

    /// While opening: the segment of a page, if it is not claimed yet.
    pub(crate) fn unclaimed(&self, page: Page) -> Option<SegmentIndex> {
        self.geometry.segment_of(page).filter(|index| self.owner(*index) == SegmentOwner::Free)
    }

    /// While opening: as [`Segments::claim_body`], but pins the pages of a removed message, until
    /// the removal is durable and [`Segments::unpin`] is called.
    pub(crate) fn claim_pinned(&mut self, page: Page, pages: u32, shard: ShardId) -> bool {
        self.claim(page, pages, shard, |segment| segment.pinned += pages)
    }

    /// While opening: whether these pages can belong to a body.
    pub(crate) fn may_hold_body(&self, page: Page, pages: u32) -> bool {
        let segment = self.geometry.segment_of(page).filter(|_| self.geometry.holds(page, pages));
        segment.is_some_and(|index| {
            matches!(self.owner(index), SegmentOwner::Free | SegmentOwner::Body(_))
        })
    }

    fn claim(
        &mut self,
        page: Page,
        pages: u32,
        shard: ShardId,
        count: impl FnOnce(&mut Segment),
    ) -> bool {
        let index = self.geometry.segment_of(page).filter(|_| self.may_hold_body(page, pages));
        let all = self.geometry.segment_pages;
        let Some(index) = index else { return false };
        self.change(index, |segment| {
            segment.owner = SegmentOwner::Body(shard);
            segment.given = all;
            count(segment);
        });
        true
    }

    pub(crate) fn died(&mut self, page: Page, pages: u32) {
        self.died_pages = self.died_pages.saturating_add(pages);
        // A damaged journal may name a page that does not exist, or one page for two messages. So
        // more pages may die than were live.
        if let Some(index) = self.geometry.segment_of(page) {
            let died = pages.min(self.get(index).live);
            self.live -= u64::from(died);
            self.change(index, |segment| segment.live -= died);
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
        // A journal may name a wrong page. The segment of that page may have been freed since the
        // read began.
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
        let before = segment.dead();
        change(segment);
        let empty =
            segment.live == 0 && segment.pinned == 0 && segment.reading == 0 && !segment.open;
        let is_freed = empty && matches!(segment.owner, SegmentOwner::Body(_));
        if is_freed {
            *segment = FREE;
        }
        let after = segment.dead();
        self.dead = self.dead + u64::from(after) - u64::from(before);
        if is_freed {
            self.free.push(index);
        }
    }
}
