//! Group commit: what a turn gathered becomes blocks, one flush makes them durable, then they are
//! applied and those who wait are woken. Section 6 of `docs/format.md`.
//!
//! Invariants:
//! - At most one group is in flight; its flush is due when every write queued before the seal has
//!   completed.
//! - A write is counted to the group that gathers when it is queued, and leaves that count once.

use crate::backing::Parity;
use crate::layout::{SegmentIndex, ShardId};
use crate::pending::{Awaiting, Pending};
use crate::shards::ShardSet;
use alloc::boxed::Box;
use alloc::vec::Vec;

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Flight {
    #[default]
    Idle,
    Writing(Parity),
    Flushing,
}

/// Segments of a shard's journal that lie before its root.
#[derive(Debug)]
pub(crate) struct Superseded {
    pub(crate) shard: ShardId,
    pub(crate) segments: Vec<SegmentIndex>,
    /// A version of the superblock has the new root. The version before still leads to them.
    pub(crate) is_in_one_version: bool,
}

/// The group in flight, and what the next one has beside the records that gather.
pub(crate) struct Commit {
    flight: Flight,
    blocks: Vec<(ShardId, Option<Box<[u8]>>)>,
    pending: Vec<Pending>,
    covered: Vec<Awaiting>,
    /// Segments to which one version less leads once this group's superblock is durable.
    released: Vec<Superseded>,
    /// Shards whose first block is in this group.
    started: ShardSet,
    gathering: Parity,
    /// Writes in flight that the even and the odd group's flush must cover.
    writes: [u32; 2],
    /// What the next group's flush is waited for by.
    awaiting: Vec<Awaiting>,
    /// The next group's flush is to cover a superblock.
    superblock_due: bool,
    /// The same of the next superblock.
    released_by_superblock: Vec<Superseded>,
}

impl Commit {
    pub(crate) fn new() -> Commit {
        Commit {
            flight: Flight::Idle,
            blocks: Vec::new(),
            pending: Vec::new(),
            covered: Vec::new(),
            released: Vec::new(),
            started: ShardSet::EMPTY,
            gathering: Parity::Even,
            writes: [0; 2],
            awaiting: Vec::new(),
            superblock_due: false,
            released_by_superblock: Vec::new(),
        }
    }

    /// Whether no group is in flight.
    #[inline]
    pub(crate) fn is_idle(&self) -> bool {
        self.flight == Flight::Idle
    }

    /// Whether the next group has something to wait for or to put into the superblock.
    #[inline]
    pub(crate) fn has_to_seal(&self) -> bool {
        self.superblock_due || !self.awaiting.is_empty()
    }

    /// Counts a write that is queued now: the flush of this group covers it.
    pub(crate) fn count_write(&mut self) -> Parity {
        let group = self.gathering;
        *self.writes_of(group) += 1;
        group
    }

    /// Counts the write of the group's next block: which one it is.
    pub(crate) fn count_block(&mut self, shard: ShardId) -> u32 {
        self.count_write();
        self.blocks.push((shard, None));
        self.blocks.len() as u32 - 1
    }

    /// A journal begins with this group.
    pub(crate) fn starts(&mut self, shard: ShardId) {
        self.started.insert(shard);
        self.superblock_due = true;
    }

    /// The next group's flush is to cover a superblock.
    pub(crate) fn superblock_is_due(&mut self) {
        self.superblock_due = true;
    }

    /// To these segments one version less leads once the next superblock is durable, which is due.
    pub(crate) fn release_by_superblock(&mut self, superseded: Superseded) {
        self.released_by_superblock.push(superseded);
        self.superblock_due = true;
    }

    /// Waits for the next group's flush.
    pub(crate) fn await_flush(&mut self, who: Awaiting) {
        self.awaiting.push(who);
    }

    /// What waits for a record of this group.
    pub(crate) fn pending(&mut self) -> &mut Vec<Pending> {
        &mut self.pending
    }

    /// All of the next group is queued: it is in flight, if there is anything of it. Whether it is
    /// to cover a superblock.
    pub(crate) fn seal(&mut self) -> bool {
        assert!(self.is_idle(), "a group that is sealed while another is in flight");
        let superblock = core::mem::take(&mut self.superblock_due);
        if superblock {
            self.released.append(&mut self.released_by_superblock);
        }
        if !self.blocks.is_empty() || !self.awaiting.is_empty() || superblock {
            core::mem::swap(&mut self.covered, &mut self.awaiting);
            self.flight = Flight::Writing(self.gathering);
            self.gathering = self.gathering.other();
        }
        superblock
    }

    /// A write that some group's flush has to cover has completed.
    pub(crate) fn written(&mut self, group: Parity) {
        *self.writes_of(group) -= 1;
    }

    /// A block of the group in flight was written from this buffer.
    pub(crate) fn block_written(&mut self, number: u32, pair: Box<[u8]>) {
        let Some((_, place)) = self.blocks.get_mut(number as usize) else {
            unreachable!("a block of no group")
        };
        assert!(place.replace(pair).is_none(), "a block that was written twice");
        let Flight::Writing(group) = self.flight else { unreachable!("a group without its block") };
        self.written(group);
    }

    /// Whether the flush of the group in flight is to be asked for now; says so once.
    pub(crate) fn takes_flush(&mut self) -> bool {
        let Flight::Writing(group) = self.flight else { return false };
        let is_due = *self.writes_of(group) == 0;
        if is_due {
            self.flight = Flight::Flushing;
        }
        is_due
    }

    /// The group in flight is durable: its blocks.
    pub(crate) fn flushed(&mut self) -> impl Iterator<Item = (ShardId, Option<Box<[u8]>>)> + '_ {
        self.flight = Flight::Idle;
        self.blocks.drain(..)
    }

    /// The segments to which one version less leads since its superblock is durable.
    pub(crate) fn take_released(&mut self) -> Vec<Superseded> {
        core::mem::take(&mut self.released)
    }

    /// The journals that it began.
    pub(crate) fn take_started(&mut self) -> ShardSet {
        core::mem::take(&mut self.started)
    }

    /// What waited for its flush. Give the list back with [`Commit::reuse`].
    pub(crate) fn take_covered(&mut self) -> Vec<Awaiting> {
        core::mem::take(&mut self.covered)
    }

    /// What waited for its records. Give the list back with [`Commit::reuse`].
    pub(crate) fn take_pending(&mut self) -> Vec<Pending> {
        core::mem::take(&mut self.pending)
    }

    /// Takes back the lists, which are empty.
    pub(crate) fn reuse(&mut self, covered: Vec<Awaiting>, pending: Vec<Pending>) {
        (self.covered, self.pending) = (covered, pending);
    }

    /// The disk has failed: nothing comes of the group in flight, or of what the next one has. Its
    /// buffers; what its superblock was to release stays to be released.
    pub(crate) fn give_up(&mut self) -> impl Iterator<Item = Box<[u8]>> + '_ {
        assert!(self.writes == [0; 2], "writes of a group in flight that has ended");
        self.flight = Flight::Idle;
        self.awaiting.clear();
        self.pending.clear();
        self.covered.clear();
        self.released_by_superblock.append(&mut self.released);
        self.blocks.drain(..).filter_map(|(_, pair)| pair)
    }

    /// Of the journals that a group of this store has begun and that no superblock calls started,
    /// those of `theirs`.
    pub(crate) fn split_started(&mut self, theirs: ShardSet) -> ShardSet {
        self.started.split_off(theirs)
    }

    pub(crate) fn take_over_started(&mut self, started: ShardSet) {
        self.started = self.started.or(started);
    }

    fn writes_of(&mut self, group: Parity) -> &mut u32 {
        let [even, odd] = &mut self.writes;
        match group {
            Parity::Even => even,
            Parity::Odd => odd,
        }
    }
}
