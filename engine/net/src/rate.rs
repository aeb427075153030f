//! A token bucket: limits how often something may be done (RFC 1812 §4.3.2.8 for ICMP).

use machine::{Instant, Micros};

pub(crate) struct RateLimit {
    /// The time in which one token is refilled.
    interval: Micros,
    /// Tokens in a full bucket.
    burst: u64,
    /// When all used tokens will be refilled. This is the whole state of the bucket.
    spent_until: Instant,
}

impl RateLimit {
    /// A limit of `per_second` times a second in the long run, and `burst` times at once.
    pub(crate) fn new(per_second: u64, burst: u64) -> RateLimit {
        RateLimit {
            interval: Micros(1_000_000 / per_second.max(1)),
            burst,
            spent_until: Instant::START,
        }
    }

    /// Takes a token. False: none is available.
    pub(crate) fn allows(&mut self, now: Instant) -> bool {
        let base = self.spent_until.max(now);
        let ahead = base.since(now).0;
        if ahead > self.interval.0.saturating_mul(self.burst.saturating_sub(1)) {
            return false;
        }
        self.spent_until = base + self.interval;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::RateLimit;
    use machine::{Instant, Micros};

    #[test]
    fn a_rate_limit_allows_a_burst_and_then_the_rate() {
        let mut limit = RateLimit::new(10, 3);
        let now = Instant(5_000_000);
        assert_eq!((0..10).filter(|_| limit.allows(now)).count(), 3);
        let later = now + Micros::from_millis(200);
        assert_eq!((0..10).filter(|_| limit.allows(later)).count(), 2);
        let much_later = now + Micros::from_secs(60);
        assert_eq!((0..10).filter(|_| limit.allows(much_later)).count(), 3);
    }
}
