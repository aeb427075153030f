//! Formats times and sizes for readers and for programs. All times are UTC.

use alloc::format;
use alloc::string::String;
use core::ops::Range;

use machine::UnixTime;
use message::date_time;

/// The names and numbers of the months.
const MONTHS: [(&str, &str); 12] = [
    ("Jan", "01"),
    ("Feb", "02"),
    ("Mar", "03"),
    ("Apr", "04"),
    ("May", "05"),
    ("Jun", "06"),
    ("Jul", "07"),
    ("Aug", "08"),
    ("Sep", "09"),
    ("Oct", "10"),
    ("Nov", "11"),
    ("Dec", "12"),
];

/// The number of days since 1970-01-01.
pub(crate) fn day(time: UnixTime) -> u64 {
    time.seconds() / 86_400
}

/// A time, in the format of a message's `Date` (RFC 5322 section 3.3).
pub(crate) struct Moment(String);

impl Moment {
    pub(crate) fn of(time: UnixTime) -> Moment {
        Moment(String::from_utf8_lossy(&date_time(time)).into_owned())
    }

    /// The time in short form: `14:05`, `3 Nov`, `3 Nov 2025`.
    pub(crate) fn in_few_words(&self, now: &Moment) -> String {
        if self.part(DATE) == now.part(DATE) {
            self.hour_minute().into()
        } else if self.year() == now.year() {
            [self.day(), self.month()].join(" ")
        } else {
            [self.day(), self.month(), self.year()].join(" ")
        }
    }

    /// The time to the minute: `14:05`, `4 Nov 2026, 00:20`.
    pub(crate) fn to_the_minute(&self, now: &Moment) -> String {
        if self.part(DATE) == now.part(DATE) { self.hour_minute().into() } else { self.in_words() }
    }

    /// Date and time, for a message on the page: `3 Nov 2026, 14:05`.
    pub(crate) fn in_words(&self) -> String {
        format!("{} {} {}, {}", self.day(), self.month(), self.year(), self.hour_minute())
    }

    /// The exact time in the format of RFC 3339: `2026-11-03T14:05:06Z`.
    pub(crate) fn exact(&self) -> String {
        let month = MONTHS
            .iter()
            .find(|(name, _)| *name == self.month())
            .map_or("01", |(_, number)| number);
        [self.year(), "-", month, "-", self.part(DAY), "T", self.part(TIME), "Z"].concat()
    }

    fn day(&self) -> &str {
        self.part(DAY).trim_start_matches('0')
    }

    fn month(&self) -> &str {
        self.part(8..11)
    }

    fn year(&self) -> &str {
        self.part(12..16)
    }

    fn hour_minute(&self) -> &str {
        self.part(17..22)
    }

    fn part(&self, range: Range<usize>) -> &str {
        self.0.get(range).unwrap_or_default()
    }
}

const DAY: Range<usize> = 5..7;
const DATE: Range<usize> = 5..16;
const TIME: Range<usize> = 17..25;

/// Formats a number of bytes: `812 bytes`, `14 KB`, `2.3 MB`.
pub(crate) fn size(bytes: u64) -> String {
    match bytes {
        0..1_000 => format!("{bytes} bytes"),
        1_000..999_500 => format!("{} KB", (bytes + 500) / 1_000),
        _ => format!("{}.{} MB", (bytes + 50_000) / 1_000_000, (bytes + 50_000) / 100_000 % 10),
    }
}
