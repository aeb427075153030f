//! Tests of times as text.

use alloc::format;

use machine::UnixTime;

use crate::moments::Moment;
use crate::zone::Zone;

/// 2026-11-03T14:05:06Z.
const MOMENT: UnixTime = UnixTime::from_seconds(1_793_714_706);
const DAY_SECONDS: u64 = 86_400;

#[test]
fn a_time_is_written_as_short_as_its_age_allows() {
    let ago = |days: u64| UnixTime::from_seconds(MOMENT.seconds() - days * DAY_SECONDS);
    let short = |time| Moment::of(time, &Zone::UTC).in_few_words(&Moment::of(MOMENT, &Zone::UTC));
    assert_eq!(short(MOMENT), "14:05");
    assert_eq!(short(ago(1)), "2 Nov");
    assert_eq!(short(ago(4)), "30 Oct");
    assert_eq!(short(ago(365)), "3 Nov 2025");
    assert_eq!(Moment::of(MOMENT, &Zone::UTC).in_words(), "3 Nov 2026, 14:05");
    assert_eq!(
        Moment::of(MOMENT, &Zone::UTC).to_the_minute(&Moment::of(MOMENT, &Zone::UTC)),
        "14:05"
    );
    assert_eq!(
        Moment::of(ago(1), &Zone::UTC).to_the_minute(&Moment::of(MOMENT, &Zone::UTC)),
        "2 Nov 2026, 14:05"
    );
}

#[test]
fn time_is_written_exactly_in_every_month() {
    assert_eq!(Moment::of(MOMENT, &Zone::UTC).exact(), "2026-11-03T14:05:06Z");
    for month in 0..12_u64 {
        // The times begin on 15 January 2026 and have steps of 30.5 days, so each is in the middle
        // of a month.
        let time = UnixTime::from_seconds(1_768_435_200 + month * 2_635_200);
        assert_eq!(Moment::of(time, &Zone::UTC).exact()[5..7], format!("{:02}", month + 1));
    }
}
