//! The runs of a flight: stretches of bytes that share when they were sent last and what became of them, as a row.
//!
//! A few find their place in the row itself. While a full queue somewhere on a long path drops every other segment there are
//! hundreds, and a long list is lent from the pool. Places are found by halving.
//!
//! Neighbours are joined when nothing tells them apart, and when the row is crowded: those that were sent within a small
//! part of the time that all of it took, so that however much a long path holds it is told in few runs. Only where that makes no room more is
//! joined, and what it is joined to counts as sent when the last of it was, and as [`Run::vague`].
//!
//! Invariants:
//! - The runs lie in order, and runs of different fates, or vague and exact ones that are on the way, are never joined.

use alloc::boxed::Box;
use core::ops::Range;

use heapless::{Vec, VecView};

use super::blocks::BlockPool;
use super::nodes::{LongRuns, MANY_RUNS};
use super::run::{Fate, Run};
use super::sequence::SequenceNumber;

/// Runs that every row may have.
pub(super) const FEW: usize = 64;

/// In no more parts of time than these everything was sent whose runs are joined because the row is crowded.
const PARTS_OF_TIME: u32 = 32;

/// Places that a change of one stretch may take: where it begins and where it ends.
const CUTS: usize = 2;

/// The row.
#[derive(Default)]
pub(super) struct Runs {
    few: Vec<Run, FEW>,
    /// All of them, while a long list is lent.
    many: Option<Box<LongRuns>>,
    /// How many there may be until the row is crowded again.
    crowded_at: usize,
}

impl Runs {
    /// The runs.
    #[inline]
    pub(super) fn all(&self) -> &[Run] {
        match &self.many {
            Some(many) => many,
            None => &self.few,
        }
    }

    #[inline]
    pub(super) fn all_mut(&mut self) -> &mut VecView<Run> {
        match &mut self.many {
            Some(many) => many.as_mut_view(),
            None => self.few.as_mut_view(),
        }
    }

    /// Adds a run at the end.
    ///
    /// Errors: the run when there is no place for it.
    #[inline]
    pub(super) fn push(&mut self, run: Run) -> Result<(), Run> {
        let count = self.all().len();
        if count >= FEW && count >= self.crowded_at.min(self.capacity()) {
            self.make_room();
        }
        self.all_mut().push(run)
    }

    /// Whether the row may be cut in two places; room is made for that.
    pub(super) fn may_be_cut(&mut self) -> bool {
        if !self.has_room() {
            self.make_room();
        }
        self.has_room()
    }

    fn has_room(&self) -> bool {
        self.all().len() + CUTS <= self.capacity()
    }

    fn capacity(&self) -> usize {
        if self.many.is_some() { MANY_RUNS } else { FEW }
    }

    /// How many runs end at `at` or before.
    #[inline]
    pub(super) fn ended_by(&self, at: SequenceNumber) -> usize {
        self.all().partition_point(|run| !run.end.is_after(at))
    }

    /// Drops the first `count`.
    #[inline]
    pub(super) fn drop_first(&mut self, count: usize) {
        if count > 0 {
            self.all_mut().drain(..count);
        }
    }

    /// Joins neighbours within `range` that nothing tells apart.
    pub(super) fn join_equal(&mut self, range: Range<usize>) {
        self.join(range, |one, other| {
            one.is_like(other) && (one.sent_at == other.sent_at || one.fate != Fate::OnTheWay)
        });
    }

    /// Joins neighbours that were sent in the same part of time; if that makes no room, in larger ones.
    fn make_room(&mut self) {
        let runs = self.all();
        let last = runs.last().map_or(0, |run| run.sent_at);
        let age = |run: &Run| last.wrapping_sub(run.sent_at);
        let oldest = runs.iter().map(age).filter(|age| *age <= i32::MAX as u32).max().unwrap_or(0);
        // Powers of two lie within each other: what is joined again and again still lies within one part.
        let exact = (oldest / PARTS_OF_TIME + 1).next_power_of_two();
        self.join_within(exact, false);
        let mut part = exact;
        while !self.has_room() && part / 2 <= oldest {
            part = part.saturating_mul(2);
            self.join_within(part, true);
        }
        self.crowded_at = self.all().len() + FEW;
    }

    fn join_within(&mut self, part: u32, makes_vague: bool) {
        if makes_vague {
            // Before they are joined, since exact runs are not joined with vague ones.
            self.blur(part);
        }
        let all = 0..self.all().len();
        self.join(all, |one, other| {
            one.is_like(other) && one.sent_at / part == other.sent_at / part
        });
    }

    /// Makes those vague that will be joined.
    fn blur(&mut self, part: u32) {
        let runs = self.all_mut();
        for place in 1..runs.len() {
            if let Some([one, other]) = runs.get_mut(place - 1..=place)
                && one.fate == other.fate
                && one.sent_at / part == other.sent_at / part
            {
                (one.vague, other.vague) = (true, true);
            }
        }
    }

    /// Joins neighbours within `range` if they may be. Time is that of the one that was sent later.
    fn join(&mut self, range: Range<usize>, may_join: impl Fn(&Run, &Run) -> bool) {
        let end = range.end.min(self.all().len());
        let runs = self.all_mut();
        let mut kept = range.start;
        for place in range.start + 1..end {
            let (Some(one), Some(other)) = (runs.get(kept).copied(), runs.get(place).copied())
            else {
                unreachable!("runs behind the last one")
            };
            let joins = may_join(&one, &other);
            let is_later = (other.sent_at.wrapping_sub(one.sent_at) as i32) > 0;
            let joined = Run {
                sent_at: if is_later { other.sent_at } else { one.sent_at },
                // What is known to have arrived, or to be lost, may come to be on the way again.
                vague: one.vague
                    || other.vague
                    || one.fate != Fate::OnTheWay && one.sent_at != other.sent_at,
                ..other
            };
            kept += usize::from(!joins);
            let Some(target) = runs.get_mut(kept) else {
                unreachable!("a run behind the last one")
            };
            *target = if joins { joined } else { other };
        }
        if kept + 1 < end {
            runs.drain(kept + 1..end);
        }
    }

    /// Borrows a long list, if the row is nearly full even when it is not crowded.
    pub(super) fn lengthen(&mut self, blocks: &mut BlockPool) {
        if self.many.is_some() || self.few.len() <= FEW / 2 {
            return;
        }
        self.make_room();
        if self.few.len() > FEW / 2
            && let Some(mut many) = blocks.lend_long_runs()
        {
            assert!(
                many.extend_from_slice(&self.few).is_ok(),
                "a long list holds more than a short one"
            );
            self.few.clear();
            self.many = Some(many);
        }
    }

    /// Gives a long list back when few runs are left.
    #[inline]
    pub(super) fn shorten(&mut self, blocks: &mut BlockPool) {
        if let Some(many) = self.many.take_if(|many| many.len() <= FEW / 4) {
            assert!(self.few.extend_from_slice(&many).is_ok(), "few runs are left");
            self.crowded_at = 0;
            blocks.take_back_long_runs(many);
        }
    }
}
