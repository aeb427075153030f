//! The disk (virtio 1.2, section 5.2): many requests in flight, each a fixed chain of three
//! descriptors.
//!
//! Durability: flush requests (`FLUSH`) flush the device's write cache. A device without flush
//! requests is switched to write-through (`CONFIG_WCE`). A device that offers neither feature is
//! reported as not durable.
//!
//! Invariants:
//! - The device may access a request's buffer until it marks the chain as used, or is reset. Every
//!   request completes exactly once.
//! - A device that reports an impossible completion, or none for [`SILENCE_MAX`], is reset and not
//!   used again. From then on all requests fail.

pub(crate) mod emergency;

use super::lent::Lent;
use super::queue::{Events, NEXT, Queue, WRITE};
use super::transport::{Doorbell, Interrupt, Transport};
use super::{DeviceError, FEATURE_EVENT_INDEX, agree, go, reset};
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering::Relaxed};
use machine::{
    Disk, DiskCompletion, DiskError, DiskOperation, DiskRequest, DiskToken, Instant, Micros,
    SECTOR_BYTES,
};

const FEATURE_FLUSH: u64 = 1 << 9;
const FEATURE_CACHE_CONFIGURABLE: u64 = 1 << 11;

const QUEUE: u16 = 0;
const ENTRIES: usize = 128;
const CHAIN: u16 = 3;

/// The maximum number of requests in flight.
pub(crate) const SLOTS: usize = ENTRIES / CHAIN as usize;

/// The longest time without a completion before the device is given up.
const SILENCE_MAX: Micros = Micros::from_secs(60);

/// The device's own registers (section 5.2.4).
const REGISTER_SECTORS: usize = 0;
const REGISTER_WRITEBACK: usize = 32;

const KIND_READ: u32 = 0;
const KIND_WRITE: u32 = 1;
const KIND_FLUSH: u32 = 4;

const HEADER_BYTES: u32 = 16;
const STATUS_OK: u8 = 0;
const STATUS_PENDING: u8 = 0xFF;

/// The header of a request, which the device reads first, and the status, which it writes last
/// (section 5.2.6).
#[repr(C, align(32))]
pub(crate) struct SlotMemory {
    kind: AtomicU32,
    reserved: AtomicU32,
    sector: AtomicU64,
    status: AtomicU8,
}

impl SlotMemory {
    pub(crate) const fn new() -> SlotMemory {
        SlotMemory {
            kind: AtomicU32::new(0),
            reserved: AtomicU32::new(0),
            sector: AtomicU64::new(0),
            status: AtomicU8::new(STATUS_PENDING),
        }
    }
}

/// A request that the device has.
struct Pending {
    token: DiskToken,
    operation: DiskOperation,
    lent: Lent,
}

/// A running disk.
pub(crate) struct BlockDevice {
    transport: Transport,
    disk: Disk,
    requests: Requests,
    /// The time of the last completion, or of the first request after an idle time. It has
    /// no meaning while no request is in flight.
    silent_since: Instant,
}

impl BlockDevice {
    /// Starts the disk.
    pub(crate) fn start(transport: Transport) -> Result<BlockDevice, DeviceError> {
        let features = agree(&transport, |_| {
            FEATURE_FLUSH | FEATURE_CACHE_CONFIGURABLE | FEATURE_EVENT_INDEX
        })?;
        let has_flush = features & FEATURE_FLUSH != 0;
        let is_cache_configurable = features & FEATURE_CACHE_CONFIGURABLE != 0;
        if is_cache_configurable {
            transport.write_device8(REGISTER_WRITEBACK, u8::from(has_flush));
        }
        let sectors = u64::from(transport.device32(REGISTER_SECTORS))
            | u64::from(transport.device32(REGISTER_SECTORS + 4)) << 32;
        let events =
            if features & FEATURE_EVENT_INDEX != 0 { Events::ByIndex } else { Events::ByFlag };
        let queue = Queue::new(events);
        // SAFETY: the addresses are those of the queue's memory, which lives for ever.
        let doorbell = unsafe {
            transport.start_queue(QUEUE, ENTRIES as u16, queue.addresses(), Interrupt::Message(0))
        }?;
        go(&transport);
        Ok(BlockDevice {
            transport,
            disk: Disk { sectors, durable: has_flush || is_cache_configurable },
            requests: Requests::new(queue, doorbell, sectors, has_flush),
            silent_since: Instant::START,
        })
    }

    pub(crate) fn disk(&self) -> Disk {
        self.disk
    }

    /// The registers, for the emergency write of the panic path.
    pub(crate) fn transport(&self) -> Transport {
        self.transport
    }

    #[inline]
    pub(crate) fn request(
        &mut self,
        request: DiskRequest,
        now: Instant,
    ) -> Result<(), DiskRequest> {
        if self.requests.is_idle() {
            self.silent_since = now;
        }
        self.requests.request(request)
    }

    #[inline]
    pub(crate) fn completed(&mut self, now: Instant) -> Option<DiskCompletion> {
        let completion = self.requests.completed();
        if completion.is_some() {
            self.silent_since = now;
        } else if self.requests.is_broken || self.is_overdue(now) {
            self.give_up();
            return self.requests.completed();
        }
        completion
    }

    #[inline]
    pub(crate) fn ring_doorbell(&mut self) {
        self.requests.ring_doorbell();
    }

    /// Requests an interrupt that ends the sleep. Returns false if a completion is waiting already.
    pub(crate) fn may_sleep(&self) -> bool {
        self.transport.acknowledge_interrupt();
        self.requests.may_sleep()
    }

    /// Turns interrupts off again after a sleep.
    pub(crate) fn be_quiet(&self) {
        self.requests.queue.be_quiet();
    }

    /// The time at which to check whether the device still responds.
    pub(crate) fn next_check(&self) -> Option<Instant> {
        (!self.requests.is_idle()).then(|| self.silent_since + SILENCE_MAX)
    }

    fn is_overdue(&self, now: Instant) -> bool {
        !self.requests.is_idle() && now.since(self.silent_since) > SILENCE_MAX
    }

    /// Resets the device and fails all its requests.
    #[cold]
    fn give_up(&mut self) {
        let is_reset = reset(&self.transport).is_ok();
        self.requests.give_up(is_reset);
    }
}

/// The queue and its requests, separate from the registers, so that a test can act as the device.
struct Requests {
    queue: Queue<ENTRIES>,
    doorbell: Doorbell,
    sectors: u64,
    has_flush: bool,
    memory: &'static [SlotMemory],
    pending: Box<[Option<Pending>]>,
    free: Vec<u8>,
    /// The number of pending reads and flushes. Some operation waits for each of them.
    urgent: usize,
    /// Completions of requests that the device did not complete.
    finished: VecDeque<DiskCompletion>,
    /// Whether the device reported an impossible completion.
    is_broken: bool,
    /// Whether the device was given up.
    is_gone: bool,
}

impl Requests {
    fn new(queue: Queue<ENTRIES>, doorbell: Doorbell, sectors: u64, has_flush: bool) -> Requests {
        let memory: &'static [SlotMemory] =
            Box::leak((0..SLOTS).map(|_| SlotMemory::new()).collect());
        for (head, memory) in (0..).step_by(usize::from(CHAIN)).zip(memory) {
            // SAFETY: the slots' memory lives for ever, and consists of atomics.
            unsafe { describe_ends(&queue, head, memory) };
        }
        Requests {
            queue,
            doorbell,
            sectors,
            has_flush,
            memory,
            pending: (0..SLOTS).map(|_| None).collect(),
            free: (0..SLOTS as u8).rev().collect(),
            urgent: 0,
            finished: VecDeque::with_capacity(2 * SLOTS),
            is_broken: false,
            is_gone: false,
        }
    }

    /// Whether no request is in flight.
    #[inline]
    fn is_idle(&self) -> bool {
        self.free.len() == SLOTS
    }

    #[inline]
    fn request(&mut self, request: DiskRequest) -> Result<(), DiskRequest> {
        let (kind, sector) = match request.operation {
            DiskOperation::Read => (KIND_READ, request.sector.0),
            DiskOperation::Write => (KIND_WRITE, request.sector.0),
            DiskOperation::Flush => (KIND_FLUSH, 0),
        };
        if let Some(result) = self.answer_without_device(&request) {
            return self.finish(request, result);
        }
        let Some(slot) = self.free.pop() else { return Err(request) };
        let (Some(memory), Some(place)) =
            (self.memory.get(usize::from(slot)), self.pending.get_mut(usize::from(slot)))
        else {
            return Err(request);
        };
        memory.kind.store(kind, Relaxed);
        memory.sector.store(sector, Relaxed);
        memory.status.store(STATUS_PENDING, Relaxed);
        let head = u16::from(slot) * CHAIN;
        let lent = Lent::new(request.buffer);
        if kind == KIND_FLUSH {
            self.queue.link(head, head + 2);
        } else {
            let flags = if kind == KIND_READ { WRITE | NEXT } else { NEXT };
            self.queue.link(head, head + 1);
            // SAFETY: the buffer stays in `pending`, untouched, until the chain is used or the
            // device is reset.
            unsafe { self.queue.describe(head + 1, lent.address(), lent.bytes() as u32, flags) };
        }
        *place = Some(Pending { token: request.token, operation: request.operation, lent });
        self.urgent += usize::from(kind != KIND_WRITE);
        self.queue.offer(head);
        Ok(())
    }

    #[inline]
    fn completed(&mut self) -> Option<DiskCompletion> {
        // Most calls find no completion.
        if self.finished.is_empty() && !self.queue.has_used() {
            None
        } else {
            self.take_completed()
        }
    }

    fn take_completed(&mut self) -> Option<DiskCompletion> {
        if let Some(completion) = self.finished.pop_front() {
            return Some(completion);
        }
        let (head, _) = self.queue.take()?;
        let slot = usize::from(head / CHAIN);
        let pending = self.pending.get_mut(slot).and_then(Option::take);
        let (Some(pending), Some(memory), true) =
            (pending, self.memory.get(slot), head.is_multiple_of(CHAIN))
        else {
            self.is_broken = true;
            return None;
        };
        self.free.push(slot as u8);
        self.urgent -= usize::from(pending.operation != DiskOperation::Write);
        let result =
            if memory.status.load(Relaxed) == STATUS_OK { Ok(()) } else { Err(DiskError::Failed) };
        // SAFETY: the device has used the chain.
        let buffer = unsafe { pending.lent.take_back() };
        Some(DiskCompletion { token: pending.token, operation: pending.operation, result, buffer })
    }

    #[inline]
    fn ring_doorbell(&mut self) {
        if self.queue.publish() {
            self.doorbell.ring();
        }
    }

    /// Requests an interrupt that ends the sleep. Returns false if a completion is waiting already.
    /// If only writes are pending, the completion of the last write ends the sleep. No operation
    /// waits for a single write: each waits for the flush after the writes.
    fn may_sleep(&self) -> bool {
        let pending = SLOTS - self.free.len();
        self.queue.wake_after(if self.urgent == 0 { pending.max(1) as u16 } else { 1 });
        !self.queue.has_used() && self.finished.is_empty() && !self.is_broken
    }

    /// The result of a request that does not go to the device: it is invalid or has no effect, or
    /// the device is gone. `None` if the device must perform the request.
    #[inline]
    fn answer_without_device(&self, request: &DiskRequest) -> Option<Result<(), DiskError>> {
        if self.is_gone {
            return Some(Err(DiskError::Gone));
        }
        if request.operation == DiskOperation::Flush {
            return (!self.has_flush).then_some(Ok(()));
        }
        let bytes = request.buffer.len();
        let end = request.sector.0.checked_add((bytes / SECTOR_BYTES) as u64);
        let is_inside = end.is_some_and(|end| end <= self.sectors);
        let is_sound = is_inside
            && bytes != 0
            && bytes.is_multiple_of(SECTOR_BYTES)
            && u32::try_from(bytes).is_ok();
        (!is_sound).then_some(Err(DiskError::OutOfRange))
    }

    #[cold]
    fn finish(
        &mut self,
        request: DiskRequest,
        result: Result<(), DiskError>,
    ) -> Result<(), DiskRequest> {
        if self.finished.len() >= SLOTS {
            return Err(request);
        }
        let DiskRequest { token, operation, buffer, .. } = request;
        self.finished.push_back(DiskCompletion { token, operation, result, buffer });
        Ok(())
    }

    /// Completes all requests in flight with errors. If the device was reset (`is_reset`), it
    /// cannot access the buffers, and the completions return them. Otherwise the buffers are
    /// leaked, and the completions have new buffers.
    fn give_up(&mut self, is_reset: bool) {
        (self.is_broken, self.is_gone, self.urgent) = (false, true, 0);
        for (slot, place) in self.pending.iter_mut().enumerate() {
            let Some(pending) = place.take() else { continue };
            self.free.push(slot as u8);
            let buffer = if is_reset {
                // SAFETY: the device has been reset.
                unsafe { pending.lent.take_back() }
            } else {
                vec![0; pending.lent.bytes()].into_boxed_slice()
            };
            let (token, operation) = (pending.token, pending.operation);
            self.finished.push_back(DiskCompletion {
                token,
                operation,
                result: Err(DiskError::Gone),
                buffer,
            });
        }
        self.free.truncate(SLOTS);
    }
}

/// Describes the header of a request at the descriptor `head`, and its status at `head + 2`.
///
/// # Safety
/// `memory` lives until the device is reset.
unsafe fn describe_ends<const N: usize>(queue: &Queue<N>, head: u16, memory: &SlotMemory) {
    // SAFETY: 1. the caller keeps the memory; 2. it consists of atomics, so the device may write
    // them while we read.
    unsafe {
        queue.describe(head, (&raw const memory.kind) as u64, HEADER_BYTES, NEXT);
        queue.describe(head + 2, (&raw const memory.status) as u64, 1, WRITE);
    }
    queue.link(head + 1, head + 2);
}

#[cfg(test)]
mod tests;
