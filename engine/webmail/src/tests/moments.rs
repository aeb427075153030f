//! Moments, in words and exactly.

use alloc::format;

use machine::UnixTime;

use crate::moments::{exact, few_words, in_words};

/// 2026-11-03T14:05:06Z.
const MOMENT: UnixTime = UnixTime::from_seconds(1_793_714_706);
const DAY_SECONDS: u64 = 86_400;

#[test]
fn a_moment_is_told_in_as_few_words_as_tell_it_from_now() {
    let ago = |days: u64| UnixTime::from_seconds(MOMENT.seconds() - days * DAY_SECONDS);
    assert_eq!(few_words(MOMENT, MOMENT), "14:05");
    assert_eq!(few_words(ago(1), MOMENT), "2 Nov");
    assert_eq!(few_words(ago(4), MOMENT), "30 Oct");
    assert_eq!(few_words(ago(365), MOMENT), "3 Nov 2025");
    assert_eq!(in_words(MOMENT), "3 Nov 2026, 14:05");
}

#[test]
fn a_moment_is_told_exactly_in_every_month() {
    assert_eq!(exact(MOMENT), "2026-11-03T14:05:06Z");
    for month in 0..12_u64 {
        // 15 January 2026, and 30 days and a half later again and again: each time in the middle of a month.
        let time = UnixTime::from_seconds(1_768_435_200 + month * 2_635_200);
        assert_eq!(exact(time)[5..7], format!("{:02}", month + 1));
    }
}
