//! The clock of one core, which may disagree with the others'.
//!
//! Each processor counts its own ticks. Firmware may have set the counters to different values, a processor that starts late may have
//! begun later, and processors in different sockets may have crystals of their own. So a core's clock may be ahead of the
//! machine's or behind it by a constant, and gain or lose a little all the time. It never goes backwards, and shows no time before
//! the machine's start: who is behind shows the start until its time has come.

use machine::{Instant, Micros};

/// Parts of a drift.
const MILLION: i128 = 1_000_000;

/// How one core's clock differs from the machine's.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CoreClock {
    /// Microseconds that it is ahead; behind if negative.
    pub ahead: i64,
    /// Parts in a million that it is fast; slow if negative.
    pub drift: i64,
}

impl CoreClock {
    /// What it shows at `now` of the machine's time.
    pub fn shows(self, now: Instant) -> Instant {
        let span = i128::from(now.0);
        let shown = span + span * i128::from(self.drift) / MILLION + i128::from(self.ahead);
        Instant(u64::try_from(shown.max(0)).unwrap_or(u64::MAX))
    }

    /// The first of the machine's times at which it shows `at` or more.
    pub fn when(self, at: Instant) -> Instant {
        if at == Instant::START || at == Instant::NEVER || self == CoreClock::default() {
            return at;
        }
        let span = (i128::from(at.0) - i128::from(self.ahead)) * MILLION
            / (MILLION + i128::from(self.drift));
        let mut now = Instant(u64::try_from((span - 1).max(0)).unwrap_or(u64::MAX));
        while self.shows(now) < at {
            now = now + Micros(1);
        }
        now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_of_a_core_goes_on_and_says_when_it_will_show_a_time() {
        for (ahead, drift) in [
            (0, 0),
            (70_000, 0),
            (-70_000, 0),
            (0, 500),
            (0, -500),
            (123_457, -333),
            (-123_457, 333),
        ] {
            let clock = CoreClock { ahead, drift };
            let mut last = Instant::START;
            for step in 0..2_000 {
                let now = Instant(step * 937);
                let shown = clock.shows(now);
                assert!(shown >= last, "{clock:?} goes backwards");
                last = shown;
                let when = clock.when(shown);
                assert!(when <= now && clock.shows(when) >= shown, "{clock:?} at {now:?}");
                assert!(
                    when == Instant::START || clock.shows(Instant(when.0 - 1)) < shown,
                    "{clock:?} at {now:?}"
                );
            }
            assert_eq!(clock.when(Instant::NEVER), Instant::NEVER);
        }
    }
}
