//! Moments and sizes, for people and for machines. All times are UTC.

use alloc::format;
use alloc::string::String;

use machine::UnixTime;
use message::date_time;

/// When, in as few words as tell it from now: `14:05`, `3 Nov`, `3 Nov 2025`.
pub(crate) fn few_words(time: UnixTime, now: UnixTime) -> String {
    let [then, now] = [time, now].map(Words::of);
    let Words { day, month, year, hour_minute, .. } = &then;
    if (year, month, day) == (&now.year, &now.month, &now.day) {
        return hour_minute.clone();
    }
    let day = day.trim_start_matches('0');
    if *year == now.year { format!("{day} {month}") } else { format!("{day} {month} {year}") }
}

/// When, for people who read the message: `3 Nov 2026, 14:05`.
pub(crate) fn in_words(time: UnixTime) -> String {
    let Words { day, month, year, hour_minute, .. } = Words::of(time);
    format!("{} {month} {year}, {hour_minute}", day.trim_start_matches('0'))
}

/// When, exactly, as RFC 3339 has it: `2026-11-03T14:05:06Z`.
pub(crate) fn exact(time: UnixTime) -> String {
    const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let Words { day, month, year, hour_minute, second } = Words::of(time);
    let month = MONTHS.iter().position(|name| *name == month).map_or(1, |index| index + 1);
    format!("{year}-{month:02}-{day}T{hour_minute}:{second}Z")
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
struct Words {
    day: String,
    month: String,
    year: String,
    hour_minute: String,
    second: String,
}

impl Words {
    fn of(time: UnixTime) -> Words {
        let text = date_time(time);
        let part =
            |from: usize, to: usize| String::from_utf8_lossy(text.get(from..to).unwrap_or_default()).into_owned();
        Words {
            day: part(5, 7),
            month: part(8, 11),
            year: part(12, 16),
            hour_minute: part(17, 22),
            second: part(23, 25),
        }
    }
}
