//! Received bytes that the session has not consumed: bytes in order, and bytes beyond a gap that
//! the peer still has to fill. A connection borrows the queue only while there are such bytes.
//!
//! The bytes are in a ring of blocks. The sequence number of a byte determines its position. A
//! block is borrowed for its first byte. [`OutOfOrderRanges`] records which bytes beyond a gap are
//! present.
//!
//! Invariants:
//! - `head <= tail`; the bytes between them are readable. All ranges of [`OutOfOrderRanges`] are
//!   after `tail`, with a gap before them.
//! - No byte is [`RECEIVE_WINDOW_MAX`] or more beyond `head`, so the ring never overlaps itself.

use machine::BLOCK_BYTES;

use super::blocks::BlockPool;
use super::options::SackBlocks;
use super::out_of_order::OutOfOrderRanges;
use super::ring::Ring;
use super::sequence::SequenceNumber;
use super::window::RECEIVE_WINDOW_MAX;

/// The kept bytes of one connection.
#[derive(Default)]
pub(super) struct ReceiveQueue {
    blocks: Ring,
    /// The offset of `head` in the first block.
    offset: usize,
    head: SequenceNumber,
    tail: SequenceNumber,
    beyond: OutOfOrderRanges,
    /// The number of a FIN that arrived out of order.
    fin: Option<SequenceNumber>,
}

impl ReceiveQueue {
    /// Starts an empty queue: the first in-order byte will have the number `at`.
    pub(super) fn begin(&mut self, at: SequenceNumber) {
        self.head = at;
        self.tail = at;
        self.offset = 0;
    }

    /// The number of readable bytes.
    pub(super) fn readable(&self) -> u32 {
        self.tail.since(self.head)
    }

    /// Whether there are gaps.
    pub(super) fn has_gaps(&self) -> bool {
        !self.beyond.is_empty() || self.fin.is_some()
    }

    /// Whether the queue is empty.
    pub(super) fn is_empty(&self) -> bool {
        self.readable() == 0 && !self.has_gaps()
    }

    /// The first readable bytes, up to the end of their block.
    pub(super) fn front(&self) -> &[u8] {
        let len = (self.readable() as usize).min(BLOCK_BYTES - self.offset);
        let Some(block) = self.blocks.block(0) else {
            debug_assert!(len == 0, "each readable byte has its block");
            return &[];
        };
        let Some(bytes) = block.get(self.offset..self.offset + len) else {
            unreachable!("bytes outside of a block")
        };
        bytes
    }

    /// Copies the first readable bytes into `into`, across blocks. Returns the number of bytes
    /// copied.
    pub(super) fn copy_front(&self, into: &mut [u8]) -> usize {
        let wanted = (self.readable() as usize).min(into.len());
        let mut copied = 0;
        while copied < wanted {
            let at = self.offset + copied;
            let count = (BLOCK_BYTES - at % BLOCK_BYTES).min(wanted - copied);
            let from = self
                .blocks
                .block(at / BLOCK_BYTES)
                .and_then(|block| block.get(at % BLOCK_BYTES..at % BLOCK_BYTES + count));
            let (Some(from), Some(to)) = (from, into.get_mut(copied..copied + count)) else {
                unreachable!("each readable byte has its block")
            };
            to.copy_from_slice(from);
            copied += count;
        }
        copied
    }

    /// Overwrites the first readable bytes with `bytes`. At least as many bytes are readable.
    pub(super) fn overwrite_front(&mut self, bytes: &[u8], blocks: &mut BlockPool) {
        assert!(bytes.len() <= self.readable() as usize, "only readable bytes are overwritten");
        let written = self.write(self.head, bytes, blocks);
        assert!(written == bytes.len(), "each readable byte has its block");
    }

    /// Drops the first `count` readable bytes, or all if there are fewer.
    pub(super) fn consume(&mut self, count: u32, blocks: &mut BlockPool) {
        let count = count.min(self.readable());
        self.head = self.head + count;
        self.offset += count as usize;
        while self.offset >= BLOCK_BYTES {
            self.blocks.pop(blocks);
            self.offset -= BLOCK_BYTES;
        }
    }

    /// Appends in-order bytes. Returns the number of bytes that fitted into blocks. Ranges that
    /// adjoin these bytes become readable too.
    pub(super) fn append(&mut self, bytes: &[u8], blocks: &mut BlockPool) -> usize {
        let written = self.write(self.tail, bytes, blocks);
        self.tail = self.tail + written as u32;
        if !self.beyond.is_empty() {
            self.tail = self.beyond.join(self.tail, blocks);
        }
        written
    }

    /// Adds bytes beyond a gap. Bytes that do not fit are dropped, and the peer sends them again.
    pub(super) fn insert(&mut self, at: SequenceNumber, bytes: &[u8], blocks: &mut BlockPool) {
        if bytes.is_empty() || !self.beyond.make_place_for(at, at + bytes.len() as u32, blocks) {
            return;
        }
        let written = self.write(at, bytes, blocks);
        let end = at + written as u32;
        // If only a part of the segment was stored, this part does not always touch the range that
        // the whole segment touches. So it may need an entry of its own in the list.
        if written > 0 && (written == bytes.len() || self.beyond.make_place_for(at, end, blocks)) {
            self.beyond.insert(at, end);
        }
    }

    /// Stores the number of a FIN that arrived out of order.
    pub(super) fn fin_arrived(&mut self, at: SequenceNumber) {
        self.fin = Some(at);
    }

    /// Adds the ranges beyond gaps to `reported`, newest first.
    pub(super) fn report_ranges(&self, reported: &mut SackBlocks) {
        self.beyond.report(reported);
    }

    /// Whether there are ranges beyond a gap.
    pub(super) fn has_ranges(&self) -> bool {
        !self.beyond.is_empty()
    }

    /// The first part of the bytes from `start` to `end` that is already kept beyond a gap.
    pub(super) fn overlap(
        &self,
        start: SequenceNumber,
        end: SequenceNumber,
    ) -> (SequenceNumber, SequenceNumber) {
        self.beyond.overlap(start, end)
    }

    /// Whether the FIN is next in order.
    pub(super) fn fin_is_next(&self) -> bool {
        self.fin == Some(self.tail)
    }

    /// Ends the stream: drops everything beyond its end.
    pub(super) fn end(&mut self, blocks: &mut BlockPool) {
        self.fin = None;
        self.beyond.clear(blocks);
    }

    /// The number after the last readable byte.
    pub(super) fn tail(&self) -> SequenceNumber {
        self.tail
    }

    /// Returns all buffers.
    pub(super) fn clear(&mut self, blocks: &mut BlockPool) {
        self.blocks.clear(blocks);
        self.beyond.clear(blocks);
        self.fin = None;
        self.begin(SequenceNumber(0));
    }

    /// Writes `bytes` at the position of `at`, as far as there are blocks. Returns the number of
    /// bytes written.
    fn write(&mut self, at: SequenceNumber, bytes: &[u8], blocks: &mut BlockPool) -> usize {
        let distance = at.since(self.head) as usize;
        assert!(
            distance <= RECEIVE_WINDOW_MAX as usize,
            "received bytes are kept within the window only"
        );
        let room = RECEIVE_WINDOW_MAX as usize - distance;
        let mut rest = bytes.get(..room).unwrap_or(bytes);
        let whole = rest.len();
        let mut position = self.offset + distance;
        while !rest.is_empty() {
            let start = position % BLOCK_BYTES;
            let (now, later) = rest.split_at(rest.len().min(BLOCK_BYTES - start));
            let block = self.blocks.block_mut(position / BLOCK_BYTES, blocks);
            let Some(target) = block.and_then(|block| block.get_mut(start..start + now.len()))
            else {
                break;
            };
            target.copy_from_slice(now);
            position += now.len();
            rest = later;
        }
        whole - rest.len()
    }

    /// Asserts the invariants of the list of ranges.
    pub(super) fn assert_invariants(&self) {
        let mut before = self.tail;
        assert!(self.readable() <= RECEIVE_WINDOW_MAX);
        for range in self.beyond.ranges() {
            assert!(
                before.is_before(range.start) && range.start.is_before(range.end),
                "ranges in order, with gaps"
            );
            before = range.end;
        }
        assert!(before.since(self.head) <= RECEIVE_WINDOW_MAX, "nothing is kept beyond the window");
    }
}
