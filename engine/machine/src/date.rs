//! Dates of the Gregorian calendar, in UTC and without leap seconds.

use core::fmt;

use crate::{Instant, UnixTime};

const SECONDS_IN_DAY: u64 = 86_400;

/// A date and a time of day, in UTC.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Date {
    /// The year.
    pub year: u64,
    /// The month: 1 is January.
    pub month: u64,
    /// The day of the month: 1 is the first.
    pub day: u64,
    /// Whole seconds since the start of the day.
    pub second_of_day: u64,
    /// Whole days since 1970-01-01, which was a Thursday.
    pub days: u64,
}

impl Date {
    /// The date of `time`.
    ///
    /// Years are counted from March, so the leap day is the last day of a year. Every month starts
    /// at a fixed distance from March the first: the `month`th month after March starts on day (153
    /// × month + 2) / 5.
    pub fn of(time: UnixTime) -> Date {
        const DAYS_BEFORE_1970: u64 = 719_468; // from 0000-03-01
        const DAYS_IN_ERA: u64 = 146_097; // 400 years
        let days = time.seconds() / SECONDS_IN_DAY;
        let days_of_eras = days + DAYS_BEFORE_1970;
        let day_of_era = days_of_eras % DAYS_IN_ERA;
        let year_of_era =
            (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let month = (5 * day_of_year + 2) / 153;
        let (month0, years_after) = if month < 10 { (month + 2, 0) } else { (month - 10, 1) };
        Date {
            year: days_of_eras / DAYS_IN_ERA * 400 + year_of_era + years_after,
            month: month0 + 1,
            day: day_of_year - (153 * month + 2) / 5 + 1,
            second_of_day: time.seconds() % SECONDS_IN_DAY,
            days,
        }
    }
}

/// Writes the date as in RFC 3339 section 5.6, with a space in place of the `T`.
impl fmt::Display for Date {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Date { year, month, day, second_of_day, .. } = self;
        let (hour, minute, second) =
            (second_of_day / 3_600, second_of_day / 60 % 60, second_of_day % 60);
        write!(out, "{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}Z")
    }
}

/// The start of a line on the console: the time of day in UTC, and the time since the start.
///
/// The time of day tells the operator when something happened. The time since the start shows
/// restarts, and measures durations even when the clock jumps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LineStamp {
    /// The time of day. `None` if the machine does not know it.
    pub wall: Option<UnixTime>,
    /// The time since the start.
    pub now: Instant,
}

impl fmt::Display for LineStamp {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.wall {
            Some(wall) => write!(out, "{}", Date::of(wall))?,
            None => out.write_str("????-??-?? ??:??:??Z")?,
        }
        write!(out, " [{:5}.{:06}]", self.now.0 / 1_000_000, self.now.0 % 1_000_000)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::string::ToString;

    use super::*;

    #[test]
    fn stamp_has_date_time_and_seconds_since_the_start() {
        let stamp = |wall| LineStamp { wall, now: Instant(12_000_345) }.to_string();
        let wall = UnixTime(1_795_831_833_999_999);
        assert_eq!(stamp(Some(wall)), "2026-11-28 02:10:33Z [   12.000345]");
        assert_eq!(stamp(None), "????-??-?? ??:??:??Z [   12.000345]");
    }

    #[test]
    fn leap_days_are_days_of_the_calendar() {
        let date = |seconds| Date::of(UnixTime::from_seconds(seconds)).to_string();
        assert_eq!(date(0), "1970-01-01 00:00:00Z");
        assert_eq!(date(951_782_399), "2000-02-28 23:59:59Z");
        assert_eq!(date(951_782_400), "2000-02-29 00:00:00Z");
        assert_eq!(date(951_868_800), "2000-03-01 00:00:00Z");
        assert_eq!(date(4_107_542_400), "2100-03-01 00:00:00Z");
    }
}
