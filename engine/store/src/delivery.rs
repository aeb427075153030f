//! Deliveries: octets stream in, each recipient gets a body of its own, and one record makes it visible.
//!
//! Invariants:
//! - A delivery holds at most one buffer: its octets are copied once into it, and once more for each further recipient.
//! - The last chunk and the record of a recipient travel in the same group; all other chunks were flushed before.
//! - Pages stay pinned until no write to them is in flight and it is decided whether they live.

use crate::backing::{Backing, Parity, Purpose};
use crate::chunk::{self, BODY_OCTETS_MAX, CHUNK_OCTETS, HEADER_BYTES, pages_for};
use crate::group::{Awaiting, Pending};
use crate::index::{AccountId, Entry};
use crate::layout::{PAGE_BYTES, PIECE_PAGES, Page};
use crate::record;
use crate::segments::Reason as Want;
use crate::store::Store;
use crate::types::{INBOX, Outcome, Refusal, WhyReadOnly};
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use machine::UnixTime;
use tasks::{Continuation, FrameId};

/// Names a delivery under way.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct DeliveryId(FrameId);

/// What a delivery waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Expect {
    /// Octets, or its commit.
    #[default]
    Octets,
    /// The flush that covers all chunks but the last.
    ChunksFlushed,
    /// Room and buffers to be gathered.
    Gathered,
    /// The flush of its last group.
    Flushed,
    /// The end of its writes: nobody wants it any more.
    Abandoned,
}

/// A delivery under way.
#[derive(Debug, Default)]
pub(crate) struct Delivery {
    expect: Expect,
    recipients: Vec<AccountId>,
    guids: Vec<u64>,
    /// The octets behind room for a header, of the chunk that gathers.
    staging: Option<Box<[u8]>>,
    length: usize,
    octets: u32,
    /// Chunks written for all recipients, and for how many the next one is.
    chunks: u32,
    cursor: usize,
    /// Their pages: all recipients' of the first chunk, of the second …
    pages: Vec<u32>,
    /// The last chunk's pages, one for each recipient.
    last_pages: Vec<u32>,
    last_pages_each: u32,
    date: u32,
    /// Writes in flight, and groups to be flushed.
    writes: u32,
    groups: u32,
    failed: Option<Refusal>,
    wants_room: bool,
    continuation: Option<Continuation>,
}

impl Delivery {
    fn reset(&mut self) {
        let lists = (
            core::mem::take(&mut self.recipients),
            core::mem::take(&mut self.guids),
            core::mem::take(&mut self.pages),
            core::mem::take(&mut self.last_pages),
        );
        *self = Delivery {
            recipients: lists.0,
            guids: lists.1,
            pages: lists.2,
            last_pages: lists.3,
            ..Delivery::default()
        };
        self.recipients.clear();
        self.guids.clear();
        self.pages.clear();
        self.last_pages.clear();
    }
}

/// The kinds of buffers that deliveries wait for. Who waits for one kind holds up nobody who waits for another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Wanted {
    /// For the first octets.
    Page,
    /// For more octets.
    Run,
    /// For a further recipient's chunk.
    Copy,
}

/// Deliveries that wait for buffers, first come first served.
#[derive(Debug, Default)]
pub(crate) struct WantsRoom {
    page: VecDeque<FrameId>,
    run: VecDeque<FrameId>,
    copy: VecDeque<FrameId>,
}

impl WantsRoom {
    pub(crate) fn with_capacity(deliveries: usize) -> WantsRoom {
        let queue = || VecDeque::with_capacity(deliveries);
        WantsRoom { page: queue(), run: queue(), copy: queue() }
    }

    fn of(&mut self, wanted: Wanted) -> &mut VecDeque<FrameId> {
        match wanted {
            Wanted::Page => &mut self.page,
            Wanted::Run => &mut self.run,
            Wanted::Copy => &mut self.copy,
        }
    }
}

/// Whether something could be done now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Progress {
    Done,
    /// There is no buffer or no room in the group.
    Later,
}

impl Store {
    /// Begins a message for the inboxes of `recipients`, each of which gets it wholly or not at all.
    ///
    /// Errors: `NotServing`, `ReadOnly`, `IndexFull`, `NoSuchAccount` (nobody gets it), `Busy` for too many deliveries
    /// or recipients.
    pub fn begin(&mut self, recipients: &[AccountId]) -> Result<DeliveryId, Refusal> {
        self.check_serving()?;
        if self.index_is_full() {
            return Err(Refusal::IndexFull);
        }
        if recipients.is_empty() || recipients.len() > self.limits.recipients {
            return Err(Refusal::Busy);
        }
        let mut delivery = self.idle_deliveries.pop().unwrap_or_default();
        delivery.reset();
        for account in recipients {
            let index = self.shard_mut(account.shard()).map(|shard| &mut shard.index);
            let Some(index) = index.filter(|index| index.mailbox(*account, INBOX.0).is_some()) else {
                self.idle_deliveries.push(delivery);
                return Err(Refusal::NoSuchAccount);
            };
            delivery.guids.push(index.guid_next);
            index.guid_next += 1;
            delivery.recipients.push(*account);
        }
        self.deliveries.insert(delivery).map(DeliveryId).map_err(|delivery| {
            self.idle_deliveries.push(delivery);
            Refusal::Busy
        })
    }

    /// Appends octets. Returns how many were taken; when fewer than given, `continuation` is woken with
    /// [`Outcome::Room`] as soon as the rest may be tried again.
    ///
    /// Errors: the delivery has failed, and is to be aborted.
    pub fn append(&mut self, id: DeliveryId, octets: &[u8], continuation: Continuation) -> Result<usize, Refusal> {
        self.check_serving()?;
        let mut taken = 0;
        loop {
            let delivery = self.deliveries.get_mut(id.0).ok_or(Refusal::NoSuchDelivery)?;
            if delivery.expect != Expect::Octets {
                return Err(Refusal::NoSuchDelivery);
            }
            if let Some(refusal) = delivery.failed {
                return Err(refusal);
            }
            let rest = octets.get(taken..).unwrap_or_default();
            if rest.is_empty() {
                return Ok(taken);
            }
            if rest.len() > (BODY_OCTETS_MAX - delivery.octets) as usize {
                return Err(Refusal::TooLarge);
            }
            taken += delivery.take(rest);
            if taken < octets.len()
                && let Err(wanted) = self.make_space(id.0)?
            {
                self.wait_for_room(id.0, wanted, continuation);
                return Ok(taken);
            }
        }
    }

    /// Ends the message. `continuation` is woken with [`Outcome::Delivered`] when it is durable for every recipient, or
    /// with [`Outcome::Refused`].
    ///
    /// Errors: the delivery has failed or is not complete, and is aborted.
    pub fn commit(&mut self, id: DeliveryId, date: UnixTime, continuation: Continuation) -> Result<(), Refusal> {
        self.check_serving()?;
        let delivery = self.deliveries.get_mut(id.0).ok_or(Refusal::NoSuchDelivery)?;
        let refusal = match delivery.expect {
            Expect::Octets if delivery.cursor > 0 => Some(Refusal::Busy),
            Expect::Octets => delivery.failed,
            _ => return Err(Refusal::NoSuchDelivery),
        };
        if let Some(refusal) = refusal {
            self.abort(id);
            return Err(refusal);
        }
        delivery.continuation = Some(continuation);
        delivery.date = u32::try_from(date.seconds()).unwrap_or(u32::MAX);
        if delivery.chunks > 0 {
            delivery.expect = Expect::ChunksFlushed;
            self.awaiting.push(Awaiting::Delivery(id.0));
        } else {
            delivery.expect = Expect::Gathered;
            if self.ready.is_empty() && self.gather_delivery(id.0) == Progress::Done {
                return Ok(());
            }
            self.ready.push_back(id.0);
        }
        Ok(())
    }

    /// Gives a delivery up. Once it is committed this only means that nobody is woken.
    pub fn abort(&mut self, id: DeliveryId) {
        let Some(delivery) = self.deliveries.get_mut(id.0) else { return };
        delivery.continuation = None;
        let gathered = delivery.expect == Expect::Flushed || delivery.expect == Expect::Gathered && delivery.cursor > 0;
        if !gathered {
            delivery.expect = Expect::Abandoned;
            self.forget_if_written(id.0);
        }
    }

    /// Makes space for more octets: a buffer, a larger one, or a full one written.
    fn make_space(&mut self, id: FrameId) -> Result<Result<(), Wanted>, Refusal> {
        let Some(delivery) = self.deliveries.get_mut(id) else { return Err(Refusal::NoSuchDelivery) };
        match delivery.staging.as_ref().map(|staging| staging.len()) {
            None => {
                let (pages, wanted) = if delivery.chunks == 0 { (1, Wanted::Page) } else { (PIECE_PAGES, Wanted::Run) };
                delivery.staging = self.pool.take_sparing(pages);
                Ok(if delivery.staging.is_some() { Ok(()) } else { Err(wanted) })
            }
            Some(PAGE_BYTES) => {
                let Some(larger) = self.pool.take_sparing(PIECE_PAGES) else { return Ok(Err(Wanted::Run)) };
                if let Some(page) = delivery.restage(larger) {
                    self.give(page);
                }
                Ok(Ok(()))
            }
            Some(_) => match self.write_chunk(id)? {
                Progress::Done => Ok(Ok(())),
                Progress::Later => Ok(Err(Wanted::Copy)),
            },
        }
    }

    /// Writes the full chunk for each recipient that has not got it.
    fn write_chunk(&mut self, id: FrameId) -> Result<Progress, Refusal> {
        loop {
            let Some(delivery) = self.deliveries.get(id) else { return Err(Refusal::NoSuchDelivery) };
            let Some(account) = delivery.recipients.get(delivery.cursor).copied() else {
                return Ok(Progress::Done);
            };
            let is_last = delivery.cursor + 1 == delivery.recipients.len();
            let copy = if is_last { None } else { self.pool.take(PIECE_PAGES) };
            if copy.is_none() && !is_last {
                return Ok(Progress::Later);
            }
            let page = self.allocate(account.shard(), PIECE_PAGES, Want::Delivery);
            let Some(delivery) = self.deliveries.get_mut(id) else { return Err(Refusal::NoSuchDelivery) };
            let Some(page) = page else {
                delivery.failed = Some(Refusal::DiskFull);
                copy.into_iter().for_each(|copy| self.pool.give(copy));
                return Err(Refusal::DiskFull);
            };
            delivery.pages.push(page.0);
            let Some(mut buffer) = delivery.buffer_for_recipient(copy) else { return Ok(Progress::Later) };
            let header = delivery.header(account, None);
            chunk::emit(&mut buffer, &self.superblock.key, page, &header);
            delivery.cursor += 1;
            if is_last {
                delivery.chunks += 1;
                delivery.cursor = 0;
                delivery.length = 0;
            }
            self.write_for(id, page, buffer);
            if is_last {
                return Ok(Progress::Done);
            }
        }
    }

    fn write_for(&mut self, id: FrameId, page: Page, buffer: Box<[u8]>) {
        let group = self.gathering;
        if let Some(delivery) = self.deliveries.get_mut(id) {
            delivery.writes += 1;
        }
        self.count_write(group);
        self.backing.write(page, buffer, Purpose::Chunk { delivery: id, group });
    }

    /// Gathers what is ready, oldest first, as far as it goes.
    pub(crate) fn gather_ready(&mut self) {
        while let Some(id) = self.ready.front().copied() {
            if self.gather_delivery(id) == Progress::Later {
                return;
            }
            self.ready.pop_front();
        }
    }

    /// Gives each recipient the last chunk and its record.
    fn gather_delivery(&mut self, id: FrameId) -> Progress {
        let Some(delivery) = self.deliveries.get(id).filter(|delivery| delivery.expect == Expect::Gathered) else {
            return Progress::Done;
        };
        if let Some(refusal) = delivery.failed {
            self.refuse_delivery(id, refusal);
            return Progress::Done;
        }
        if self.fit_staging(id) == Progress::Later {
            return Progress::Later;
        }
        if let Err(refusal) = self.allocate_last(id) {
            self.refuse_delivery(id, refusal);
            return Progress::Done;
        }
        loop {
            match self.gather_recipient(id) {
                Some(Progress::Done) => {}
                Some(Progress::Later) => return Progress::Later,
                None => break,
            }
        }
        if let Some(delivery) = self.deliveries.get_mut(id) {
            delivery.expect = Expect::Flushed;
        }
        Progress::Done
    }

    /// Brings the octets into a buffer of exactly the pages they need.
    fn fit_staging(&mut self, id: FrameId) -> Progress {
        let Some(delivery) = self.deliveries.get_mut(id) else { return Progress::Done };
        let pages = pages_for(delivery.length);
        if delivery.staging.as_ref().is_some_and(|staging| staging.len() == pages as usize * PAGE_BYTES) {
            return Progress::Done;
        }
        let Some(fitting) = self.pool.take(pages) else { return Progress::Later };
        if let Some(old) = delivery.restage(fitting) {
            self.give(old);
        }
        Progress::Done
    }

    /// Finds space for the last chunk of all recipients before any of them gets it.
    fn allocate_last(&mut self, id: FrameId) -> Result<(), Refusal> {
        let Some(delivery) = self.deliveries.get_mut(id) else { return Err(Refusal::NoSuchDelivery) };
        let pages = pages_for(delivery.length);
        delivery.last_pages_each = pages;
        let (from, to) = (delivery.last_pages.len(), delivery.recipients.len());
        for number in from..to {
            let account = self.deliveries.get(id).and_then(|delivery| delivery.recipients.get(number).copied());
            let Some(account) = account else { return Err(Refusal::NoSuchDelivery) };
            let page = self.allocate(account.shard(), pages, Want::Delivery).ok_or(Refusal::DiskFull)?;
            if let Some(delivery) = self.deliveries.get_mut(id) {
                delivery.last_pages.push(page.0);
            }
        }
        Ok(())
    }

    /// Gathers for the next recipient; `None` when all have it.
    fn gather_recipient(&mut self, id: FrameId) -> Option<Progress> {
        let delivery = self.deliveries.get_mut(id)?;
        let number = delivery.cursor;
        let account = *delivery.recipients.get(number)?;
        let page = Page(*delivery.last_pages.get(number)?);
        let guid = *delivery.guids.get(number)?;
        let is_last = number + 1 == delivery.recipients.len();
        let shard = self.shards.get_mut(account.shard().index())?;
        if !shard.has_room_for(delivery.chunks as usize * 4 + 128) {
            return Some(Progress::Later);
        }
        let copy = if is_last { None } else { self.pool.take(delivery.last_pages_each) };
        if copy.is_none() && !is_last {
            return Some(Progress::Later);
        }
        let mut buffer = delivery.buffer_for_recipient(copy)?;
        let mailbox = shard.index.mailbox_mut(account, INBOX.0)?;
        let (uid, modseq) = (mailbox.next_uid(), mailbox.next_modseq());
        let uid_validity = mailbox.uid_validity;
        let last = chunk::Last { uid, octets: delivery.octets, modseq, date: delivery.date };
        let header = chunk::Header { uid_validity, ..delivery.header(account, Some(last)) };
        let check = chunk::emit(&mut buffer, &self.superblock.key, page, &header);
        let mut first_page = page.0;
        if delivery.chunks > 0 {
            let recipients = delivery.recipients.len();
            let all = delivery.pages.iter().skip(number).step_by(recipients).copied().chain([page.0]);
            let pages: Vec<u32> = all.collect();
            record::put_chunks(&mut shard.gathered, guid, &pages);
            first_page = pages.first().copied().unwrap_or(page.0);
        }
        let entry = Entry::new(uid, delivery.octets, first_page, delivery.date, modseq, guid);
        record::put_delivered(&mut shard.gathered, account, INBOX.0, uid_validity, &entry, check);
        shard.pending.push(Pending::Delivery(id));
        delivery.cursor += 1;
        delivery.groups += 1;
        self.dirty |= 1 << account.shard().0;
        self.write_for(id, page, buffer);
        Some(Progress::Done)
    }

    /// A flush has covered all chunks but the last.
    pub(crate) fn chunks_flushed(&mut self, id: FrameId) {
        let Some(delivery) = self.deliveries.get_mut(id) else { return };
        if delivery.expect == Expect::ChunksFlushed {
            delivery.expect = Expect::Gathered;
            self.ready.push_back(id);
        }
    }

    /// A group with one of the recipients' records is durable and applied.
    pub(crate) fn recipient_flushed(&mut self, id: FrameId) {
        let Some(delivery) = self.deliveries.get_mut(id) else { return };
        delivery.groups -= 1;
        if delivery.groups == 0 && delivery.expect == Expect::Flushed {
            let continuation = delivery.continuation;
            self.forget(id);
            if let Some(continuation) = continuation {
                self.wake(continuation, Outcome::Delivered);
            }
        }
    }

    /// A chunk was written, or failed to be.
    pub(crate) fn chunk_written(&mut self, id: FrameId, ok: bool) {
        let Some(delivery) = self.deliveries.get_mut(id) else { return };
        delivery.writes -= 1;
        if !ok {
            delivery.failed = Some(Refusal::WriteFailed);
            if delivery.groups > 0 {
                return self.fail(WhyReadOnly::WriteFailed);
            }
        }
        self.forget_if_written(id);
    }

    /// Buffers came back: wakes one delivery for each kind of them that can be had.
    pub(crate) fn offer_room(&mut self) {
        for wanted in [Wanted::Page, Wanted::Run, Wanted::Copy] {
            let can_be_had = match wanted {
                Wanted::Page => self.pool.has_sparing(1),
                Wanted::Run => self.pool.has_sparing(PIECE_PAGES),
                Wanted::Copy => true,
            };
            if can_be_had && let Some(delivery) = self.wants_room.of(wanted).pop_front() {
                self.wake_for_room(delivery);
            }
        }
    }

    /// Wakes a delivery that waited for a buffer.
    fn wake_for_room(&mut self, id: FrameId) {
        let Some(delivery) = self.deliveries.get_mut(id) else { return };
        if core::mem::take(&mut delivery.wants_room)
            && delivery.expect == Expect::Octets
            && let Some(continuation) = delivery.continuation.take()
        {
            self.wake(continuation, Outcome::Room);
        }
    }

    fn wait_for_room(&mut self, id: FrameId, wanted: Wanted, continuation: Continuation) {
        let Some(delivery) = self.deliveries.get_mut(id) else { return };
        delivery.continuation = Some(continuation);
        if !core::mem::replace(&mut delivery.wants_room, true) {
            self.wants_room.of(wanted).push_back(id);
        }
    }

    /// Ends all deliveries: the store is read-only from now on.
    pub(crate) fn refuse_deliveries(&mut self) {
        for slot in 0..self.deliveries.capacity() {
            let Some(id) = self.deliveries.id_at(slot) else { continue };
            let Some(delivery) = self.deliveries.get_mut(id) else { continue };
            delivery.expect = Expect::Abandoned;
            if let Some(continuation) = delivery.continuation.take() {
                self.wake(continuation, Outcome::Refused(Refusal::ReadOnly));
            }
        }
    }

    fn refuse_delivery(&mut self, id: FrameId, refusal: Refusal) {
        let Some(delivery) = self.deliveries.get_mut(id) else { return };
        let continuation = delivery.continuation.take();
        delivery.expect = Expect::Abandoned;
        self.forget_if_written(id);
        if let Some(continuation) = continuation {
            self.wake(continuation, Outcome::Refused(refusal));
        }
    }

    fn forget_if_written(&mut self, id: FrameId) {
        if self.deliveries.get(id).is_some_and(|one| one.expect == Expect::Abandoned && one.writes == 0) {
            self.forget(id);
        }
    }

    /// Takes a delivery out; its pages are no longer pinned.
    fn forget(&mut self, id: FrameId) {
        let Some(mut delivery) = self.deliveries.remove(id) else { return };
        for page in &delivery.pages {
            self.segments.unpin(Page(*page), PIECE_PAGES);
        }
        for page in &delivery.last_pages {
            self.segments.unpin(Page(*page), delivery.last_pages_each);
        }
        if let Some(staging) = delivery.staging.take() {
            self.give(staging);
        }
        delivery.reset();
        self.idle_deliveries.push(delivery);
        self.offer_room();
    }

    pub(crate) fn count_write(&mut self, group: Parity) {
        *self.writes_of(group) += 1;
    }
}

impl Delivery {
    /// Takes as many octets as the buffer has room for.
    fn take(&mut self, octets: &[u8]) -> usize {
        let Some(staging) = &mut self.staging else { return 0 };
        let Some(room) = staging.get_mut(HEADER_BYTES + self.length..) else { return 0 };
        let count = room.len().min(octets.len());
        if let (Some(place), Some(octets)) = (room.get_mut(..count), octets.get(..count)) {
            place.copy_from_slice(octets);
        }
        self.length += count;
        self.octets += count as u32;
        count
    }

    /// Goes on in another buffer; returns the old one.
    fn restage(&mut self, mut buffer: Box<[u8]>) -> Option<Box<[u8]>> {
        let old = self.staging.take();
        let used = HEADER_BYTES..HEADER_BYTES + self.length;
        if let Some(from) = old.as_ref().and_then(|old| old.get(used.clone()))
            && let Some(to) = buffer.get_mut(used)
        {
            to.copy_from_slice(from);
        }
        self.staging = Some(buffer);
        old
    }

    /// The buffer that a recipient's chunk is written from: a copy, or for the last recipient the original.
    fn buffer_for_recipient(&mut self, copy: Option<Box<[u8]>>) -> Option<Box<[u8]>> {
        let Some(mut copy) = copy else { return self.staging.take() };
        let used = HEADER_BYTES..HEADER_BYTES + self.length;
        copy.get_mut(used.clone())?.copy_from_slice(self.staging.as_ref()?.get(used)?);
        Some(copy)
    }

    fn header(&self, account: AccountId, last: Option<chunk::Last>) -> chunk::Header {
        chunk::Header {
            account,
            guid: self.guids.get(self.cursor).copied().unwrap_or(0),
            index: self.chunks,
            length: self.length as u32,
            mailbox: INBOX.0,
            uid_validity: 0,
            last,
        }
    }
}

const _: () = assert!(CHUNK_OCTETS + HEADER_BYTES == PIECE_PAGES as usize * PAGE_BYTES);
