//! Formats times and sizes, for readers in their time zones and for programs in UTC.

use alloc::format;
use alloc::string::String;
use core::ops::Range;

use machine::UnixTime;
use message::{DATE_TIME_BYTES, date_time};

use crate::zone::Zone;

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

/// The number of days since 1970-01-01, in UTC.
pub(crate) fn day(time: UnixTime) -> u64 {
    time.seconds() / 86_400
}

/// The current time, and the reader's zone.
pub(crate) struct LocalClock {
    pub(crate) now: UnixTime,
    pub(crate) zone: Zone,
}

impl LocalClock {
    /// A time in the reader's zone.
    pub(crate) fn moment(&self, time: UnixTime) -> Moment {
        Moment::of(time, &self.zone)
    }

    /// The number of the current day in the zone, counted from 1970-01-01.
    pub(crate) fn today(&self) -> u64 {
        day(self.zone.local(self.now))
    }
}

/// A time in the reader's zone.
pub(crate) struct Moment {
    time: UnixTime,
    /// The local time, in the format of a message's `Date` (RFC 5322 section 3.3).
    local: DateText,
}

/// A time in the format of a message's `Date` (RFC 5322 section 3.3).
struct DateText([u8; DATE_TIME_BYTES]);

impl Moment {
    pub(crate) fn of(time: UnixTime, zone: &Zone) -> Moment {
        Moment { time, local: DateText(date_time(zone.local(time))) }
    }

    /// The time in short form: `14:05`, `3 Nov`, `3 Nov 2025`.
    pub(crate) fn in_few_words(&self, now: &Moment) -> String {
        let (local, now) = (&self.local, &now.local);
        if local.part(DATE) == now.part(DATE) {
            local.part(HOUR_MINUTE).into()
        } else if local.part(YEAR) == now.part(YEAR) {
            [local.day(), local.part(MONTH)].join(" ")
        } else {
            [local.day(), local.part(MONTH), local.part(YEAR)].join(" ")
        }
    }

    /// The time to the minute: `14:05`, `4 Nov 2026, 00:20`.
    pub(crate) fn to_the_minute(&self, now: &Moment) -> String {
        if self.local.part(DATE) == now.local.part(DATE) {
            self.local.part(HOUR_MINUTE).into()
        } else {
            self.in_words()
        }
    }

    /// Date and time, for a message on the page: `3 Nov 2026, 14:05`.
    pub(crate) fn in_words(&self) -> String {
        let local = &self.local;
        let [month, year, time] = [MONTH, YEAR, HOUR_MINUTE].map(|range| local.part(range));
        format!("{} {month} {year}, {time}", local.day())
    }

    /// The date with the day of the week: `Tue, 3 Nov 2026`.
    pub(crate) fn date_in_words(&self) -> String {
        let local = &self.local;
        let [weekday, month, year] = [WEEKDAY, MONTH, YEAR].map(|range| local.part(range));
        format!("{weekday}, {} {month} {year}", local.day())
    }

    /// The time of day to the minute: `14:05`.
    pub(crate) fn time_of_day(&self) -> &str {
        self.local.part(HOUR_MINUTE)
    }

    /// The exact time in the format of RFC 3339: `2026-11-03T14:05:06Z`.
    pub(crate) fn exact(&self) -> String {
        let utc = DateText(date_time(self.time));
        let month = MONTHS
            .iter()
            .find(|(name, _)| *name == utc.part(MONTH))
            .map_or("01", |(_, number)| number);
        [utc.part(YEAR), "-", month, "-", utc.part(DAY), "T", utc.part(TIME), "Z"].concat()
    }
}

impl DateText {
    fn day(&self) -> &str {
        self.part(DAY).trim_start_matches('0')
    }

    fn part(&self, range: Range<usize>) -> &str {
        self.0.get(range).and_then(|part| core::str::from_utf8(part).ok()).unwrap_or_default()
    }
}

const WEEKDAY: Range<usize> = 0..3;
const DAY: Range<usize> = 5..7;
const DATE: Range<usize> = 5..16;
const MONTH: Range<usize> = 8..11;
const YEAR: Range<usize> = 12..16;
const TIME: Range<usize> = 17..25;
const HOUR_MINUTE: Range<usize> = 17..22;

/// Formats a number of bytes: `812 bytes`, `14 KB`, `2.3 MB`.
pub(crate) fn size(bytes: u64) -> String {
    match bytes {
        0..1_000 => format!("{bytes} bytes"),
        1_000..999_500 => format!("{} KB", (bytes + 500) / 1_000),
        _ => format!("{}.{} MB", (bytes + 50_000) / 1_000_000, (bytes + 50_000) / 100_000 % 10),
    }
}
