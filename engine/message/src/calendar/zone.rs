//! Zones that a calendar defines itself, for programs that do not know their names.
//!
//! A zone has observances: each has an offset from UTC, and the local times at which it begins.
//! Usually one begins every spring and one every autumn. A zone with any other rule is unknown.
//!
//! Implements: RFC 5545 section 3.6.5.

use alloc::string::String;
use alloc::vec::Vec;

use machine::{Date, UnixTime};

use super::line::ContentLine;
use super::time::{LocalDate, rule_part};
use crate::header::days_since_1970;

/// The maximum number of observances of a zone.
const OBSERVANCES_MAX: usize = 32;

/// The days of the week. 1970-01-01 was a Thursday.
const DAYS_OF_WEEK: [&str; 7] = ["TH", "FR", "SA", "SU", "MO", "TU", "WE"];

const SECONDS_IN_DAY: u64 = 86_400;

/// A zone of a calendar.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct CalendarZone {
    pub(super) name: String,
    observances: Vec<Observance>,
    /// Whether an observance has a rule that is not read.
    has_other_rule: bool,
}

/// An offset from UTC, and when it begins.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Observance {
    /// The offset in seconds before it begins, and from then on.
    before: i64,
    offset: i64,
    /// The first time at which it begins, as a local time. It may be before 1970.
    start: Option<u64>,
    /// The time of day at which it begins.
    second_of_day: u64,
    /// The day of each year on which it begins. `None`: it begins once.
    yearly: Option<YearlyDay>,
    /// The last time at which it may begin.
    until: Option<u64>,
}

/// A day of each year.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum YearlyDay {
    /// A date: the month, and the day.
    Date(u64, u64),
    /// A day of the week in a month: the month, which of them, counted from the end if negative,
    /// and the day's place in [`DAYS_OF_WEEK`].
    Weekday(u64, i64, u64),
}

/// The lines of an observance so far.
#[derive(Clone, Debug, Default)]
pub(super) struct ObservanceFields {
    before: Option<i64>,
    offset: Option<i64>,
    start: Option<String>,
    rule: Option<String>,
}

/// The maximum number of bytes of a rule that are read.
const RULE_BYTES_MAX: usize = 200;

impl ObservanceFields {
    pub(super) fn line_arrived(&mut self, line: &ContentLine<'_>) {
        let value = || line.value.get(..RULE_BYTES_MAX).unwrap_or(line.value).into();
        if line.is("TZOFFSETFROM") {
            self.before = offset(line.value);
        } else if line.is("TZOFFSETTO") {
            self.offset = offset(line.value);
        } else if line.is("DTSTART") {
            self.start = Some(value());
        } else if line.is("RRULE") || line.is("RDATE") {
            self.rule = Some(value());
        }
    }

    /// The observance. `None`: it has no valid beginning, or another rule.
    fn observance(self) -> Option<Observance> {
        let start = LocalDate::read(&self.start?)?;
        let offset = self.offset?;
        Some(Observance {
            before: self.before.unwrap_or(offset),
            offset,
            start: start.seconds(),
            second_of_day: start.second_of_day.unwrap_or(0),
            until: self.rule.as_deref().and_then(|rule| {
                let until = rule_part(rule, "UNTIL")?.trim_end_matches(['Z', 'z']);
                LocalDate::read(until)?.seconds()
            }),
            yearly: match self.rule {
                Some(rule) => Some(YearlyDay::read(&rule, start)?),
                None => None,
            },
        })
    }
}

impl CalendarZone {
    pub(super) fn observance_ended(&mut self, fields: ObservanceFields) {
        match fields.observance() {
            Some(observance) if self.observances.len() < OBSERVANCES_MAX => {
                self.observances.push(observance);
            }
            _ => self.has_other_rule = true,
        }
    }

    /// The time at a local time in this zone. `None`: the zone is unknown.
    pub(super) fn utc(&self, local: UnixTime) -> Option<UnixTime> {
        let seconds = local.seconds();
        let begun = self.observances.iter().filter_map(|one| Some((one.last_begin(seconds)?, one)));
        let offset = match begun.max_by_key(|(begin, _)| *begin) {
            Some((_, observance)) => observance.offset,
            None => self.observances.first()?.before,
        };
        let seconds = seconds.checked_add_signed(-offset)?;
        (!self.has_other_rule).then_some(UnixTime::from_seconds(seconds))
    }
}

impl Observance {
    /// The last local time up to `local` at which it begins.
    fn last_begin(&self, local: u64) -> Option<u64> {
        let latest = local.min(self.until.unwrap_or(u64::MAX));
        let Some(yearly) = self.yearly else {
            return Some(self.start.unwrap_or(0)).filter(|start| *start <= local);
        };
        let year = Date::of(UnixTime::from_seconds(latest)).year;
        let begins = [year, year.saturating_sub(1)]
            .into_iter()
            .filter_map(|year| Some(yearly.day_in(year)? * SECONDS_IN_DAY + self.second_of_day));
        let is_valid = |begin: &u64| (self.start.unwrap_or(0)..=latest).contains(begin);
        begins.into_iter().find(is_valid)
    }
}

impl YearlyDay {
    /// Reads a rule. `start`: the first day. `None`: it is another rule.
    fn read(rule: &str, start: LocalDate) -> Option<YearlyDay> {
        let is_yearly =
            rule_part(rule, "FREQ").is_some_and(|freq| freq.eq_ignore_ascii_case("YEARLY"));
        let is_every = rule_part(rule, "INTERVAL").is_none_or(|interval| interval == "1");
        let names = rule.split(';').filter_map(|part| part.split_once('='));
        let is_read = |name: &str| {
            ["FREQ", "INTERVAL", "UNTIL", "BYMONTH", "BYDAY", "BYMONTHDAY", "WKST"].contains(&name)
        };
        if !is_yearly || !is_every || !names.into_iter().all(|(name, _)| is_read(name)) {
            return None;
        }
        let month = match rule_part(rule, "BYMONTH") {
            Some(month) => month.parse().ok()?,
            None => start.month,
        };
        match (rule_part(rule, "BYDAY"), rule_part(rule, "BYMONTHDAY")) {
            (Some(_), Some(_)) => None,
            (Some(day), None) => {
                let (which, day) = day.split_at_checked(day.len().checked_sub(2)?)?;
                let which = which.parse().ok().filter(|which| (-5..=5).contains(which))?;
                let day = DAYS_OF_WEEK.iter().position(|name| *name == day)?;
                (which != 0).then_some(YearlyDay::Weekday(month, which, day as u64))
            }
            (None, Some(day)) => Some(YearlyDay::Date(month, day.parse().ok()?)),
            (None, None) => Some(YearlyDay::Date(month, start.day)),
        }
    }

    /// The day in this year, in days since 1970.
    fn day_in(self, year: u64) -> Option<u64> {
        match self {
            YearlyDay::Date(month, day) => days_since_1970(year, month, day),
            YearlyDay::Weekday(month, which @ 1.., weekday) => {
                let first = days_since_1970(year, month, 1)?;
                let days = (weekday + 7 - first % 7) % 7 + (which.unsigned_abs() - 1) * 7;
                days_since_1970(year, month, 1 + days)
            }
            YearlyDay::Weekday(month, which, weekday) => {
                let lengths = [31, 30, 29, 28];
                let last = lengths.into_iter().find_map(|day| days_since_1970(year, month, day))?;
                let days =
                    (last % 7 + 7 - weekday) % 7 + (which.unsigned_abs().checked_sub(1)?) * 7;
                let day = last.checked_sub(days)?;
                (day >= days_since_1970(year, month, 1)?).then_some(day)
            }
        }
    }
}

/// Reads an offset from UTC: `+0100`, `-033000`. Returns its seconds.
fn offset(text: &str) -> Option<i64> {
    let (sign, digits) = text.split_at_checked(1)?;
    let [hours, minutes, seconds] = match digits.len() {
        4 => super::time::numbers(digits, [2, 2, 0])?,
        _ => super::time::numbers(digits, [2, 2, 2])?,
    };
    let offset = i64::try_from((hours * 60 + minutes) * 60 + seconds).ok()?;
    let is_valid = hours < 24 && minutes < 60 && seconds < 60;
    match sign {
        "+" if is_valid => Some(offset),
        "-" if is_valid => Some(-offset),
        _ => None,
    }
}
