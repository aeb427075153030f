//! The date and time of a header field: `Tue, 03 Nov 2026 21:04:05 +0000`.
//!
//! The date is always in UTC and always has the same length, so that a header's size is known
//! before it is written. The zone is `+0000`, since the server's own zone is UTC. `-0000` would
//! mean that the zone is unknown.
//!
//! Implements: RFC 5322 section 3.3.

use machine::UnixTime;

/// The length of every [`date_time`] in bytes.
pub const DATE_TIME_BYTES: usize = 31;

const DAY_NAMES: [[u8; 3]; 7] = [*b"Thu", *b"Fri", *b"Sat", *b"Sun", *b"Mon", *b"Tue", *b"Wed"];
const MONTH_NAMES: [[u8; 3]; 12] = [
    *b"Jan", *b"Feb", *b"Mar", *b"Apr", *b"May", *b"Jun", *b"Jul", *b"Aug", *b"Sep", *b"Oct",
    *b"Nov", *b"Dec",
];
const SECONDS_IN_DAY: u64 = 86_400;
/// 9999-12-31T23:59:59Z. A year is written with four digits.
const SECONDS_MAX: u64 = 253_402_300_799;

/// `time` as a `date-time` of RFC 5322 section 3.3, in UTC. A time after the year 9999 is written
/// as the end of that year.
pub fn date_time(time: UnixTime) -> [u8; DATE_TIME_BYTES] {
    let seconds = time.seconds().min(SECONDS_MAX);
    let days = seconds / SECONDS_IN_DAY;
    let second_of_day = seconds % SECONDS_IN_DAY;
    let date = Date::from_days(days);
    let [w0, w1, w2] = name(&DAY_NAMES, days % 7);
    let [m0, m1, m2] = name(&MONTH_NAMES, date.month0);
    let [c0, c1] = two_digits(date.year / 100);
    let [y0, y1] = two_digits(date.year % 100);
    let [d0, d1] = two_digits(date.day);
    let [h0, h1] = two_digits(second_of_day / 3_600);
    let [n0, n1] = two_digits(second_of_day / 60 % 60);
    let [s0, s1] = two_digits(second_of_day % 60);
    [
        w0, w1, w2, b',', b' ', d0, d1, b' ', m0, m1, m2, b' ', c0, c1, y0, y1, b' ', h0, h1, b':',
        n0, n1, b':', s0, s1, b' ', b'+', b'0', b'0', b'0', b'0',
    ]
}

/// The [`date_time`] of the current time. It is computed only once for each second, since many
/// messages may arrive in one second.
#[derive(Clone, Debug)]
pub struct DateTimeNow {
    seconds: u64,
    text: [u8; DATE_TIME_BYTES],
}

impl DateTimeNow {
    /// The text for `time`, which is the current time.
    pub fn new(time: UnixTime) -> DateTimeNow {
        DateTimeNow { seconds: time.seconds(), text: date_time(time) }
    }

    /// The text for `time`, which is the current time. It is computed again only for another
    /// second.
    pub fn at(&mut self, time: UnixTime) -> &[u8; DATE_TIME_BYTES] {
        if time.seconds() != self.seconds {
            *self = DateTimeNow::new(time);
        }
        &self.text
    }
}

/// A day of the Gregorian calendar.
struct Date {
    year: u64,
    /// 0 is January.
    month0: u64,
    /// 1 is the first.
    day: u64,
}

impl Date {
    /// The day that is `days` days after 1970-01-01.
    ///
    /// Years are counted from March, so the leap day is the last day of a year. Every month starts
    /// at a fixed distance from March the first: the `month`th month after March starts on day (153
    /// × month + 2) / 5.
    fn from_days(days: u64) -> Date {
        const DAYS_BEFORE_1970: u64 = 719_468; // from 0000-03-01
        const DAYS_IN_ERA: u64 = 146_097; // 400 years
        let days = days + DAYS_BEFORE_1970;
        let day_of_era = days % DAYS_IN_ERA;
        let year_of_era =
            (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let month = (5 * day_of_year + 2) / 153;
        let (month0, years_after) = if month < 10 { (month + 2, 0) } else { (month - 10, 1) };
        Date {
            year: days / DAYS_IN_ERA * 400 + year_of_era + years_after,
            month0,
            day: day_of_year - (153 * month + 2) / 5 + 1,
        }
    }
}

fn name(names: &[[u8; 3]], index: u64) -> [u8; 3] {
    usize::try_from(index).ok().and_then(|index| names.get(index)).copied().unwrap_or(*b"???")
}

/// The two decimal digits of `number`, which is under 100.
fn two_digits(number: u64) -> [u8; 2] {
    [b'0' + (number / 10 % 10) as u8, b'0' + (number % 10) as u8]
}
