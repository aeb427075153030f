//! Zones that a calendar defines itself, for programs that do not know their names.
//!
//! A zone has observances: each has an offset from UTC, and the local times at which it begins.
//! Usually one begins every spring and one every autumn. A zone with any other rule is unknown.
//!
//! Implements: RFC 5545 section 3.6.5.

use alloc::string::String;
use alloc::vec::Vec;

use machine::UnixTime;

use super::line::ContentLine;
use super::time::{LocalDate, days, rule_part, rule_parts, year};

/// The maximum number of observances of a zone.
const OBSERVANCES_MAX: usize = 32;

/// The days of the week. 1970-01-01 was a Thursday.
const DAYS_OF_WEEK: [&str; 7] = ["TH", "FR", "SA", "SU", "MO", "TU", "WE"];

const SECONDS_IN_DAY: i64 = 86_400;

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
    /// The first time at which it begins. This and other times are those that clocks show before
    /// they change, in seconds since 1970.
    start: i64,
    /// The time of day at which it begins.
    second_of_day: i64,
    /// The day of each year on which it begins. `None`: it begins once.
    yearly: Option<YearlyDay>,
    /// The last time at which it may begin.
    until: i64,
}

/// A day of each year.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum YearlyDay {
    /// A date: the month, and the day.
    Date(u64, u64),
    /// A day of the week in a month: the month, a number, and the index of the day in
    /// [`DAYS_OF_WEEK`]. The number 1 means the first such day of the month, and -1 the last.
    Weekday(u64, i64, i64),
}

/// The lines of an observance so far.
#[derive(Clone, Debug, Default)]
pub(super) struct ObservanceFields {
    before: Option<i64>,
    offset: Option<i64>,
    start: Option<String>,
    rule: Option<String>,
    has_other_rules: bool,
}

/// The maximum number of bytes of a rule or a date that is read.
const RULE_BYTES_MAX: usize = 200;

impl ObservanceFields {
    pub(super) fn line_arrived(&mut self, line: &ContentLine<'_>) {
        // A longer value is none that is read.
        let value = Some(line.value).filter(|value| value.len() <= RULE_BYTES_MAX);
        let value = || value.map(String::from);
        if line.is("TZOFFSETFROM") {
            self.before = offset(line.value);
        } else if line.is("TZOFFSETTO") {
            self.offset = offset(line.value);
        } else if line.is("DTSTART") {
            self.start = value();
        } else if line.is("RRULE") || line.is("RDATE") {
            self.has_other_rules |= self.rule.is_some() || value().is_none();
            self.rule = value();
        }
    }

    /// The observance. `None`: it has no valid beginning, or a rule that is not read.
    fn observance(self) -> Option<Observance> {
        let start = LocalDate::read(&self.start?)?;
        let offset = self.offset?;
        let before = self.before.unwrap_or(offset);
        let (yearly, until) = match &self.rule {
            _ if self.has_other_rules => return None,
            Some(rule) => (Some(YearlyDay::read(rule, start)?), until(rule, before)?),
            None => (None, i64::MAX),
        };
        let second_of_day = start.second_of_day.unwrap_or(0) as i64;
        let start = start.seconds()?;
        Some(Observance { before, offset, start, second_of_day, yearly, until })
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

    /// The time in UTC of a local time in this zone. `None`: the zone is unknown.
    pub(super) fn utc(&self, local: UnixTime) -> Option<UnixTime> {
        let seconds = i64::try_from(local.seconds()).ok()?;
        let begun = self.observances.iter().filter_map(|one| Some((one.last_begin(seconds)?, one)));
        let offset = match begun.max_by_key(|(begin, _)| *begin) {
            // Clocks skip this time, so the offset before the change is used.
            Some((begin, one)) if seconds.saturating_sub(begin) < one.offset - one.before => {
                one.before
            }
            Some((_, one)) => one.offset,
            None => self.observances.first()?.before,
        };
        let utc = seconds.checked_sub(offset)?.try_into().ok()?;
        (!self.has_other_rule).then_some(UnixTime::from_seconds(utc))
    }
}

impl Observance {
    /// The last local time up to `local` at which it begins.
    fn last_begin(&self, local: i64) -> Option<i64> {
        let latest = local.min(self.until);
        let Some(yearly) = self.yearly else {
            return Some(self.start).filter(|start| *start <= local);
        };
        let year = year(latest)?;
        let mut begins = [year, year.saturating_sub(1)]
            .into_iter()
            .filter_map(|year| Some(yearly.day_in(year)? * SECONDS_IN_DAY + self.second_of_day));
        begins.find(|begin| (self.start..=latest).contains(begin))
    }
}

impl YearlyDay {
    /// Reads a rule. `start`: the first day. `None`: the rule has another form.
    fn read(rule: &str, start: LocalDate) -> Option<YearlyDay> {
        let is_yearly =
            rule_part(rule, "FREQ").is_some_and(|freq| freq.eq_ignore_ascii_case("YEARLY"));
        let is_every = rule_part(rule, "INTERVAL").is_none_or(|interval| interval == "1");
        let read = ["FREQ", "INTERVAL", "UNTIL", "BYMONTH", "BYDAY", "BYMONTHDAY", "WKST"];
        let is_read = |name: &str| read.iter().any(|read| read.eq_ignore_ascii_case(name));
        if !is_yearly || !is_every || !rule_parts(rule).all(|(name, _)| is_read(name)) {
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
                let day = DAYS_OF_WEEK.iter().position(|name| name.eq_ignore_ascii_case(day))?;
                (which != 0).then_some(YearlyDay::Weekday(month, which, day as i64))
            }
            (None, Some(day)) => Some(YearlyDay::Date(month, day.parse().ok()?)),
            (None, None) => Some(YearlyDay::Date(month, start.day)),
        }
    }

    /// The day in this year, in days since 1970.
    fn day_in(self, year: u64) -> Option<i64> {
        let (month, which, weekday) = match self {
            YearlyDay::Date(month, day) => return days(year, month, day),
            YearlyDay::Weekday(month, which, weekday) => (month, which, weekday),
        };
        let first = days(year, month, 1)?;
        let last = [31, 30, 29, 28].into_iter().find_map(|day| days(year, month, day))?;
        let day = match which {
            1.. => first + (weekday - first).rem_euclid(7) + (which - 1) * 7,
            _ => last - (last - weekday).rem_euclid(7) + (which + 1) * 7,
        };
        (first..=last).contains(&day).then_some(day)
    }
}

/// The last local time at which an observance may begin by its rule. The rule gives it in UTC or as
/// a local time. `before`: the offset before the observance begins. `None`: the time is not valid.
fn until(rule: &str, before: i64) -> Option<i64> {
    let Some(until) = rule_part(rule, "UNTIL") else { return Some(i64::MAX) };
    match until.strip_suffix(['Z', 'z']) {
        Some(utc) => LocalDate::read(utc)?.seconds()?.checked_add(before),
        None => LocalDate::read(until)?.seconds(),
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
