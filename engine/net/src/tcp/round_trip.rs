//! The round trip estimate, and the retransmission timeout that follows from it (RFC 6298).
//!
//! One sample is taken for each round trip, as the constants of RFC 6298 assume (RFC 7323 appendix
//! G). `tcb::loss` takes the samples, because it has the times at which the data was sent.

use machine::Micros;

/// The timeout before the first sample (RFC 6298 §2.1).
pub const RTO_INITIAL: Micros = Micros::from_secs(1);

/// The timeout before the first sample, after a retransmitted handshake (RFC 6298 §5.7).
const RTO_AFTER_LOST_SYN: Micros = Micros::from_secs(3);

/// The least time by which the timeout exceeds the round trip. RFC 6298 §2.4 asks for a timeout of
/// at least one second, because the peer may delay an acknowledgment. But the delay is added to the
/// round trip, however long that is. So this is a floor of the margin, as in Linux, and not of the
/// whole timeout. No large stack delays an acknowledgment by more than 200 ms. RFC 9293 §3.8.6.3
/// allows 500 ms. Such a delay is covered if it is part of the smoothed round trip, or if four
/// times the variation is at least as long.
pub const RTO_MARGIN_MIN: Micros = Micros::from_millis(200);

/// The longest timeout, with backoff.
pub const RTO_MAX: Micros = Micros::from_secs(60);

/// The round trip estimate of one connection, in microseconds.
#[derive(Clone, Copy)]
pub(super) struct RoundTrip {
    /// Zero before the first sample.
    smoothed: u32,
    variation: u32,
}

impl RoundTrip {
    /// The estimate before the first sample.
    pub(super) fn unknown() -> RoundTrip {
        RoundTrip { smoothed: 0, variation: 0 }
    }

    /// The estimate after a handshake. `sample`: its duration, or `None` if it was retransmitted.
    pub(super) fn after_handshake(sample: Option<Micros>) -> RoundTrip {
        let mut round_trip = RoundTrip::unknown();
        match sample {
            Some(span) => round_trip.learn(span),
            None => round_trip.variation = RTO_AFTER_LOST_SYN.0 as u32,
        }
        round_trip
    }

    /// The timeout without backoff.
    #[inline]
    pub(super) fn timeout(&self) -> Micros {
        if self.smoothed == 0 {
            return if self.variation == 0 {
                RTO_INITIAL
            } else {
                Micros(u64::from(self.variation))
            };
        }
        let margin = Micros(4 * u64::from(self.variation)).max(RTO_MARGIN_MIN);
        (Micros(u64::from(self.smoothed)) + margin).min(RTO_MAX)
    }

    /// The timeout after it has expired `backoff` times.
    #[inline]
    pub(super) fn timeout_after(&self, backoff: u8) -> Micros {
        Micros(self.timeout().0 << backoff.min(16)).min(RTO_MAX)
    }

    /// The smoothed round trip in microseconds; zero when none is known.
    #[inline]
    pub(super) fn smoothed(&self) -> u32 {
        self.smoothed
    }

    /// Adds a sample: RFC 6298 §2.2 and §2.3.
    pub(super) fn learn(&mut self, span: Micros) {
        let sample = (span.0.min(RTO_MAX.0) as u32).max(1);
        if self.smoothed == 0 {
            self.smoothed = sample;
            self.variation = sample / 2;
            return;
        }
        let off = self.smoothed.abs_diff(sample);
        self.variation = self.variation - self.variation / 4 + off / 4;
        self.smoothed = (self.smoothed - self.smoothed / 8 + sample / 8).max(1);
    }
}
