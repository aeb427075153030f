//! Group commit: what a turn gathered becomes blocks, one flush makes them durable, then they are applied and those
//! who wait are woken. Section 6 of `docs/format.md`.
//!
//! Invariants:
//! - At most one group is in flight; the flush is queued when every write queued before the seal has completed.
//! - The index is changed by nothing but the records of a flushed group.
//! - After a failed write or flush nothing is acknowledged any more.

use crate::backing::{Backing, Parity, Purpose};
use crate::block::{self, Header, RECORDS_MAX};
use crate::index::Space;
use crate::layout::{Page, SegmentIndex, ShardId};
use crate::outcome::{Outcome, State, WhyReadOnly};
use crate::record::{self, Record};
use crate::retry::{Mark, Retry};
use crate::segments::{Owner, Reason as Want};
use crate::store::{Journal, Store};
use crate::superblock::Root;
use crate::types::{AccountId, Filed, MailboxId, OUTBOX, Uid};
use alloc::boxed::Box;
use alloc::vec::Vec;
use sometimes::{buggify, sometimes};
use tasks::{Continuation, FrameId};

/// Who waits for the group that a record travels in.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Pending {
    Delivery(FrameId),
    Account(Continuation, AccountId),
    Change(Continuation),
    Mailbox(Continuation, MailboxId),
    Filed(Continuation, Filed),
    Move(FrameId),
    /// Pages of a torn message that opening dropped.
    Drop(Page, u32),
}

/// Who waits for a flush before its record may be gathered.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Awaiting {
    Delivery(FrameId),
    Move(FrameId),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Flight {
    #[default]
    Idle,
    Writing(Parity),
    Flushing,
}

/// The group in flight.
#[derive(Default)]
pub(crate) struct Group {
    flight: Flight,
    blocks: Vec<(ShardId, Option<Box<[u8]>>)>,
    pending: Vec<Pending>,
    awaiting: Vec<Awaiting>,
    /// Segments that are free once this group's superblock is durable.
    released: Vec<SegmentIndex>,
    /// Shards whose first block is in this group, a bit each.
    started: u64,
}

impl Store {
    /// Makes a group of all that was gathered, unless one is in flight.
    pub(crate) fn seal(&mut self) {
        if self.group.flight != Flight::Idle || !self.has_to_seal() {
            return;
        }
        let mut checkpoint = Vec::new();
        let mut sealing = self.dirty;
        if self.retry == Retry::No
            && let Some(shard) = self.checkpoint_records(&mut checkpoint)
        {
            self.seal_shard(shard, checkpoint);
            // Orders that are left wait for what these do: a shard has one group at a time.
            sealing &= !(1 << shard.0);
        }
        while sealing != 0 {
            let number = ShardId(sealing.trailing_zeros() as u8);
            sealing &= sealing - 1;
            self.seal_shard(number, Vec::new());
        }
        let parity = self.gathering;
        let superblock = core::mem::take(&mut self.superblock_due);
        if superblock {
            self.superblock_is_due();
            self.group.released.append(&mut self.released_by_superblock);
        }
        if self.group.blocks.is_empty() && self.awaiting.is_empty() && !superblock {
            return;
        }
        core::mem::swap(&mut self.group.awaiting, &mut self.awaiting);
        self.group.flight = Flight::Writing(parity);
        self.gathering = parity.other();
        self.flush_if_written();
    }

    /// Whether no group is in flight, and the next one has nothing to wait for or to put into the superblock.
    pub(crate) fn is_without_group(&self) -> bool {
        self.group.flight == Flight::Idle && !self.superblock_due && self.awaiting.is_empty()
    }

    /// Whether there may be anything to make a group of; in most turns there is nothing.
    fn has_to_seal(&self) -> bool {
        self.dirty | self.heal != 0 || self.checkpoint.is_some() || self.superblock_due || !self.awaiting.is_empty()
    }

    /// Cuts a shard's records into blocks and queues them; leaves them where they are when there is no space.
    pub(crate) fn seal_shard(&mut self, number: ShardId, mut before: Vec<u8>) {
        self.carry_out_orders(number, &mut before);
        let Some(shard) = self.shards.get_mut(number.index()) else { return };
        let gathered = core::mem::take(&mut shard.gathered);
        let records = if before.is_empty() { gathered } else { [before, gathered].concat() };
        let fence = self.needs_fence(number);
        let blocks = blocks_of(&records);
        if !self.has_places(number, blocks + u32::from(fence)) {
            if let Some(shard) = self.shards.get_mut(number.index()) {
                shard.gathered = records;
            }
            return;
        }
        if blocks > 0 {
            self.write_blocks(number, fence, blocks, &records);
        }
        let Some(shard) = self.shards.get_mut(number.index()) else { return };
        if shard.orders.is_empty() {
            self.dirty &= !(1 << number.0);
        }
        self.group.pending.append(&mut shard.pending);
        shard.gathered = records;
        shard.gathered.clear();
    }

    /// Whether the shard's journal goes on where an earlier life may have left something.
    pub(crate) fn needs_fence(&self, number: ShardId) -> bool {
        let journal = self.shard(number).and_then(|shard| shard.journal.as_ref());
        journal.is_some_and(|journal| {
            !journal.fenced && !journal.fresh_segment && journal.place < self.segments.geometry.link_place()
        })
    }

    pub(crate) fn write_blocks(&mut self, number: ShardId, fence: bool, blocks: u32, records: &[u8]) {
        let journal = self.shard(number).and_then(|shard| shard.journal.as_ref());
        let group = (journal.map_or(1, |journal| journal.sequence), blocks + u32::from(fence));
        if fence {
            let mut life = Vec::new();
            record::put_life(&mut life, self.random.number());
            self.write_block(number, group, &life);
        }
        let mut rest = records;
        while !rest.is_empty() {
            let (part, tail) = rest.split_at(record::whole_records(rest, RECORDS_MAX));
            assert!(!part.is_empty(), "a record that fits into no block");
            rest = tail;
            let extended = self.extend_journal(number);
            assert!(extended, "a journal that found space a moment ago");
            self.write_block(number, group, part);
        }
    }

    /// Writes the next block of a shard's journal, which has a place for it.
    fn write_block(&mut self, number: ShardId, (group_first, group_blocks): (u64, u32), records: &[u8]) {
        let geometry = self.segments.geometry;
        let shard = self.shards.get_mut(number.index());
        let Some((journal, mark)) = shard.and_then(|shard| Some((shard.journal.as_mut()?, &mut shard.mark))) else {
            return;
        };
        let Some(segment) = journal.chain.last() else { return };
        mark.get_or_insert(Mark::of(journal));
        let page = geometry.place_page(*segment, journal.place);
        let (sequence, previous) = (journal.sequence, journal.previous);
        let header = Header { shard: number, sequence, group_first, group_blocks, previous };
        let mut pair = self.pool.take_pair();
        if !journal.fenced {
            // Sectors of a torn block of an earlier life must not find their missing ones here.
            pair.fill(0);
            journal.fenced = true;
        }
        journal.previous = block::emit_records(&mut pair, &self.superblock.key, page, header, records);
        journal.sequence += 1;
        journal.place += 1;
        journal.blocks += 1;
        let purpose = Purpose::Block { number: self.group.blocks.len() as u32 };
        self.group.blocks.push((number, None));
        let parity = self.gathering;
        self.count_write(parity);
        self.backing.write(page, pair, purpose);
    }

    /// Whether a shard's journal finds space for so many blocks.
    pub(crate) fn has_places(&self, number: ShardId, blocks: u32) -> bool {
        let each = self.segments.geometry.link_place();
        let journal = self.shard(number).and_then(|shard| shard.journal.as_ref());
        let left = journal.filter(|journal| !journal.fresh_segment).map_or(0, |journal| each - journal.place);
        blocks.saturating_sub(left).div_ceil(each) <= self.segments.free()
    }

    /// Sees to it that the shard's journal has a place for a block; false when there is no segment.
    pub(crate) fn extend_journal(&mut self, number: ShardId) -> bool {
        let geometry = self.segments.geometry;
        let Some(shard) = self.shards.get_mut(number.index()) else { return false };
        let full = match &shard.journal {
            Some(journal) => {
                let is_early = self.segments.free() > 2 * self.segments.reserve && buggify!(JournalSegmentEarly);
                journal.place == geometry.link_place() || journal.fresh_segment || is_early
            }
            None => true,
        };
        if !full {
            return true;
        }
        let Some(segment) = self.segments.take(Owner::Journal(number), Want::Journal) else { return false };
        match &mut shard.journal {
            Some(journal) => {
                let Some(last) = journal.chain.last() else { return false };
                shard.mark.get_or_insert(Mark::of(journal)).linked += 1;
                let page = geometry.place_page(*last, geometry.link_place());
                let (sequence, previous) = (journal.sequence, journal.previous);
                let nonce = self.random.number();
                let header = Header { shard: number, sequence, group_first: nonce, group_blocks: 0, previous };
                let mut pair = self.pool.take_pair();
                journal.previous = block::emit_link(&mut pair, &self.superblock.key, page, header, segment);
                journal.fenced = true;
                journal.chain.push(segment);
                journal.place = 0;
                journal.fresh_segment = false;
                sometimes!(JournalLinked);
                let group = self.gathering;
                self.count_write(group);
                self.backing.write(page, pair, Purpose::Fixed { group });
            }
            None => {
                let root = Root { segment, place: 0, started: false, sequence: 1, previous: self.random.number() };
                let journal = shard.journal.insert(Journal::at(root));
                shard.mark = Some(Mark::of(journal));
                self.group.started |= 1 << number.0;
                self.superblock_due = true;
                self.root_changed(number, root);
            }
        }
        self.refresh_reserve();
        true
    }

    pub(crate) fn writes_of(&mut self, group: Parity) -> &mut u32 {
        let [even, odd] = &mut self.writes;
        match group {
            Parity::Even => even,
            Parity::Odd => odd,
        }
    }

    /// A write that some group's flush has to cover has completed.
    pub(crate) fn written(&mut self, group: Parity) {
        *self.writes_of(group) -= 1;
        self.flush_if_written();
    }

    pub(crate) fn block_written(&mut self, number: u32, ok: bool, pair: Box<[u8]>) {
        if !ok {
            self.fail(WhyReadOnly::WriteFailed);
        }
        if let Some((_, place)) = self.group.blocks.get_mut(number as usize) {
            *place = Some(pair);
        }
        if let Flight::Writing(group) = self.group.flight {
            self.written(group);
        }
    }

    fn flush_if_written(&mut self) {
        if let Flight::Writing(group) = self.group.flight
            && *self.writes_of(group) == 0
            && (self.state == State::Serving || self.retry == Retry::UnderWay)
        {
            self.group.flight = Flight::Flushing;
            self.ask_for_flush();
        }
    }

    /// The group's flush has completed.
    pub(crate) fn flushed(&mut self, result: Result<(), WhyReadOnly>) {
        if self.state != State::Serving && self.retry != Retry::UnderWay {
            return;
        }
        if let Err(why) = result {
            return self.fail(why);
        }
        if self.retry == Retry::UnderWay && !self.serves_again() {
            return self.tell_of_failure(WhyReadOnly::WriteFailed);
        }
        self.group.flight = Flight::Idle;
        self.apply_group();
        self.checkpoint_flushed();
        self.superblock_flushed();
        let mut awaiting = core::mem::take(&mut self.group.awaiting);
        for one in awaiting.drain(..) {
            match one {
                Awaiting::Delivery(delivery) => self.chunks_flushed(delivery),
                Awaiting::Move(number) => self.move_flushed(number),
            }
        }
        self.group.awaiting = awaiting;
        let mut pending = core::mem::take(&mut self.group.pending);
        for one in pending.drain(..) {
            match one {
                Pending::Delivery(delivery) => self.recipient_flushed(delivery),
                Pending::Account(continuation, id) => self.wake(continuation, Outcome::AccountCreated(id)),
                Pending::Change(continuation) => self.wake(continuation, Outcome::Changed),
                Pending::Mailbox(continuation, id) => self.wake(continuation, Outcome::MailboxCreated(id)),
                Pending::Filed(continuation, filed) => self.wake(continuation, Outcome::Filed(filed)),
                Pending::Move(number) => self.move_applied(number),
                Pending::Drop(page, pages) => self.segments.unpin(page, pages),
            }
        }
        self.group.pending = pending;
    }

    fn apply_group(&mut self) {
        let mut applied = 0u64;
        for (number, place) in self.group.blocks.drain(..) {
            let (Some(pair), Some(shard)) = (place, self.shards.get_mut(number.index())) else { continue };
            let before = shard.index.resident_bytes();
            for record in record::records(block::records_of(&pair)) {
                if let Record::Range { .. } = record {
                    // A checkpoint's: it was made from this very index.
                    shard.index.forget_announced();
                    continue;
                }
                if let Record::Delivered { account, mailbox, entry, .. } = record
                    && MailboxId(mailbox) == OUTBOX
                {
                    self.posted.push((account, Uid(entry.uid)));
                }
                shard.index.apply(&record, &mut |space| match space {
                    Space::Lives(page, pages) => self.segments.lives(page, pages),
                    Space::Died(page, pages) => self.segments.died(page, pages),
                });
            }
            self.resident_bytes = self.resident_bytes + shard.index.resident_bytes() - before;
            self.pool.give_pair(pair);
            applied |= 1 << number.0;
        }
        self.changed |= applied;
        self.shards.iter_mut().for_each(|shard| shard.mark = None);
        for number in ShardId::all().filter(|number| applied >> number.0 & 1 == 1) {
            if let Some(shard) = self.shards.get_mut(number.index()) {
                shard.index.group_ended();
                shard.dropped.clear();
            }
        }
    }

    fn superblock_flushed(&mut self) {
        for segment in self.group.released.drain(..) {
            self.segments.release_journal(segment);
        }
        let started = core::mem::take(&mut self.group.started);
        if started == 0 {
            return;
        }
        for number in ShardId::all().filter(|number| started >> number.0 & 1 == 1) {
            let root = self.superblock.roots.get(number.index()).copied().flatten();
            if let Some(root) = root {
                self.superblock_due = true;
                self.root_changed(number, Root { started: true, ..root });
            }
        }
    }

    /// Nothing is acknowledged from now on.
    pub(crate) fn fail(&mut self, why: WhyReadOnly) {
        if self.state != State::Serving && self.retry != Retry::UnderWay {
            return;
        }
        sometimes!(ReadOnly);
        self.retry = Retry::No;
        self.state = State::ReadOnly(why);
        self.tell_of_failure(why);
        let mut pending = core::mem::take(&mut self.group.pending);
        for shard in &mut self.shards {
            pending.append(&mut shard.pending);
            shard.gathered.clear();
        }
        self.dirty = 0;
        self.refuse_orders();
        for one in pending {
            if let Pending::Account(_, id) = one {
                self.forget_addresses(id);
            }
            if let Pending::Account(continuation, _)
            | Pending::Change(continuation)
            | Pending::Mailbox(continuation, _)
            | Pending::Filed(continuation, _) = one
            {
                self.refuse_change(continuation);
            }
        }
        self.refuse_deliveries();
    }

    /// Forgets the group that was in flight when the disk failed; returns the segments that its
    /// superblock was to release.
    pub(crate) fn give_up_group(&mut self) -> Vec<SegmentIndex> {
        self.group.flight = Flight::Idle;
        self.group.pending.clear();
        self.group.awaiting.clear();
        for (_, pair) in self.group.blocks.drain(..) {
            pair.into_iter().for_each(|pair| self.pool.give_pair(pair));
        }
        core::mem::take(&mut self.group.released)
    }

    /// The journals that a group of this store has begun and that no superblock calls started, if
    /// `theirs` has their bits.
    pub(crate) fn take_started(&mut self, theirs: u64) -> u64 {
        let taken = self.group.started & theirs;
        self.group.started &= !theirs;
        taken
    }

    pub(crate) fn add_started(&mut self, started: u64) {
        self.group.started |= started;
    }
}

impl Journal {
    /// A journal of which nothing is written yet.
    pub(crate) fn at(root: Root) -> Journal {
        Journal {
            chain: alloc::vec![root.segment],
            place: u32::from(root.place),
            sequence: root.sequence,
            previous: root.previous,
            blocks: 0,
            fresh_segment: false,
            fenced: true,
        }
    }
}

/// How many blocks the records take.
pub(crate) fn blocks_of(mut records: &[u8]) -> u32 {
    let mut blocks = 0;
    while !records.is_empty() {
        let length = record::whole_records(records, RECORDS_MAX);
        assert!(length > 0, "a record that fits into no block");
        records = records.get(length..).unwrap_or_default();
        blocks += 1;
    }
    assert!(blocks <= block::GROUP_BLOCKS_MAX, "a group of more blocks than recovery looks for");
    blocks
}
