//! Congestion control: how much may be on the way at the same time (RFC 5681, initial window of RFC 6928).
//!
//! What was lost, and when, is `recovery`'s business; it calls here. Another algorithm (CUBIC) replaces the
//! bodies of `acknowledged`, `loss_found` and `timed_out`; ECN becomes another caller of `loss_found`.
//!
//! Invariant: the window never falls below one segment.

/// The window never grows beyond this: 64 times what a send queue holds.
const WINDOW_MAX: u32 = 16 * 1024 * 1024;

/// Congestion state of one connection; all in bytes.
#[derive(Clone, Copy)]
pub(super) struct Congestion {
    window: u32,
    slow_start_threshold: u32,
    /// Acknowledged since the window last grew, in congestion avoidance.
    acknowledged: u32,
}

/// The initial window: ten segments (RFC 6928 §2).
pub(super) fn initial_window(mss: u32) -> u32 {
    (10 * mss).min((2 * mss).max(14_600))
}

impl Congestion {
    /// A new connection. After a lost SYN the window is one segment (RFC 5681 §3.1).
    pub(super) fn new(mss: u32, syn_lost: bool) -> Congestion {
        let window = if syn_lost { mss } else { initial_window(mss) };
        Congestion { window, slow_start_threshold: u32::MAX, acknowledged: 0 }
    }

    /// How much may be on the way.
    #[inline]
    pub(super) fn window(&self) -> u32 {
        self.window
    }

    /// New bytes were acknowledged, and nothing is amiss. `flight`: what was on the way before. The window grows only
    /// when it was what held us back (RFC 7661 §1): in slow start by what was acknowledged, at most two segments at a time
    /// (RFC 3465); later by one segment for each window acknowledged.
    pub(super) fn acknowledged(&mut self, bytes: u32, flight: u32, mss: u32) {
        if flight.saturating_mul(2) < self.window {
            return;
        }
        if self.window < self.slow_start_threshold {
            self.grow(bytes.min(2 * mss));
            return;
        }
        self.acknowledged = self.acknowledged.saturating_add(bytes);
        if self.acknowledged >= self.window {
            self.acknowledged -= self.window;
            self.grow(mss);
        }
    }

    fn grow(&mut self, by: u32) {
        self.window = self.window.saturating_add(by).min(WINDOW_MAX);
    }

    /// Three duplicate acknowledgments told of a loss: half the window, and the three that have left the network
    /// (RFC 5681 §3.2 steps 2 and 3).
    pub(super) fn loss_found(&mut self, flight: u32, mss: u32) {
        self.slow_start_threshold = (flight / 2).max(2 * mss);
        self.window = self.slow_start_threshold + 3 * mss;
        self.acknowledged = 0;
    }

    /// In recovery another segment has left the network (RFC 5681 §3.2 step 4).
    pub(super) fn duplicate_in_recovery(&mut self, mss: u32) {
        self.grow(mss);
    }

    /// In recovery a partial acknowledgment: deflate by what it covers, but let one segment go (RFC 6582 §3.2 step 3).
    pub(super) fn partial_in_recovery(&mut self, bytes: u32, mss: u32) {
        self.window = self.window.saturating_sub(bytes).max(mss);
        if bytes >= mss {
            self.grow(mss);
        }
    }

    /// Recovery is over. `flight`: what is on the way now (RFC 6582 §3.2 step 3, option 1: no burst).
    pub(super) fn recovered(&mut self, flight: u32, mss: u32) {
        self.window = self.slow_start_threshold.min(flight.max(mss) + mss);
    }

    /// The retransmission timer expired: start again from one segment. The threshold falls only with the first
    /// expiry for the same data (RFC 5681 §3.1).
    pub(super) fn timed_out(&mut self, flight: u32, mss: u32, first: bool) {
        if first {
            self.slow_start_threshold = (flight / 2).max(2 * mss);
        }
        self.window = mss;
        self.acknowledged = 0;
    }

    /// Nothing was sent for a while, so the window says nothing about the path any more (RFC 5681 §4.1).
    pub(super) fn idled(&mut self, mss: u32) {
        self.window = self.window.min(initial_window(mss));
    }
}
