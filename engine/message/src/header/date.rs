//! Dates of header fields, valid and invalid.
//!
//! Words and numbers are recognised by their form rather than by their position. So this file reads
//! the grammar of the RFC, the obsolete grammar, and most other dates in real mail. Examples are
//! dates without seconds or zone, with `AM` and `PM`, with full names of months, or with dashes.
//! The form of C's `asctime` and ISO 8601 are read too.
//!
//! Implements: RFC 5322 sections 3.3 and 4.3.

use machine::UnixTime;

use super::lexer::{Token, Tokens};

const MONTH_NAMES: [&[u8; 3]; 12] = [
    b"jan", b"feb", b"mar", b"apr", b"may", b"jun", b"jul", b"aug", b"sep", b"oct", b"nov", b"dec",
];

/// Zones with names, in hours from UTC. Other names are ignored (RFC 5322 section 4.3).
const ZONES: [(&[u8], i16); 15] = [
    (b"ut", 0),
    (b"utc", 0),
    (b"gmt", 0),
    (b"z", 0),
    (b"est", -5),
    (b"edt", -4),
    (b"cst", -6),
    (b"cdt", -5),
    (b"mst", -7),
    (b"mdt", -6),
    (b"pst", -8),
    (b"pdt", -7),
    (b"bst", 1),
    (b"cet", 1),
    (b"cest", 2),
];

/// The time at which a message was written, according to its date field.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SentDate {
    /// The time.
    pub time: UnixTime,
    /// The offset of the author's zone from UTC in minutes, or 0 if it is unknown.
    pub zone_minutes: i16,
}

/// Reads the date of a field.
pub(super) fn read(value: &[u8]) -> Option<SentDate> {
    read_plain(value).or_else(|| read_words(value))
}

/// Reads the form of nearly all dates quickly: `Sat, 21 Nov 2026 10:55:06 +0100`, perhaps with the
/// zone's name after it. `None`: the date has another form.
fn read_plain(value: &[u8]) -> Option<SentDate> {
    let value = value.trim_ascii();
    let value = match value {
        [whole @ .., b')'] => without_name(whole)?,
        _ => value,
    };
    let value = match value {
        [a, b, c, b',', b' ', rest @ ..] if is_day_name([*a, *b, *c]) => rest,
        _ => value,
    };
    let (day, rest) = match value {
        [ones, b' ', rest @ ..] => (number(&[*ones])?, rest),
        [tens, ones, b' ', rest @ ..] => (number(&[*tens, *ones])?, rest),
        _ => return None,
    };
    let ([a, b, c, b' ', y0, y1, y2, y3, b' '], rest) = rest.split_first_chunk()? else {
        return None;
    };
    let name = [*a, *b, *c].map(|byte| byte.to_ascii_lowercase());
    let month = MONTH_NAMES.iter().position(|month| **month == name)? as u64 + 1;
    let year = number(&[*y0, *y1, *y2, *y3])?;
    let ([h0, h1, b':', m0, m1], rest) = rest.split_first_chunk()? else { return None };
    let (second, rest) = match rest {
        [b':', s0, s1, rest @ ..] => (number(&[*s0, *s1])?, rest),
        _ => (0, rest),
    };
    let [b' ', sign @ (b'+' | b'-'), z0, z1, z2, z3] = rest else { return None };
    let (hour, minute) = (number(&[*h0, *h1])?, number(&[*m0, *m1])?);
    let (zone_hour, zone_minute) = (number(&[*z0, *z1])?, number(&[*z2, *z3])?);
    if hour > 23 || minute > 59 || second > 59 || zone_hour > 23 || zone_minute > 59 {
        return None;
    }
    let zone_minutes = i16::try_from(zone_hour * 60 + zone_minute).ok()?;
    let zone_minutes = if *sign == b'-' { -zone_minutes } else { zone_minutes };
    sent((year, month, day), (hour, minute, second), zone_minutes)
}

/// The text before a comment that has only the name of a zone. `whole`: the date and the comment,
/// without the closing parenthesis.
fn without_name(whole: &[u8]) -> Option<&[u8]> {
    let (date, comment) = whole.split_at_checked(memchr::memchr(b'(', whole)?)?;
    let is_name = comment.iter().skip(1).all(u8::is_ascii_alphanumeric);
    is_name.then_some(date.trim_ascii_end())
}

fn is_day_name(name: [u8; 3]) -> bool {
    let name = name.map(|byte| byte.to_ascii_lowercase());
    matches!(&name, b"mon" | b"tue" | b"wed" | b"thu" | b"fri" | b"sat" | b"sun")
}

/// The number with these digits.
fn number(digits: &[u8]) -> Option<u64> {
    digits.iter().try_fold(0, |number, digit| {
        digit.is_ascii_digit().then(|| number * 10 + u64::from(digit & 15))
    })
}

/// Reads a date by the form of its words.
pub(crate) fn read_words(value: &[u8]) -> Option<SentDate> {
    let mut found = DateParts::default();
    let mut tokens = Tokens::new(value);
    let mut words = 0;
    while let Some((token, _)) = tokens.next() {
        match token {
            // Text after a date is ignored.
            Token::Atom(_) if found.is_whole() => break,
            Token::Atom(word) | Token::Quoted(word) => found.word_arrived(word),
            Token::Special(b':') => found.colon_arrived(),
            Token::Special(_) | Token::Comment(_) | Token::Literal(_) => {}
        }
        words += 1;
        if words > WORDS_MAX {
            return None;
        }
    }
    found.date()
}

/// The most words of a date.
const WORDS_MAX: usize = 40;

/// The parts of the date so far.
#[derive(Default)]
struct DateParts {
    /// Numbers that are not part of the time, in their order: the day and the year, perhaps with
    /// the month between them, and perhaps the hour.
    numbers: [Option<Number>; 4],
    month: Option<u64>,
    /// Hours, minutes, seconds.
    clock: [Option<u64>; 3],
    /// Whether a colon precedes the next number, which is then part of the time.
    is_in_clock: bool,
    is_afternoon: Option<bool>,
    zone_minutes: Option<i16>,
    /// Whether the zone was given in digits.
    is_zone_exact: bool,
}

#[derive(Clone, Copy)]
struct Number {
    value: u64,
    digits: usize,
}

impl DateParts {
    /// Whether the date ends here: its zone was given in digits, and no minutes follow.
    fn is_whole(&self) -> bool {
        self.is_zone_exact && !self.is_in_clock
    }

    /// Handles a colon: the number before it is part of the time.
    fn colon_arrived(&mut self) {
        if let ([None, _, _], Some(place)) =
            (self.clock, self.numbers.iter_mut().rev().find(|place| place.is_some()))
        {
            self.clock = [place.take().map(|number| number.value), None, None];
        }
        self.is_in_clock = true;
    }

    fn word_arrived(&mut self, word: &[u8]) {
        let mut rest = word;
        let mut before = b' ';
        while let [byte, after @ ..] = rest {
            if byte.is_ascii_digit() {
                rest = self.digits_arrived(rest, before);
            } else if byte.is_ascii_alphabetic() {
                let length = rest.iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
                let (name, after) = rest.split_at_checked(length).unwrap_or((rest, &[]));
                self.name_arrived(name);
                rest = after;
            } else {
                rest = after;
            }
            before = *byte;
        }
    }

    /// Handles the digits at the start of `text`. Returns the text after them. `before`: the
    /// character before the digits, in the same word.
    fn digits_arrived<'a>(&mut self, text: &'a [u8], before: u8) -> &'a [u8] {
        let length = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (digits, rest) = text.split_at_checked(length).unwrap_or((text, &[]));
        let number = digits.iter().fold(0_u64, |number, digit| {
            number.saturating_mul(10).saturating_add(u64::from(digit & 15))
        });
        let has_clock = matches!(self.clock, [Some(_), Some(_), _]);
        if matches!(before, b'+' | b'-') && has_clock {
            self.zone_arrived(number, length, before);
        } else if self.is_in_clock {
            self.is_in_clock = false;
            self.clock_arrived(number, before, length);
        } else if before == b'.' && has_clock {
            // Fractions of a second are ignored.
        } else if let Some(place) = self.numbers.iter_mut().find(|place| place.is_none()) {
            *place = Some(Number { value: number, digits: length });
        }
        rest
    }

    fn clock_arrived(&mut self, number: u64, before: u8, length: usize) {
        // The minutes of the zone, after `+05:`.
        if let (Some(minutes), true) = (self.zone_minutes, before == b' ' && length == 2) {
            let part = i16::try_from(number.min(59)).unwrap_or(0);
            self.zone_minutes = Some(if minutes < 0 { minutes - part } else { minutes + part });
        } else if let Some(place) = self.clock.iter_mut().find(|place| place.is_none()) {
            *place = Some(number);
        }
    }

    fn zone_arrived(&mut self, number: u64, digits: usize, sign: u8) {
        let (hours, minutes) = if digits <= 2 { (number, 0) } else { (number / 100, number % 100) };
        if let (0..=24, 0..=59, Ok(minutes)) =
            (hours, minutes, i16::try_from(hours.saturating_mul(60).saturating_add(minutes)))
        {
            self.zone_minutes = Some(if sign == b'-' { -minutes } else { minutes });
            self.is_zone_exact = true;
        }
    }

    fn name_arrived(&mut self, name: &[u8]) {
        let is = |known: &[u8]| name.eq_ignore_ascii_case(known);
        let begins = name.get(..3).unwrap_or_default();
        if is(b"am") || is(b"pm") {
            self.is_afternoon = Some(is(b"pm"));
        } else if let Some(month0) =
            MONTH_NAMES.iter().position(|month| begins.eq_ignore_ascii_case(*month))
        {
            self.month = self.month.or(Some(month0 as u64 + 1));
        } else if let (Some((_, hours)), None) =
            (ZONES.iter().find(|(zone, _)| is(zone)), self.zone_minutes)
        {
            self.zone_minutes = Some(hours * 60);
        }
    }

    fn date(self) -> Option<SentDate> {
        let (year, month, day) = self.day()?;
        let [hour, minute, second] = self.clock;
        let hour = match (hour.unwrap_or(0), self.is_afternoon) {
            (12, Some(false)) => 0,
            (hour @ 1..12, Some(true)) => hour + 12,
            (hour, _) => hour,
        };
        let (minute, second) = (minute.unwrap_or(0), second.unwrap_or(0));
        if hour > 24 || minute > 59 || second > 60 {
            return None;
        }
        sent((year, month, day), (hour, minute, second), self.zone_minutes.unwrap_or(0))
    }

    /// The year, the month and the day.
    fn day(&self) -> Option<(u64, u64, u64)> {
        let mut numbers = self.numbers.iter().flatten().copied();
        let (first, second) = (numbers.next()?, numbers.next()?);
        let (day, month, year) = match (self.month, numbers.next()) {
            (Some(month), _) if first.digits == 4 => (second, month, first),
            (Some(month), _) => (first, month, second),
            // ISO 8601. Any other date without a month's name would be ambiguous.
            (None, Some(third)) if first.digits == 4 => (third, second.value, first),
            (None, _) => return None,
        };
        let year = match (year.digits, year.value) {
            // Years of two or three digits (RFC 5322 section 4.3).
            (..=2, value @ ..50) => 2000 + value,
            (..=3, value) => 1900 + value,
            (_, value) => value,
        };
        Some((year, month, day.value))
    }
}

/// Makes a date. `day`: year, month and day. `time`: hour, minute and second in the zone. `None`:
/// the day does not exist, or the time is before 1970.
fn sent(day: (u64, u64, u64), time: (u64, u64, u64), zone_minutes: i16) -> Option<SentDate> {
    let (year, month, day) = day;
    let (hour, minute, second) = time;
    let days = days_since_1970(year, month, day)?;
    let seconds = ((days * 24 + hour) * 60 + minute) * 60 + second;
    let seconds = seconds.checked_add_signed(-60 * i64::from(zone_minutes))?;
    Some(SentDate { time: UnixTime::from_seconds(seconds), zone_minutes })
}

/// The number of days from 1970-01-01 to this day. `None`: the day does not exist, or is not in the
/// years 1970 to 9999.
pub(crate) fn days_since_1970(year: u64, month: u64, day: u64) -> Option<u64> {
    let is_leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let (before, length) = match month {
        1 => (0, 31),
        2 => (31, 28 + u64::from(is_leap)),
        3 => (59, 31),
        4 => (90, 30),
        5 => (120, 31),
        6 => (151, 30),
        7 => (181, 31),
        8 => (212, 31),
        9 => (243, 30),
        10 => (273, 31),
        11 => (304, 30),
        12 => (334, 31),
        _ => return None,
    };
    if !(1970..=9999).contains(&year) || day == 0 || day > length {
        return None;
    }
    let past = year - 1;
    let leap_days = past / 4 - past / 100 + past / 400 - (1969 / 4 - 1969 / 100 + 1969 / 400);
    Some((year - 1970) * 365 + leap_days + before + u64::from(is_leap && month > 2) + day - 1)
}
