//! The journals of all shards, and the records that gather for their next blocks.
//!
//! Invariants:
//! - A shard in which something has gathered is dirty until that is in a group.
//! - Records that gather in one shard fit a group, with those of a checkpoint and of orders.

use crate::block::{self, RECORDS_MAX};
use crate::frame;
use crate::index::Index;
use crate::indexes::Indexes;
use crate::journal::Journal;
use crate::layout::{Geometry, SegmentIndex, ShardId};
use crate::orders::{self, ORDERS_MAX, Order};
use crate::outcome::{Refusal, Wakes};
use crate::pending::Pending;
use crate::record;
use crate::replay::Dropped;
use crate::segments::{COMPACTION_RESERVE, Segments, Want};
use crate::shards::{PerShard, ShardSet};
use crate::superblock::Root;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use sometimes::buggify;
use tasks::Continuation;

/// The most bytes of records that gather in one shard; more waits for the next group.
const GATHERED_BYTES_MAX: usize = 24 * 1024;
/// The most blocks by which a journal may outgrow its index before a checkpoint is due, and the
/// pages of the disk for each of them; two segments are allowed on any disk.
const SLACK_BLOCKS: u32 = 256;
const SLACK_PAGES: u32 = 2048;

#[derive(Default)]
struct Shard {
    journal: Option<Journal>,
    /// Records for the next group, and who waits for them.
    gathered: Vec<u8>,
    pending: Vec<Pending>,
    /// Changes that are to become records when the next group is made.
    orders: VecDeque<Order>,
    /// Messages that opening found torn, until it is durable that they are gone.
    dropped: Vec<Dropped>,
}

pub(crate) struct Journals {
    shards: PerShard<Shard>,
    /// The shards that have something gathered.
    dirty: ShardSet,
    /// The shards whose journal holds a damaged copy or segments that are wanted elsewhere: a
    /// checkpoint leaves them behind.
    heal: ShardSet,
}

impl Journals {
    pub(crate) fn new() -> Journals {
        Journals {
            shards: PerShard::new(|_| Shard::default()),
            dirty: ShardSet::EMPTY,
            heal: ShardSet::EMPTY,
        }
    }

    pub(crate) fn of(&self, shard: ShardId) -> Option<&Journal> {
        self.shards.of(shard).journal.as_ref()
    }

    pub(crate) fn of_mut(&mut self, shard: ShardId) -> Option<&mut Journal> {
        self.shards.of_mut(shard).journal.as_mut()
    }

    /// A journal begins, or was replayed.
    pub(crate) fn begin(&mut self, shard: ShardId, journal: Journal) -> &mut Journal {
        self.shards.of_mut(shard).journal.insert(journal)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (ShardId, &Journal)> {
        self.shards.iter().filter_map(|(shard, known)| Some((shard, known.journal.as_ref()?)))
    }

    #[inline]
    pub(crate) fn dirty(&self) -> ShardSet {
        self.dirty
    }

    /// The shards to look at for a checkpoint: those that are to be written to anyway, and those
    /// that are to be mended.
    #[inline]
    pub(crate) fn candidates(&self) -> ShardSet {
        self.dirty.or(self.heal)
    }

    /// Only a checkpoint mends the shard's journal.
    pub(crate) fn needs_mending(&mut self, shard: ShardId) {
        self.heal.insert(shard);
    }

    /// The shard's journal begins anew with its next block.
    pub(crate) fn begin_anew(&mut self, shard: ShardId) -> (Root, Vec<SegmentIndex>) {
        self.heal.remove(shard);
        let Some(journal) = self.of_mut(shard) else { unreachable!("a checkpoint of no journal") };
        journal.begins_anew()
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

    /// A body finds no segment: what journals have beyond their index's need is given back, also by
    /// those that nobody writes to.
    pub(crate) fn shorten(&mut self, indexes: &Indexes, segments: &Segments) {
        let due: ShardSet = ShardId::all()
            .filter(|shard| self.is_due(*shard, indexes.of(*shard), segments))
            .collect();
        self.heal = self.heal.or(due);
    }

    /// How many free segments deliveries to these shards must leave alone: section 8 of
    /// `docs/format.md`.
    pub(crate) fn reserve_of(
        &self,
        shards: ShardSet,
        indexes: &Indexes,
        geometry: Geometry,
    ) -> u32 {
        let journals = shards.iter().filter(|shard| self.of(*shard).is_some()).count() as u32;
        let largest =
            shards.iter().map(|shard| indexes.of(shard).checkpoint_blocks()).max().unwrap_or(0);
        journals + largest.div_ceil(geometry.places()) + COMPACTION_RESERVE
    }

    /// Whether records of `bytes` may gather. A shard with nothing gathered takes the largest
    /// message's.
    pub(crate) fn has_room_for(&self, shard: ShardId, bytes: usize) -> bool {
        let gathered = self.shards.of(shard).gathered.len();
        gathered == 0 || gathered + bytes <= GATHERED_BYTES_MAX
    }

    /// Sees to it that records of `bytes` can gather and will find space on the disk.
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

    /// The records that gather in a shard, for one more.
    pub(crate) fn gather(&mut self, shard: ShardId) -> &mut Vec<u8> {
        self.dirty.insert(shard);
        &mut self.shards.of_mut(shard).gathered
    }

    /// Waits for what has gathered in a shard to be durable.
    pub(crate) fn wait(&mut self, shard: ShardId, who: Pending) {
        self.shards.of_mut(shard).pending.push(who);
    }

    /// The blocks that what has gathered takes.
    pub(crate) fn gathered_blocks(&self, shard: ShardId) -> u32 {
        blocks_of(&self.shards.of(shard).gathered)
    }

    /// Takes what has gathered in a shard. Give it back with [`Journals::put_back`] or
    /// [`Journals::sealed`].
    pub(crate) fn take_gathered(&mut self, shard: ShardId) -> Vec<u8> {
        core::mem::take(&mut self.shards.of_mut(shard).gathered)
    }

    /// There is no space for it: it gathers still.
    pub(crate) fn put_back(&mut self, shard: ShardId, records: Vec<u8>) {
        self.shards.of_mut(shard).gathered = records;
    }

    /// It is in a group: what waits for it waits for that.
    pub(crate) fn sealed(&mut self, shard: ShardId, records: Vec<u8>, pending: &mut Vec<Pending>) {
        let known = self.shards.of_mut(shard);
        pending.append(&mut known.pending);
        known.gathered = records;
        known.gathered.clear();
        if known.orders.is_empty() {
            self.dirty.remove(shard);
        }
    }

    /// Errors: `Busy`.
    pub(crate) fn order(&mut self, shard: ShardId, order: Order) -> Result<(), Refusal> {
        let waiting = &mut self.shards.of_mut(shard).orders;
        if waiting.len() >= ORDERS_MAX {
            return Err(Refusal::Busy);
        }
        waiting.push_back(order);
        Ok(())
    }

    pub(crate) fn has_orders(&self, shard: ShardId) -> bool {
        !self.shards.of(shard).orders.is_empty()
    }

    /// Makes records of a shard's orders, as many as fit a group.
    pub(crate) fn carry_out_orders(
        &mut self,
        shard: ShardId,
        index: &mut Index,
        out: &mut Vec<u8>,
        wakes: &mut Wakes,
    ) {
        let Shard { orders: waiting, pending, .. } = self.shards.of_mut(shard);
        orders::carry_out(waiting, index, out, pending, wakes);
    }

    /// A message of this shard was found torn: it is to be journaled that it is gone.
    pub(crate) fn drop_torn(&mut self, shard: ShardId, torn: Dropped) {
        self.shards.of_mut(shard).dropped.push(torn);
        self.dirty.insert(shard);
    }

    /// Gathers that torn messages are gone, where that is not durable.
    pub(crate) fn gather_drops(&mut self, indexes: &mut Indexes) {
        for (number, Shard { gathered, pending, dropped, .. }) in self.shards.iter_mut() {
            for Dropped { account, mailbox, uid, pages, arrival } in dropped.iter() {
                let Some(known) = indexes.of_mut(number).mailbox_mut(*account, *mailbox) else {
                    continue;
                };
                let modseq = known.next_modseq();
                record::put_removed(gathered, *account, *mailbox, modseq, &[(*uid, *uid)]);
                if let Some(key) = arrival {
                    record::put_note(gathered, *account, key, &[]);
                }
                pending.extend(pages.iter().map(|(page, count)| Pending::Drop(*page, *count)));
            }
            if !dropped.is_empty() {
                self.dirty.insert(number);
            }
        }
    }

    /// A group is durable, with records of these shards.
    pub(crate) fn group_ended(&mut self, shards: ShardSet) {
        for (number, shard) in self.shards.iter_mut() {
            if let Some(journal) = &mut shard.journal {
                journal.is_durable();
            }
            if shards.has(number) {
                shard.dropped.clear();
            }
        }
    }

    /// Nothing comes of what has gathered: what waited for it.
    pub(crate) fn give_up(&mut self, pending: &mut Vec<Pending>) {
        for (_, shard) in self.shards.iter_mut() {
            pending.append(&mut shard.pending);
            shard.gathered.clear();
        }
        self.dirty = ShardSet::EMPTY;
    }

    /// Nothing comes of the orders that wait: their continuations.
    pub(crate) fn give_up_orders(&mut self) -> impl Iterator<Item = Continuation> + '_ {
        self.shards
            .iter_mut()
            .flat_map(|(_, shard)| shard.orders.drain(..))
            .map(Order::into_continuation)
    }

    /// Goes back to where each journal was durable, and gives back the segments that were linked
    /// since.
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

    /// Whether nothing gathers.
    pub(crate) fn are_empty(&self) -> bool {
        self.shards.iter().all(|(_, shard)| shard.gathered.is_empty())
    }

    /// Gives away the journals of those shards.
    pub(crate) fn split_off(&mut self, theirs: ShardSet) -> Journals {
        let mut others = Journals::new();
        theirs.iter().for_each(|shard| {
            core::mem::swap(self.shards.of_mut(shard), others.shards.of_mut(shard))
        });
        (others.dirty, others.heal) = (self.dirty.split_off(theirs), self.heal.split_off(theirs));
        others
    }
}

/// How many blocks the records take.
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
