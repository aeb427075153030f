//! Dates that clients send back in conditional requests.
//!
//! Implements: RFC 9110 section 5.6.7. A recipient accepts all three forms of a date. A server
//! writes only the first form.

/// Bytes in an `IMF-fixdate`, such as `Sun, 06 Nov 1994 08:49:37 GMT`.
pub const DATE_BYTES: usize = 29;

const MONTHS: [&[u8]; 12] = [
    b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec",
];

/// Parses an `HTTP-date` in any of its forms into seconds since 1970-01-01. `None` if the date is
/// malformed or earlier. The weekday is not checked against the date. A year of two digits counts
/// as a year between 1970 and 2069.
pub(crate) fn parse(text: &[u8]) -> Option<u64> {
    let (_, rest) = text.split_at_checked(text.iter().position(|&byte| byte == b' ')? + 1)?;
    match *rest {
        [
            d0,
            d1,
            b' ',
            m0,
            m1,
            m2,
            b' ',
            y0,
            y1,
            y2,
            y3,
            b' ',
            ref time @ ..,
            b' ',
            b'G',
            b'M',
            b'T',
        ] => seconds(number(&[y0, y1, y2, y3])?, &[m0, m1, m2], number(&[d0, d1])?, time),
        [d0, d1, b'-', m0, m1, m2, b'-', y0, y1, b' ', ref time @ .., b' ', b'G', b'M', b'T'] => {
            let year = number(&[y0, y1])?;
            seconds(
                if year < 70 { 2000 + year } else { 1900 + year },
                &[m0, m1, m2],
                number(&[d0, d1])?,
                time,
            )
        }
        [m0, m1, m2, b' ', d0, d1, b' ', ref time @ .., b' ', y0, y1, y2, y3] => {
            let d0 = if d0 == b' ' { b'0' } else { d0 };
            seconds(number(&[y0, y1, y2, y3])?, &[m0, m1, m2], number(&[d0, d1])?, time)
        }
        _ => None,
    }
}

fn seconds(year: u64, month: &[u8], day: u64, time: &[u8]) -> Option<u64> {
    let [h0, h1, b':', m0, m1, b':', s0, s1] = *time else { return None };
    let (hour, minute, second) = (number(&[h0, h1])?, number(&[m0, m1])?, number(&[s0, s1])?);
    let month = MONTHS.iter().position(|name| *name == month)? as u64 + 1;
    if year < 1970
        || day == 0
        || day > days_in(year, month)
        || hour > 23
        || minute > 59
        || second > 60
    {
        return None;
    }
    Some(((days_before(year, month) + day - 1) * 24 + hour) * 3600 + minute * 60 + second)
}

fn number(digits: &[u8]) -> Option<u64> {
    digits.iter().try_fold(0, |number, digit| {
        digit.is_ascii_digit().then(|| number * 10 + u64::from(digit - b'0'))
    })
}

fn is_leap(year: u64) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

fn days_in(year: u64, month: u64) -> u64 {
    match month {
        2 => 28 + u64::from(is_leap(year)),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days from 1970-01-01 to the first of the month.
fn days_before(year: u64, month: u64) -> u64 {
    let past = year - 1;
    let leap_days = past / 4 - past / 100 + past / 400 - (1969 / 4 - 1969 / 100 + 1969 / 400);
    (year - 1970) * 365 + leap_days + (1..month).map(|month| days_in(year, month)).sum::<u64>()
}
