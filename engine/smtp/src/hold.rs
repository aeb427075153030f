//! How long a message waits here before it goes on, as its sender wants it.
//!
//! Answers to: RFC 4865 sections 4 and 5, with RFC 3339 section 5.6 for dates (erratum 2040).

use core::fmt;

use machine::UnixTime;

const DAY_SECONDS: u64 = 24 * 60 * 60;

/// For how long messages may be held: announced by FUTURERELEASE, with the date that is so far away.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Holds {
    /// In seconds, less than 1,000,000,000.
    pub seconds_max: u32,
    /// The time of day.
    pub now: UnixTime,
}

/// For how long, or until when.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Hold {
    /// HOLDFOR, in seconds.
    For(u32),
    /// HOLDUNTIL.
    Until(UnixTime),
}

impl Holds {
    /// The latest that a message may go on.
    pub(crate) fn latest(self) -> UnixTime {
        UnixTime::from_seconds(self.now.seconds().saturating_add(self.seconds_max.into()))
    }

    /// When a message goes on that is held so. `None`: that is over, or too far away.
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
    /// Reads what stands behind `HOLDFOR=`: one to nine digits.
    pub(crate) fn read_for(text: &str) -> Option<Hold> {
        (1..=9).contains(&text.len()).then(|| digits(text)).flatten().map(Hold::For)
    }

    /// Reads what stands behind `HOLDUNTIL=`: a date of RFC 3339.
    pub(crate) fn read_until(text: &str) -> Option<Hold> {
        let (date, time) = text.split_once(['T', 't'])?;
        let zone_at = time.find(['Z', 'z', '+', '-'])?;
        let (time, zone) = time.split_at_checked(zone_at)?;
        let (time, fraction) = time.split_once('.').map_or((time, None), |(time, fraction)| (time, Some(fraction)));
        if fraction.is_some_and(|fraction| fraction.is_empty() || !fraction.bytes().all(|byte| byte.is_ascii_digit())) {
            return None;
        }
        let [year, month, day] = numbers(date, '-', [4, 2, 2])?;
        let [hour, minute, second] = numbers(time, ':', [2, 2, 2])?;
        // A leap second is over as soon as it has begun.
        let is_time = hour < 24 && minute < 60 && second <= 60;
        let days = days_since_1970(year, month, day).filter(|_| is_time)?;
        let local = days * DAY_SECONDS + u64::from(hour * 3600 + minute * 60 + second);
        let ahead = offset_seconds(zone)?;
        u64::try_from(i64::try_from(local).ok()? - ahead)
            .ok()
            .map(|seconds| Hold::Until(UnixTime::from_seconds(seconds)))
    }
}

/// By how much a zone is ahead of UTC.
fn offset_seconds(zone: &str) -> Option<i64> {
    if zone.eq_ignore_ascii_case("Z") {
        return Some(0);
    }
    let (sign, rest) = match zone.split_at_checked(1)? {
        ("+", rest) => (1, rest),
        ("-", rest) => (-1, rest),
        _ => return None,
    };
    let [hours, minutes] = numbers(rest, ':', [2, 2])?;
    (hours < 24 && minutes < 60).then(|| sign * i64::from(hours * 3600 + minutes * 60))
}

/// Numbers of so many digits each.
fn numbers<const COUNT: usize>(text: &str, between: char, lengths: [usize; COUNT]) -> Option<[u32; COUNT]> {
    let mut parts = text.split(between);
    let mut all = [0; COUNT];
    for (number, length) in all.iter_mut().zip(lengths) {
        *number = parts.next().filter(|part| part.len() == length).and_then(digits)?;
    }
    parts.next().is_none().then_some(all)
}

fn digits(text: &str) -> Option<u32> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

fn is_leap(year: u32) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

fn days_of_month(year: u32, month: u32) -> u32 {
    match month {
        2 => 28 + u32::from(is_leap(year)),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

fn days_since_1970(year: u32, month: u32, day: u32) -> Option<u64> {
    if !(1970..=9999).contains(&year) || !(1..=12).contains(&month) || !(1..=days_of_month(year, month)).contains(&day)
    {
        return None;
    }
    let leap_days = |year: u32| year / 4 - year / 100 + year / 400;
    let years = (year - 1970) * 365 + leap_days(year - 1) - leap_days(1969);
    let months: u32 = (1..month).map(|month| days_of_month(year, month)).sum();
    Some(u64::from(years + months + day - 1))
}

/// A time as RFC 3339 writes it.
pub(crate) struct DateTime(pub(crate) UnixTime);

impl fmt::Display for DateTime {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mut days, seconds) = (self.0.seconds() / DAY_SECONDS, self.0.seconds() % DAY_SECONDS);
        let (mut year, mut month) = (1970, 1);
        while days >= 365 + u64::from(is_leap(year)) && year < 9999 {
            days -= 365 + u64::from(is_leap(year));
            year += 1;
        }
        while days >= u64::from(days_of_month(year, month)) && month < 12 {
            days -= u64::from(days_of_month(year, month));
            month += 1;
        }
        let (day, hour, minute) = (days.min(30) + 1, seconds / 3600, seconds / 60 % 60);
        write!(out, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{:02}Z", seconds % 60)
    }
}
