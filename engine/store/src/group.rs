//! Group commit: the records gathered in a turn become blocks, and one flush makes them durable.
//! Then the store applies the records and wakes the waiting operations. Section 6 of
//! `docs/format.md`.
//!
//! Invariants:
//! - At most one group is in flight. Its flush is due when every write queued before the seal has
//!   completed.
//! - From its queueing until its completion, a write counts for the group that was gathering when
//!   the write was queued.

use crate::backing::Parity;
use crate::layout::{SegmentIndex, ShardId};
use crate::pending::{Awaiting, Pending};
use crate::shards::ShardSet;
use crate::types::AccountId;
use alloc::boxed::Box;
use alloc::vec::Vec;

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum GroupWrite {
    #[default]
    Idle,
    Writing(Parity),
    Flushing,
}

/// Segments of a shard's journal that precede its new root.
#[derive(Debug)]
pub(crate) struct Superseded {
    pub(crate) shard: ShardId,
    pub(crate) segments: Vec<SegmentIndex>,
    /// One version of the superblock has the new root. The version before it still refers to these
    /// segments.
    pub(crate) is_in_one_version: bool,
}

/// The group in flight, and the state of the next group apart from its records.
pub(crate) struct Commit {
    flight: GroupWrite,
    blocks: Vec<(ShardId, Option<Box<[u8]>>)>,
    pending: Vec<Pending>,
    covered: Vec<Awaiting>,
    /// Segments before new roots. Once this group's superblock is durable, one more version has
    /// these roots.
    released: Vec<Superseded>,
    /// Shards that have the first block of their journal in this group.
    started: ShardSet,
    gathering: Parity,
    /// The number of writes in flight for the even group and for the odd group.
    writes: [u32; 2],
    /// Operations that wait for the next group's flush.
    awaiting: Vec<Awaiting>,
    /// The next group's flush must cover a superblock.
    superblock_due: bool,
    /// Segments before new roots. Once the next superblock is durable, one more version has these
    /// roots.
    released_by_superblock: Vec<Superseded>,
}

impl Commit {
    pub(crate) fn new() -> Commit {
        Commit {
            flight: GroupWrite::Idle,
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
        self.flight == GroupWrite::Idle
    }

    /// Whether the next group has operations that wait for it, or a superblock.
    #[inline]
    pub(crate) fn has_to_seal(&self) -> bool {
        self.superblock_due || !self.awaiting.is_empty()
    }

    /// Counts a write that is queued now. Returns the group with the flush that must cover it.
    pub(crate) fn count_write(&mut self) -> Parity {
        let group = self.gathering;
        *self.writes_of(group) += 1;
        group
    }

    /// Counts the write of the group's next block. Returns the number of the block.
    pub(crate) fn count_block(&mut self, shard: ShardId) -> u32 {
        self.count_write();
        self.blocks.push((shard, None));
        self.blocks.len() as u32 - 1
    }

    /// Notes that the shard's journal begins with this group.
    pub(crate) fn starts(&mut self, shard: ShardId) {
        self.started.insert(shard);
        self.superblock_due = true;
    }

    /// Makes the next group's flush cover a superblock.
    pub(crate) fn superblock_is_due(&mut self) {
        self.superblock_due = true;
    }

    /// Makes a superblock due. Once it is durable, one more version has the new root.
    pub(crate) fn release_by_superblock(&mut self, superseded: Superseded) {
        self.released_by_superblock.push(superseded);
        self.superblock_due = true;
    }

    /// Adds an operation that waits for the next group's flush.
    pub(crate) fn await_flush(&mut self, operation: Awaiting) {
        self.awaiting.push(operation);
    }

    /// The operations that wait for a record of this group.
    pub(crate) fn pending(&mut self) -> &mut Vec<Pending> {
        &mut self.pending
    }

    /// Whether a new password of this account is in the group.
    pub(crate) fn has_password_of(&self, account: AccountId) -> bool {
        self.pending.iter().any(|one| one.is_password_of(account))
    }

    /// Closes the gathering group, when all of its blocks are queued. Afterwards it is in flight,
    /// unless it is empty. Returns whether its flush must cover a superblock.
    pub(crate) fn seal(&mut self) -> bool {
        assert!(self.is_idle(), "a group that is sealed while another is in flight");
        let superblock = core::mem::take(&mut self.superblock_due);
        if superblock {
            self.released.append(&mut self.released_by_superblock);
        }
        if !self.blocks.is_empty() || !self.awaiting.is_empty() || superblock {
            core::mem::swap(&mut self.covered, &mut self.awaiting);
            self.flight = GroupWrite::Writing(self.gathering);
            self.gathering = self.gathering.other();
        }
        superblock
    }

    /// Notes the completion of a write that the flush of `group` must cover.
    pub(crate) fn written(&mut self, group: Parity) {
        *self.writes_of(group) -= 1;
    }

    /// Takes back the buffer of a written block of the group in flight.
    pub(crate) fn block_written(&mut self, number: u32, pair: Box<[u8]>) {
        let Some((_, place)) = self.blocks.get_mut(number as usize) else {
            unreachable!("a block of no group")
        };
        assert!(place.replace(pair).is_none(), "a block that was written twice");
        let GroupWrite::Writing(group) = self.flight else {
            unreachable!("a group without its block")
        };
        self.written(group);
    }

    /// Whether the flush of the group in flight must be requested now. True once per group.
    pub(crate) fn takes_flush(&mut self) -> bool {
        let GroupWrite::Writing(group) = self.flight else { return false };
        let is_due = *self.writes_of(group) == 0;
        if is_due {
            self.flight = GroupWrite::Flushing;
        }
        is_due
    }

    /// Ends the group in flight, which is durable. Returns its blocks.
    pub(crate) fn flushed(&mut self) -> impl Iterator<Item = (ShardId, Option<Box<[u8]>>)> + '_ {
        self.flight = GroupWrite::Idle;
        self.blocks.drain(..)
    }

    /// The segments before new roots, now that one more durable version has these roots.
    pub(crate) fn take_released(&mut self) -> Vec<Superseded> {
        core::mem::take(&mut self.released)
    }

    /// The journals that the group began.
    pub(crate) fn take_started(&mut self) -> ShardSet {
        core::mem::take(&mut self.started)
    }

    /// The operations that waited for the group's flush. Return the list with [`Commit::reuse`].
    pub(crate) fn take_covered(&mut self) -> Vec<Awaiting> {
        core::mem::take(&mut self.covered)
    }

    /// The operations that waited for the group's records. Return the list with [`Commit::reuse`].
    pub(crate) fn take_pending(&mut self) -> Vec<Pending> {
        core::mem::take(&mut self.pending)
    }

    /// Takes back the empty lists.
    pub(crate) fn reuse(&mut self, covered: Vec<Awaiting>, pending: Vec<Pending>) {
        (self.covered, self.pending) = (covered, pending);
    }

    /// Drops the group in flight and the state of the next group, because the disk has failed.
    /// Returns the buffers. The next superblock releases the segments that this group's superblock
    /// was to release.
    pub(crate) fn give_up(&mut self) -> impl Iterator<Item = Box<[u8]>> + '_ {
        assert!(self.writes == [0; 2], "a failed group with writes in flight");
        self.flight = GroupWrite::Idle;
        self.awaiting.clear();
        self.pending.clear();
        self.covered.clear();
        self.released_by_superblock.append(&mut self.released);
        self.blocks.drain(..).filter_map(|(_, pair)| pair)
    }

    /// Takes out the shards of `theirs` with a journal that has begun in a group of this store. No
    /// superblock marks these journals as started yet.
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
