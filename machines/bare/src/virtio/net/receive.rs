//! Received frames. The driver lends buffers to the card, and takes them back when the card has
//! filled them.
//!
//! An ordinary frame goes to the engine in the buffer that the card filled. The card may join
//! segments of one connection into a long frame, which fills several buffers. The driver copies
//! such a frame into one of a few long buffers.
//!
//! Invariants:
//! - Either the card has a buffer or we have it: `lent` has exactly the buffers of the card.
//! - The lengths and counts from the card are not trusted: they only select among our own buffers
//!   and bytes.

use super::super::DeviceError;
use super::super::lent::Lent;
use super::super::queue::{Addresses, Events, Queue, WRITE};
use super::super::transport::Doorbell;
use super::{FLAG_CHECKSUM_VALID, FLAG_NEEDS_CHECKSUM, HEADER_BYTES};
use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use machine::{Checksum, Frame};

pub(super) const ENTRIES: usize = 256;

/// The size of an ordinary buffer, which fits the virtio header and a frame of MTU 1500. It is not
/// a power of two. Otherwise the starts of many buffers would map to the same few lines of the
/// processor's cache.
pub(super) const BUFFER_BYTES: usize = 1792;

/// The size of a long buffer: the longest IP packet with its Ethernet header, and the possible
/// excess of the last ordinary buffer.
pub(super) const LONG_BYTES: usize = (64 << 10) + BUFFER_BYTES;

/// The maximum number of long frames that the engine may have at a time.
const LONG_BUFFERS: usize = 4;

pub(super) struct Receiver {
    queue: Queue<ENTRIES>,
    doorbell: Doorbell,
    /// The buffers that the card has, by descriptor.
    lent: Box<[Option<Lent>]>,
    /// Descriptors without a buffer.
    free: Vec<u16>,
    long: Vec<Box<[u8]>>,
}

impl Receiver {
    /// `start`: passes the size and the addresses of the queue to the card.
    pub(super) fn new(
        events: Events,
        start: impl FnOnce(u16, Addresses) -> Result<Doorbell, DeviceError>,
    ) -> Result<Receiver, DeviceError> {
        let queue = Queue::new(events);
        let doorbell = start(ENTRIES as u16, queue.addresses())?;
        let mut receiver = Receiver {
            queue,
            doorbell,
            lent: (0..ENTRIES).map(|_| None).collect(),
            free: (0..ENTRIES as u16).rev().collect(),
            long: (0..LONG_BUFFERS).map(|_| vec![0; LONG_BYTES].into_boxed_slice()).collect(),
        };
        for _ in 0..ENTRIES {
            receiver.lend(vec![0; BUFFER_BYTES].into_boxed_slice());
        }
        Ok(receiver)
    }

    /// The oldest received frame.
    #[inline]
    pub(super) fn next(&mut self) -> Option<Frame> {
        loop {
            let (buffer, bytes) = self.take_back()?;
            let Some(header) = buffer.first_chunk::<HEADER_BYTES>() else { continue };
            let [flags, .., count_low, count_high] = *header;
            let checksum = if flags & (FLAG_NEEDS_CHECKSUM | FLAG_CHECKSUM_VALID) != 0 {
                Checksum::Verified
            } else {
                Checksum::Unknown
            };
            let count = u16::from_le_bytes([count_low, count_high]);
            if count <= 1 {
                return Some(Frame::new(buffer, HEADER_BYTES..bytes, checksum));
            }
            if let Some(frame) = self.join(buffer, bytes, count, checksum) {
                return Some(frame);
            }
        }
    }

    /// Takes the buffer of a frame back, to lend it to the card again.
    #[inline]
    pub(super) fn give_back(&mut self, frame: Frame) {
        let buffer = frame.into_buffer();
        if buffer.len() == BUFFER_BYTES {
            self.lend(buffer);
        } else if buffer.len() == LONG_BYTES && self.long.len() < LONG_BUFFERS {
            self.long.push(buffer);
        }
    }

    #[inline]
    pub(super) fn ring_doorbell(&mut self) {
        if self.queue.publish() {
            self.doorbell.ring();
        }
    }

    pub(super) fn may_sleep(&self) -> bool {
        self.queue.wake_on_next();
        !self.queue.has_used()
    }

    pub(super) fn be_quiet(&self) {
        self.queue.be_quiet();
    }

    /// Takes the next filled buffer from the card. Returns it with the number of filled bytes.
    #[inline]
    fn take_back(&mut self) -> Option<(Box<[u8]>, usize)> {
        loop {
            let (head, bytes) = self.queue.take()?;
            // A descriptor without a buffer was never offered, so the card misbehaves. The entry is
            // skipped.
            if let Some(lent) = self.lent.get_mut(usize::from(head)).and_then(Option::take) {
                self.free.push(head);
                // SAFETY: the card has marked the descriptor as used, so it has finished with the
                // buffer.
                return Some((unsafe { lent.take_back() }, bytes as usize));
            }
        }
    }

    /// Lends a buffer to the card. If no descriptor is free, the buffer is dropped.
    #[inline]
    fn lend(&mut self, buffer: Box<[u8]>) {
        let Some(head) = self.free.pop() else { return };
        let lent = Lent::new(buffer);
        // SAFETY: the buffer stays in `lent`, untouched, until the card has used the descriptor.
        unsafe { self.queue.describe(head, lent.address(), lent.bytes() as u32, WRITE) };
        self.queue.offer(head);
        if let Some(place) = self.lent.get_mut(usize::from(head)) {
            *place = Some(lent);
        }
    }

    /// Copies a frame from `count` buffers into a long buffer. If no long buffer is free, the frame
    /// is dropped, as if the queue were full.
    fn join(
        &mut self,
        first: Box<[u8]>,
        bytes: usize,
        count: u16,
        checksum: Checksum,
    ) -> Option<Frame> {
        let mut long = self.long.pop();
        let mut filled = append(&mut long, 0, first.get(HEADER_BYTES..bytes));
        self.lend(first);
        for _ in 1..count {
            let Some((part, bytes)) = self.take_back() else { break };
            filled = append(&mut long, filled, part.get(..bytes));
            self.lend(part);
        }
        long.map(|long| Frame::new(long, 0..filled, checksum))
    }
}

/// Copies `part` after the first `filled` bytes of `long`, if it fits. Returns the number of filled
/// bytes.
fn append(long: &mut Option<Box<[u8]>>, filled: usize, part: Option<&[u8]>) -> usize {
    let (Some(long), Some(part)) = (long, part) else { return filled };
    match long.get_mut(filled..filled + part.len()) {
        Some(place) => {
            place.copy_from_slice(part);
            filled + part.len()
        }
        None => filled,
    }
}

#[cfg(test)]
mod tests;
