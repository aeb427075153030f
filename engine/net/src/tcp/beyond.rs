//! Which bytes are kept beyond a gap: ranges in order. A few find their place here; when a full queue somewhere on a long
//! path drops every other segment for a while there are hundreds, and a long list is lent from the pool.
//!
//! Places are found by halving, and what arrives in order beyond the last gap only lengthens the last range: so an arrival
//! costs the same however much is kept.
//!
//! Invariants:
//! - The ranges lie in order, with gaps between them, and none is empty.
//! - `newest` names ranges, none twice, what has grown last first. It may name some that have been joined since.

use alloc::boxed::Box;

use heapless::{Vec, VecView};

use super::blocks::BlockPool;
use super::nodes::LongList;
use super::options::{SACK_BLOCKS_MAX, SackBlock, SackBlocks};
use super::sequence::SequenceNumber;

/// Ranges that every queue may have.
const FEW: usize = 16;

/// Ranges whose order of growth is known: some more than are told, because some of them will be joined.
const NEWEST: usize = 8;

/// What is kept beyond gaps.
#[derive(Default)]
pub(super) struct Beyond {
    few: Vec<SackBlock, FEW>,
    /// All of them, while there are more than a few.
    many: Option<Box<LongList>>,
    /// A byte of each.
    newest: Vec<SequenceNumber, NEWEST>,
}

impl Beyond {
    /// Whether nothing is kept.
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

    /// Makes sure that there is a place for the bytes from `start` to `end`. False when there is none to be had.
    pub(super) fn has_place_for(
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

    /// Adds a range, joined with all that it touches. There is a place for it.
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
            "a place for the range was found before its bytes were written"
        );
        self.newest.retain(|byte| byte.is_before(new.start) || !byte.is_before(new.end));
        self.newest.truncate(NEWEST - 1);
        assert!(self.newest.insert(0, start).is_ok(), "the oldest has just made room");
    }

    /// Forgets all ranges that touch what lies before `tail`, and returns where the last of them ended, or `tail`.
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

    /// Gives a long list back when few ranges are left.
    fn shorten(&mut self, blocks: &mut BlockPool) {
        if let Some(many) = self.many.take_if(|many| many.len() <= FEW / 2) {
            self.few.clear();
            assert!(self.few.extend_from_slice(&many).is_ok(), "few ranges are left");
            blocks.take_back_long_list(many);
        }
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self, blocks: &mut BlockPool) {
        self.few.clear();
        self.newest.clear();
        if let Some(many) = self.many.take() {
            blocks.take_back_long_list(many);
        }
    }

    /// Adds what is kept to `told`, what has grown last first (RFC 2018 §4). The first block is that of the segment that
    /// arrived last.
    pub(super) fn tell(&self, told: &mut SackBlocks) {
        let ranges = self.ranges();
        let named = self.newest.iter().filter_map(|byte| {
            let place = ranges.partition_point(|range| !range.end.is_after(*byte));
            ranges.get(place).filter(|range| !range.start.is_after(*byte))
        });
        named.take(SACK_BLOCKS_MAX).for_each(|range| told.push(*range));
    }

    /// Which of the bytes from `start` to `end` are kept already: the first such stretch.
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

    /// The ranges that bytes from `start` to `end` overlap or adjoin: the first of them, and the first beyond.
    fn touching(&self, start: SequenceNumber, end: SequenceNumber) -> (usize, usize) {
        let ranges = self.ranges();
        let first = ranges.partition_point(|range| range.end.is_before(start));
        let (_, rest) = ranges.split_at(first);
        (first, first + rest.partition_point(|range| !range.start.is_after(end)))
    }
}
