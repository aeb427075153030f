//! Tests of time zones.

use alloc::string::ToString;

use machine::UnixTime;

use crate::moments::Moment;
use crate::zone::{Zone, ZoneCache, known_name, offset_in_words, suggested_names};

/// 2026-01-15T23:30:00Z and 2026-07-15T23:30:00Z.
const WINTER: UnixTime = UnixTime::from_seconds(1_768_519_800);
const SUMMER: UnixTime = UnixTime::from_seconds(1_784_158_200);

#[test]
fn times_are_written_in_the_zone_of_the_reader() {
    let mut zones = ZoneCache::default();
    for (name, winter, summer) in [
        ("UTC", "15 Jan 2026, 23:30 +0000", "15 Jul 2026, 23:30 +0000"),
        ("Europe/Berlin", "16 Jan 2026, 00:30 +0100", "16 Jul 2026, 01:30 +0200"),
        ("America/Los_Angeles", "15 Jan 2026, 15:30 -0800", "15 Jul 2026, 16:30 -0700"),
        ("Asia/Kolkata", "16 Jan 2026, 05:00 +0530", "16 Jul 2026, 05:00 +0530"),
        ("Australia/Lord_Howe", "16 Jan 2026, 10:30 +1100", "16 Jul 2026, 10:00 +1030"),
    ] {
        let zone = zones.find(name);
        let written = |time| [Moment::of(time, &zone).in_words(), zone.offset(time)].join(" ");
        assert_eq!([written(WINTER), written(SUMMER)], [winter, summer], "{name}");
        assert_eq!(Moment::of(WINTER, &zone).exact(), "2026-01-15T23:30:00Z");
    }
}

#[test]
fn every_suggested_zone_has_rules_for_all_times() {
    let mut zones = ZoneCache::default();
    let mut count = 0;
    for name in suggested_names() {
        assert_eq!(known_name(name), Some(name));
        let zone = zones.find(name);
        assert_eq!(zone.name(), name);
        for time in [UnixTime(0), WINTER, UnixTime::from_seconds(u64::MAX), UnixTime(u64::MAX)] {
            assert_eq!(zone.offset(time).len(), 5, "{name}");
            assert!(!Moment::of(time, &zone).in_words().is_empty());
        }
        count += 1;
    }
    assert!(count > 400);
}

#[test]
fn unknown_zones_are_utc() {
    let mut zones = ZoneCache::default();
    for name in ["", "Mars/Olympus_Mons", "UTC"] {
        assert_eq!(zones.find(name).name(), Zone::UTC.name());
    }
    assert_eq!(known_name("europe/berlin"), Some("Europe/Berlin"));
    assert_eq!(known_name("Mars/Olympus_Mons"), None);
    assert_eq!(offset_in_words(-210), "-0330".to_string());
}
