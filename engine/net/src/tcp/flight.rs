//! What is on the way: every byte between SND.UNA and SND.MAX with when it was sent last and what became of it, as a row of
//! runs. This is the scoreboard of RFC 6675 and the list of transmission times of RFC 8985 in one.
//!
//! A run is cut when only a part of it is acknowledged, lost or sent again, and joined with its neighbour when nothing
//! tells them apart. There is room for [`RUNS_MAX`]. When it is used up, neighbours are joined that were sent within a small
//! part of the time that all of it took: however much a long path holds, it is told in few runs. If that is not enough, runs of one fate are joined though they were sent
//! at different times (as if all were sent at the later one); what still finds no room is not told apart. Nothing is ever
//! thought to have arrived that was not acknowledged.
//!
//! Invariants:
//! - The runs lie in order, without gaps, and none is empty.
//! - `arrived` and `lost` are the bytes of the runs of that fate.
//! - Bytes that arrived beyond a gap are kept until they are acknowledged in order: a peer may take its word back
//!   (RFC 2018 §8).

use heapless::Vec;

use super::options::SackBlock;
use super::sequence::SequenceNumber;

/// Runs that are told apart.
pub(super) const RUNS_MAX: usize = 64;

/// In no more parts of time than these everything was sent whose runs are joined because there is no room for more.
const PARTS_OF_TIME: u32 = 32;

/// What became of bytes that were sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fate {
    OnTheWay,
    /// Acknowledged selectively.
    Arrived,
    /// To be sent again.
    Lost,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Run {
    /// The number after its last byte.
    pub(super) end: SequenceNumber,
    /// When it was sent last, in microseconds on a circle.
    pub(super) sent_at: u32,
    pub(super) fate: Fate,
    /// Whether it was sent more than once.
    pub(super) again: bool,
}

/// All that was sent and not acknowledged in order.
#[derive(Default)]
pub(super) struct Flight {
    runs: Vec<Run, RUNS_MAX>,
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

    /// Bytes that are to be sent again.
    #[inline]
    pub(super) fn lost(&self) -> u32 {
        self.lost
    }

    /// If all of it is one run that was sent once and is on the way: when it was sent. It is forgotten then.
    #[inline]
    pub(super) fn take_single_run(&mut self) -> Option<u32> {
        match self.runs.as_slice() {
            [Run { fate: Fate::OnTheWay, again: false, sent_at, .. }] => {
                let sent_at = *sent_at;
                self.runs.clear();
                Some(sent_at)
            }
            _ => None,
        }
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        self.runs.clear();
        self.arrived = 0;
        self.lost = 0;
    }

    /// When the last of it was sent.
    pub(super) fn last_sent_at(&self) -> Option<u32> {
        self.runs.last().map(|run| run.sent_at)
    }

    /// The first bytes that are to be sent again.
    pub(super) fn first_lost(&self) -> Option<SackBlock> {
        let mut start = self.start;
        for run in &self.runs {
            if run.fate == Fate::Lost {
                return Some(SackBlock { start, end: run.end });
            }
            start = run.end;
        }
        None
    }

    /// Bytes from `start` on were sent: for the first time if they follow the last run, else again. `fate`: what is to be
    /// thought of them.
    #[inline]
    pub(super) fn sent(&mut self, clock: u32, start: SequenceNumber, end: SequenceNumber, fate: Fate) {
        if self.runs.is_empty() {
            self.start = start;
        }
        let sent_to = self.end();
        if start.is_before(sent_to) {
            let (start, end) = self.widen(start, end.earlier(sent_to));
            self.mark(start, end, |_| Run { end, sent_at: clock, fate, again: true });
        }
        if end.is_after(sent_to) {
            self.append(Run { end, sent_at: clock, fate, again: false });
        }
    }

    fn end(&self) -> SequenceNumber {
        self.runs.last().map_or(self.start, |run| run.end)
    }

    fn append(&mut self, run: Run) {
        let count = run.end.since(self.end());
        let joins = self.runs.last_mut().filter(|last| last.sent_at == run.sent_at && last.is_like(&run));
        if let Some(last) = joins {
            last.end = run.end;
        } else {
            if self.runs.is_full() {
                self.make_room();
            }
            if let Err(run) = self.runs.push(run) {
                // Nothing could be joined: what the last one was known to be is forgotten.
                self.runs.pop();
                let start = self.end();
                let joined = self.runs.push(Run { fate: Fate::OnTheWay, again: true, ..run });
                assert!(joined.is_ok(), "there is room where a run has just left");
                self.count_anew();
                return assert!(start.is_before(run.end), "runs are in order");
            }
        }
        self.account(run.fate, count);
    }

    fn account(&mut self, fate: Fate, count: u32) {
        match fate {
            Fate::OnTheWay => {}
            Fate::Arrived => self.arrived += count,
            Fate::Lost => self.lost += count,
        }
    }

    fn discount(&mut self, fate: Fate, count: u32) {
        match fate {
            Fate::OnTheWay => {}
            Fate::Arrived => self.arrived -= count,
            Fate::Lost => self.lost -= count,
        }
    }

    /// Everything before `to` is acknowledged. `each` is told of the runs that had not arrived before. Returns their bytes.
    #[inline]
    pub(super) fn acknowledge(&mut self, to: SequenceNumber, each: &mut impl FnMut(&Run)) -> u32 {
        let (mut whole, mut bytes) = (0, 0);
        while let Some(run) = self.runs.get(whole).copied() {
            let end = run.end.earlier(to);
            let count = end.since(self.start);
            if !end.is_after(self.start) {
                break;
            }
            self.discount(run.fate, count);
            if run.fate != Fate::Arrived {
                bytes += count;
                each(&Run { end, ..run });
            }
            self.start = end;
            if end != run.end {
                break;
            }
            whole += 1;
        }
        let left = self.runs.len() - whole;
        if whole > 0 {
            self.runs.copy_within(whole.., 0);
            self.runs.truncate(left);
        }
        bytes
    }

    /// A block was acknowledged selectively. `each` is told of the runs that had not arrived before. Returns their bytes.
    pub(super) fn acknowledge_block(&mut self, block: SackBlock, each: &mut impl FnMut(&Run)) -> u32 {
        let before = self.arrived;
        let (start, end) = (block.start.later(self.start), block.end.earlier(self.end()));
        self.mark(start, end, |run| {
            if run.fate != Fate::Arrived {
                each(run);
            }
            Run { fate: Fate::Arrived, ..*run }
        });
        self.arrived - before
    }

    /// Whether the first byte was said to have arrived, while it was never acknowledged: the peer has taken its word back.
    pub(super) fn is_reneged(&self) -> bool {
        self.runs.first().is_some_and(|run| run.fate == Fate::Arrived)
    }

    /// Forgets all that was acknowledged selectively.
    pub(super) fn forget_arrived(&mut self) {
        for run in &mut self.runs {
            if run.fate == Fate::Arrived {
                run.fate = Fate::OnTheWay;
            }
        }
        self.arrived = 0;
    }

    /// Lets `judge` change the fates of the runs that are on the way.
    pub(super) fn judge(&mut self, mut judge: impl FnMut(&Run) -> Fate) {
        for run in &mut self.runs {
            if run.fate == Fate::OnTheWay {
                run.fate = judge(run);
            }
        }
        self.join_equal();
        self.count_anew();
    }

    /// What was thought lost is on the way after all.
    pub(super) fn find_lost(&mut self) {
        for run in &mut self.runs {
            if run.fate == Fate::Lost {
                run.fate = Fate::OnTheWay;
            }
        }
        self.lost = 0;
    }

    /// The first `count` bytes are lost, unless they are known to be already.
    pub(super) fn lose_first(&mut self, count: u32) {
        let (start, end) = self.widen(self.start, (self.start + count).earlier(self.end()));
        self.mark(start, end, |run| match run.fate {
            Fate::OnTheWay => Run { fate: Fate::Lost, ..*run },
            _ => *run,
        });
    }

    /// Changes what is known of the bytes from `start` to `end`, run by run. A run that there is no room to cut stays as it is.
    fn mark(&mut self, start: SequenceNumber, end: SequenceNumber, mut change: impl FnMut(&Run) -> Run) {
        if !start.is_before(end) {
            return;
        }
        if self.runs.len() + 2 > RUNS_MAX {
            self.make_room();
        }
        self.cut(start);
        self.cut(end);
        let mut at = self.start;
        for run in &mut self.runs {
            if !at.is_before(start) && !run.end.is_after(end) {
                *run = Run { end: run.end, ..change(run) };
            }
            at = run.end;
        }
        self.join_equal();
        self.count_anew();
    }

    /// Makes a run begin at `at`, if there is room for it.
    fn cut(&mut self, at: SequenceNumber) {
        let Some(place) = self.runs.iter().position(|run| at.is_before(run.end)) else { return };
        let begins = place.checked_sub(1).and_then(|before| self.runs.get(before)).map_or(self.start, |run| run.end);
        if begins.is_before(at)
            && let Some(run) = self.runs.get(place).copied()
        {
            let _ = self.runs.insert(place, Run { end: at, ..run });
        }
    }

    /// The numbers where the runs begin and end that `start` and `end` fall into, if those cannot be cut.
    fn widen(&mut self, start: SequenceNumber, end: SequenceNumber) -> (SequenceNumber, SequenceNumber) {
        if self.runs.len() + 2 > RUNS_MAX {
            self.make_room();
        }
        if self.runs.len() + 2 <= RUNS_MAX {
            return (start, end);
        }
        let (mut from, mut to, mut at) = (start, end, self.start);
        for run in &self.runs {
            from = if start.is_before(run.end) && !start.is_before(at) { at } else { from };
            to = if end.is_after(at) && !end.is_after(run.end) { run.end } else { to };
            at = run.end;
        }
        (from, to)
    }

    /// Joins neighbours that nothing tells apart.
    fn join_equal(&mut self) {
        self.join(|one, other| one.is_like(other) && (one.sent_at == other.sent_at || one.fate != Fate::OnTheWay));
    }

    /// Joins neighbours of one fate that were sent in the same part of time, and if that makes no room, whenever they were.
    fn make_room(&mut self) {
        let last = self.last_sent_at().unwrap_or(0);
        let age = |run: &Run| last.wrapping_sub(run.sent_at);
        let oldest = self.runs.iter().map(age).filter(|age| *age <= i32::MAX as u32).max().unwrap_or(0);
        // Powers of two lie within each other: what is joined again and again still lies within one part.
        let part = (oldest / PARTS_OF_TIME + 1).next_power_of_two();
        self.join(|one, other| one.is_like(other) && one.sent_at / part == other.sent_at / part);
        if self.runs.len() + 2 > RUNS_MAX {
            self.join(Run::is_like);
        }
        self.count_anew();
    }

    fn join(&mut self, may_join: impl Fn(&Run, &Run) -> bool) {
        let mut joined: Vec<Run, RUNS_MAX> = Vec::new();
        for run in &self.runs {
            match joined.last_mut().filter(|last| may_join(last, run)) {
                Some(last) => {
                    last.end = run.end;
                    last.again |= run.again;
                    last.sent_at =
                        if (run.sent_at.wrapping_sub(last.sent_at) as i32) > 0 { run.sent_at } else { last.sent_at };
                }
                None => assert!(joined.push(*run).is_ok(), "joining makes no runs"),
            }
        }
        self.runs = joined;
    }

    fn count_anew(&mut self) {
        (self.arrived, self.lost) = (0, 0);
        let mut at = self.start;
        for place in 0..self.runs.len() {
            let Some(run) = self.runs.get(place).copied() else { return };
            self.account(run.fate, run.end.since(at));
            at = run.end;
        }
    }

    /// Asserts the invariants.
    pub(super) fn assert_invariants(&self, una: SequenceNumber, max: SequenceNumber) {
        let (mut at, mut arrived, mut lost) = (self.start, 0, 0);
        for run in &self.runs {
            assert!(run.end.is_after(at), "runs lie in order, and none is empty");
            match run.fate {
                Fate::OnTheWay => {}
                Fate::Arrived => arrived += run.end.since(at),
                Fate::Lost => lost += run.end.since(at),
            }
            at = run.end;
        }
        assert_eq!((self.arrived, self.lost), (arrived, lost), "what arrived and what is lost is counted");
        assert!(self.runs.is_empty() || (self.start, at) == (una, max), "runs cover all that is on the way");
        assert!(!self.runs.is_empty() || una == max, "runs cover all that is on the way");
    }
}

impl Run {
    #[inline]
    fn is_like(&self, other: &Run) -> bool {
        self.fate == other.fate && (self.again == other.again || self.fate != Fate::OnTheWay)
    }
}
