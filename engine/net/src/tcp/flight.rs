//! The data in flight, as a list of runs. A run is a range of bytes with the same state and the
//! same time of the last transmission. The list covers every byte between SND.UNA and SND.MAX. It
//! combines the scoreboard of RFC 6675 with the transmission times of RFC 8985.
//!
//! A run is cut when only a part of it is acknowledged, lost or retransmitted. Two neighbouring
//! runs that do not differ are joined. [`Runs`] stores the runs, also when there are many. If there
//! is no room for another run, runs that differ are joined, and details are lost. But no byte
//! counts as arrived unless it was acknowledged.
//!
//! Invariants:
//! - The runs are in order and without gaps, and none is empty.
//! - `arrived` and `lost` are the bytes of the runs in these two states.
//! - Bytes beyond a gap that have arrived stay queued until they are acknowledged in order. The
//!   peer may drop them again: it may renege (RFC 2018 §8).

use super::blocks::BlockPool;
use super::options::SackBlock;
use super::run::{Run, RunState};
use super::runs::Runs;
use super::sequence::SequenceNumber;

/// All sent bytes that are not yet acknowledged in order.
#[derive(Default)]
pub(super) struct Flight {
    runs: Runs,
    start: SequenceNumber,
    arrived: u32,
    lost: u32,
}

impl Flight {
    /// Bytes that were acknowledged selectively.
    #[inline]
    pub(super) fn arrived(&self) -> u32 {
        self.arrived
    }

    /// Bytes that must be retransmitted.
    #[inline]
    pub(super) fn lost(&self) -> u32 {
        self.lost
    }

    /// Removes all bytes and returns when they were sent, if they are in a single run that was sent
    /// once and is still in flight.
    #[inline]
    pub(super) fn take_single_run(&mut self) -> Option<u32> {
        match self.runs.all() {
            [Run { state: RunState::OnTheWay, ambiguous: false, sent_at, .. }] => {
                let sent_at = *sent_at;
                self.runs.all_mut().clear();
                Some(sent_at)
            }
            _ => None,
        }
    }

    /// Removes all runs.
    pub(super) fn clear(&mut self, blocks: &mut BlockPool) {
        self.runs.all_mut().clear();
        self.runs.shorten(blocks);
        self.arrived = 0;
        self.lost = 0;
    }

    /// Makes room for more runs, before selective acknowledgments are processed.
    pub(super) fn lengthen(&mut self, blocks: &mut BlockPool) {
        self.runs.lengthen(blocks);
    }

    /// Returns borrowed room that is no longer needed.
    #[inline]
    pub(super) fn shorten(&mut self, blocks: &mut BlockPool) {
        self.runs.shorten(blocks);
    }

    /// When the last run was sent.
    pub(super) fn last_sent_at(&self) -> Option<u32> {
        self.runs.all().last().map(|run| run.sent_at)
    }

    /// The first bytes that must be retransmitted.
    pub(super) fn first_lost(&self) -> Option<SackBlock> {
        let mut start = self.start;
        for run in self.runs.all() {
            if run.state == RunState::Lost {
                return Some(SackBlock { start, end: run.end });
            }
            start = run.end;
        }
        None
    }

    /// Records that the bytes from `start` to `end` were sent: for the first time if they follow
    /// the last run, otherwise once more. `state`: the new state of the bytes.
    #[inline]
    pub(super) fn sent(
        &mut self,
        clock: u32,
        start: SequenceNumber,
        end: SequenceNumber,
        state: RunState,
    ) {
        let sent_to = match self.runs.all().last() {
            Some(run) => run.end,
            None => {
                self.start = start;
                start
            }
        };
        if start.is_before(sent_to) {
            let (start, end) = self.widen(start, end.earlier(sent_to));
            self.mark(start, end, |_| Run { end, sent_at: clock, state, ambiguous: true });
        }
        if end.is_after(sent_to) {
            self.append(end.since(sent_to), Run { end, sent_at: clock, state, ambiguous: false });
        }
    }

    fn end(&self) -> SequenceNumber {
        self.runs.all().last().map_or(self.start, |run| run.end)
    }

    /// Adds a run of `count` bytes at the end.
    fn append(&mut self, count: u32, run: Run) {
        let joins = self
            .runs
            .all_mut()
            .last_mut()
            .filter(|last| last.sent_at == run.sent_at && last.is_like(&run));
        if let Some(last) = joins {
            last.end = run.end;
        } else if let Err(run) = self.runs.push(run) {
            // Even joining has made no room. So the new bytes become a part of the last run, which
            // loses details.
            let Some(last) = self.runs.all_mut().last_mut() else {
                unreachable!("a list that is full and empty")
            };
            *last = Run { state: RunState::OnTheWay, ambiguous: true, ..run };
            return self.count_anew();
        }
        self.account(run.state, count);
    }

    fn account(&mut self, state: RunState, count: u32) {
        match state {
            RunState::OnTheWay => {}
            RunState::Arrived => self.arrived += count,
            RunState::Lost => self.lost += count,
        }
    }

    fn discount(&mut self, state: RunState, count: u32) {
        match state {
            RunState::OnTheWay => {}
            RunState::Arrived => self.arrived -= count,
            RunState::Lost => self.lost -= count,
        }
    }

    /// Removes all bytes before `to`, which are acknowledged. Calls `each` for the runs that had
    /// not arrived before. Returns the number of their bytes.
    #[inline]
    pub(super) fn acknowledge(&mut self, to: SequenceNumber, each: &mut impl FnMut(&Run)) -> u32 {
        let (mut whole, mut bytes) = (0, 0);
        while let Some(run) = self.runs.all().get(whole).copied() {
            let end = run.end.earlier(to);
            let count = end.since(self.start);
            if !end.is_after(self.start) {
                break;
            }
            self.discount(run.state, count);
            if run.state != RunState::Arrived {
                bytes += count;
                each(&Run { end, ..run });
            }
            self.start = end;
            if end != run.end {
                break;
            }
            whole += 1;
        }
        self.runs.drop_first(whole);
        bytes
    }

    /// Marks a selectively acknowledged block as arrived. Calls `each` for the runs that had not
    /// arrived before. Returns the number of their bytes.
    pub(super) fn acknowledge_block(
        &mut self,
        block: SackBlock,
        each: &mut impl FnMut(&Run),
    ) -> u32 {
        let before = self.arrived;
        let (start, end) = (block.start.later(self.start), block.end.earlier(self.end()));
        let first = self.runs.all().get(self.runs.ended_by(start));
        if first.is_some_and(|run| run.state == RunState::Arrived && !run.end.is_before(end)) {
            // The usual case: a block is reported several times.
            return 0;
        }
        self.mark(start, end, |run| {
            if run.state != RunState::Arrived {
                each(run);
            }
            Run { state: RunState::Arrived, ..*run }
        });
        self.arrived - before
    }

    /// Whether the first byte was acknowledged selectively, but not in order. The peer has dropped
    /// it again (reneged).
    pub(super) fn is_reneged(&self) -> bool {
        self.runs.all().first().is_some_and(|run| run.state == RunState::Arrived)
    }

    /// Drops all selective acknowledgments.
    pub(super) fn forget_arrived(&mut self) {
        for run in self.runs.all_mut().iter_mut() {
            if run.state == RunState::Arrived {
                run.state = RunState::OnTheWay;
            }
        }
        self.arrived = 0;
    }

    /// Calls `judge` with each run in flight. `judge` returns the new state of the run.
    pub(super) fn judge(&mut self, mut judge: impl FnMut(&Run) -> RunState) {
        let mut has_changed = false;
        for run in self.runs.all_mut().iter_mut().filter(|run| run.state == RunState::OnTheWay) {
            run.state = judge(run);
            has_changed |= run.state != RunState::OnTheWay;
        }
        if has_changed {
            self.runs.join_equal(0..self.runs.all().len());
            self.count_anew();
        }
    }

    /// Marks all lost bytes as in flight again.
    pub(super) fn unmark_lost(&mut self) {
        for run in self.runs.all_mut().iter_mut() {
            if run.state == RunState::Lost {
                run.state = RunState::OnTheWay;
            }
        }
        self.lost = 0;
    }

    /// Marks the first `count` bytes as lost, unless they have arrived.
    pub(super) fn lose_first(&mut self, count: u32) {
        let (start, end) = self.widen(self.start, (self.start + count).earlier(self.end()));
        self.mark(start, end, |run| match run.state {
            RunState::OnTheWay => Run { state: RunState::Lost, ..*run },
            _ => *run,
        });
    }

    /// Applies `change` to each run within the bytes from `start` to `end`. If there is no room to
    /// cut a run, the run stays as it is.
    fn mark(
        &mut self,
        start: SequenceNumber,
        end: SequenceNumber,
        mut change: impl FnMut(&Run) -> Run,
    ) {
        if !start.is_before(end) {
            return;
        }
        let may_be_cut = self.runs.make_room_for_cuts();
        let first = self.cut(start, may_be_cut);
        let last = self.cut(end, may_be_cut).0;
        for place in first.1..last {
            let Some(run) = self.runs.all().get(place).copied() else {
                unreachable!("a run after the last one")
            };
            let count = run.end.since(self.begin_of(place));
            let changed = Run { end: run.end, ..change(&run) };
            self.discount(run.state, count);
            self.account(changed.state, count);
            let Some(target) = self.runs.all_mut().get_mut(place) else {
                unreachable!("a run after the last one")
            };
            *target = changed;
        }
        self.runs.join_equal(first.1.saturating_sub(1)..last + 1);
    }

    fn begin_of(&self, place: usize) -> SequenceNumber {
        place
            .checked_sub(1)
            .and_then(|before| self.runs.all().get(before))
            .map_or(self.start, |run| run.end)
    }

    /// Cuts the run that contains `at`, if `may_be_cut`. Returns the number of runs that end at
    /// `at` or before, and the index of the first run that begins at `at` or later.
    fn cut(&mut self, at: SequenceNumber, may_be_cut: bool) -> (usize, usize) {
        let place = self.runs.ended_by(at);
        let Some(run) = self.runs.all().get(place).copied() else { return (place, place) };
        if !self.begin_of(place).is_before(at) {
            return (place, place);
        }
        let is_cut =
            may_be_cut && self.runs.all_mut().insert(place, Run { end: at, ..run }).is_ok();
        (place + usize::from(is_cut), place + 1)
    }

    /// Widens the range to whole runs, if there is no room to cut runs.
    fn widen(
        &mut self,
        start: SequenceNumber,
        end: SequenceNumber,
    ) -> (SequenceNumber, SequenceNumber) {
        if self.runs.make_room_for_cuts() {
            return (start, end);
        }
        let last = self.runs.all().get(self.runs.ended_by(end - 1)).map_or(end, |run| run.end);
        (self.begin_of(self.runs.ended_by(start)), last)
    }

    fn count_anew(&mut self) {
        (self.arrived, self.lost) = self.tally();
    }

    /// The number of arrived bytes, and of lost bytes.
    fn tally(&self) -> (u32, u32) {
        let (mut at, mut arrived, mut lost) = (self.start, 0, 0);
        for run in self.runs.all() {
            assert!(run.end.is_after(at), "runs are in order, and none is empty");
            match run.state {
                RunState::OnTheWay => {}
                RunState::Arrived => arrived += run.end.since(at),
                RunState::Lost => lost += run.end.since(at),
            }
            at = run.end;
        }
        (arrived, lost)
    }

    /// Asserts the invariants.
    pub(super) fn assert_invariants(&self, una: SequenceNumber, max: SequenceNumber) {
        assert_eq!((self.arrived, self.lost), self.tally(), "arrived and lost bytes are counted");
        let is_empty = self.runs.all().is_empty();
        assert!(
            is_empty || (self.start, self.end()) == (una, max),
            "runs cover all bytes in flight"
        );
        assert!(!is_empty || una == max, "runs cover all bytes in flight");
    }
}
