//! The ranges of bytes that were received beyond a gap, in order. A few ranges are in the list
//! itself. On a long path, a full queue of a router may drop every other segment, so that there are
//! hundreds of ranges. For these, the list borrows a long list from the pool.
//!
//! Ranges are found by binary search. A segment that arrives in order beyond the last gap only
//! extends the last range. So the cost of an arrival hardly depends on the number of ranges.
//!
//! Invariants:
//! - The ranges are in order, with gaps between them, and none is empty.
//! - `newest` refers to the ranges that grew most recently, newest first, and to each range at most
//!   once. Some of these ranges may have been joined since then.

use alloc::boxed::Box;

use heapless::{Vec, VecView};

use super::blocks::BlockPool;
use super::nodes::LongList;
use super::options::{SACK_BLOCKS_MAX, SackBlock, SackBlocks};
use super::sequence::SequenceNumber;

/// The most ranges in a list without borrowing.
const FEW: usize = 16;

/// The number of ranges with a known order of growth. It is greater than the number of reported
/// ranges, because some ranges will be joined.
const NEWEST: usize = 8;

/// The ranges beyond gaps.
#[derive(Default)]
pub(super) struct OutOfOrderRanges {
    few: Vec<SackBlock, FEW>,
    /// All ranges, while there are more than a few.
    many: Option<Box<LongList>>,
    /// One byte of each of the most recently grown ranges.
    newest: Vec<SequenceNumber, NEWEST>,
}

impl OutOfOrderRanges {
    /// Whether there are no ranges.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.many.is_none() && self.few.is_empty()
    }

    /// The ranges.
    pub(super) fn ranges(&self) -> &[SackBlock] {
        match &self.many {
            Some(many) => many,
            None => &self.few,
        }
    }

    fn ranges_mut(&mut self) -> &mut VecView<SackBlock> {
        match &mut self.many {
            Some(many) => many.as_mut_view(),
            None => self.few.as_mut_view(),
        }
    }

    /// Makes sure that the list has an entry for the bytes from `start` to `end`. Returns false if
    /// no entry is left.
    pub(super) fn make_place_for(
        &mut self,
        start: SequenceNumber,
        end: SequenceNumber,
        blocks: &mut BlockPool,
    ) -> bool {
        let (first, last) = self.touching(start, end);
        if first < last || !self.ranges_mut().is_full() {
            return true;
        }
        if self.many.is_none()
            && let Some(mut many) = blocks.lend_long_list()
        {
            assert!(
                many.extend_from_slice(&self.few).is_ok(),
                "a long list holds more than a short one"
            );
            self.few.clear();
            self.many = Some(many);
        }
        !self.ranges_mut().is_full()
    }

    /// Adds a range, joined with all ranges that it touches. The caller has made sure that there is
    /// an entry.
    pub(super) fn insert(&mut self, start: SequenceNumber, end: SequenceNumber) {
        let (first, last) = self.touching(start, end);
        let ranges = self.ranges_mut();
        let mut new = SackBlock { start, end };
        if let Some([begin, .., finish] | [begin @ finish]) = ranges.get(first..last) {
            new = SackBlock { start: start.earlier(begin.start), end: end.later(finish.end) };
            ranges.drain(first..last);
        }
        assert!(
            ranges.insert(first, new).is_ok(),
            "an entry for the range was found before its bytes were written"
        );
        self.newest.retain(|byte| byte.is_before(new.start) || !byte.is_before(new.end));
        self.newest.truncate(NEWEST - 1);
        assert!(self.newest.insert(0, start).is_ok(), "the oldest has just made room");
    }

    /// Removes all ranges that begin at or before `tail`. Returns the end of the last of them, or
    /// `tail`.
    pub(super) fn join(&mut self, tail: SequenceNumber, blocks: &mut BlockPool) -> SequenceNumber {
        let joined = self.ranges().iter().take_while(|range| !range.start.is_after(tail));
        let (count, end) =
            joined.fold((0, tail), |(count, end), range| (count + 1, end.later(range.end)));
        if count > 0 {
            self.ranges_mut().drain(..count);
            self.shorten(blocks);
        }
        end
    }

    /// Returns a long list to the pool when few ranges are left.
    fn shorten(&mut self, blocks: &mut BlockPool) {
        if let Some(many) = self.many.take_if(|many| many.len() <= FEW / 2) {
            self.few.clear();
            assert!(self.few.extend_from_slice(&many).is_ok(), "few ranges are left");
            blocks.take_back_long_list(many);
        }
    }

    /// Removes all ranges.
    pub(super) fn clear(&mut self, blocks: &mut BlockPool) {
        self.few.clear();
        self.newest.clear();
        if let Some(many) = self.many.take() {
            blocks.take_back_long_list(many);
        }
    }

    /// Adds the ranges to `reported`, most recently grown first (RFC 2018 §4). The first block
    /// contains the segment that arrived last.
    pub(super) fn report(&self, reported: &mut SackBlocks) {
        let ranges = self.ranges();
        let named = self.newest.iter().filter_map(|byte| {
            let place = ranges.partition_point(|range| !range.end.is_after(*byte));
            ranges.get(place).filter(|range| !range.start.is_after(*byte))
        });
        named.take(SACK_BLOCKS_MAX).for_each(|range| reported.push(*range));
    }

    /// The first part of the bytes from `start` to `end` that has been received already.
    pub(super) fn overlap(
        &self,
        start: SequenceNumber,
        end: SequenceNumber,
    ) -> (SequenceNumber, SequenceNumber) {
        let ranges = self.ranges();
        let place = ranges.partition_point(|range| !range.end.is_after(start));
        let found = ranges.get(place).filter(|range| range.start.is_before(end));
        found.map_or((start, start), |range| (range.start.later(start), range.end.earlier(end)))
    }

    /// The ranges that overlap or adjoin the bytes from `start` to `end`: the index of the first,
    /// and the index after the last.
    fn touching(&self, start: SequenceNumber, end: SequenceNumber) -> (usize, usize) {
        let ranges = self.ranges();
        let first = ranges.partition_point(|range| range.end.is_before(start));
        let (_, rest) = ranges.split_at(first);
        (first, first + rest.partition_point(|range| !range.start.is_after(end)))
    }
}
