//! Received bytes that nobody has taken yet: in-order ones that the session left, and out-of-order ones that wait for a gap
//! to be filled. Lent to a connection only while there are such bytes.
//!
//! The bytes lie in blocks in a ring, each at the place that its sequence number says; a block exists once a byte in it
//! does. Which out-of-order bytes are there is told by a short list of ranges.
//!
//! Invariants:
//! - `head <= tail`; the bytes between are readable. All ranges lie beyond `tail`, in order, with gaps between them.
//! - No byte lies [`RECEIVE_WINDOW`] or further beyond `head`, so the ring never meets its own tail.

use alloc::sync::Arc;

use heapless::Vec;
use machine::{BLOCK_BYTES, Block};

use super::options::{SACK_BLOCKS_MAX, SackBlock, SackBlocks};
use super::pools::BlockPool;
use super::sequence::SequenceNumber;
use super::window::RECEIVE_WINDOW;

/// One block more than the window fills, because it seldom starts at a block's start.
const SLOTS: usize = RECEIVE_WINDOW as usize / BLOCK_BYTES + 1;

/// Gaps that are remembered at the same time. A segment that would open another one is dropped, and sent again.
pub(super) const RANGES_MAX: usize = 16;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Range {
    start: SequenceNumber,
    end: SequenceNumber,
    /// When it last grew, by the queue's own count.
    grown: u32,
}

/// Kept bytes of one connection.
pub(super) struct ReceiveQueue {
    slots: [Option<Arc<Block>>; SLOTS],
    /// The slot that `head` lies in, and where in it.
    first: usize,
    offset: usize,
    head: SequenceNumber,
    tail: SequenceNumber,
    ranges: Vec<Range, RANGES_MAX>,
    /// How often a range has grown.
    growths: u32,
    /// The number of a FIN that arrived ahead of its turn.
    fin: Option<SequenceNumber>,
}

impl Default for ReceiveQueue {
    fn default() -> ReceiveQueue {
        ReceiveQueue {
            slots: [const { None }; SLOTS],
            first: 0,
            offset: 0,
            head: SequenceNumber(0),
            tail: SequenceNumber(0),
            ranges: Vec::new(),
            growths: 0,
            fin: None,
        }
    }
}

impl ReceiveQueue {
    /// Starts anew: the first byte to be kept in order will have the number `at`.
    pub(super) fn begin(&mut self, at: SequenceNumber) {
        self.head = at;
        self.tail = at;
        self.offset = 0;
    }

    /// How many bytes are readable.
    pub(super) fn readable(&self) -> u32 {
        self.tail.since(self.head)
    }

    /// Whether there are gaps.
    pub(super) fn has_gaps(&self) -> bool {
        !self.ranges.is_empty() || self.fin.is_some()
    }

    /// Whether nothing is kept.
    pub(super) fn is_empty(&self) -> bool {
        self.readable() == 0 && !self.has_gaps()
    }

    /// The first readable bytes, up to the end of their block.
    pub(super) fn front(&self) -> &[u8] {
        let len = (self.readable() as usize).min(BLOCK_BYTES - self.offset);
        match self.slots.get(self.first) {
            Some(Some(block)) => block.get(self.offset..self.offset + len).unwrap_or_default(),
            _ => &[],
        }
    }

    /// Copies the first readable bytes into `into`, across blocks, and returns how many.
    pub(super) fn copy_front(&self, into: &mut [u8]) -> usize {
        let wanted = (self.readable() as usize).min(into.len());
        let mut copied = 0;
        while copied < wanted {
            let at = self.offset + copied;
            let slot = self.slots.get((self.first + at / BLOCK_BYTES) % SLOTS).and_then(Option::as_ref);
            let count = (BLOCK_BYTES - at % BLOCK_BYTES).min(wanted - copied);
            let from = slot.and_then(|block| block.get(at % BLOCK_BYTES..at % BLOCK_BYTES + count));
            let (Some(from), Some(to)) = (from, into.get_mut(copied..copied + count)) else { break };
            to.copy_from_slice(from);
            copied += count;
        }
        copied
    }

    /// Drops the first `count` readable bytes, or all if there are fewer.
    pub(super) fn consume(&mut self, count: u32, blocks: &mut BlockPool) {
        let count = count.min(self.readable());
        self.head = self.head + count;
        self.offset += count as usize;
        while self.offset >= BLOCK_BYTES {
            self.give_back_first(blocks);
            self.offset -= BLOCK_BYTES;
            self.first = (self.first + 1) % SLOTS;
        }
    }

    fn give_back_first(&mut self, blocks: &mut BlockPool) {
        if let Some(block) = self.slots.get_mut(self.first).and_then(Option::take) {
            blocks.give_back(block);
        }
    }

    /// Appends in-order bytes and returns how many found a block. Whatever they join up with becomes readable too.
    pub(super) fn append(&mut self, bytes: &[u8], blocks: &mut BlockPool) -> usize {
        let written = self.write(self.tail, bytes, blocks);
        self.tail = self.tail + written as u32;
        self.join();
        written
    }

    /// Keeps bytes that lie beyond a gap. Not all may be kept: what is not will be sent again.
    pub(super) fn insert(&mut self, at: SequenceNumber, bytes: &[u8], blocks: &mut BlockPool) {
        if bytes.is_empty() || !self.has_range_for(at, at + bytes.len() as u32) {
            return;
        }
        let written = self.write(at, bytes, blocks);
        if written > 0 {
            self.growths = self.growths.wrapping_add(1);
            self.insert_range(Range { start: at, end: at + written as u32, grown: self.growths });
        }
    }

    /// Remembers where the FIN is that arrived ahead of its turn.
    pub(super) fn fin_arrived(&mut self, at: SequenceNumber) {
        self.fin = Some(at);
    }

    /// Adds what is kept beyond gaps to `blocks`, what has grown last first (RFC 2018 §4). The first block is that of the
    /// segment that arrived last.
    pub(super) fn tell_ranges(&self, blocks: &mut SackBlocks) {
        let mut newest: Vec<Range, RANGES_MAX> = self.ranges.clone();
        newest.sort_unstable_by_key(|range| self.growths.wrapping_sub(range.grown));
        for range in newest.iter().take(SACK_BLOCKS_MAX) {
            blocks.push(SackBlock { start: range.start, end: range.end });
        }
    }

    /// Whether anything is kept beyond a gap.
    pub(super) fn has_ranges(&self) -> bool {
        !self.ranges.is_empty()
    }

    /// Which of the bytes from `start` to `end` are kept beyond a gap already: the first such stretch.
    pub(super) fn overlap(&self, start: SequenceNumber, end: SequenceNumber) -> (SequenceNumber, SequenceNumber) {
        let found = self.ranges.iter().find(|range| range.start.is_before(end) && start.is_before(range.end));
        found.map_or((start, start), |range| (range.start.later(start), range.end.earlier(end)))
    }

    /// Whether the FIN is what comes next.
    pub(super) fn fin_is_next(&self) -> bool {
        self.fin == Some(self.tail)
    }

    /// The stream has ended: whatever claims to lie beyond is forgotten.
    pub(super) fn end(&mut self) {
        self.fin = None;
        self.ranges.clear();
    }

    /// The number after the last readable byte.
    pub(super) fn tail(&self) -> SequenceNumber {
        self.tail
    }

    /// Gives everything back.
    pub(super) fn clear(&mut self, blocks: &mut BlockPool) {
        for slot in &mut self.slots {
            if let Some(block) = slot.take() {
                blocks.give_back(block);
            }
        }
        self.ranges.clear();
        self.fin = None;
        self.first = 0;
        self.begin(SequenceNumber(0));
    }

    /// Writes `bytes` at their place, as far as there are blocks, and returns how many were written.
    fn write(&mut self, at: SequenceNumber, bytes: &[u8], blocks: &mut BlockPool) -> usize {
        let distance = at.since(self.head) as usize;
        assert!(distance <= RECEIVE_WINDOW as usize, "received bytes are kept within the window only");
        let room = RECEIVE_WINDOW as usize - distance;
        let mut rest = bytes.get(..room).unwrap_or(bytes);
        let whole = rest.len();
        let mut position = self.offset + distance;
        while !rest.is_empty() {
            let slot = (self.first + position / BLOCK_BYTES) % SLOTS;
            let start = position % BLOCK_BYTES;
            let (now, later) = rest.split_at(rest.len().min(BLOCK_BYTES - start));
            let Some(target) = self.block_mut(slot, blocks).and_then(|block| block.get_mut(start..start + now.len()))
            else {
                break;
            };
            target.copy_from_slice(now);
            position += now.len();
            rest = later;
        }
        whole - rest.len()
    }

    fn block_mut(&mut self, slot: usize, blocks: &mut BlockPool) -> Option<&mut Block> {
        let slot = self.slots.get_mut(slot)?;
        if slot.is_none() {
            *slot = blocks.take();
        }
        Arc::get_mut(slot.as_mut()?)
    }

    /// Makes readable what follows the tail without a gap.
    fn join(&mut self) {
        while let Some(range) = self.ranges.first().copied() {
            if range.start.is_after(self.tail) {
                return;
            }
            self.tail = self.tail.later(range.end);
            self.ranges.remove(0);
        }
    }

    fn has_range_for(&self, start: SequenceNumber, end: SequenceNumber) -> bool {
        !self.ranges.is_full() || self.ranges.iter().any(|range| range.touches(start, end))
    }

    /// Adds a range, merged with all that it touches.
    fn insert_range(&mut self, mut new: Range) {
        self.ranges.retain(|range| {
            let touches = range.touches(new.start, new.end);
            if touches {
                new = Range { start: new.start.earlier(range.start), end: new.end.later(range.end), ..new };
            }
            !touches
        });
        let place = self.ranges.iter().position(|range| new.start.is_before(range.start));
        let inserted = self.ranges.insert(place.unwrap_or(self.ranges.len()), new);
        assert!(inserted.is_ok(), "room for the range was found before its bytes were written");
    }

    /// Asserts the invariants of the list of ranges.
    pub(super) fn assert_invariants(&self) {
        let mut before = self.tail;
        assert!(self.readable() <= RECEIVE_WINDOW);
        for range in &self.ranges {
            assert!(before.is_before(range.start) && range.start.is_before(range.end), "ranges in order, with gaps");
            before = range.end;
        }
        assert!(before.since(self.head) <= RECEIVE_WINDOW, "nothing is kept beyond the window");
    }
}

impl Range {
    fn touches(&self, start: SequenceNumber, end: SequenceNumber) -> bool {
        !self.start.is_after(end) && !start.is_after(self.end)
    }
}
