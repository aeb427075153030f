//! The store: its parts, its operations in progress, and its traffic with the disk.
//!
//! Invariants:
//! - An operation begins only while the state is [`State::Serving`]. Reads also begin while the
//!   store is read-only.
//! - Every call ends by serving the operations that wait for buffers that the call has returned.

mod asking;
mod changes;
mod sharing;

pub use sharing::{Owners, Share};

use crate::backing::{DiskPurpose, DiskQueue, Parity};
use crate::block::GROUP_BLOCKS_MAX;
use crate::checkpoint::Checkpointer;
use crate::chunk::Summarizer;
use crate::cleaning::Cleaner;
use crate::condition::Condition;
use crate::delivery::Deliveries;
use crate::disk_owner::{DiskOwner, Flushed, Slots, StoreRole};
use crate::finding::{Finding, Findings};
use crate::group::Commit;
use crate::hash::{DiskRandom, HashKey};
use crate::index_shares::{IndexBorrower, IndexLender, IndexShare};
use crate::indexes::Indexes;
use crate::journals::Journals;
use crate::layout::{Geometry, PAGE_BYTES, PAGES_MIN, PIECE_PAGES, SHARDS};
use crate::opening::DiskOpening;
use crate::outcome::{OpenRefusal, Outcome, Refusal, State, Wake, Wakes, WhyReadOnly};
use crate::parts::StoreParts;
use crate::pending::{Awaiting, Pending};
use crate::pool::Pool;
use crate::reading::Reads;
use crate::segments::Segments;
use crate::superblock::{Format, Superblock};
use crate::types::Limits;
use crate::{retry, sealing};
use alloc::boxed::Box;
use machine::{Disk, DiskCompletion, DiskRequest};
use sometimes::sometimes;
use tasks::FrameId;

/// The store. See the crate's documentation.
pub struct Store {
    condition: Condition,
    parts: StoreParts,
    deliveries: Deliveries,
    reads: Reads,
    checkpointer: Checkpointer,
    cleaner: Cleaner,
    opening: Option<Box<DiskOpening>>,
    findings: Findings,
    /// The disk was blank and was formatted.
    is_new: bool,
    /// The disk had an earlier format when it was opened, and was converted.
    is_converted: bool,
}

impl Store {
    /// Creates a store on `disk`, and begins to open the disk: see [`Store::state`]. `seed`: 32
    /// bytes from a cryptographic generator, different each time.
    pub fn new(limits: Limits, disk: Disk, seed: [u8; 32]) -> Store {
        Store::disk_owner(limits, disk, seed, 1)
    }

    /// As [`Store::new`], for the disk owner among several `cores`. Once open, it shares the store
    /// with the other cores: see [`Store::share_out`].
    pub fn disk_owner(limits: Limits, disk: Disk, seed: [u8; 32], cores: u8) -> Store {
        let role = StoreRole::DiskOwner(DiskOwner::new(cores));
        let mut store = Store::unopened(limits, Some(disk), seed, role, cores);
        match (disk.durable, store.parts.segments.geometry().checked()) {
            (false, _) => store.condition.has_opened(State::Refused(OpenRefusal::NotDurable)),
            (_, None) => store.condition.has_opened(State::Refused(OpenRefusal::TooSmall)),
            _ => store.begin_opening(disk.sectors, false),
        }
        store
    }

    /// As [`Store::new`], for a disk that is only inspected.
    pub(crate) fn inspect(limits: Limits, sectors: u64) -> Store {
        let role = StoreRole::DiskOwner(DiskOwner::new(1));
        let mut store =
            Store::unopened(limits, Some(Disk { sectors, durable: true }), [0; 32], role, 1);
        match store.parts.segments.geometry().checked() {
            None => store.condition.has_opened(State::Refused(OpenRefusal::TooSmall)),
            _ => store.begin_opening(sectors, true),
        }
        store
    }

    /// `cores`: the number of cores that use the disk through this store, including its own core.
    pub(crate) fn unopened(
        limits: Limits,
        disk: Option<Disk>,
        seed: [u8; 32],
        role: StoreRole,
        cores: u8,
    ) -> Store {
        let mut random = DiskRandom::new(seed);
        let none = Geometry { pages: PAGES_MIN - 1, segment_pages: 16 };
        let geometry = disk.and_then(|disk| Geometry::for_disk(disk.sectors)).unwrap_or(none);
        let pages = limits.deliveries + limits.reads + 16;
        let runs =
            limits.buffer_bytes.max(PIECE_PAGES as usize * 8 * PAGE_BYTES) / (2 * PAGE_BYTES);
        let requests = pages + runs + SHARDS * (GROUP_BLOCKS_MAX as usize + 2) + 128;
        let (id, key) = (random.bytes(), HashKey::new(random.bytes()));
        let index_share = match &role {
            StoreRole::DiskOwner(_) => {
                IndexShare::Lender(IndexLender::new(limits.resident_bytes, cores))
            }
            StoreRole::Client(_) => IndexShare::Borrower(IndexBorrower::new(limits.resident_bytes)),
        };
        Store {
            condition: Condition::opening(),
            parts: StoreParts {
                backing: DiskQueue::new(requests * usize::from(cores)),
                pool: Pool::new(pages, limits.buffer_bytes),
                role,
                superblock: Superblock {
                    format: Format::Four,
                    sequence: 0,
                    id,
                    key,
                    geometry,
                    roots: [None; SHARDS],
                },
                segments: Segments::new(geometry),
                indexes: Indexes::new(limits.resident_bytes),
                index_share,
                journals: Journals::new(),
                commit: Commit::new(),
                wakes: Wakes::default(),
                random,
            },
            deliveries: Deliveries::new(&limits),
            reads: Reads::new(limits.reads),
            checkpointer: Checkpointer::new(),
            cleaner: Cleaner::new(cores == 1),
            opening: None,
            findings: Findings::default(),
            is_new: false,
            is_converted: false,
        }
    }

    fn begin_opening(&mut self, sectors: u64, inspect: bool) {
        self.opening = Some(Box::new(DiskOpening::begin(sectors, inspect, &mut self.parts)));
    }

    /// Sets the functions that make the summaries of messages from now on. Messages that were
    /// delivered before have empty summaries, and each of them is a conversation of its own.
    pub fn summarize_with(&mut self, summarizer: Summarizer) {
        self.deliveries.summarize_with(summarizer);
    }

    /// The state of the store.
    pub fn state(&self) -> State {
        self.condition.state()
    }

    /// A secret of this disk for `purpose`. It is the same each time the disk is opened, and
    /// undefined before the disk is open.
    pub fn secret(&self, purpose: &[u8]) -> [u8; 16] {
        self.parts.superblock.key.hash_name(purpose).0
    }

    /// The damage that opening found.
    pub fn findings(&self) -> &[Finding] {
        self.findings.all()
    }

    /// Whether all operations have ended, and their changes are on the disk or refused.
    pub fn is_at_rest(&self) -> bool {
        self.parts.journals.dirty().is_empty()
            && self.deliveries.len() == 0
            && self.reads.is_idle()
            && self.parts.backing.is_idle()
    }

    /// Whether a delivery or a read waits for a buffer.
    pub fn is_short_of_buffers(&self) -> bool {
        self.reads.has_waiting() || self.deliveries.has_waiters()
    }

    /// The number of deliveries in progress, including abandoned deliveries with a write in flight.
    pub fn deliveries_under_way(&self) -> usize {
        self.deliveries.len()
    }

    /// The number of reads of bodies in progress, and of bodies that were not given back.
    pub fn reads_under_way(&self) -> usize {
        self.reads.len()
    }

    /// The next request for the machine's disk.
    pub fn next_request(&mut self) -> Option<DiskRequest> {
        self.parts.backing.next()
    }

    /// Takes back a request that the machine had no space for. [`Store::next_request`] returns it
    /// next.
    pub fn request_refused(&mut self, request: DiskRequest) {
        self.parts.backing.refused(request);
    }

    /// Whether [`Store::next_wake`] has a result to return.
    pub fn has_wakes(&self) -> bool {
        !self.parts.wakes.is_empty()
    }

    /// The next result of an operation.
    pub fn next_wake(&mut self) -> Option<Wake> {
        self.parts.wakes.next()
    }

    /// Ends a turn: makes a group of everything gathered, if no group is in flight.
    pub fn turn_ended(&mut self) {
        self.retry_if_settled();
        if !self.condition.is_serving() {
            return;
        }
        while self.deliveries.gather_next(self.reads.to_come(), &mut self.parts) {
            self.serve_waiting();
        }
        self.cleaner.clean(&mut self.parts);
        self.seal();
        sharing::balance(&mut self.parts);
        self.serve_waiting();
    }

    /// Tries the disk again after a failure. The state becomes [`State::Serving`] when the disk has
    /// taken writes and a flush. Must be called on the disk owner. The other cores follow.
    pub fn retry(&mut self) {
        self.condition.request_retry();
        self.retry_if_settled();
    }

    /// Processes the completion of a request.
    pub fn disk_completed(&mut self, completion: DiskCompletion) {
        let Some(purpose) = self.parts.backing.completed(completion.token) else { return };
        let (ok, buffer) = (completion.result.is_ok(), completion.buffer);
        match purpose {
            DiskPurpose::Chunk { delivery, group } => {
                self.chunk_written(delivery, group, ok, buffer)
            }
            DiskPurpose::Block { number } => self.block_written(number, ok, buffer),
            DiskPurpose::Fixed { group } => {
                if !ok {
                    self.fail(WhyReadOnly::WriteFailed);
                }
                self.written(group);
            }
            DiskPurpose::Flush if self.opening.is_some() => {
                self.open(|opening, parts, findings| opening.flushed(ok, parts, findings));
            }
            DiskPurpose::Flush => {
                let ended = self.parts.role.disk_flushed(ok);
                self.flush_ended(Some(ended));
            }
            DiskPurpose::Slot => {
                let (role, mut slots) = slots(&mut self.parts);
                let ended = role.slot_written(ok, &mut slots);
                self.flush_ended(ended);
            }
            DiskPurpose::Body(read) => self.reads.body_read(read, ok, buffer, &mut self.parts),
            DiskPurpose::Victim => {
                let to_leave = self.deliveries.pages_to_leave(self.reads.to_come());
                self.cleaner.victim_read(ok, buffer, to_leave, &mut self.parts);
            }
            DiskPurpose::Moved { number } => {
                self.give(buffer);
                self.cleaner.move_written(number, ok, &mut self.parts);
            }
            DiskPurpose::Piece { lane, page } => {
                let result = if ok { Ok(buffer) } else { Err(buffer) };
                self.open(|opening, parts, findings| {
                    opening.piece_read((lane, page), result, parts, findings)
                });
            }
            DiskPurpose::Probe => {
                self.open(|opening, parts, findings| opening.probe_read(ok, parts, findings))
            }
            DiskPurpose::Format => self.open(|opening, parts, _| opening.slot_written(ok, parts)),
            DiskPurpose::ForClient { core, token } => {
                self.parts
                    .role
                    .client_request_done(core, DiskCompletion { token, buffer, ..completion });
            }
        }
        self.serve_waiting();
    }

    /// Takes a buffer back, and serves the operations that wait for buffers.
    pub(crate) fn give(&mut self, buffer: Box<[u8]>) {
        self.parts.pool.give(buffer);
        self.serve_waiting();
    }

    /// Serves the operations that wait for buffers: reads in their order, then one delivery for
    /// each kind of buffer.
    #[inline]
    fn serve_waiting(&mut self) {
        for _ in 0..self.parts.pool.take_returned() {
            self.reads.start_waiting(&mut self.parts);
            self.deliveries.offer_buffers(&self.parts.pool, &mut self.parts.wakes);
        }
    }

    /// Continues opening with `step`, if opening is not over.
    fn open(&mut self, step: impl FnOnce(&mut DiskOpening, &mut StoreParts, &mut Findings)) {
        let Some(opening) = &mut self.opening else { return };
        step(opening, &mut self.parts, &mut self.findings);
        if let Some(state) = opening.ended() {
            (self.is_new, self.is_converted) = (opening.is_new(), opening.is_converted());
            self.condition.has_opened(state);
            self.opening = None;
        }
    }

    fn chunk_written(&mut self, delivery: FrameId, group: Parity, ok: bool, buffer: Box<[u8]>) {
        self.give(buffer);
        if self.deliveries.chunk_written(delivery, ok, &mut self.parts) {
            self.fail(WhyReadOnly::WriteFailed);
        }
        self.written(group);
    }

    fn block_written(&mut self, number: u32, ok: bool, pair: Box<[u8]>) {
        if !ok {
            self.fail(WhyReadOnly::WriteFailed);
        }
        self.parts.commit.block_written(number, pair);
        self.flush_if_written();
    }

    /// Notes the completion of a write that the flush of `group` must cover.
    fn written(&mut self, group: Parity) {
        self.parts.commit.written(group);
        self.flush_if_written();
    }

    /// Makes a group of everything gathered, unless a group is in flight.
    fn seal(&mut self) {
        sealing::seal(&mut self.parts, &mut self.checkpointer, self.condition.is_in_retry());
        self.flush_if_written();
    }

    fn flush_if_written(&mut self) {
        if self.condition.commits() && self.parts.commit.takes_flush() {
            let (role, mut slots) = slots(&mut self.parts);
            let ended = role.ask_for_flush(&mut slots);
            self.flush_ended(ended);
        }
    }

    /// Ends a flush: its group is durable, or the disk has failed. Begins the next flush.
    fn flush_ended(&mut self, mut ended: Option<Flushed>) {
        while let Some(Flushed { is_for_own, result }) = ended {
            match result {
                Ok(()) if is_for_own => self.flushed(),
                Ok(()) => {}
                Err(why) => self.fail(why),
            }
            let (role, mut slots) = slots(&mut self.parts);
            ended = role.flush_next(&mut slots);
        }
    }

    /// Makes the group in flight visible, because it is durable. Wakes the operations that waited
    /// for it.
    fn flushed(&mut self) {
        if !self.condition.commits() {
            return;
        }
        if self.condition.is_in_retry() {
            let has_all = self.parts.journals.are_empty();
            self.condition.ends_retry(has_all);
            if !has_all {
                return self.parts.role.notify_of_failure(WhyReadOnly::WriteFailed);
            }
        }
        sealing::apply(&mut self.parts, &mut self.checkpointer);
        let mut covered = self.parts.commit.take_covered();
        for one in covered.drain(..) {
            match one {
                Awaiting::Delivery(delivery) => self.deliveries.chunks_flushed(delivery),
                Awaiting::Move(number) => self.cleaner.move_flushed(number, &mut self.parts),
            }
        }
        let mut pending = self.parts.commit.take_pending();
        for one in pending.drain(..) {
            let wakes = &mut self.parts.wakes;
            match one {
                Pending::Delivery(delivery) => {
                    self.deliveries.recipient_flushed(delivery, &mut self.parts);
                    self.serve_waiting();
                }
                Pending::Account(continuation, id) => {
                    wakes.wake(continuation, Outcome::AccountCreated(id))
                }
                Pending::Aliases(continuation, id) => {
                    wakes.wake(continuation, Outcome::Changed);
                    self.parts.indexes.renew_addresses(id);
                }
                Pending::Change(continuation) | Pending::Password(continuation, _) => {
                    wakes.wake(continuation, Outcome::Changed)
                }
                Pending::Mailbox(continuation, id) => {
                    wakes.wake(continuation, Outcome::MailboxCreated(id))
                }
                Pending::Filed(continuation, filed) => {
                    wakes.wake(continuation, Outcome::Filed(filed))
                }
                Pending::Move(number) => {
                    self.cleaner.move_applied(number, &mut self.parts.segments)
                }
                Pending::Drop(page, pages) => self.parts.segments.unpin(page, pages),
            }
        }
        self.parts.commit.reuse(covered, pending);
    }

    /// Refuses all changes that are not durable, because the disk has failed.
    pub(crate) fn fail(&mut self, why: WhyReadOnly) {
        if !self.condition.has_failed(why) {
            return;
        }
        sometimes!(ReadOnly);
        self.parts.role.notify_of_failure(why);
        let mut pending = self.parts.commit.take_pending();
        self.parts.journals.give_up(&mut pending);
        let StoreParts { journals, wakes, .. } = &mut self.parts;
        journals
            .give_up_metadata_changes()
            .for_each(|continuation| wakes.refuse(continuation, Refusal::ReadOnly));
        for one in pending {
            if let Pending::Account(_, id) | Pending::Aliases(_, id) = one {
                self.parts.indexes.renew_addresses(id);
            }
            if let Some(continuation) = one.continuation() {
                self.parts.wakes.refuse(continuation, Refusal::ReadOnly);
            }
        }
        self.deliveries.refuse_all(&mut self.parts);
    }

    /// Begins a requested retry as soon as no write and no flush is in flight.
    #[inline]
    fn retry_if_settled(&mut self) {
        if self.condition.is_retry_wanted() && retry::is_settled(&self.parts.backing) {
            self.begin_retry();
        }
    }

    #[cold]
    fn begin_retry(&mut self) {
        self.condition.begins_retry();
        self.checkpointer.give_up(&mut self.parts.journals);
        self.deliveries.clear_ready();
        self.cleaner.give_up(&mut self.parts.segments);
        retry::begin(&mut self.parts);
        self.seal();
    }

    /// The parts, read-only.
    pub(crate) fn parts(&self) -> &StoreParts {
        &self.parts
    }

    #[cfg(test)]
    pub(crate) fn parts_mut(&mut self) -> &mut StoreParts {
        &mut self.parts
    }

    #[cfg(test)]
    pub(crate) fn cleaner_mut(&mut self) -> &mut Cleaner {
        &mut self.cleaner
    }

    #[cfg(test)]
    pub(crate) fn is_walking(&self) -> bool {
        self.checkpointer.is_busy()
    }

    #[cfg(test)]
    pub(crate) fn is_rebuilding(&self) -> bool {
        self.opening.as_ref().is_some_and(|opening| opening.is_rebuilding())
    }
}

/// The store's role, and the parts for writing superblocks.
fn slots(parts: &mut StoreParts) -> (&mut StoreRole, Slots<'_>) {
    let StoreParts { role, backing, superblock, random, .. } = parts;
    (role, Slots { backing, superblock, random })
}
