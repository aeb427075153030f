//! The emergency write: the panic path writes one sector, when it cannot rely on any other part of
//! the machine.
//!
//! A reset takes the queues from the device, in any state of the queues. Then this file starts a
//! queue in separate memory, offers one write, and waits for its completion. The driver negotiates
//! neither flushing nor a cache. So the write is stable when it completes (virtio 1.2, section
//! 5.2.6.2).

use super::super::queue::{Events, NEXT, Queue, Rings};
use super::super::transport::{Interrupt, Transport};
use super::super::{agree, go};
use super::{KIND_WRITE, QUEUE, STATUS_OK, SlotMemory, describe_ends};
use crate::clock;
use core::sync::atomic::{AtomicU8, Ordering::Relaxed};
use machine::{Micros, SECTOR_BYTES, Sector};

const ENTRIES: usize = 4;
const PATIENCE: Micros = Micros::from_millis(400);

static RINGS: Rings<ENTRIES> = Rings::new();
static MEMORY: SlotMemory = SlotMemory::new();
static BUFFER: [AtomicU8; SECTOR_BYTES] = [const { AtomicU8::new(0) }; SECTOR_BYTES];

/// Writes one sector, once in the machine's life. Returns whether the device reports success.
pub(crate) fn write(transport: &Transport, sector: Sector, bytes: &[u8; SECTOR_BYTES]) -> bool {
    if agree(transport, |_| 0).is_err() {
        return false;
    }
    for (place, byte) in BUFFER.iter().zip(bytes) {
        place.store(*byte, Relaxed);
    }
    MEMORY.kind.store(KIND_WRITE, Relaxed);
    MEMORY.sector.store(sector.0, Relaxed);
    let mut queue = Queue::over(&RINGS, Events::ByFlag);
    // SAFETY: the memory is a static.
    unsafe { describe_ends(&queue, 0, &MEMORY) };
    // SAFETY: the buffer is a static that consists of atomics.
    unsafe { queue.describe(1, (&raw const BUFFER) as u64, SECTOR_BYTES as u32, NEXT) };
    queue.link(0, 1);
    queue.link(1, 2);
    // SAFETY: the addresses are those of the static rings.
    let doorbell = unsafe {
        transport.start_queue(QUEUE, ENTRIES as u16, queue.addresses(), Interrupt::Never)
    };
    let Ok(doorbell) = doorbell else { return false };
    go(transport);
    queue.offer(0);
    queue.publish();
    doorbell.ring();
    clock::wait_until(PATIENCE, || queue.has_used()) && MEMORY.status.load(Relaxed) == STATUS_OK
}
