//! Deliveries: the octets of a message arrive in parts, and each recipient gets a copy of the body.
//! One record for each recipient makes the message visible.
//!
//! Invariants:
//! - A delivery holds at most one buffer. The octets are copied into this buffer, and are copied
//!   once more for each further recipient.
//! - The last chunk of a recipient and its record are in the same group. All other chunks were made
//!   durable before.
//! - Pages stay pinned (not free) while a write to them is in flight, and until their message is
//!   visible or given up.

mod buffer_waiters;
mod gathering;
mod staging;
mod summarizing;

use crate::backing::{Backing, DiskPurpose};
use crate::chunk::{
    self, BODY_OCTETS_MAX, CHUNK_OCTETS, HEADER_BYTES, SHORT_HEADERS_MAX, Summarizer,
};
use crate::indexes::Indexes;
use crate::layout::{PAGE_BYTES, PIECE_PAGES, Page};
use crate::mailbox::RECIPIENTS_UNDER_WAY_MAX;
use crate::notes::{self, ARRIVALS_OF_MESSAGE_MAX};
use crate::outcome::Refusal;
use crate::parts::StoreParts;
use crate::pending::Awaiting;
use crate::segments::Want;
use crate::types::{AccountId, Closing, HeadSize, Limits, OUTBOX, Recipient, SentId};
use crate::writing::allocate;
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use buffer_waiters::{AwaitedBuffer, BufferWaiters};
use sometimes::{buggify, sometimes};
use summarizing::SummaryProgress;
use tasks::{Continuation, FrameId, FrameTable};

/// Identifies a delivery in progress.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct DeliveryId(FrameId);

/// The event that a delivery waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Expect {
    /// More octets, or the commit.
    #[default]
    Octets,
    /// The flush that covers all chunks except the last.
    ChunksFlushed,
    /// Journal space and buffers for the last chunks and the records.
    Gathered,
    /// The flush of the last group with a record of the delivery.
    Flushed,
    /// The end of the writes in flight, because the delivery was given up.
    Abandoned,
}

/// A delivery in progress.
#[derive(Debug, Default)]
struct Delivery {
    expect: Expect,
    recipients: Vec<Recipient>,
    guids: Vec<u64>,
    /// The origins of further messages for which this one stands.
    stands_for: Vec<SentId>,
    /// The chunk that is being filled: space for a header, then octets.
    staging: Option<Box<[u8]>>,
    length: usize,
    octets: u32,
    /// Space is reserved in the quotas of all recipients.
    is_reserved: bool,
    /// `chunks`: the number of chunks that are written for all recipients. `cursor`: the number of
    /// recipients for which the next chunk is already written.
    chunks: u32,
    cursor: usize,
    /// The pages of these chunks: the first chunk's page for each recipient, then the second
    /// chunk's page for each recipient, and so on.
    pages: Vec<u32>,
    /// The summary and the conversation of the message, once the summary is done.
    summary: Vec<u8>,
    conversation: u64,
    summary_progress: SummaryProgress,
    /// The last chunk's pages, one for each recipient.
    last_pages: Vec<u32>,
    last_pages_each: u32,
    date: u32,
    head: HeadSize,
    /// `writes`: the number of writes in flight. `groups`: the number of groups not flushed yet.
    writes: u32,
    groups: u32,
    failed: Option<Refusal>,
    awaits_buffer: bool,
    continuation: Option<Continuation>,
}

impl Delivery {
    fn reset(&mut self) {
        let lists = (
            core::mem::take(&mut self.recipients),
            core::mem::take(&mut self.guids),
            core::mem::take(&mut self.pages),
            core::mem::take(&mut self.last_pages),
            core::mem::take(&mut self.summary),
            core::mem::take(&mut self.stands_for),
        );
        *self = Delivery {
            recipients: lists.0,
            guids: lists.1,
            pages: lists.2,
            last_pages: lists.3,
            summary: lists.4,
            stands_for: lists.5,
            ..Delivery::default()
        };
        self.recipients.clear();
        self.guids.clear();
        self.pages.clear();
        self.last_pages.clear();
        self.summary.clear();
        self.stands_for.clear();
    }
}

/// The result of an attempt to take a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum StepProgress {
    Done,
    /// The step is not possible yet: a buffer, a segment, or space in the group is missing.
    Later,
}

/// All deliveries in progress.
pub(crate) struct Deliveries {
    table: FrameTable<Box<Delivery>>,
    #[expect(clippy::vec_box, reason = "a delivery is handed on as a pointer, not copied")]
    idle: Vec<Box<Delivery>>,
    /// Deliveries with last chunks and records that can be gathered.
    ready: VecDeque<FrameId>,
    /// Deliveries that wait for a buffer.
    buffer_waiters: BufferWaiters,
    summarizer: Summarizer,
    recipients_max: usize,
}

impl Deliveries {
    pub(crate) fn new(limits: &Limits) -> Deliveries {
        let recipients = limits.deliveries.saturating_mul(limits.recipients);
        assert!(
            recipients <= RECIPIENTS_UNDER_WAY_MAX,
            "more deliveries than mailboxes keep UIDs for"
        );
        Deliveries {
            table: FrameTable::with_capacity(limits.deliveries),
            idle: Vec::with_capacity(limits.deliveries),
            ready: VecDeque::with_capacity(limits.deliveries),
            buffer_waiters: BufferWaiters::with_capacity(limits.deliveries),
            summarizer: Summarizer::NONE,
            recipients_max: limits.recipients,
        }
    }

    /// Sets the functions that summarize messages.
    pub(crate) fn summarize_with(&mut self, summarizer: Summarizer) {
        self.summarizer = summarizer;
    }

    /// The number of deliveries in progress. Abandoned deliveries count while a write is in flight.
    pub(crate) fn len(&self) -> usize {
        self.table.len()
    }

    /// Begins the delivery of a message: see [`crate::Store::begin`].
    pub(crate) fn begin(
        &mut self,
        recipients: &[Recipient],
        indexes: &mut Indexes,
    ) -> Result<DeliveryId, Refusal> {
        if indexes.are_full() {
            return Err(Refusal::IndexFull);
        }
        if recipients.is_empty() || recipients.len() > self.recipients_max || buggify!(NoDelivery) {
            return Err(Refusal::Busy);
        }
        let mut delivery = self.idle.pop().unwrap_or_default();
        delivery.reset();
        for recipient in recipients {
            assert!(
                recipient.entry.is_none() || recipient.mailbox == OUTBOX,
                "an entry outside of an outbox"
            );
            match indexes.of_mut(recipient.account.shard()).guid_for(recipient) {
                Ok(guid) => delivery.guids.push(guid),
                Err(refusal) => {
                    self.idle.push(delivery);
                    return Err(refusal);
                }
            }
            delivery.recipients.push(*recipient);
        }
        self.table.insert(delivery).map(DeliveryId).map_err(|delivery| {
            self.idle.push(delivery);
            Refusal::Busy
        })
    }

    /// Sets the messages for which a delivery stands: see [`crate::Store::stand_for`].
    pub(crate) fn stand_for(
        &mut self,
        id: DeliveryId,
        origins: &[SentId],
        indexes: &Indexes,
    ) -> Result<(), Refusal> {
        let delivery = self.table.get(id.0).ok_or(Refusal::NoSuchDelivery)?;
        let [recipient] = &*delivery.recipients else {
            unreachable!("a message that stands for others has one recipient")
        };
        let account = indexes.account(recipient.account).ok_or(Refusal::NoSuchAccount)?;
        origins.iter().try_for_each(|origin| notes::check_arrival(account.notes(), *origin))?;
        let count = origins.len() + usize::from(recipient.once.is_some());
        let left = self.arrivals_left(recipient.account, Some(id), indexes);
        if count > ARRIVALS_OF_MESSAGE_MAX.min(left) {
            return Err(Refusal::TooMany);
        }
        self.known(id.0).stands_for.extend_from_slice(origins);
        Ok(())
    }

    /// The number of arrivals that can still be noted for an account, by the delivery `own` if
    /// there is one. The other deliveries in progress keep theirs.
    pub(crate) fn arrivals_left(
        &self,
        account: AccountId,
        own: Option<DeliveryId>,
        indexes: &Indexes,
    ) -> usize {
        let Some(known) = indexes.account(account) else { return 0 };
        let others = self.table.iter().filter(|(id, delivery)| {
            Some(DeliveryId(*id)) != own && delivery.expect != Expect::Abandoned
        });
        // A delivery that stands for others has one recipient.
        let kept: usize = others
            .flat_map(|(_, delivery)| {
                let here = delivery.recipients.iter().filter(|other| other.account == account);
                here.map(|other| usize::from(other.once.is_some()) + delivery.stands_for.len())
            })
            .sum();
        notes::arrivals_left(known.notes()).saturating_sub(kept)
    }

    /// The GUID number of the message for the first recipient.
    pub(crate) fn guid(&self, id: DeliveryId) -> Option<u64> {
        self.table.get(id.0)?.guids.first().copied()
    }

    /// Appends octets: see [`crate::Store::append`].
    pub(crate) fn append(
        &mut self,
        id: DeliveryId,
        octets: &[u8],
        continuation: Continuation,
        parts: &mut StoreParts,
    ) -> Result<usize, Refusal> {
        let mut taken = 0;
        loop {
            let delivery = self.table.get_mut(id.0).ok_or(Refusal::NoSuchDelivery)?;
            if delivery.expect != Expect::Octets {
                return Err(Refusal::NoSuchDelivery);
            }
            if let Some(refusal) = delivery.failed {
                return Err(refusal);
            }
            let Some(rest) = octets.get(taken..) else {
                unreachable!("more octets taken than given")
            };
            if rest.is_empty() {
                return Ok(taken);
            }
            if rest.len() > (BODY_OCTETS_MAX - delivery.octets) as usize {
                return Err(Refusal::TooLarge);
            }
            taken += delivery.take(rest);
            if taken < octets.len() {
                if let Err(awaited) = self.make_space(id.0, parts)? {
                    self.wait_for_buffer(id.0, awaited, continuation);
                    return Ok(taken);
                }
                // The caller may have called again although the delivery was not woken.
                self.stop_waiting_for_buffer(id.0);
            }
        }
    }

    /// Allocates the space for the rest of a complete message: see [`crate::Store::prepare`].
    pub(crate) fn prepare(
        &mut self,
        id: DeliveryId,
        continuation: Continuation,
        parts: &mut StoreParts,
    ) -> Result<bool, Refusal> {
        let delivery = self.table.get_mut(id.0).ok_or(Refusal::NoSuchDelivery)?;
        let refusal = match delivery.expect {
            Expect::Octets if delivery.cursor > 0 => Some(Refusal::Busy),
            Expect::Octets => delivery.failed,
            _ => return Err(Refusal::NoSuchDelivery),
        };
        match refusal.map_or_else(|| self.allocate_last(id.0, parts), Err) {
            Ok(StepProgress::Done) => Ok(true),
            Ok(StepProgress::Later) => {
                self.wait_for_buffer(id.0, AwaitedBuffer::Segment, continuation);
                Ok(false)
            }
            Err(refusal) => {
                self.abort(id, parts);
                Err(refusal)
            }
        }
    }

    /// Completes the message: see [`crate::Store::commit`]. `reads_to_come`: the number of reads
    /// that may still begin.
    pub(crate) fn commit(
        &mut self,
        id: DeliveryId,
        Closing { date, head, mailbox }: Closing,
        continuation: Continuation,
        reads_to_come: usize,
        parts: &mut StoreParts,
    ) -> Result<(), Refusal> {
        let delivery = self.table.get_mut(id.0).ok_or(Refusal::NoSuchDelivery)?;
        let refusal = match delivery.expect {
            Expect::Octets if delivery.cursor > 0 => Some(Refusal::Busy),
            Expect::Octets if head.octets() > delivery.octets => Some(Refusal::PastEnd),
            Expect::Octets => delivery.failed,
            _ => return Err(Refusal::NoSuchDelivery),
        };
        if let Some(refusal) = refusal {
            self.abort(id, parts);
            return Err(refusal);
        }
        delivery.continuation = Some(continuation);
        delivery.date = u32::try_from(date.seconds()).unwrap_or(u32::MAX);
        if head != HeadSize::NONE {
            delivery.set_head(head);
        }
        if let Some(mailbox) = mailbox {
            for recipient in &mut delivery.recipients {
                if parts
                    .indexes
                    .of(recipient.account.shard())
                    .takes_mail(recipient.account, mailbox)
                {
                    *recipient = Recipient {
                        mailbox,
                        once: recipient.once,
                        ..Recipient::inbox(recipient.account)
                    };
                }
            }
        }
        if delivery.chunks > 0 {
            delivery.expect = Expect::ChunksFlushed;
            parts.commit.await_flush(Awaiting::Delivery(id.0));
        } else {
            delivery.expect = Expect::Gathered;
            if self.ready.is_empty()
                && self.gather_delivery(id.0, reads_to_come, parts) == StepProgress::Done
            {
                return Ok(());
            }
            self.ready.push_back(id.0);
        }
        Ok(())
    }

    /// Gives up a delivery. If records of the delivery are gathered already, the message is
    /// delivered nevertheless. Then this call only removes the continuation.
    pub(crate) fn abort(&mut self, id: DeliveryId, parts: &mut StoreParts) {
        let Some(delivery) = self.table.get_mut(id.0) else { return };
        delivery.continuation = None;
        let gathered = delivery.expect == Expect::Flushed
            || delivery.expect == Expect::Gathered && delivery.cursor > 0;
        if !gathered {
            self.give_up(id.0, parts);
        }
    }

    /// Finds a delivery that must be in progress.
    fn known(&mut self, id: FrameId) -> &mut Delivery {
        match self.table.get_mut(id) {
            Some(delivery) => delivery,
            None => unreachable!("a delivery that has ended"),
        }
    }

    /// Makes space for more octets: takes a buffer, exchanges it for a larger one, or writes the
    /// full buffer.
    fn make_space(
        &mut self,
        id: FrameId,
        parts: &mut StoreParts,
    ) -> Result<Result<(), AwaitedBuffer>, Refusal> {
        let delivery = self.known(id);
        match delivery.staging.as_ref().map(|staging| staging.len()) {
            None => {
                let (pages, awaited) = if delivery.chunks == 0 {
                    (1, AwaitedBuffer::Page)
                } else {
                    (PIECE_PAGES, AwaitedBuffer::Run)
                };
                delivery.staging = parts.pool.take_sparing(pages);
                Ok(if delivery.staging.is_some() { Ok(()) } else { Err(awaited) })
            }
            Some(PAGE_BYTES) => {
                let Some(larger) = parts.pool.take_sparing(PIECE_PAGES) else {
                    return Ok(Err(AwaitedBuffer::Run));
                };
                if let Some(page) = delivery.restage(larger) {
                    parts.pool.give(page);
                }
                Ok(Ok(()))
            }
            Some(_) => self.write_chunk(id, parts),
        }
    }

    /// Writes the full chunk for each recipient that does not have the chunk yet.
    fn write_chunk(
        &mut self,
        id: FrameId,
        parts: &mut StoreParts,
    ) -> Result<Result<(), AwaitedBuffer>, Refusal> {
        let summarizer = self.summarizer;
        let may_keep_header = self.known(id).keeps_header() || self.has_space_for_header();
        self.known(id).chunk_completed(&summarizer, may_keep_header);
        loop {
            let delivery = self.known(id);
            let Some(recipient) = delivery.recipients.get(delivery.cursor).copied() else {
                unreachable!("a cursor after the last recipient")
            };
            let is_last = delivery.cursor + 1 == delivery.recipients.len();
            let copy = if is_last { None } else { parts.pool.take(PIECE_PAGES) };
            if copy.is_none() && !is_last {
                return Ok(Err(AwaitedBuffer::Copy));
            }
            let page = allocate(parts, recipient.account.shard(), PIECE_PAGES, Want::Delivery);
            if page.is_none() && parts.role.awaits_segments() {
                copy.into_iter().for_each(|copy| parts.pool.put(copy));
                return Ok(Err(AwaitedBuffer::Segment));
            }
            let delivery = self.known(id);
            let Some(page) = page else {
                sometimes!(DiskFull);
                parts.segments.delivery_refused();
                delivery.failed = Some(Refusal::DiskFull);
                copy.into_iter().for_each(|copy| parts.pool.put(copy));
                return Err(Refusal::DiskFull);
            };
            delivery.pages.push(page.0);
            let Some(mut buffer) = delivery.buffer_for_recipient(copy) else {
                unreachable!("a full chunk without octets")
            };
            let header = delivery.header(recipient, None);
            chunk::emit(&mut buffer, &parts.superblock.key, page, &header, &delivery.summary);
            delivery.cursor += 1;
            if is_last {
                delivery.chunks += 1;
                delivery.cursor = 0;
                delivery.length = 0;
            }
            self.write_for(id, page, buffer, parts);
            if is_last {
                return Ok(Ok(()));
            }
        }
    }

    /// Whether one more shortened header may be kept.
    fn has_space_for_header(&self) -> bool {
        let kept = self.table.iter().filter(|(_, delivery)| delivery.keeps_header());
        kept.count() < SHORT_HEADERS_MAX
    }

    fn write_for(&mut self, id: FrameId, page: Page, buffer: Box<[u8]>, parts: &mut StoreParts) {
        self.known(id).writes += 1;
        let group = parts.commit.count_write();
        parts.backing.write(page, buffer, DiskPurpose::Chunk { delivery: id, group });
    }
}

const _: () = assert!(CHUNK_OCTETS + HEADER_BYTES == PIECE_PAGES as usize * PAGE_BYTES);
