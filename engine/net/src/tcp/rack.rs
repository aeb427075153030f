//! RACK: what was sent before something that has arrived, and long enough ago, is lost (RFC 8985 §6).
//!
//! Time decides, not a count of duplicates. How long is long enough adapts to how far the network reorders: nothing at
//! first once a loss is known or three segments have arrived out of order, then a quarter of the least round trip, and more
//! for each duplicate that the peer reports.
//!
//! All of it lies in the lent send queue. With nothing on the way it is forgotten; a connection that starts to send
//! again learns its path anew within a round trip.

use machine::Micros;

use super::run::Run;
use super::sequence::SequenceNumber;

/// Recoveries for which a widened reordering window is kept (RFC 8985 §6.2 step 4).
const PERSIST_RECOVERIES: u8 = 16;

/// The widest reordering window, in quarters of the least round trip.
const QUARTERS_MAX: u32 = 40;

/// What is known of the newest that has arrived. Times in microseconds, on a circle.
#[derive(Clone, Copy)]
pub(super) struct Rack {
    /// Whether anything has arrived.
    is_known: bool,
    sent_at: u32,
    end: SequenceNumber,
    round_trip: u32,
    round_trip_min: u32,
    /// The number after the highest that has arrived.
    highest: SequenceNumber,
    has_reordered: bool,
    /// How many quarters of the least round trip the reordering window is wide.
    quarters: u32,
    /// Recoveries until it is narrow again.
    persists: u8,
    /// Until this is acknowledged another duplicate widens nothing.
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
    /// A run has arrived (§6.2 steps 1 to 3). `clock`: now. `smoothed`: the round trip as far as it was known before.
    #[inline]
    pub(super) fn arrived(&mut self, clock: u32, run: &Run, smoothed: u32) {
        let round_trip = clock.wrapping_sub(run.sent_at).max(1);
        if run.vague && round_trip < self.round_trip_min.min(smoothed) {
            // It is rather the first copy that arrived: nothing is known of the second.
            return;
        }
        if !self.is_known {
            self.is_known = true;
            self.highest = run.end;
        } else if run.end.is_before(self.highest) {
            self.has_reordered |= !run.vague;
        } else {
            self.highest = run.end;
        }
        if !run.vague {
            self.round_trip_min = self.round_trip_min.min(round_trip);
        }
        if self.is_after(run) || self.round_trip == 0 {
            (self.sent_at, self.end, self.round_trip) = (run.sent_at, run.end, round_trip);
        }
    }

    /// The number after the highest that has arrived, as far as that is known.
    pub(super) fn highest(&self) -> SequenceNumber {
        self.highest
    }

    /// Whether the network is known to reorder.
    pub(super) fn has_reordered(&self) -> bool {
        self.has_reordered
    }

    /// Whether the run was sent no earlier than the newest that has arrived.
    fn is_after(&self, run: &Run) -> bool {
        let later = run.sent_at.wrapping_sub(self.sent_at) as i32;
        later > 0 || (later == 0 && run.end.is_after(self.end))
    }

    /// How much longer the run may take before it is lost: `None` when nothing sent later has arrived, zero when it is (§6.2
    /// step 5).
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

    /// The newest round trip, zero when none is known.
    pub(super) fn round_trip(&self) -> Micros {
        Micros(u64::from(self.round_trip))
    }

    /// The reordering window (§6.2 step 4). `is_sure`: a loss is being repaired, or three segments arrived beyond a gap.
    pub(super) fn window(&self, is_sure: bool, smoothed: u32) -> Micros {
        if (is_sure && !self.has_reordered) || self.round_trip_min == u32::MAX {
            return Micros(0);
        }
        Micros(u64::from((self.round_trip_min / 4).saturating_mul(self.quarters).min(smoothed)))
    }

    /// What was thought lost has arrived after all, later than what was sent after it.
    pub(super) fn overtaken(&mut self) {
        self.has_reordered = true;
    }

    /// The peer reports that something arrived twice: we were too quick. Once a round trip the window widens.
    pub(super) fn duplicate_reported(&mut self, una: SequenceNumber, max: SequenceNumber) {
        if self.widened_until.is_none_or(|until| !una.is_before(until)) {
            self.widened_until = Some(max);
            self.quarters = (self.quarters + 1).min(QUARTERS_MAX);
            self.persists = PERSIST_RECOVERIES;
        }
    }

    /// A recovery is over.
    pub(super) fn recovered(&mut self) {
        self.persists = self.persists.saturating_sub(1);
        if self.persists == 0 {
            self.quarters = 1;
        }
    }
}
