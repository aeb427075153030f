//! Timestamps (RFC 7323): a clock of milliseconds that starts elsewhere for each connection, and the last that the peer's
//! clock has said. They tell old duplicates from new segments when numbers have gone once around the circle (PAWS), and
//! give a round trip where a retransmission leaves none (RTTM).
//!
//! - They are agreed on in both SYNs or not at all; then every segment but a reset carries them, both ways (§3.2).
//! - The peer's value is learned only from a segment that begins no later than what we last acknowledged (§4.3), so
//!   what is echoed is the time of the segment that a delayed acknowledgment has waited longest for.
//! - A value older than the learned one makes a segment unacceptable, unless nothing was heard for 24 days (§5.5).

use machine::{Instant, Micros};

use super::alarm::millis;
use super::options::Timestamps;
use super::round_trip::RTO_MAX;

/// Bytes that timestamps take in every segment, aligned.
pub(super) const TIMESTAMP_BYTES: u16 = 12;

/// How long a peer's timestamp counts. After as many milliseconds half of the circle has passed.
pub(super) const TIMESTAMP_VALID: Micros = Micros::from_secs(24 * 24 * 3600);

/// The clocks of one connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TimestampClock {
    /// What our clock shows at the machine's start: nobody can tell from it how long the machine runs.
    pub(super) offset: u32,
    /// The peer's value to be echoed.
    pub(super) recent: u32,
}

impl TimestampClock {
    /// What our next segment says.
    #[inline]
    pub(super) fn stamps(&self, now: Instant) -> Timestamps {
        Timestamps { value: self.value(now), echo: self.recent }
    }

    #[inline]
    fn value(&self, now: Instant) -> u32 {
        millis(now).wrapping_add(self.offset)
    }

    /// Whether a segment that says `value` was sent before one that we have already seen.
    #[inline]
    pub(super) fn has_seen_later_than(&self, value: u32) -> bool {
        (value.wrapping_sub(self.recent) as i32) < 0
    }

    /// Whether a segment that says `value` was sent after all that we have seen.
    pub(super) fn is_before(&self, value: u32) -> bool {
        (value.wrapping_sub(self.recent) as i32) > 0
    }

    /// How long ago we sent what is echoed; `None` when that cannot be. To half a millisecond.
    pub(super) fn since(&self, now: Instant, echo: u32) -> Option<Micros> {
        let span = Micros::from_millis(u64::from(self.value(now).wrapping_sub(echo)));
        (span <= RTO_MAX).then_some(Micros(span.0 + 500))
    }
}
