//! RACK: a segment is lost if another segment that was sent sufficiently later has arrived (RFC
//! 8985 §6).
//!
//! Time decides, not the number of duplicates. The reordering window is the time that a segment may
//! be late before it counts as lost. It is zero if a loss is known or three segments have arrived
//! out of order, unless the network has reordered segments. Otherwise it is a quarter of the
//! minimum round trip, and longer after each duplicate that the peer reports.
//!
//! All of this is part of the borrowed send queue, and is dropped when nothing is in flight. A
//! connection that sends again learns the path again within a round trip.

use machine::Micros;

use super::run::Run;
use super::sequence::SequenceNumber;

/// The number of recoveries for which a widened reordering window is kept (RFC 8985 §6.2 step 4).
const PERSIST_RECOVERIES: u8 = 16;

/// The widest reordering window, in quarters of the minimum round trip.
const QUARTERS_MAX: u32 = 40;

/// The most recently sent segment that has arrived. Times are in microseconds modulo 2^32.
#[derive(Clone, Copy)]
pub(super) struct Rack {
    /// Whether anything has arrived.
    is_known: bool,
    sent_at: u32,
    end: SequenceNumber,
    round_trip: u32,
    round_trip_min: u32,
    /// The number after the highest byte that has arrived.
    highest: SequenceNumber,
    has_reordered: bool,
    /// The reordering window, in quarters of the minimum round trip.
    quarters: u32,
    /// The number of recoveries until the window is narrow again.
    persists: u8,
    /// Until this number is acknowledged, another duplicate does not widen the window.
    widened_until: Option<SequenceNumber>,
}

impl Default for Rack {
    fn default() -> Rack {
        Rack {
            is_known: false,
            sent_at: 0,
            end: SequenceNumber(0),
            round_trip: 0,
            round_trip_min: u32::MAX,
            highest: SequenceNumber(0),
            has_reordered: false,
            quarters: 1,
            persists: 0,
            widened_until: None,
        }
    }
}

impl Rack {
    /// Records that a run has arrived (§6.2 steps 1 to 3). `clock`: now. `smoothed`: the smoothed
    /// round trip before this arrival.
    #[inline]
    pub(super) fn arrived(&mut self, clock: u32, run: &Run, smoothed: u32) {
        let round_trip = clock.wrapping_sub(run.sent_at).max(1);
        if run.ambiguous && round_trip < self.round_trip_min.min(smoothed) {
            // If the acknowledgment comes this soon, the first copy has probably arrived. It says
            // nothing about the second copy.
            return;
        }
        if !self.is_known {
            self.is_known = true;
            self.highest = run.end;
        } else if run.end.is_before(self.highest) {
            self.has_reordered |= !run.ambiguous;
        } else {
            self.highest = run.end;
        }
        if !run.ambiguous {
            self.round_trip_min = self.round_trip_min.min(round_trip);
        }
        if self.is_after(run) || self.round_trip == 0 {
            (self.sent_at, self.end, self.round_trip) = (run.sent_at, run.end, round_trip);
        }
    }

    /// The number after the highest byte that is known to have arrived.
    pub(super) fn highest(&self) -> SequenceNumber {
        self.highest
    }

    /// Whether the network is known to reorder.
    pub(super) fn has_reordered(&self) -> bool {
        self.has_reordered
    }

    /// Whether the run was sent later than the run in `self`, the most recently sent run that has
    /// arrived.
    fn is_after(&self, run: &Run) -> bool {
        let later = run.sent_at.wrapping_sub(self.sent_at) as i32;
        later > 0 || (later == 0 && run.end.is_after(self.end))
    }

    /// The time that the run may still take before it counts as lost; zero if it is lost. `None`:
    /// no run that was sent later than this run has arrived (§6.2 step 5).
    pub(super) fn time_left(&self, clock: u32, run: &Run, window: Micros) -> Option<Micros> {
        if !self.is_known
            || self.is_after(run)
            || (run.sent_at == self.sent_at && run.end == self.end)
        {
            return None;
        }
        let waits = u64::from(self.round_trip) + window.0;
        Some(Micros(waits.saturating_sub(u64::from(clock.wrapping_sub(run.sent_at)))))
    }

    /// The most recent round trip; zero when none is known.
    pub(super) fn round_trip(&self) -> Micros {
        Micros(u64::from(self.round_trip))
    }

    /// The reordering window (§6.2 step 4). `is_sure`: a loss is being repaired, or three segments
    /// arrived beyond a gap.
    pub(super) fn window(&self, is_sure: bool, smoothed: u32) -> Micros {
        if (is_sure && !self.has_reordered) || self.round_trip_min == u32::MAX {
            return Micros(0);
        }
        Micros(u64::from((self.round_trip_min / 4).saturating_mul(self.quarters).min(smoothed)))
    }

    /// Records that bytes marked lost have arrived after all, later than bytes that were sent after
    /// them. So the network reorders.
    pub(super) fn overtaken(&mut self) {
        self.has_reordered = true;
    }

    /// Handles the report of a duplicate: a retransmission was unnecessary. Widens the window at
    /// most once a round trip.
    pub(super) fn duplicate_reported(&mut self, una: SequenceNumber, max: SequenceNumber) {
        if self.widened_until.is_none_or(|until| !una.is_before(until)) {
            self.widened_until = Some(max);
            self.quarters = (self.quarters + 1).min(QUARTERS_MAX);
            self.persists = PERSIST_RECOVERIES;
        }
    }

    /// Handles the end of a recovery.
    pub(super) fn recovered(&mut self) {
        self.persists = self.persists.saturating_sub(1);
        if self.persists == 0 {
            self.quarters = 1;
        }
    }
}
