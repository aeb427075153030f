//! The date and time of a header field: `Tue, 03 Nov 2026 21:04:05 +0000`.
//!
//! The date is always in UTC and always has the same length, so that a header's size is known
//! before it is written. The zone is `+0000`, since the server's own zone is UTC. `-0000` would
//! mean that the zone is unknown.
//!
//! Implements: RFC 5322 section 3.3.

use machine::{Date, UnixTime};

/// The length of every [`date_time`] in bytes.
pub const DATE_TIME_BYTES: usize = 31;

const DAY_NAMES: [[u8; 3]; 7] = [*b"Thu", *b"Fri", *b"Sat", *b"Sun", *b"Mon", *b"Tue", *b"Wed"];
const MONTH_NAMES: [[u8; 3]; 12] = [
    *b"Jan", *b"Feb", *b"Mar", *b"Apr", *b"May", *b"Jun", *b"Jul", *b"Aug", *b"Sep", *b"Oct",
    *b"Nov", *b"Dec",
];
/// 9999-12-31T23:59:59Z. A year is written with four digits.
const SECONDS_MAX: u64 = 253_402_300_799;

/// `time` as a `date-time` of RFC 5322 section 3.3, in UTC. A time after the year 9999 is written
/// as the end of that year.
pub fn date_time(time: UnixTime) -> [u8; DATE_TIME_BYTES] {
    let seconds = time.seconds().min(SECONDS_MAX);
    let date = Date::of(UnixTime::from_seconds(seconds));
    let second_of_day = date.second_of_day;
    let [w0, w1, w2] = name(&DAY_NAMES, date.days % 7);
    let [m0, m1, m2] = name(&MONTH_NAMES, date.month - 1);
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

fn name(names: &[[u8; 3]], index: u64) -> [u8; 3] {
    usize::try_from(index).ok().and_then(|index| names.get(index)).copied().unwrap_or(*b"???")
}

/// The two decimal digits of `number`, which is under 100.
fn two_digits(number: u64) -> [u8; 2] {
    [b'0' + (number / 10 % 10) as u8, b'0' + (number % 10) as u8]
}
