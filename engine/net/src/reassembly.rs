//! Reassembly of datagrams from fragments (RFC 791 §3.2, RFC 815; RFC 8200 §4.5), within limits
//! that no sender can exceed.
//!
//! Invariants:
//! - At most [`DATAGRAMS_MAX`] datagrams are in progress, each at most [`DATAGRAM_BYTES_MAX`] long
//!   and [`LIFETIME`] old. A new one evicts the oldest. All memory is allocated at construction.
//! - If fragments of a datagram overlap, the datagram is dropped (RFC 5722), and so are its later
//!   fragments. But networks duplicate packets, so a fragment is ignored if all its bytes have
//!   arrived before with the same contents.
//! - Fragments are placed in units of 8 bytes, with one bit each in `present`.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use machine::{Instant, Micros};

use crate::ip::Ip;

/// The most datagrams in progress at once.
pub(crate) const DATAGRAMS_MAX: usize = 8;
/// The most bytes of payload in a datagram: more than jumbo frames and DNS answers need.
pub(crate) const DATAGRAM_BYTES_MAX: usize = 16 * 1024;
/// The longest time from the first fragment to the last.
pub(crate) const LIFETIME: Micros = Micros::from_secs(30);

const UNIT_BYTES: usize = 8;
const WORDS: usize = DATAGRAM_BYTES_MAX / UNIT_BYTES / 64;

/// The identity of a datagram (RFC 791 §3.2, RFC 8200 §4.5).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct DatagramKey {
    pub(crate) source: Ip,
    pub(crate) destination: Ip,
    pub(crate) identification: u32,
    /// Zero for IPv6, where it is not part of the identity.
    pub(crate) protocol: u8,
}

/// The header fields of a fragment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct FragmentHeader {
    pub(crate) key: DatagramKey,
    /// The offset in the datagram, in bytes.
    pub(crate) offset: u16,
    pub(crate) more_fragments: bool,
    /// The protocol of the datagram's payload. Only the first fragment's value counts.
    pub(crate) begins_with: u8,
}

/// A complete datagram, taken out of the table.
#[derive(Debug)]
pub(crate) struct ReassembledDatagram {
    /// The caller returns it with [`Reassembly::put_back`].
    pub(crate) buffer: Box<[u8]>,
    pub(crate) length: usize,
    pub(crate) begins_with: u8,
}

struct PartialDatagram {
    key: DatagramKey,
    expires_at: Instant,
    /// The length of the datagram, known once its last fragment has arrived.
    total_bytes: Option<usize>,
    /// One beyond the highest byte that has arrived.
    end: usize,
    present: [u64; WORDS],
    begins_with: u8,
    /// Set after an overlap: later fragments of this datagram are ignored.
    refused: bool,
    bytes: Box<[u8]>,
}

/// The result of a fragment.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum FragmentResult {
    /// More fragments are needed, or this fragment was a repetition.
    Waiting,
    /// The datagram is complete; the index is for [`Reassembly::take`].
    Whole(usize),
    /// The datagram has failed.
    Failed,
}

pub(crate) struct Reassembly {
    datagrams: Vec<Option<PartialDatagram>>,
    /// The buffers of empty slots.
    spare: Vec<Box<[u8]>>,
    /// The number of datagrams that newer ones have evicted since the number was last read.
    displaced: u64,
}

impl Reassembly {
    pub(crate) fn new() -> Reassembly {
        Reassembly {
            datagrams: (0..DATAGRAMS_MAX).map(|_| None).collect(),
            spare: (0..DATAGRAMS_MAX)
                .map(|_| vec![0; DATAGRAM_BYTES_MAX].into_boxed_slice())
                .collect(),
            displaced: 0,
        }
    }

    /// Handles a fragment. `payload`: the bytes after its header.
    pub(crate) fn fragment_arrived(
        &mut self,
        now: Instant,
        part: &FragmentHeader,
        payload: &[u8],
    ) -> FragmentResult {
        let start = usize::from(part.offset);
        let end = start + payload.len();
        // Only the last fragment may have a length that is not a multiple of the unit. An empty
        // fragment adds nothing, so a sender could repeat it for ever.
        let impossible = payload.is_empty()
            || (part.more_fragments && !payload.len().is_multiple_of(UNIT_BYTES));
        if impossible || end > DATAGRAM_BYTES_MAX {
            return FragmentResult::Failed;
        }
        let index = self.find_or_start(now, part.key);
        let Some(Some(datagram)) = self.datagrams.get_mut(index) else {
            unreachable!("the datagram was just found or started")
        };
        if datagram.refused {
            return FragmentResult::Waiting;
        }
        if !datagram.place(start, end, payload, part.more_fragments) {
            datagram.refused = true;
            return FragmentResult::Failed;
        }
        if start == 0 {
            datagram.begins_with = part.begins_with;
        }
        if datagram.is_whole() { FragmentResult::Whole(index) } else { FragmentResult::Waiting }
    }

    /// Takes a complete datagram out.
    pub(crate) fn take(&mut self, index: usize) -> Option<ReassembledDatagram> {
        let datagram = self.datagrams.get_mut(index)?.take()?;
        Some(ReassembledDatagram {
            buffer: datagram.bytes,
            length: datagram.total_bytes?,
            begins_with: datagram.begins_with,
        })
    }

    pub(crate) fn put_back(&mut self, buffer: Box<[u8]>) {
        self.spare.push(buffer);
    }

    /// Removes expired datagrams. Returns the number of datagrams that were lost since the last
    /// call, including evicted ones. Datagrams that an overlap has ended were counted before.
    pub(crate) fn expire(&mut self, now: Instant) -> u64 {
        if self.is_idle() {
            return 0;
        }
        let mut lost = core::mem::take(&mut self.displaced);
        for slot in &mut self.datagrams {
            if let Some(datagram) = slot.take_if(|datagram| datagram.expires_at <= now) {
                lost += u64::from(!datagram.refused);
                self.spare.push(datagram.bytes);
            }
        }
        lost
    }

    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        if self.is_idle() {
            return None;
        }
        self.datagrams.iter().flatten().map(|datagram| datagram.expires_at).min()
    }

    /// Whether no datagram is in progress, which is nearly always so.
    fn is_idle(&self) -> bool {
        self.spare.len() == DATAGRAMS_MAX && self.displaced == 0
    }

    fn find_or_start(&mut self, now: Instant, key: DatagramKey) -> usize {
        let known = |slot: &Option<PartialDatagram>| {
            slot.as_ref().is_some_and(|datagram| datagram.key == key)
        };
        if let Some(index) = self.datagrams.iter().position(known) {
            return index;
        }
        let age = |slot: &Option<PartialDatagram>| {
            slot.as_ref().map_or(Instant::START, |datagram| datagram.expires_at)
        };
        let Some((index, slot)) =
            self.datagrams.iter_mut().enumerate().min_by_key(|(_, slot)| age(slot))
        else {
            unreachable!("there are slots for datagrams")
        };
        if let Some(oldest) = slot.take() {
            self.displaced += u64::from(!oldest.refused);
            self.spare.push(oldest.bytes);
        }
        let Some(bytes) = self.spare.pop() else { unreachable!("there is a buffer for each slot") };
        *slot = Some(PartialDatagram {
            key,
            expires_at: now + LIFETIME,
            total_bytes: None,
            end: 0,
            present: [0; WORDS],
            begins_with: 0,
            refused: false,
            bytes,
        });
        index
    }
}

impl PartialDatagram {
    /// Copies a fragment to its position. Returns false if it contradicts earlier fragments.
    fn place(&mut self, start: usize, end: usize, payload: &[u8], more_fragments: bool) -> bool {
        let units = start / UNIT_BYTES..end.div_ceil(UNIT_BYTES);
        let known = units.clone().filter(|&unit| self.has(unit)).count();
        if known != 0 {
            let repeats = known == units.len() && self.bytes.get(start..end) == Some(payload);
            let same_end = more_fragments || self.total_bytes == Some(end);
            return repeats && same_end;
        }
        let beyond_end = self.total_bytes.is_some_and(|total| end > total || !more_fragments);
        if beyond_end || (!more_fragments && end < self.end) {
            return false;
        }
        let Some(room) = self.bytes.get_mut(start..end) else {
            unreachable!("the end was checked against the most")
        };
        room.copy_from_slice(payload);
        self.end = self.end.max(end);
        if !more_fragments {
            self.total_bytes = Some(end);
        }
        for unit in units {
            let Some(word) = self.present.get_mut(unit / 64) else {
                unreachable!("a unit above the last one")
            };
            *word |= 1 << (unit % 64);
        }
        true
    }

    fn has(&self, unit: usize) -> bool {
        self.present.get(unit / 64).is_some_and(|word| word & (1 << (unit % 64)) != 0)
    }

    fn is_whole(&self) -> bool {
        let Some(total) = self.total_bytes else { return false };
        let units: u32 = self.present.iter().map(|word| word.count_ones()).sum();
        units as usize == total.div_ceil(UNIT_BYTES)
    }
}

#[cfg(test)]
mod tests;
