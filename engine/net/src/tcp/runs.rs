//! The runs of a flight, in order. All bytes of a run have the same time of last transmission and
//! the same state.
//!
//! A few runs are stored in place. On a long path, a full queue of a router may drop every other
//! segment, so that there are hundreds of runs. For these, a long list is borrowed from the pool.
//! Runs are found by binary search.
//!
//! Neighbours that do not differ are joined. If the list is crowded, neighbours are also joined if
//! they were sent at nearly the same time, measured by the time span of all runs. So few runs
//! suffice for a long path. If the list is still crowded, runs are joined that were sent further
//! apart. A joined run has the time of its last part, and is [`Run::ambiguous`].
//!
//! Invariants:
//! - The runs are in order. Runs of different states are never joined. An ambiguous run in flight
//!   is never joined with an exact one.

use alloc::boxed::Box;
use core::ops::Range;

use heapless::{Vec, VecView};

use super::blocks::BlockPool;
use super::nodes::{LongRuns, MANY_RUNS};
use super::run::{Run, RunState};
use super::sequence::SequenceNumber;

/// The most runs stored in place.
pub(super) const FEW: usize = 64;

/// In a crowded list, the time span of all runs is divided into at most this many parts.
const PARTS_OF_TIME: u32 = 32;

/// The most entries that a change to one range may add: one at its start and one at its end.
const CUTS: usize = 2;

/// The runs of a flight, in order.
#[derive(Default)]
pub(super) struct Runs {
    few: Vec<Run, FEW>,
    /// All runs, while a long list is borrowed.
    many: Option<Box<LongRuns>>,
    /// The number of runs at which the list counts as crowded again.
    crowded_at: usize,
}

impl Runs {
    /// All runs, in order.
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
    /// Errors: the run, when there is no room for it.
    #[inline]
    pub(super) fn push(&mut self, run: Run) -> Result<(), Run> {
        let count = self.all().len();
        if count >= FEW && count >= self.crowded_at.min(self.capacity()) {
            self.make_room();
        }
        self.all_mut().push(run)
    }

    /// Makes room for cutting runs at two places. Returns false if there is none.
    pub(super) fn make_room_for_cuts(&mut self) -> bool {
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

    /// The number of runs that end at `at` or before.
    #[inline]
    pub(super) fn ended_by(&self, at: SequenceNumber) -> usize {
        self.all().partition_point(|run| !run.end.is_after(at))
    }

    /// Drops the first `count` runs.
    #[inline]
    pub(super) fn drop_first(&mut self, count: usize) {
        if count > 0 {
            self.all_mut().drain(..count);
        }
    }

    /// Joins neighbours within `range` that do not differ.
    pub(super) fn join_equal(&mut self, range: Range<usize>) {
        self.join(range, |one, other| {
            one.is_like(other) && (one.sent_at == other.sent_at || one.state != RunState::OnTheWay)
        });
    }

    /// Joins neighbours that were sent in the same part of the time span. If that is not enough,
    /// repeats this with larger parts.
    fn make_room(&mut self) {
        let runs = self.all();
        let last = runs.last().map_or(0, |run| run.sent_at);
        let age = |run: &Run| last.wrapping_sub(run.sent_at);
        let oldest = runs.iter().map(age).filter(|age| *age <= i32::MAX as u32).max().unwrap_or(0);
        // The length of a part is a power of two, so that a part is contained in one larger part.
        // So repeated joins stay within one part.
        let exact = (oldest / PARTS_OF_TIME + 1).next_power_of_two();
        self.join_within(exact, false);
        let mut part = exact;
        while !self.has_room() && part / 2 <= oldest {
            part = part.saturating_mul(2);
            self.join_within(part, true);
        }
        self.crowded_at = self.all().len() + FEW;
    }

    fn join_within(&mut self, part: u32, makes_ambiguous: bool) {
        if makes_ambiguous {
            // The marks must precede the joins, because an exact run is not joined with an
            // ambiguous one.
            self.mark_ambiguous(part);
        }
        let all = 0..self.all().len();
        self.join(all, |one, other| {
            one.is_like(other) && one.sent_at / part == other.sent_at / part
        });
    }

    /// Marks the runs that will be joined as ambiguous.
    fn mark_ambiguous(&mut self, part: u32) {
        let runs = self.all_mut();
        for place in 1..runs.len() {
            if let Some([one, other]) = runs.get_mut(place - 1..=place)
                && one.state == other.state
                && one.sent_at / part == other.sent_at / part
            {
                (one.ambiguous, other.ambiguous) = (true, true);
            }
        }
    }

    /// Joins neighbours within `range` if `may_join` permits. The later time counts.
    fn join(&mut self, range: Range<usize>, may_join: impl Fn(&Run, &Run) -> bool) {
        let end = range.end.min(self.all().len());
        let runs = self.all_mut();
        let mut kept = range.start;
        for place in range.start + 1..end {
            let (Some(one), Some(other)) = (runs.get(kept).copied(), runs.get(place).copied())
            else {
                unreachable!("runs after the last one")
            };
            let joins = may_join(&one, &other);
            let is_later = (other.sent_at.wrapping_sub(one.sent_at) as i32) > 0;
            let joined = Run {
                sent_at: if is_later { other.sent_at } else { one.sent_at },
                // A run that has arrived or is lost may count as in flight again later.
                ambiguous: one.ambiguous
                    || other.ambiguous
                    || one.state != RunState::OnTheWay && one.sent_at != other.sent_at,
                ..other
            };
            kept += usize::from(!joins);
            let Some(target) = runs.get_mut(kept) else { unreachable!("a run after the last one") };
            *target = if joins { joined } else { other };
        }
        if kept + 1 < end {
            runs.drain(kept + 1..end);
        }
    }

    /// Borrows a long list if the list in place is more than half full even after joining.
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

    /// Returns a long list when few runs are left.
    #[inline]
    pub(super) fn shorten(&mut self, blocks: &mut BlockPool) {
        if let Some(many) = self.many.take_if(|many| many.len() <= FEW / 4) {
            assert!(self.few.extend_from_slice(&many).is_ok(), "few runs are left");
            self.crowded_at = 0;
            blocks.take_back_long_runs(many);
        }
    }
}
