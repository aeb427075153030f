//! Timestamps (RFC 7323): a millisecond clock with a different offset for each connection, and the
//! last value of the peer's clock. Timestamps distinguish old duplicates from new segments when
//! sequence numbers have wrapped (PAWS), and give a round trip sample even after a retransmission
//! (RTTM).
//! - Both SYNs propose timestamps, or none are used. If they are used, every segment but a reset
//!   carries them, in both directions (§3.2).
//! - The peer's value is stored only from a segment that begins no later than our last
//!   acknowledgment (§4.3). So we echo the time of the oldest segment that a delayed acknowledgment
//!   covers.
//! - A segment with a value older than the stored one is unacceptable, unless nothing was received
//!   for 24 days (§5.5).

use machine::{Instant, Micros};

use super::alarm::millis;
use super::options::Timestamps;
use super::round_trip::RTO_MAX;

/// Bytes of the aligned option in every segment.
pub(super) const TIMESTAMP_BYTES: u16 = 12;

/// How long a peer's timestamp is valid. In this time a millisecond clock covers half of its range.
pub(super) const TIMESTAMP_VALID: Micros = Micros::from_secs(24 * 24 * 3600);

/// The clocks of one connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TimestampClock {
    /// Our clock's value at the start of the machine. The offset hides how long the machine has
    /// been running.
    pub(super) offset: u32,
    /// The last value of the peer's clock, which we echo.
    pub(super) recent: u32,
}

impl TimestampClock {
    /// The timestamps of our next segment.
    #[inline]
    pub(super) fn stamps(&self, now: Instant) -> Timestamps {
        Timestamps { value: self.value(now), echo: self.recent }
    }

    #[inline]
    fn value(&self, now: Instant) -> u32 {
        millis(now).wrapping_add(self.offset)
    }

    /// Whether a segment with `value` was sent before a segment that we have already seen.
    #[inline]
    pub(super) fn has_seen_later_than(&self, value: u32) -> bool {
        (value.wrapping_sub(self.recent) as i32) < 0
    }

    /// Whether a segment with `value` was sent after all segments that we have seen.
    pub(super) fn is_before(&self, value: u32) -> bool {
        (value.wrapping_sub(self.recent) as i32) > 0
    }

    /// The time since we sent the echoed value, accurate to half a millisecond. `None` if the time
    /// is longer than [`RTO_MAX`]: then the echo is not a value that we sent.
    pub(super) fn since(&self, now: Instant, echo: u32) -> Option<Micros> {
        let span = Micros::from_millis(u64::from(self.value(now).wrapping_sub(echo)));
        (span <= RTO_MAX).then_some(Micros(span.0 + 500))
    }
}
