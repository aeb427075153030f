//! Times of events, durations, and how events repeat.
//!
//! Implements: RFC 5545 sections 3.3.4 to 3.3.6 and 3.3.10.

use alloc::string::String;

use machine::{Date, UnixTime};

use super::line::ContentLine;
use crate::header::days_since_1970;
use crate::shown::one_line;

const SECONDS_IN_DAY: u64 = 86_400;

/// The maximum number of characters of the name of a zone.
pub(super) const ZONE_CHARS_MAX: usize = 100;

/// Years after which dates fall on the same days of the week again, and the days in them. Dates
/// before 1970 are computed as if they were this much later.
const SHIFT_YEARS: u64 = 2_000;
const SHIFT_DAYS: i64 = 5 * 146_097;

/// The time of an event. A local time is the time in UTC that has the same date and time of day.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum EventTime {
    /// A day: its beginning, as a local time.
    Day(UnixTime),
    /// A time.
    Utc(UnixTime),
    /// A local time.
    Local {
        /// The local time.
        time: UnixTime,
        /// The name of the zone. If it is empty, the zone is that of the place of the event.
        zone: String,
    },
}

impl EventTime {
    /// The time in a line. `None`: it is not valid, or before 1970.
    pub(super) fn of(line: &ContentLine<'_>) -> Option<EventTime> {
        let time = EventTime::read(line.value)?;
        Some(match (time, line.parameter("TZID")) {
            (EventTime::Local { time, .. }, Some(zone)) => {
                EventTime::Local { time, zone: one_line(zone.chars(), ZONE_CHARS_MAX) }
            }
            (time, _) => time,
        })
    }

    /// Reads a time without regard to the parameter `TZID`.
    fn read(value: &str) -> Option<EventTime> {
        let (local, is_utc) = match value.strip_suffix(['Z', 'z']) {
            Some(local) => (local, true),
            None => (value, false),
        };
        let local = LocalDate::read(local)?;
        let time = UnixTime::from_seconds(local.seconds()?.try_into().ok()?);
        Some(match (local.second_of_day, is_utc) {
            (None, _) => EventTime::Day(time),
            (_, true) => EventTime::Utc(time),
            (_, false) => EventTime::Local { time, zone: String::new() },
        })
    }

    /// The time that is this many seconds later.
    pub(super) fn after(&self, seconds: u64) -> EventTime {
        let later = |time: UnixTime| UnixTime::from_seconds(time.seconds().saturating_add(seconds));
        match self {
            EventTime::Day(time) => EventTime::Day(later(*time)),
            EventTime::Utc(time) => EventTime::Utc(later(*time)),
            EventTime::Local { time, zone } => {
                EventTime::Local { time: later(*time), zone: zone.clone() }
            }
        }
    }
}

/// A date, perhaps with a time of day.
#[derive(Clone, Copy, Debug)]
pub(super) struct LocalDate {
    pub(super) year: u64,
    pub(super) month: u64,
    pub(super) day: u64,
    /// The time of day. `None`: the whole day is meant.
    pub(super) second_of_day: Option<u64>,
}

impl LocalDate {
    /// Reads `20261103` or `20261103T140506`.
    pub(super) fn read(text: &str) -> Option<LocalDate> {
        let (date, time) = match text.split_once(['T', 't']) {
            Some((date, time)) => (date, Some(time)),
            None => (text, None),
        };
        let [year, month, day] = numbers(date, [4, 2, 2])?;
        let second_of_day = match time {
            None => None,
            Some(time) => {
                let [hour, minute, second] = numbers(time, [2, 2, 2])?;
                let is_valid = hour < 24 && minute < 60 && second <= 60;
                Some(is_valid.then_some((hour * 60 + minute) * 60 + second)?)
            }
        };
        Some(LocalDate { year, month, day, second_of_day })
    }

    /// The seconds since 1970. `None`: the day does not exist.
    pub(super) fn seconds(self) -> Option<i64> {
        let days = days(self.year, self.month, self.day)?;
        Some(days * SECONDS_IN_DAY as i64 + self.second_of_day.unwrap_or(0) as i64)
    }
}

/// The days from 1970-01-01 to a date, negative for an earlier date. `None`: the date does not
/// exist, or is after the year 7999.
pub(super) fn days(year: u64, month: u64, day: u64) -> Option<i64> {
    let days = days_since_1970(year.checked_add(SHIFT_YEARS)?, month, day)?;
    Some(days as i64 - SHIFT_DAYS)
}

/// The year of a time in seconds since 1970. `None`: it is before the year 0.
pub(super) fn year(seconds: i64) -> Option<u64> {
    let later = seconds.checked_add(SHIFT_DAYS * SECONDS_IN_DAY as i64)?;
    let date = Date::of(UnixTime::from_seconds(later.try_into().ok()?));
    date.year.checked_sub(SHIFT_YEARS)
}

/// The three numbers that make up the text. `digits`: the number of digits of each.
pub(super) fn numbers(text: &str, digits: [usize; 3]) -> Option<[u64; 3]> {
    let mut rest = text.as_bytes();
    let mut numbers = [0; 3];
    for (number, count) in numbers.iter_mut().zip(digits) {
        let (those, after) = rest.split_at_checked(count)?;
        for digit in those {
            *number = *number * 10 + u64::from(digit.is_ascii_digit().then_some(digit & 15)?);
        }
        rest = after;
    }
    rest.is_empty().then_some(numbers)
}

/// Reads a duration: `P1DT2H30M`, `P2W`. Returns its seconds. `None`: it is not valid, or negative.
pub(super) fn duration(text: &str) -> Option<u64> {
    let text = text.trim_start_matches('+').strip_prefix('P')?;
    let (mut seconds, mut number) = (0_u64, None::<u64>);
    for character in text.chars() {
        let unit = match character {
            'T' => continue,
            'W' => 7 * SECONDS_IN_DAY,
            'D' => SECONDS_IN_DAY,
            'H' => 3_600,
            'M' => 60,
            'S' => 1,
            _ => {
                let digit = u64::from(character.to_digit(10)?);
                number = Some(number.unwrap_or(0).checked_mul(10)?.checked_add(digit)?);
                continue;
            }
        };
        seconds = seconds.checked_add(number.take()?.checked_mul(unit)?)?;
    }
    number.is_none().then_some(seconds)
}

/// How an event repeats.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Repetition {
    /// The unit of the interval.
    pub unit: RepetitionUnit,
    /// The number of units from one event to the next.
    pub interval: u32,
    /// Whether there may be several events in a unit, or none, because of a rule that is not read.
    pub is_on_certain_days: bool,
    /// The number of events.
    pub times: Option<u32>,
    /// The last time at which an event may begin.
    pub until: Option<EventTime>,
}

/// The unit of an interval between events.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RepetitionUnit {
    /// Days.
    Day,
    /// Weeks.
    Week,
    /// Months.
    Month,
    /// Years.
    Year,
}

impl Repetition {
    /// Reads a rule. `None`: it has no unit, or a unit shorter than a day.
    pub(super) fn read(rule: &str) -> Option<Repetition> {
        let unit = match rule_part(rule, "FREQ")?.to_ascii_uppercase().as_str() {
            "DAILY" => RepetitionUnit::Day,
            "WEEKLY" => RepetitionUnit::Week,
            "MONTHLY" => RepetitionUnit::Month,
            "YEARLY" => RepetitionUnit::Year,
            _ => return None,
        };
        let number = |name| rule_part(rule, name).and_then(|value| value.parse().ok());
        Some(Repetition {
            unit,
            interval: number("INTERVAL").unwrap_or(1).max(1),
            is_on_certain_days: rule_parts(rule).any(|(name, value)| !unit.is_usual(name, value)),
            times: number("COUNT"),
            until: rule_part(rule, "UNTIL").and_then(EventTime::read),
        })
    }
}

impl RepetitionUnit {
    /// Whether a rule with this part still has one event in each unit, at the time of the first
    /// event.
    fn is_usual(self, name: &str, value: &str) -> bool {
        let day = match self {
            RepetitionUnit::Day => "",
            RepetitionUnit::Week => "BYDAY",
            RepetitionUnit::Month => "BYMONTHDAY",
            RepetitionUnit::Year => "BYMONTH",
        };
        let known = ["FREQ", "INTERVAL", "COUNT", "UNTIL", "WKST"];
        known.iter().any(|known| name.eq_ignore_ascii_case(known))
            || name.eq_ignore_ascii_case(day) && !value.contains([',', '-'])
    }
}

/// The value of a part of a rule: `2` for the part `COUNT` of `FREQ=DAILY;COUNT=2`.
pub(super) fn rule_part<'a>(rule: &'a str, name: &str) -> Option<&'a str> {
    rule_parts(rule).find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value)
}

/// The names and values of a rule.
pub(super) fn rule_parts(rule: &str) -> impl Iterator<Item = (&str, &str)> {
    let parts = rule.split(';').filter_map(|part| part.split_once('='));
    parts.map(|(name, value)| (name.trim(), value.trim()))
}
