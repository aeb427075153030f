//! Serving again after the disk has failed a write or a flush. Section 10 of `docs/format.md`.
//!
//! Whether the disk has what was in flight when it failed is unknown, and every caller that waited
//! for it was refused. The index holds what was durable before. So the store goes back, in memory,
//! to where each journal was durable, and begins a new life there: a fence in the place of the
//! failed group's first block, as after a power cut that left that group incomplete. When the
//! fences and a superblock are durable, the failed group can never count, whatever of it the disk
//! has, and the store serves.
//!
//! Among several cores each does this for its own shards, when the keeper says so; the flush is the
//! keeper's.
//!
//! Invariants:
//! - A retry begins when none of the store's writes and flushes is in flight.
//! - Until its flush has completed nothing is gathered, allocated or lent, and the marks of all
//!   journals stay.
//! - The newest superblock known to be durable is not written over: a version that may have failed
//!   is replaced in its own slots.

use crate::backing::DiskQueue;
use crate::keeper::Role;
use crate::layout::{SegmentIndex, ShardId};
use crate::outcome::{State, WhyReadOnly};
use crate::record;
use crate::store::{Journal, Store};
use alloc::vec::Vec;

/// Whether a store that is read-only tries the disk again.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Retry {
    #[default]
    No,
    /// It does when nothing is in flight any more.
    Wanted,
    /// Its fences are on their way.
    UnderWay,
}

/// Where a journal was durable, while more of it is in flight.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    place: u32,
    sequence: u64,
    previous: u64,
    blocks: u32,
    fresh_segment: bool,
    /// Segments that were linked since.
    pub(crate) linked: u32,
}

impl Mark {
    pub(crate) fn of(journal: &Journal) -> Mark {
        let Journal { place, sequence, previous, blocks, fresh_segment, .. } = *journal;
        Mark { place, sequence, previous, blocks, fresh_segment, linked: 0 }
    }
}

impl Journal {
    /// Goes back to the mark; returns the next segment that was linked since, until there is none.
    fn go_back(&mut self, mark: &mut Mark) -> Option<SegmentIndex> {
        if mark.linked > 0 {
            mark.linked -= 1;
            return self.chain.pop();
        }
        (self.place, self.sequence, self.previous) = (mark.place, mark.sequence, mark.previous);
        (self.blocks, self.fresh_segment, self.fenced) = (mark.blocks, mark.fresh_segment, false);
        None
    }
}

impl Store {
    /// Tries the disk again, after it has failed: the state is [`State::Serving`] once it takes
    /// writes and flushes. To be called on the core that has the disk; the others follow.
    pub fn retry(&mut self) {
        self.want_retry();
        self.retry_if_settled();
    }

    pub(crate) fn want_retry(&mut self) {
        // What was read before a flush that failed may not be on the disk: only opening it anew
        // tells.
        let may_retry = matches!(self.state, State::ReadOnly(WhyReadOnly::WriteFailed | WhyReadOnly::FlushFailed));
        if may_retry && self.retry == Retry::No {
            self.retry = Retry::Wanted;
        }
    }

    /// Begins the retry that is wanted, as soon as nothing is in flight.
    #[inline]
    pub(crate) fn retry_if_settled(&mut self) {
        if self.retry == Retry::Wanted && self.backing.is_settled() {
            self.begin_retry();
        }
    }

    #[cold]
    fn begin_retry(&mut self) {
        self.retry = Retry::UnderWay;
        self.go_back();
        self.disk_is_tried_again();
        self.gather_drops();
        for number in ShardId::all() {
            if self.shard(number).is_some_and(|shard| shard.mark.is_some()) {
                self.fence(number);
            }
        }
        self.superblock_due = true;
        self.seal();
    }

    /// Writes what keeps the failed group from ever being the journal's next.
    fn fence(&mut self, number: ShardId) {
        if self.needs_fence(number) && !self.has_places(number, 2) {
            // The disk is full: nothing follows the fence in its group.
            return self.write_blocks(number, true, 0, &[]);
        }
        let Some(shard) = self.shards.get_mut(number.index()) else { return };
        // A fence precedes it, or a link: see `write_blocks`.
        record::put_life(&mut shard.gathered, self.random.number());
        self.dirty |= 1 << number.0;
        self.seal_shard(number, Vec::new());
    }

    /// Everything that was not durable when the disk failed is forgotten.
    fn go_back(&mut self) {
        assert!(self.writes == [0; 2], "writes of a group in flight that has ended");
        if let Some(checkpoint) = self.checkpoint.take() {
            self.heal |= 1 << checkpoint.shard().0;
            if let Some(journal) = self.shard_mut(checkpoint.shard()).and_then(|shard| shard.journal.as_mut()) {
                checkpoint.give_up(journal);
            }
        }
        for shard in &mut self.shards {
            shard.gathered.clear();
            shard.pending.clear();
            let (Some(journal), Some(mark)) = (&mut shard.journal, &mut shard.mark) else { continue };
            while let Some(segment) = journal.go_back(mark) {
                self.segments.release_journal(segment);
            }
        }
        self.dirty = 0;
        self.ready.clear();
        self.awaiting.clear();
        self.give_up_moves();
        let released = self.give_up_group();
        self.released_by_superblock.extend(released);
        self.refresh_reserve();
    }

    /// The flush of a retry has completed: whether all journals that need a fence have one.
    pub(crate) fn serves_again(&mut self) -> bool {
        self.retry = Retry::No;
        let has_all = self.shards.iter().all(|shard| shard.gathered.is_empty());
        if has_all {
            self.state = State::Serving;
        }
        has_all
    }

    /// Journals again that messages found torn are gone, where that was not durable when the disk
    /// failed.
    fn gather_drops(&mut self) {
        for number in ShardId::all() {
            let Some(shard) = self.shards.get_mut(number.index()) else { continue };
            if shard.gather_drops() {
                self.dirty |= 1 << number.0;
            }
        }
    }

    /// The keeper lets flushes through again, and tells the others to try as well.
    fn disk_is_tried_again(&mut self) {
        if let Role::Keeper(keeper) = &mut self.role {
            keeper.try_again();
        }
    }
}

impl DiskQueue {
    /// Whether nothing is in flight but reads of bodies and what other cores have asked for.
    fn is_settled(&self) -> bool {
        use crate::backing::Purpose::{Body, Errand};
        self.all_are(|purpose| matches!(purpose, Body(_) | Errand { .. }))
    }
}
