//! The journals of all shards, and the records gathered for their next blocks.
//!
//! Invariants:
//! - A shard with gathered records is dirty until the records are in a group.
//! - The gathered records of a shard fit into one group, together with records of a checkpoint and
//!   of pending metadata changes.

use crate::block::{self, RECORDS_MAX};
use crate::frame;
use crate::index::Index;
use crate::indexes::Indexes;
use crate::journal::Journal;
use crate::layout::{Geometry, SegmentIndex, ShardId};
use crate::metadata_changes::{self, METADATA_CHANGES_MAX, MetadataChange};
use crate::outcome::{Refusal, Wakes};
use crate::pending::Pending;
use crate::record;
use crate::replay::Dropped;
use crate::segments::{COMPACTION_RESERVE, Segments, Want};
use crate::shards::{PerShard, ShardSet};
use crate::superblock::Root;
use crate::types::AccountId;
use crate::walk::{UnfinishedCheckpoint, WalkCursor};
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use sometimes::buggify;
use tasks::Continuation;

/// The most bytes of records gathered in one shard. Further records wait for the next group.
const GATHERED_BYTES_MAX: usize = 24 * 1024;
/// The largest slack. A checkpoint is due when a journal has more blocks than the slack plus twice
/// the number that its index needs.
const SLACK_BLOCKS: u32 = 256;
/// The pages of the disk for each block of slack. The slack is at least the blocks of two segments,
/// but at most [`SLACK_BLOCKS`].
const SLACK_PAGES: u32 = 2048;

#[derive(Default)]
struct Shard {
    journal: Option<Journal>,
    /// Records for the next group, and the operations that wait for them.
    gathered: Vec<u8>,
    pending: Vec<Pending>,
    /// Metadata changes that become records when the next group is made.
    metadata_changes: VecDeque<MetadataChange>,
    /// Messages that opening found torn, until their removal is durable.
    dropped: Vec<Dropped>,
}

pub(crate) struct Journals {
    shards: PerShard<Shard>,
    /// The shards with gathered records.
    dirty: ShardSet,
    /// The shards that need a checkpoint. Their journal has a damaged copy, or has segments that
    /// are needed elsewhere.
    heal: ShardSet,
    /// The shards with an unfinished checkpoint in their journal.
    unfinished: ShardSet,
}

impl Journals {
    pub(crate) fn new() -> Journals {
        Journals {
            shards: PerShard::new(|_| Shard::default()),
            dirty: ShardSet::EMPTY,
            heal: ShardSet::EMPTY,
            unfinished: ShardSet::EMPTY,
        }
    }

    pub(crate) fn of(&self, shard: ShardId) -> Option<&Journal> {
        self.shards.of(shard).journal.as_ref()
    }

    pub(crate) fn of_mut(&mut self, shard: ShardId) -> Option<&mut Journal> {
        self.shards.of_mut(shard).journal.as_mut()
    }

    /// Sets the journal of a shard, which is new or was replayed.
    pub(crate) fn begin(&mut self, shard: ShardId, journal: Journal) -> &mut Journal {
        if journal.has_unfinished_checkpoint() {
            self.unfinished.insert(shard);
        }
        self.shards.of_mut(shard).journal.insert(journal)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (ShardId, &Journal)> {
        self.shards.iter().filter_map(|(shard, known)| Some((shard, known.journal.as_ref()?)))
    }

    #[inline]
    pub(crate) fn dirty(&self) -> ShardSet {
        self.dirty
    }

    /// The shards for which a checkpoint may be due: with gathered records, with a journal to
    /// repair, or with an unfinished checkpoint.
    #[inline]
    pub(crate) fn candidates(&self) -> ShardSet {
        self.dirty.or(self.heal).or(self.unfinished)
    }

    /// The shards with an unfinished checkpoint.
    pub(crate) fn unfinished(&self) -> ShardSet {
        self.unfinished
    }

    /// Marks a shard that only a checkpoint can repair.
    pub(crate) fn needs_mending(&mut self, shard: ShardId) {
        self.heal.insert(shard);
    }

    /// Moves the root of the shard's journal to the start of its unfinished checkpoint, or else to
    /// its next block. Returns the new root, the position of the walk, and the segments before the
    /// new root.
    pub(crate) fn begin_anew(&mut self, shard: ShardId) -> (Root, WalkCursor, Vec<SegmentIndex>) {
        if self.unfinished.has(shard) {
            self.unfinished.remove(shard);
        } else {
            self.heal.remove(shard);
        }
        let Some(journal) = self.of_mut(shard) else { unreachable!("a checkpoint of no journal") };
        journal.begins_anew()
    }

    /// Undoes [`Journals::begin_anew`] for a checkpoint that cannot end now.
    pub(crate) fn interrupt_checkpoint(
        &mut self,
        shard: ShardId,
        old: Vec<SegmentIndex>,
        unfinished: UnfinishedCheckpoint,
    ) {
        let Some(journal) = self.of_mut(shard) else { unreachable!("a checkpoint of no journal") };
        journal.begins_before(old, unfinished);
        if journal.has_unfinished_checkpoint() {
            self.unfinished.insert(shard);
        } else {
            self.heal.insert(shard);
        }
    }

    /// Whether a checkpoint of the shard is due.
    pub(crate) fn is_due(&self, shard: ShardId, index: &Index, segments: &Segments) -> bool {
        let Some(journal) = self.of(shard) else { return false };
        if self.heal.has(shard) {
            return true;
        }
        let geometry = segments.geometry();
        let places = geometry.places();
        let slack = (geometry.pages / SLACK_PAGES).max(2 * places).min(SLACK_BLOCKS);
        let needed = index.checkpoint_blocks();
        let scarce = segments.free() <= segments.reserve();
        if scarce {
            journal.chain().len() as u32 > needed.div_ceil(places - 1)
        } else {
            journal.blocks() > 2 * needed + slack
                || journal.blocks() > needed && buggify!(CheckpointEarly)
        }
    }

    /// Makes a checkpoint due in each shard if its journal has more segments than its index needs,
    /// even if the shard has no writes. To be called when a body has found no free segment.
    pub(crate) fn shorten(&mut self, indexes: &Indexes, segments: &Segments) {
        let due: ShardSet = ShardId::all()
            .filter(|shard| self.is_due(*shard, indexes.of(*shard), segments))
            .collect();
        self.heal = self.heal.or(due);
    }

    /// The number of free segments that deliveries to these shards must leave alone. Section 8 of
    /// `docs/format.md`.
    ///
    /// The largest checkpoint counts twice. If several lives continue an unfinished checkpoint,
    /// each of them adds its fences and its changes to the journal.
    pub(crate) fn reserve_of(
        &self,
        shards: ShardSet,
        indexes: &Indexes,
        geometry: Geometry,
    ) -> u32 {
        let journals = shards.iter().filter(|shard| self.of(*shard).is_some()).count() as u32;
        let largest =
            shards.iter().map(|shard| indexes.of(shard).checkpoint_blocks()).max().unwrap_or(0);
        journals + 2 * largest.div_ceil(geometry.places()) + COMPACTION_RESERVE
    }

    /// Whether records of `bytes` may be gathered. A shard without gathered records has room even
    /// for the records of the largest message.
    pub(crate) fn has_room_for(&self, shard: ShardId, bytes: usize) -> bool {
        let gathered = self.shards.of(shard).gathered.len();
        gathered == 0 || gathered + bytes <= GATHERED_BYTES_MAX
    }

    /// Checks that records of `bytes` can be gathered and will find space on the disk.
    ///
    /// Errors: `Busy`, `DiskFull`.
    pub(crate) fn make_room(
        &mut self,
        shard: ShardId,
        bytes: usize,
        segments: &Segments,
    ) -> Result<(), Refusal> {
        if !self.has_room_for(shard, bytes) {
            return Err(Refusal::Busy);
        }
        let known = self.shards.of(shard);
        let geometry = segments.geometry();
        let places =
            known.journal.as_ref().map_or(0, |journal| geometry.link_place() - journal.place());
        if !segments.may_take(Want::Journal)
            && (places as usize) * RECORDS_MAX / 2 < known.gathered.len() + bytes
        {
            return Err(Refusal::DiskFull);
        }
        self.dirty.insert(shard);
        Ok(())
    }

    /// The gathered records of a shard, to append one more.
    pub(crate) fn gather(&mut self, shard: ShardId) -> &mut Vec<u8> {
        self.dirty.insert(shard);
        &mut self.shards.of_mut(shard).gathered
    }

    /// Adds an operation that waits until the gathered records of a shard are durable.
    pub(crate) fn wait(&mut self, shard: ShardId, operation: Pending) {
        self.shards.of_mut(shard).pending.push(operation);
    }

    /// Whether a gathered record has a new password of this account.
    pub(crate) fn has_password_of(&self, account: AccountId) -> bool {
        self.shards.of(account.shard()).pending.iter().any(|one| one.is_password_of(account))
    }

    /// The number of blocks that the gathered records take.
    pub(crate) fn gathered_blocks(&self, shard: ShardId) -> u32 {
        blocks_of(&self.shards.of(shard).gathered)
    }

    /// Takes the gathered records of a shard. Return the buffer with [`Journals::put_back`] or
    /// [`Journals::sealed`].
    pub(crate) fn take_gathered(&mut self, shard: ShardId) -> Vec<u8> {
        core::mem::take(&mut self.shards.of_mut(shard).gathered)
    }

    /// Puts back records that found no space on the disk: they stay gathered.
    pub(crate) fn put_back(&mut self, shard: ShardId, records: Vec<u8>) {
        self.shards.of_mut(shard).gathered = records;
    }

    /// Clears `records`, which are in a group now. Moves the operations that wait for them to
    /// `pending`.
    pub(crate) fn sealed(&mut self, shard: ShardId, records: Vec<u8>, pending: &mut Vec<Pending>) {
        let known = self.shards.of_mut(shard);
        pending.append(&mut known.pending);
        known.gathered = records;
        known.gathered.clear();
        if known.metadata_changes.is_empty() {
            self.dirty.remove(shard);
        }
    }

    /// Queues a metadata change. Errors: `Busy`.
    pub(crate) fn queue_change(
        &mut self,
        shard: ShardId,
        change: MetadataChange,
    ) -> Result<(), Refusal> {
        let waiting = &mut self.shards.of_mut(shard).metadata_changes;
        if waiting.len() >= METADATA_CHANGES_MAX {
            return Err(Refusal::Busy);
        }
        waiting.push_back(change);
        Ok(())
    }

    pub(crate) fn has_metadata_changes(&self, shard: ShardId) -> bool {
        !self.shards.of(shard).metadata_changes.is_empty()
    }

    /// Turns a shard's pending metadata changes into records, as many as fit a group.
    pub(crate) fn carry_out_metadata_changes(
        &mut self,
        shard: ShardId,
        index: &mut Index,
        out: &mut Vec<u8>,
        wakes: &mut Wakes,
    ) {
        let Shard { metadata_changes: waiting, pending, .. } = self.shards.of_mut(shard);
        metadata_changes::carry_out(waiting, index, out, pending, wakes);
    }

    /// Notes a torn message of this shard: its removal must be journaled.
    pub(crate) fn drop_torn(&mut self, shard: ShardId, torn: Dropped) {
        self.shards.of_mut(shard).dropped.push(torn);
        self.dirty.insert(shard);
    }

    /// Gathers the removals of torn messages, except removals that are durable already.
    pub(crate) fn gather_drops(&mut self, indexes: &mut Indexes) {
        for (number, Shard { gathered, pending, dropped, .. }) in self.shards.iter_mut() {
            for Dropped { account, mailbox, uid, pages, arrivals } in dropped.iter() {
                let Some(known) = indexes.of_mut(number).mailbox_mut(*account, *mailbox) else {
                    continue;
                };
                let modseq = known.next_modseq();
                record::put_removed(gathered, *account, *mailbox, modseq, &[(*uid, *uid)]);
                for key in arrivals {
                    record::put_note(gathered, *account, key, &[]);
                }
                pending.extend(pages.iter().map(|(page, count)| Pending::Drop(*page, *count)));
            }
            if !dropped.is_empty() {
                self.dirty.insert(number);
            }
        }
    }

    /// Ends a group, which is durable and has records of `shards`.
    pub(crate) fn group_ended(&mut self, shards: ShardSet) {
        for (number, shard) in self.shards.iter_mut() {
            if let Some(journal) = &mut shard.journal {
                journal.became_durable();
            }
            if shards.has(number) {
                shard.dropped.clear();
            }
        }
    }

    /// Drops all gathered records. Moves the operations that waited for them to `pending`.
    pub(crate) fn give_up(&mut self, pending: &mut Vec<Pending>) {
        for (_, shard) in self.shards.iter_mut() {
            pending.append(&mut shard.pending);
            shard.gathered.clear();
        }
        self.dirty = ShardSet::EMPTY;
    }

    /// Drops the pending metadata changes. Returns their continuations.
    pub(crate) fn give_up_metadata_changes(&mut self) -> impl Iterator<Item = Continuation> + '_ {
        self.shards
            .iter_mut()
            .flat_map(|(_, shard)| shard.metadata_changes.drain(..))
            .map(MetadataChange::into_continuation)
    }

    /// Takes each journal back to its last durable position, and releases the segments that were
    /// linked since then.
    pub(crate) fn go_back(&mut self, segments: &mut Segments) {
        for (_, shard) in self.shards.iter_mut() {
            shard.gathered.clear();
            shard.pending.clear();
            if let Some(journal) = &mut shard.journal {
                journal.goes_back(|segment| segments.release_journal(segment));
            }
        }
        self.dirty = ShardSet::EMPTY;
    }

    /// Whether no records are gathered.
    pub(crate) fn are_empty(&self) -> bool {
        self.shards.iter().all(|(_, shard)| shard.gathered.is_empty())
    }

    /// Takes out the journals of the shards `theirs`.
    pub(crate) fn split_off(&mut self, theirs: ShardSet) -> Journals {
        let mut others = Journals::new();
        theirs.iter().for_each(|shard| {
            core::mem::swap(self.shards.of_mut(shard), others.shards.of_mut(shard))
        });
        (others.dirty, others.heal) = (self.dirty.split_off(theirs), self.heal.split_off(theirs));
        others.unfinished = self.unfinished.split_off(theirs);
        others
    }
}

/// The number of blocks that the records take.
pub(crate) fn blocks_of(mut records: &[u8]) -> u32 {
    let mut blocks = 0;
    while !records.is_empty() {
        let length = frame::whole_records(records, RECORDS_MAX);
        assert!(length > 0, "a record that fits into no block");
        (_, records) = records.split_at(length);
        blocks += 1;
    }
    assert!(blocks <= block::GROUP_BLOCKS_MAX, "a group of more blocks than recovery looks for");
    blocks
}
