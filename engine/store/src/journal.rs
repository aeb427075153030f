//! The write position of one shard's journal, and its last durable position while later blocks are
//! in flight.
//!
//! Invariants:
//! - A journal has at least one segment. The next block, or the next link, goes into its last
//!   segment.
//! - From the first write of a group until the group is durable, the journal can return to its
//!   position before the group.

use crate::block::BlockHeader;
use crate::index::Index;
use crate::layout::{Geometry, Page, SegmentIndex, ShardId};
use crate::superblock::Root;
use crate::types::AccountId;
use crate::walk::{UnfinishedCheckpoint, WalkCursor};
use alloc::vec::Vec;

/// A damaged journal skips this many sequence numbers: more than any journal has blocks. So each
/// later opening sees the gap until a checkpoint is durable, even if the disk can read the lost
/// blocks again by then.
const SEQUENCES_SKIPPED: u64 = 1 << 24;

/// The state that is needed to append to a shard's journal.
#[derive(Clone, Debug)]
pub(crate) struct Journal {
    /// The segments since the root, oldest first.
    chain: Vec<SegmentIndex>,
    /// The place of the next block in the last segment.
    place: u32,
    sequence: u64,
    previous: u64,
    /// The number of blocks since the root.
    blocks: u32,
    /// The next block goes into a new segment, even if the last segment has free places.
    fresh_segment: bool,
    /// The journal has a fence here, or needs none: no block of an earlier life (the time from one
    /// opening of the disk to the next) can continue it.
    fenced: bool,
    /// The last durable position. `None` if no later block is in flight.
    mark: Option<JournalPosition>,
    unfinished: Option<UnfinishedCheckpoint>,
}

#[derive(Clone, Copy, Debug)]
struct JournalPosition {
    place: u32,
    sequence: u64,
    previous: u64,
    blocks: u32,
    fresh_segment: bool,
    /// The number of segments that were linked after this position.
    linked: u32,
}

impl Journal {
    /// A journal in which nothing has been written yet.
    pub(crate) fn at(root: Root) -> Journal {
        Journal {
            chain: alloc::vec![root.segment],
            place: u32::from(root.place),
            sequence: root.sequence,
            previous: root.previous,
            blocks: 0,
            fresh_segment: false,
            fenced: true,
            mark: None,
            unfinished: None,
        }
    }

    /// The segments since the root, from the oldest to the newest.
    pub(crate) fn chain(&self) -> &[SegmentIndex] {
        &self.chain
    }

    /// The segment for the next block.
    pub(crate) fn segment(&self) -> SegmentIndex {
        match self.chain.last() {
            Some(segment) => *segment,
            None => unreachable!("a journal without a segment"),
        }
    }

    /// The place of the next block in that segment.
    pub(crate) fn place(&self) -> u32 {
        self.place
    }

    /// The page of the next block.
    pub(crate) fn page(&self, geometry: Geometry) -> Page {
        geometry.place_page(self.segment(), self.place)
    }

    pub(crate) fn sequence(&self) -> u64 {
        self.sequence
    }

    /// The number of blocks since the root.
    pub(crate) fn blocks(&self) -> u32 {
        self.blocks
    }

    /// Whether the next block needs a new segment.
    pub(crate) fn is_full(&self, geometry: Geometry) -> bool {
        self.place == geometry.link_place() || self.fresh_segment
    }

    /// The number of places for blocks before a new segment is needed.
    pub(crate) fn places_left(&self, geometry: Geometry) -> u32 {
        if self.fresh_segment { 0 } else { geometry.link_place() - self.place }
    }

    /// Whether a fence must be written first: an earlier life may have left blocks at the next
    /// place.
    pub(crate) fn needs_fence(&self, geometry: Geometry) -> bool {
        !self.fenced && !self.is_full(geometry)
    }

    /// Whether a block with this header is the next block.
    pub(crate) fn continues_with(&self, header: &BlockHeader) -> bool {
        header.sequence == self.sequence && header.previous == self.previous
    }

    /// The header of the next block. The group is given by its first sequence number and its size.
    pub(crate) fn header(
        &self,
        shard: ShardId,
        (group_first, group_blocks): (u64, u32),
    ) -> BlockHeader {
        BlockHeader {
            shard,
            sequence: self.sequence,
            group_first,
            group_blocks,
            previous: self.previous,
        }
    }

    /// Must be called before the next block or link is written. Until that write is durable, the
    /// journal can return to its present position.
    pub(crate) fn writes(&mut self) {
        if self.mark.is_none() {
            let Journal { place, sequence, previous, blocks, fresh_segment, .. } = *self;
            self.mark = Some(JournalPosition {
                place,
                sequence,
                previous,
                blocks,
                fresh_segment,
                linked: 0,
            });
        }
    }

    /// Notes that no block of an earlier life can continue the journal. Returns whether this was
    /// unknown before.
    pub(crate) fn note_fenced(&mut self) -> bool {
        !core::mem::replace(&mut self.fenced, true)
    }

    /// Moves on after a block with this hash.
    pub(crate) fn block_follows(&mut self, hash: u64) {
        self.place += 1;
        self.sequence += 1;
        self.previous = hash;
        self.blocks += 1;
    }

    /// Moves on to another segment, after a link with this hash.
    pub(crate) fn link_follows(&mut self, next: SegmentIndex, hash: u64) {
        if let Some(mark) = &mut self.mark {
            mark.linked += 1;
        }
        self.chain.push(next);
        self.previous = hash;
        self.place = 0;
        self.fresh_segment = false;
        self.fenced = true;
    }

    /// For a replay: looks for a later block in the segment `next`, until [`Journal::looks_back`].
    pub(crate) fn looks_into(&mut self, next: SegmentIndex) {
        self.chain.push(next);
    }

    pub(crate) fn looks_back(&mut self) {
        self.chain.pop();
    }

    /// For a replay: continues with a later block, because the blocks before it are lost.
    pub(crate) fn continue_at(&mut self, place: u32, later: &BlockHeader) {
        self.place = place;
        self.sequence = later.sequence;
        self.previous = later.previous;
    }

    /// For a replay: notes that the group at the position `before` begins a checkpoint. A
    /// checkpoint at the root is complete. A later checkpoint is unfinished.
    pub(crate) fn found_checkpoint(&mut self, before: &Journal) {
        self.unfinished = (before.blocks > 0).then(|| UnfinishedCheckpoint {
            root: before.root(),
            cursor: WalkCursor::Account(AccountId(0)),
            blocks_before: before.blocks,
        });
    }

    /// For a replay: notes how far the walk of the unfinished checkpoint has come.
    pub(crate) fn found_walk(&mut self, cursor: WalkCursor) {
        if let Some(unfinished) = &mut self.unfinished {
            unfinished.cursor = cursor;
        }
    }

    /// For a replay: notes the end of the journal. A damaged journal needs a new checkpoint from
    /// its start.
    pub(crate) fn has_ended(&mut self, is_damaged: bool) {
        if is_damaged {
            self.sequence += SEQUENCES_SKIPPED;
            self.unfinished = None;
        }
        self.fresh_segment = is_damaged;
        self.fenced = false;
    }

    /// Forgets the unfinished checkpoint if it cannot be continued with this index. The checkpoint
    /// may lack the malformed records that the index keeps, or its cursor may name an unknown
    /// account.
    pub(crate) fn check_checkpoint(&mut self, index: &Index) {
        let keeps_records = index.kept().next().is_some();
        self.unfinished.take_if(|one| keeps_records || !one.cursor.is_in(index));
    }

    /// The number of blocks since the unfinished checkpoint began. 0 if no checkpoint is
    /// unfinished.
    pub(crate) fn unfinished_blocks(&self) -> u32 {
        self.unfinished.map_or(0, |unfinished| self.blocks - unfinished.blocks_before)
    }

    /// Whether an unfinished checkpoint can be continued.
    pub(crate) fn has_unfinished_checkpoint(&self) -> bool {
        self.unfinished.is_some()
    }

    /// Makes the next block go into a new segment.
    #[cfg(test)]
    pub(crate) fn wants_fresh_segment(&mut self) {
        self.fresh_segment = true;
    }

    /// The root of a journal that begins with the next block.
    fn root(&self) -> Root {
        Root {
            segment: self.segment(),
            place: self.place as u16,
            started: true,
            sequence: self.sequence,
            previous: self.previous,
        }
    }

    /// Moves the root to the start of the unfinished checkpoint, or else to the next block. Returns
    /// the new root, the position of the checkpoint's walk, and the segments before the new root.
    pub(crate) fn begins_anew(&mut self) -> (Root, WalkCursor, Vec<SegmentIndex>) {
        let begun = self.unfinished.take().unwrap_or_else(|| UnfinishedCheckpoint {
            root: self.root(),
            cursor: WalkCursor::Shard,
            blocks_before: self.blocks,
        });
        let UnfinishedCheckpoint { root, cursor, blocks_before } = begun;
        let Some(first) = self.chain.iter().position(|segment| *segment == root.segment) else {
            unreachable!("a checkpoint outside of its journal")
        };
        let chain = self.chain.split_off(first);
        let old = core::mem::replace(&mut self.chain, chain);
        self.blocks -= blocks_before;
        if let Some(mark) = &mut self.mark {
            mark.blocks -= blocks_before;
        }
        (root, cursor, old)
    }

    /// Undoes [`Journal::begins_anew`]: the segments `old` belong to the journal again. The
    /// checkpoint is kept as unfinished, unless no part of it is durable.
    pub(crate) fn begins_before(
        &mut self,
        mut old: Vec<SegmentIndex>,
        unfinished: UnfinishedCheckpoint,
    ) {
        old.append(&mut self.chain);
        self.chain = old;
        self.unfinished = Some(unfinished).filter(|one| one.cursor != WalkCursor::Shard);
    }

    /// Notes that the whole journal is durable.
    pub(crate) fn became_durable(&mut self) {
        self.mark = None;
    }

    /// Whether a part of the journal may not be durable.
    pub(crate) fn is_unsure(&self) -> bool {
        self.mark.is_some()
    }

    /// Returns to the last durable position. Calls `released` with each segment that was linked
    /// since then. The next write needs a fence. The journal keeps this position until that write
    /// is durable.
    pub(crate) fn goes_back(&mut self, mut released: impl FnMut(SegmentIndex)) {
        let Some(mark) = &mut self.mark else { return };
        for _ in 0..core::mem::take(&mut mark.linked) {
            let Some(segment) = self.chain.pop() else { unreachable!("a link to no segment") };
            released(segment);
        }
        let JournalPosition { place, sequence, previous, blocks, fresh_segment, .. } = *mark;
        (self.place, self.sequence, self.previous) = (place, sequence, previous);
        (self.blocks, self.fresh_segment, self.fenced) = (blocks, fresh_segment, false);
    }
}
