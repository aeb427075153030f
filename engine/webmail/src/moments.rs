//! Moments and sizes, for people and for machines. All times are UTC.

use alloc::format;
use alloc::string::String;
use core::ops::Range;

use machine::UnixTime;
use message::{DATE_TIME_BYTES, date_time};

/// When, in as few words as tell it from now: `14:05`, `3 Nov`, `3 Nov 2025`.
pub(crate) fn few_words(time: UnixTime, now: UnixTime) -> String {
    let [then, now] = [time, now].map(Words::of);
    let (day, month, year) = (then.day(), then.month(), then.year());
    if (year, month, day) == (now.year(), now.month(), now.day()) {
        return then.hour_minute().into();
    }
    let day = day.trim_start_matches('0');
    if year == now.year() { [day, month].join(" ") } else { [day, month, year].join(" ") }
}

/// When, for people who read the message: `3 Nov 2026, 14:05`.
pub(crate) fn in_words(time: UnixTime) -> String {
    let words = Words::of(time);
    let day = words.day().trim_start_matches('0');
    format!("{day} {} {}, {}", words.month(), words.year(), words.hour_minute())
}

/// When, exactly, as RFC 3339 has it: `2026-11-03T14:05:06Z`.
pub(crate) fn exact(time: UnixTime) -> String {
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
    let words = Words::of(time);
    let month = MONTHS.iter().find(|(name, _)| *name == words.month()).map_or("01", |(_, number)| number);
    [words.year(), "-", month, "-", words.day(), "T", words.hour_minute(), ":", words.second(), "Z"].concat()
}

/// A number of bytes: `812 bytes`, `14 KB`, `2.3 MB`.
pub(crate) fn size(bytes: u64) -> String {
    match bytes {
        0..1_000 => format!("{bytes} bytes"),
        1_000..999_500 => format!("{} KB", (bytes + 500) / 1_000),
        _ => format!("{}.{} MB", (bytes + 50_000) / 1_000_000, (bytes + 50_000) / 100_000 % 10),
    }
}

/// What a date in a message's header is made of (RFC 5322 section 3.3).
struct Words([u8; DATE_TIME_BYTES]);

impl Words {
    fn of(time: UnixTime) -> Words {
        Words(date_time(time))
    }

    fn day(&self) -> &str {
        self.part(5..7)
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

    fn second(&self) -> &str {
        self.part(23..25)
    }

    fn part(&self, range: Range<usize>) -> &str {
        // All of it is ASCII.
        str::from_utf8(self.0.get(range).unwrap_or_default()).unwrap_or_default()
    }
}
