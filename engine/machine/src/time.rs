//! Instants, durations and the time of day. Each has its own type, so that code cannot mix them up.

use core::fmt;
use core::ops::{Add, Sub};

/// A duration in microseconds.
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

/// A point in time since the machine started, in microseconds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Instant(pub u64);

impl Instant {
    /// The moment at which the machine started.
    pub const START: Instant = Instant(0);

    /// An instant that is later than every other.
    pub const NEVER: Instant = Instant(u64::MAX);

    /// The deadline, or [`Instant::NEVER`] if there is none, for comparison with other deadlines.
    #[inline]
    pub fn or_never(deadline: Option<Instant>) -> Instant {
        deadline.unwrap_or(Instant::NEVER)
    }

    /// The time since `earlier`. Zero if `earlier` is not earlier.
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

/// The time of day in microseconds since 1970-01-01T00:00:00Z, without leap seconds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct UnixTime(pub u64);

impl UnixTime {
    /// Whole seconds since 1970.
    pub const fn seconds(self) -> u64 {
        self.0 / 1_000_000
    }

    /// The time `digits`, a decimal number of seconds since the start of 1970. The start of 1970 if
    /// `digits` is not a number.
    pub const fn from_decimal_seconds(digits: &str) -> UnixTime {
        match u64::from_str_radix(digits, 10) {
            Ok(count) => UnixTime::from_seconds(count),
            Err(_) => UnixTime(0),
        }
    }

    /// The time `count` seconds after the start of 1970.
    pub const fn from_seconds(count: u64) -> UnixTime {
        UnixTime(count.saturating_mul(1_000_000))
    }
}
/// The time of one turn. The engine reads the clocks once, at the start of the turn, so that all
/// events in the turn have the same time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Turn {
    /// The machine's clock.
    pub now: Instant,
    /// The time of day.
    pub wall: UnixTime,
}
