//! Sent frames. The driver copies the head of a frame, and shares the pieces of its payload with
//! the card until the card has sent them.
//!
//! A frame is one chain: a slot with virtio header and frame head, then one descriptor for each
//! piece. Small payloads are copied after the head instead. Up to a few hundred bytes, the copy
//! costs less than a descriptor, a reference to the piece, and the card's work for the descriptor.
//! No code waits for the card: sent frames are released when the next frames are received, or when
//! the ring is full.
//!
//! Invariants:
//! - Free descriptors form one list through their `next` fields. A chain is a prefix of the list,
//!   so its links exist already.
//! - A piece in `held` stays until the card has used its chain. A slot is written only while its
//!   descriptor is free.

use super::super::DeviceError;
use super::super::queue::{Addresses, Events, NEXT, Queue};
use super::super::transport::Doorbell;
use super::{FLAG_NEEDS_CHECKSUM, HEADER_BYTES};
use alloc::boxed::Box;
use alloc::vec;
use core::ptr::NonNull;
use machine::{HEAD_BYTES_MAX, Offloads, OutgoingFrame, PIECES_MAX, Piece, TransmitError};

pub(super) const ENTRIES: usize = 256;

/// The size of a slot, which fits the virtio header and one frame. It is not a power of two, so
/// that the starts of many slots do not map to the same few lines of the processor's cache.
const SLOT_BYTES: usize = 1792;

/// Payloads up to this length are copied.
pub(super) const COPY_BYTES_MAX: usize = 512;

/// The longest frame, before the card cuts it into segments.
const FRAME_BYTES_MAX: usize = 65_535;

const SEGMENTS_NONE: u8 = 0;
const SEGMENTS_TCP_IPV4: u8 = 1;
const SEGMENTS_TCP_IPV6: u8 = 4;

pub(super) struct Transmitter {
    queue: Queue<ENTRIES>,
    doorbell: Doorbell,
    offloads: Offloads,
    /// `ENTRIES` slots, one for each descriptor. They are shared with the card and never freed.
    slots: NonNull<u8>,
    /// The pieces that the card may still read, by descriptor.
    held: Box<[Option<Piece>]>,
    /// The number of descriptors in the chain that begins at each descriptor. Zero if no chain
    /// begins there.
    lengths: Box<[u8]>,
    first_free: u16,
    free: u16,
    /// Whether a frame did not fit into the ring since the last sleep. If so, free space in the
    /// ring ends the next sleep.
    is_awaited: bool,
}

// SAFETY: the transmitter owns the slots, and no other code writes their memory.
unsafe impl Send for Transmitter {}

impl Transmitter {
    /// `start`: passes the size and the addresses of the queue to the card.
    pub(super) fn new(
        events: Events,
        offloads: Offloads,
        start: impl FnOnce(u16, Addresses) -> Result<Doorbell, DeviceError>,
    ) -> Result<Transmitter, DeviceError> {
        let queue = Queue::new(events);
        let doorbell = start(ENTRIES as u16, queue.addresses())?;
        for index in 0..ENTRIES as u16 {
            queue.link(index, index + 1);
        }
        let slots = Box::leak(vec![0; ENTRIES * SLOT_BYTES].into_boxed_slice());
        Ok(Transmitter {
            queue,
            doorbell,
            offloads,
            slots: NonNull::from(slots).cast(),
            held: (0..ENTRIES).map(|_| None).collect(),
            lengths: vec![0; ENTRIES].into_boxed_slice(),
            first_free: 0,
            free: ENTRIES as u16,
            is_awaited: false,
        })
    }

    #[inline]
    pub(super) fn transmit(&mut self, frame: &OutgoingFrame<'_>) -> Result<(), TransmitError> {
        let (payload_bytes, pieces) =
            frame.payload.iter().fold((0, 0), |(bytes, pieces), piece| {
                (bytes + piece.len(), pieces + u16::from(!piece.is_empty()))
            });
        self.check(frame, payload_bytes)?;
        let is_copied = payload_bytes <= COPY_BYTES_MAX
            && HEADER_BYTES + frame.head.len() + payload_bytes <= SLOT_BYTES;
        let length = if is_copied { 1 } else { 1 + pieces };
        if self.free < length {
            self.reap();
            if self.free < length {
                self.is_awaited = true;
                return Err(TransmitError::Full);
            }
        }
        let first = self.first_free;
        let filled = self.fill_slot(first, frame, if is_copied { frame.payload } else { &[] });
        let flags = if length > 1 { NEXT } else { 0 };
        // SAFETY: the slot lives for ever, and is written only while its descriptor is free.
        unsafe {
            self.queue.describe(first, self.slot(first).as_ptr() as u64, filled as u32, flags)
        };
        let mut last = first;
        if length > 1 {
            last = self.share(first, length, frame.payload);
        }
        self.first_free = self.queue.next(last);
        self.free -= length;
        if let Some(place) = self.lengths.get_mut(usize::from(first)) {
            *place = length as u8;
        }
        self.queue.offer(first);
        Ok(())
    }

    #[inline]
    pub(super) fn ring_doorbell(&mut self) {
        if self.queue.publish() {
            self.doorbell.ring();
        }
    }

    /// Releases the frames that the card has sent.
    #[inline]
    pub(super) fn reap(&mut self) {
        while let Some((head, _)) = self.queue.take() {
            self.release(head);
        }
    }

    pub(super) fn may_sleep(&mut self) -> bool {
        if !self.is_awaited {
            return true;
        }
        // The sleep ends after half of the frames in flight were sent. So each wake-up finds space
        // for many frames.
        self.queue.wake_after(self.queue.under_way().div_ceil(2));
        self.is_awaited = self.queue.has_used();
        !self.is_awaited
    }

    pub(super) fn be_quiet(&self) {
        self.queue.be_quiet();
    }

    #[inline]
    fn check(&self, frame: &OutgoingFrame<'_>, payload_bytes: usize) -> Result<(), TransmitError> {
        let head_bytes_max =
            if frame.payload.is_empty() { SLOT_BYTES - HEADER_BYTES } else { HEAD_BYTES_MAX };
        let is_sound = frame.head.len() <= head_bytes_max
            && frame.payload.len() <= PIECES_MAX
            && frame.head.len() + payload_bytes <= FRAME_BYTES_MAX
            && (frame.checksum.is_none() || self.offloads.checksum)
            && (frame.segment_bytes.is_none()
                || self.offloads.can_cut(frame) && frame.checksum.is_some());
        if is_sound { Ok(()) } else { Err(TransmitError::Malformed) }
    }

    #[inline]
    fn slot(&self, index: u16) -> NonNull<u8> {
        // SAFETY: each descriptor has a slot.
        unsafe { self.slots.add(usize::from(index) % ENTRIES * SLOT_BYTES) }
    }

    /// Writes the virtio header, the head and the copied pieces into the slot. Returns the number
    /// of bytes written.
    #[inline]
    fn fill_slot(&mut self, index: u16, frame: &OutgoingFrame<'_>, copied: &[Piece]) -> usize {
        let slot = self.slot(index).as_ptr();
        let mut filled = HEADER_BYTES;
        // SAFETY: 1. the slot's descriptor is free, so the card does not access the slot; 2.
        // `transmit` checked that header, head and pieces fit into the slot; 3. the sources are
        // borrowed, so they do not overlap the slot.
        unsafe {
            slot.cast::<[u8; HEADER_BYTES]>().write(header(frame));
            slot.add(filled).copy_from_nonoverlapping(frame.head.as_ptr(), frame.head.len());
            filled += frame.head.len();
            for piece in copied {
                let bytes = piece.bytes();
                slot.add(filled).copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
                filled += bytes.len();
            }
        }
        filled
    }

    /// Describes the pieces in the descriptors after `first`, and keeps references to them. Returns
    /// the last descriptor of the chain.
    fn share(&mut self, first: u16, length: u16, payload: &[Piece]) -> u16 {
        let mut last = first;
        let mut left = length - 1;
        for piece in payload.iter().filter(|piece| !piece.is_empty()) {
            last = self.queue.next(last);
            left -= 1;
            let bytes = piece.bytes();
            let flags = if left > 0 { NEXT } else { 0 };
            // SAFETY: the bytes are shared and only read, and the clone in `held` keeps them until
            // the chain is used.
            unsafe { self.queue.describe(last, bytes.as_ptr() as u64, bytes.len() as u32, flags) };
            if let Some(place) = self.held.get_mut(usize::from(last)) {
                *place = Some(piece.clone());
            }
        }
        last
    }

    /// Frees the descriptors and the pieces of the chain that begins at `head`.
    #[inline]
    fn release(&mut self, head: u16) {
        let Some(place) = self.lengths.get_mut(usize::from(head)) else { return };
        let length = core::mem::take(place);
        // No chain begins at this descriptor, so the card misbehaves.
        if length == 0 {
            return;
        }
        let mut last = head;
        for _ in 1..length {
            last = self.queue.next(last);
            if let Some(place) = self.held.get_mut(usize::from(last)) {
                *place = None;
            }
        }
        self.queue.link(last, self.first_free);
        self.first_free = head;
        self.free += u16::from(length);
    }
}

/// The virtio header of a frame (section 5.1.6).
#[inline]
fn header(frame: &OutgoingFrame<'_>) -> [u8; HEADER_BYTES] {
    let Some(checksum) = frame.checksum else { return [0; HEADER_BYTES] };
    let (kind, head_bytes, segment_bytes) = match frame.segment_bytes {
        Some(bytes) if frame.is_ipv6() => (SEGMENTS_TCP_IPV6, frame.head.len() as u16, bytes.get()),
        Some(bytes) => (SEGMENTS_TCP_IPV4, frame.head.len() as u16, bytes.get()),
        None => (SEGMENTS_NONE, 0, 0),
    };
    let [h0, h1] = head_bytes.to_le_bytes();
    let [s0, s1] = segment_bytes.to_le_bytes();
    let [c0, c1] = checksum.start.to_le_bytes();
    let [o0, o1] = checksum.offset.to_le_bytes();
    [FLAG_NEEDS_CHECKSUM, kind, h0, h1, s0, s1, c0, c1, o0, o1, 0, 0]
}

#[cfg(test)]
mod tests;
