//! Congestion control: the amount of data that may be in flight. Slow start (RFC 5681, RFC 9406)
//! begins with the initial window of RFC 6928, and CUBIC (RFC 9438) follows. During loss recovery,
//! the rate falls in proportion to the data that arrives (PRR, RFC 6937).
//!
//! `tcb::loss` detects losses and calls this module.
//!
//! Invariant: the window never falls below one segment.

use machine::Instant;

use super::cubic::{BETA_TENTHS, Epoch};
use super::slow_start::WindowGrowth;

/// The largest window: several times what a send queue holds.
const WINDOW_MAX: u32 = 16 * 1024 * 1024;

/// The most segments by which one acknowledgment grows the window in slow start. Receivers that
/// merge segments or process batches acknowledge many segments at once (RFC 9406 §4.2: eight
/// without pacing).
const SLOW_START_SEGMENTS: u32 = 8;

/// The congestion state of one connection, in bytes. State that only matters while data is in
/// flight is in the send queue.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Congestion {
    window: u32,
    slow_start_threshold: u32,
    /// W_max: the window before the last loss. It is reduced if other flows need a share. Zero
    /// before the first loss.
    peak: u32,
}

/// The initial window: ten segments (RFC 6928 §2).
pub(super) fn initial_window(mss: u32) -> u32 {
    (10 * mss).min((2 * mss).max(14_600))
}

/// Newly acknowledged bytes, and the other inputs of window growth.
#[derive(Clone, Copy)]
pub(super) struct Growth {
    pub(super) now: Instant,
    pub(super) bytes: u32,
    /// Bytes in flight before the acknowledgment.
    pub(super) flight: u32,
    pub(super) mss: u32,
    /// The smoothed round trip, in microseconds.
    pub(super) round_trip: u32,
    /// The pace of the first slow start.
    pub(super) pace: WindowGrowth,
}

/// The state of proportional rate reduction during loss recovery (RFC 6937 §3.1), in bytes.
#[derive(Clone, Copy, Default)]
pub(super) struct Reduction {
    /// Bytes in flight when recovery began.
    pub(super) flight: u32,
    /// Bytes delivered and bytes sent since recovery began.
    pub(super) delivered: u32,
    pub(super) sent: u32,
}

impl Congestion {
    /// The state of a new connection. After a lost SYN the window is one segment (RFC 5681 §3.1).
    pub(super) fn new(mss: u32, syn_lost: bool) -> Congestion {
        let window = if syn_lost { mss } else { initial_window(mss) };
        Congestion { window, slow_start_threshold: u32::MAX, peak: 0 }
    }

    /// The number of bytes that may be in flight.
    #[inline]
    pub(super) fn window(&self) -> u32 {
        self.window
    }

    /// Whether no loss has happened yet. The first slow start continues until a loss, or until the
    /// path is found to be full.
    #[inline]
    pub(super) fn is_in_first_slow_start(&self) -> bool {
        self.slow_start_threshold == u32::MAX
    }

    /// Whether the window, and not the session, was the limit when `flight` bytes were in flight
    /// (RFC 7661 §1).
    #[inline]
    pub(super) fn is_held_back_by_window(&self, flight: u32) -> bool {
        flight.saturating_mul(2) >= self.window
    }

    /// Handles newly acknowledged bytes outside of recovery. The window grows only if it was the
    /// limit. In slow start it grows by the acknowledged bytes, at most [`SLOW_START_SEGMENTS`] at
    /// a time. Later it grows along the CUBIC curve.
    #[inline]
    pub(super) fn acknowledged(&mut self, growth: &Growth, epoch: &mut Epoch) {
        if !self.is_held_back_by_window(growth.flight) {
            epoch.end();
        } else if self.window < self.slow_start_threshold {
            let bytes = growth.bytes.min(SLOW_START_SEGMENTS * growth.mss);
            match growth.pace {
                WindowGrowth::Fast => self.grow(bytes),
                WindowGrowth::Slow => self.grow(bytes / 4),
                WindowGrowth::Over => self.slow_start_threshold = self.window,
            }
        } else {
            let Growth { now, bytes, mss, round_trip, .. } = *growth;
            self.grow(epoch.growth(now, self.window, self.peak, bytes, mss, round_trip));
        }
    }

    fn grow(&mut self, by: u32) {
        self.window = self.window.saturating_add(by).min(WINDOW_MAX);
    }

    /// Handles a loss, or congestion that a router has reported. Lowers the threshold (RFC 9438
    /// §4.6) and stores the peak. If the previous peak was higher, other flows have joined, so the
    /// stored peak is reduced (§4.7). `flight`: bytes in flight. Bytes beyond the window do not
    /// count.
    pub(super) fn lower(&mut self, flight: u32, mss: u32) {
        let used = flight.min(self.window);
        let kept = u64::from(used) * u64::from(BETA_TENTHS) / 10;
        self.slow_start_threshold = (kept as u32).max(2 * mss);
        let shared = u64::from(used) * u64::from(10 + BETA_TENTHS) / 20;
        self.peak = if used < self.peak { shared as u32 } else { used };
    }

    /// Adapts the window during recovery: `arrived` bytes were newly delivered, and `pipe` bytes
    /// are in flight (RFC 6937 §3.1, with the slow-start reduction bound).
    pub(super) fn reduce(&mut self, reduction: &mut Reduction, arrived: u32, pipe: u32, mss: u32) {
        reduction.delivered = reduction.delivered.saturating_add(arrived);
        let threshold = self.slow_start_threshold;
        let more = if pipe > threshold {
            let share = u64::from(reduction.delivered) * u64::from(threshold);
            let allowed = share.div_ceil(u64::from(reduction.flight.max(1)));
            u32::try_from(allowed).unwrap_or(u32::MAX).saturating_sub(reduction.sent)
        } else {
            let delivered = reduction.delivered.saturating_sub(reduction.sent);
            let limit = delivered.max(arrived).saturating_add(mss);
            (threshold - pipe).min(limit)
        };
        self.window = pipe.saturating_add(more).max(mss);
    }

    /// Sets the window at the end of recovery, so that no burst follows (RFC 6582 §3.2 step 3,
    /// option 1). `pipe`: bytes in flight now.
    pub(super) fn recovered(&mut self, pipe: u32, mss: u32) {
        self.window = self.slow_start_threshold.min(pipe.max(mss) + mss);
    }

    /// Restarts from one segment after the retransmission timer has expired. The threshold falls
    /// only at the first expiry for the same data (RFC 5681 §3.1).
    pub(super) fn timed_out(&mut self, flight: u32, mss: u32, first: bool) {
        if first {
            self.lower(flight, mss);
        }
        self.window = mss;
    }

    /// Lowers the window after a pause without sending, because it no longer describes the path
    /// (RFC 5681 §4.1).
    pub(super) fn idled(&mut self, mss: u32) {
        self.window = self.window.min(initial_window(mss));
    }
}
