//! Instants, spans and the time of day, each a type of its own so that they cannot be mixed up.

use core::fmt;
use core::ops::{Add, Sub};

/// A span of time in microseconds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Micros(pub u64);

impl Micros {
    /// `count` milliseconds.
    pub const fn from_millis(count: u64) -> Micros {
        Micros(count.saturating_mul(1_000))
    }

    /// `count` seconds.
    pub const fn from_secs(count: u64) -> Micros {
        Micros(count.saturating_mul(1_000_000))
    }

    /// Whole milliseconds, rounded down.
    pub const fn as_millis(self) -> u64 {
        self.0 / 1_000
    }

    /// Whole seconds, rounded down.
    pub const fn as_secs(self) -> u64 {
        self.0 / 1_000_000
    }
}

impl Add for Micros {
    type Output = Micros;

    fn add(self, other: Micros) -> Micros {
        Micros(self.0.saturating_add(other.0))
    }
}

/// A point in time of this machine's life, in microseconds since it started.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Instant(pub u64);

impl Instant {
    /// The moment at which the machine started.
    pub const START: Instant = Instant(0);

    /// Later than all there will be.
    pub const NEVER: Instant = Instant(u64::MAX);

    /// A deadline that may not be there, to be compared with others.
    #[inline]
    pub fn or_never(deadline: Option<Instant>) -> Instant {
        deadline.unwrap_or(Instant::NEVER)
    }

    /// The span since `earlier`; zero when `earlier` is not earlier.
    pub const fn since(self, earlier: Instant) -> Micros {
        Micros(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Micros> for Instant {
    type Output = Instant;

    fn add(self, span: Micros) -> Instant {
        Instant(self.0.saturating_add(span.0))
    }
}

impl Sub<Micros> for Instant {
    type Output = Instant;

    fn sub(self, span: Micros) -> Instant {
        Instant(self.0.saturating_sub(span.0))
    }
}

impl fmt::Display for Instant {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}.{:06}", self.0 / 1_000_000, self.0 % 1_000_000)
    }
}

/// The time of day in microseconds since 1970-01-01T00:00:00Z, leap seconds not counted.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct UnixTime(pub u64);

impl UnixTime {
    /// Whole seconds since 1970.
    pub const fn seconds(self) -> u64 {
        self.0 / 1_000_000
    }

    /// The seconds after 1970 that `digits` are in decimal; 0 for what is no number.
    pub const fn from_decimal_seconds(digits: &str) -> UnixTime {
        match u64::from_str_radix(digits, 10) {
            Ok(count) => UnixTime::from_seconds(count),
            Err(_) => UnixTime(0),
        }
    }

    /// `count` seconds after 1970.
    pub const fn from_seconds(count: u64) -> UnixTime {
        UnixTime(count.saturating_mul(1_000_000))
    }
}
/// The time of one turn. The machine's clocks are read once, at its beginning, so that all that happens in it agrees.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Turn {
    /// By the machine's clock.
    pub now: Instant,
    /// The time of day.
    pub wall: UnixTime,
}
