//! The CUBIC curve in integer arithmetic (RFC 9438 §4.2, §4.3). After a loss, the window quickly
//! rises to nearly its former size, stays there for a while, and then grows further. On long paths
//! it grows faster than with Reno, and on short paths never slower.
//!
//! An epoch begins with the first growth after a loss, or after a pause in which the session sent
//! less than the window allowed. The epoch is a part of the send queue, which a connection has only
//! while bytes are queued or in flight. So the epoch ends when everything is acknowledged. A pause
//! never counts as time in which the window could grow (§5.8). Times are in milliseconds, windows
//! in bytes.

use machine::Instant;

use super::alarm::millis;

/// The window after a loss, in tenths of the window before: beta_cubic.
pub(super) const BETA_TENTHS: u32 = 7;

/// The longest time on one curve, in milliseconds.
const TIME_MAX: i64 = 500_000;

/// One epoch of window growth.
#[derive(Clone, Copy, Default)]
pub(super) struct Epoch {
    /// Whether the epoch has begun.
    has_begun: bool,
    /// When the epoch began.
    since: u32,
    /// The time from the start of the curve to its plateau: K.
    to_plateau: u32,
    /// The window at the plateau.
    plateau: u32,
    /// The estimate of Reno's window, in 1/1024 bytes.
    reno: u64,
    /// The part of the growth that is less than one byte, multiplied by the window.
    rest: u64,
}

impl Epoch {
    /// Ends the epoch: the next growth begins a new one.
    pub(super) fn end(&mut self) {
        self.has_begun = false;
    }

    /// The number of bytes by which the window grows when `bytes` are acknowledged. `peak`: the
    /// window before the last loss, or zero.
    pub(super) fn growth(
        &mut self,
        now: Instant,
        window: u32,
        peak: u32,
        bytes: u32,
        mss: u32,
        round_trip: u32,
    ) -> u32 {
        let clock = millis(now);
        if !self.has_begun {
            self.begin(clock, window, peak, mss);
        }
        let since = i64::from(clock.wrapping_sub(self.since));
        self.climb_like_reno(window, peak, bytes, mss);
        let reno = u32::try_from(self.reno >> 10).unwrap_or(u32::MAX);
        if self.at(since, mss) < reno {
            return reno.saturating_sub(window);
        }
        let ahead = since + i64::from(round_trip / 1000);
        let target = self.at(ahead, mss).clamp(window, window.saturating_add(window / 2));
        self.rest += u64::from(target - window) * u64::from(bytes);
        let growth = self.rest / u64::from(window.max(1));
        self.rest -= growth * u64::from(window.max(1));
        u32::try_from(growth).unwrap_or(u32::MAX)
    }

    fn begin(&mut self, clock: u32, window: u32, peak: u32, mss: u32) {
        let below = u64::from(peak.saturating_sub(window));
        *self = Epoch {
            has_begun: true,
            since: clock,
            // K = cbrt((W_max - cwnd) / C) with C = 0.4, in segments and seconds.
            to_plateau: cube_root(below * 2_500_000_000 / u64::from(mss.max(1))),
            plateau: peak.max(window),
            reno: u64::from(window) << 10,
            rest: 0,
        };
    }

    /// Updates the estimate of Reno's window. Until the estimate reaches `peak`, it grows by 9/17
    /// of a segment in each round trip instead of one segment. This compensates for our smaller
    /// reduction after a loss (§4.3).
    fn climb_like_reno(&mut self, window: u32, peak: u32, bytes: u32, mss: u32) {
        let step = ((u64::from(mss) * u64::from(bytes)) << 10) / u64::from(window.max(1));
        let has_caught_up = self.reno >> 10 >= u64::from(peak);
        self.reno += if has_caught_up { step } else { step * 9 / 17 };
    }

    /// W_cubic: the curve at `time` after the start of the epoch.
    fn at(&self, time: i64, mss: u32) -> u32 {
        let distance = (time - i64::from(self.to_plateau)).clamp(-TIME_MAX, TIME_MAX);
        let height = distance * distance * distance / 1_000_000 * 2 * i64::from(mss) / 5000;
        u32::try_from((i64::from(self.plateau) + height).max(0)).unwrap_or(u32::MAX)
    }
}

/// The cube root, rounded down.
fn cube_root(of: u64) -> u32 {
    let mut root = 0u64;
    for bit in (0..21).rev() {
        let more = root | 1 << bit;
        if more * more * more <= of {
            root = more;
        }
    }
    root as u32
}

#[cfg(test)]
mod tests {
    use super::{Epoch, cube_root};
    use machine::Instant;

    #[test]
    fn cube_root_is_rounded_down() {
        for root in [0u64, 1, 2, 10, 999, 4000, 1 << 20] {
            assert_eq!(u64::from(cube_root(root * root * root)), root);
            assert_eq!(u64::from(cube_root(root * root * root + root)), root);
        }
    }

    /// The window in segments after `seconds`, when a full window is acknowledged every
    /// `round_trip` milliseconds.
    fn climb(start: u32, peak: u32, round_trip: u64, seconds: u64) -> u32 {
        let (mss, mut epoch, mut window) = (1000, Epoch::default(), start * 1000);
        let mut now = 1_000_000;
        while now < 1_000_000 + seconds * 1_000_000 {
            for _ in 0..window / mss {
                window += epoch.growth(
                    Instant(now),
                    window,
                    peak * 1000,
                    mss,
                    mss,
                    round_trip as u32 * 1000,
                );
            }
            now += round_trip * 1000;
        }
        window / 1000
    }

    #[test]
    fn window_follows_the_curve_to_its_plateau_and_beyond() {
        // K = cbrt(300 / 0.4) = 9.1 s; after five seconds: 1000 - 0.4 * 4.1^3.
        assert!((965..=978).contains(&climb(700, 1000, 100, 5)), "{}", climb(700, 1000, 100, 5));
        assert!((995..=1003).contains(&climb(700, 1000, 100, 9)));
        assert!((1075..=1110).contains(&climb(700, 1000, 100, 15)));
    }

    #[test]
    fn window_on_a_short_path_grows_as_fast_as_reno() {
        // 10 s at 10 ms: Reno gains 9/17 of a segment each round trip up to its former size, then
        // one.
        let reno = climb(7, 10, 10, 10);
        assert!((900..=1010).contains(&reno), "{reno}");
    }
}
