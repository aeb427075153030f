//! The hold of a message: the client asks the server to deliver the message later.
//!
//! Implements: RFC 4865 sections 4 and 5, with RFC 3339 section 5.6 for dates (erratum 2040).

use core::fmt;

use machine::UnixTime;
use time::format_description::well_known::Rfc3339;
use time::{OffsetDateTime, UtcDateTime};

/// The limit for holding messages. FUTURERELEASE announces it, with the latest time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Holds {
    /// The longest hold in seconds, less than 1,000,000,000.
    pub seconds_max: u32,
    /// The current time.
    pub now: UnixTime,
}

/// The requested hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Hold {
    /// HOLDFOR, in seconds.
    For(u32),
    /// HOLDUNTIL.
    Until(UnixTime),
}

impl Holds {
    /// The latest time to which a message may be held.
    pub(crate) fn latest(self) -> UnixTime {
        UnixTime::from_seconds(self.now.seconds().saturating_add(self.seconds_max.into()))
    }

    /// The time until which a message with this hold is held. `None`: the time is in the past, or
    /// beyond the limit.
    pub(crate) fn until(self, hold: Hold) -> Option<UnixTime> {
        match hold {
            Hold::For(seconds) if seconds <= self.seconds_max => {
                Some(UnixTime(self.now.0 + u64::from(seconds) * 1_000_000))
            }
            Hold::Until(time) if time > self.now && time <= self.latest() => Some(time),
            _ => None,
        }
    }
}

impl Hold {
    /// Reads the value of `HOLDFOR=`: one to nine digits.
    pub(crate) fn read_for(text: &str) -> Option<Hold> {
        let is_number =
            (1..=9).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| text.parse().ok()).flatten().map(Hold::For)
    }

    /// Reads the value of `HOLDUNTIL=`: a date of RFC 3339.
    pub(crate) fn read_until(text: &str) -> Option<Hold> {
        let time = OffsetDateTime::parse(text, &Rfc3339).ok()?;
        let seconds = u64::try_from(time.unix_timestamp()).ok()?;
        Some(Hold::Until(UnixTime::from_seconds(seconds)))
    }
}

/// Displays a time in the form of RFC 3339.
pub(crate) struct DateTime(pub(crate) UnixTime);

impl fmt::Display for DateTime {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = i64::try_from(self.0.seconds())
            .ok()
            .and_then(|seconds| UtcDateTime::from_unix_timestamp(seconds).ok());
        let time = time.unwrap_or(UtcDateTime::MAX);
        let (year, month, day) = (time.year(), u8::from(time.month()), time.day());
        write!(
            out,
            "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z",
            time.hour(),
            time.minute(),
            time.second()
        )
    }
}
