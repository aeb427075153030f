//! A day, in the form in which users type it.
//!
//! Implements: RFC 3339 section 5.6 and appendix C (leap years).

use core::fmt;
use machine::UnixTime;

/// A day from 1970 to 9999.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct QueryDay {
    year: u16,
    month: u8,
    day: u8,
}

impl QueryDay {
    /// Parses `2026-11-22` or `2026/11/22`. Month and day may have one digit.
    pub(super) fn parse(text: &str) -> Option<QueryDay> {
        let mut numbers = text.split(if text.contains('/') { '/' } else { '-' });
        let mut next = |digits: &[usize]| {
            let number = numbers.next().filter(|number| digits.contains(&number.len()))?;
            number.parse::<u16>().ok().filter(|_| number.bytes().all(|byte| byte.is_ascii_digit()))
        };
        let (year, month, day) = (next(&[4])?, next(&[1, 2])?, next(&[1, 2])?);
        let day = QueryDay { year, month: month.try_into().ok()?, day: day.try_into().ok()? };
        let is_one = year >= 1970
            && (1..=12).contains(&month)
            && (1..=day.days_of_month()).contains(&day.day);
        (is_one && numbers.next().is_none()).then_some(day)
    }

    /// The local time when the day begins, as if it were UTC.
    pub(super) fn begins(self) -> UnixTime {
        let years = u64::from(self.year.saturating_sub(1));
        // Days are counted from 0001-01-01, which is 719,162 days before 1970-01-01.
        let before_year = years * 365 + years / 4 - years / 100 + years / 400 - 719_162;
        let months =
            (1..self.month).map(|month| u64::from(QueryDay { month, ..self }.days_of_month()));
        let days = before_year + months.sum::<u64>() + u64::from(self.day) - 1;
        UnixTime::from_seconds(days * 86_400)
    }

    fn days_of_month(self) -> u8 {
        let is_leap = self.year.is_multiple_of(4)
            && (!self.year.is_multiple_of(100) || self.year.is_multiple_of(400));
        match self.month {
            2 if is_leap => 29,
            2 => 28,
            4 | 6 | 9 | 11 => 30,
            _ => 31,
        }
    }
}

impl fmt::Display for QueryDay {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:04}-{:02}-{:02}", self.year, self.month, self.day)
    }
}
