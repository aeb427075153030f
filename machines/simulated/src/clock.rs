//! The clock of one core, which may differ from the clocks of the other cores.
//!
//! Each processor counts its own ticks. Firmware may have set the counters to different values. A
//! processor that starts late may count from a later time, and processors in different sockets may
//! have their own crystals. So a core's clock may be ahead of the machine's or behind it by a
//! constant, and it may drift. A core's clock never goes backwards, and never shows a time before
//! the machine's start. A clock that is behind shows the start until the difference has passed.

use machine::{Instant, Micros};

/// A drift is given in parts of a million.
const MILLION: i128 = 1_000_000;

/// The difference between one core's clock and the machine's.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CoreClock {
    /// Microseconds by which the core's clock is ahead; negative: behind.
    pub ahead: i64,
    /// Parts per million by which the core's clock is fast; negative: slow.
    pub drift: i64,
}

impl CoreClock {
    /// The time that the core's clock shows when the machine's clock shows `now`.
    pub fn time_at(self, now: Instant) -> Instant {
        let span = i128::from(now.0);
        let shown = span + span * i128::from(self.drift) / MILLION + i128::from(self.ahead);
        Instant(u64::try_from(shown.max(0)).unwrap_or(u64::MAX))
    }

    /// The first time of the machine's clock at which the core's clock shows `at` or more.
    pub fn when(self, at: Instant) -> Instant {
        if at == Instant::START || at == Instant::NEVER || self == CoreClock::default() {
            return at;
        }
        let span = (i128::from(at.0) - i128::from(self.ahead)) * MILLION
            / (MILLION + i128::from(self.drift));
        let mut now = Instant(u64::try_from((span - 1).max(0)).unwrap_or(u64::MAX));
        while self.time_at(now) < at {
            now = now + Micros(1);
        }
        now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_core_clock_is_monotonic_and_when_inverts_time_at() {
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
                let shown = clock.time_at(now);
                assert!(shown >= last, "{clock:?} goes backwards");
                last = shown;
                let when = clock.when(shown);
                assert!(when <= now && clock.time_at(when) >= shown, "{clock:?} at {now:?}");
                assert!(
                    when == Instant::START || clock.time_at(Instant(when.0 - 1)) < shown,
                    "{clock:?} at {now:?}"
                );
            }
            assert_eq!(clock.when(Instant::NEVER), Instant::NEVER);
        }
    }
}
