//! Tests of time zones.

use alloc::string::ToString;

use machine::UnixTime;
use message::calendar::Calendar;

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

#[test]
fn local_times_are_found_again() {
    let mut zones = ZoneCache::default();
    for name in suggested_names() {
        let zone = zones.find(name);
        // Each quarter of an hour around a change is in some of these steps.
        for seconds in (WINTER.seconds()..SUMMER.seconds()).step_by(49 * 900) {
            let local = zone.local(UnixTime::from_seconds(seconds));
            let found = zone.utc(local);
            assert_eq!(zone.local(found), local, "{name} {seconds}");
            assert!(found.seconds() <= seconds, "{name} {seconds}");
        }
    }
    let berlin = zones.find("Europe/Berlin");
    // Clocks skip the hour from 02:00 on 29 March, and show that of 25 October twice.
    for (local, utc) in [
        (1_774_749_599, 1_774_745_999),
        (1_774_749_600, 1_774_746_000),
        (1_774_753_200, 1_774_746_000),
        (1_792_893_600, 1_792_886_400),
        (1_792_897_199, 1_792_889_999),
        (1_792_897_200, 1_792_893_600),
    ] {
        let found = berlin.utc(UnixTime::from_seconds(local));
        assert_eq!(found, UnixTime::from_seconds(utc), "{local}");
    }
}

#[test]
fn zones_of_calendars_agree_with_the_database() {
    let mut zones = ZoneCache::default();
    for (name, standard, daylight) in [
        (
            "Europe/Berlin",
            ("16010101T030000", "+0200", "+0100", "BYDAY=-1SU;BYMONTH=10"),
            ("16010101T020000", "+0100", "+0200", "BYDAY=-1SU;BYMONTH=3"),
        ),
        (
            "America/New_York",
            ("20071104T020000", "-0400", "-0500", "BYDAY=1SU;BYMONTH=11"),
            ("20070311T020000", "-0500", "-0400", "BYDAY=2SU;BYMONTH=3"),
        ),
        (
            "Australia/Lord_Howe",
            ("20080406T020000", "+1100", "+1030", "BYMONTH=4;BYDAY=1SU"),
            ("20081005T020000", "+1030", "+1100", "BYMONTH=10;BYDAY=1SU"),
        ),
    ] {
        let observance = |kind, (start, before, after, rule)| {
            alloc::format!(
                "BEGIN:{kind}\nDTSTART:{start}\nTZOFFSETFROM:{before}\nTZOFFSETTO:{after}\nRRULE:FREQ=YEARLY;{rule}\nEND:{kind}\n"
            )
        };
        let text = [
            "BEGIN:VCALENDAR\nBEGIN:VEVENT\nSUMMARY:x\nEND:VEVENT\nBEGIN:VTIMEZONE\nTZID:Own\n",
            &observance("STANDARD", standard),
            &observance("DAYLIGHT", daylight),
            "END:VTIMEZONE\nEND:VCALENDAR\n",
        ]
        .concat();
        let calendar = Calendar::read(text.as_bytes(), None).expect("it has an event");
        let zone = zones.find(name);
        // From 2010 to 2036, each half hour.
        for seconds in (1_262_304_000..2_082_758_400).step_by(1_800) {
            let time = UnixTime::from_seconds(seconds);
            let local = zone.local(time);
            // A local time that clocks show twice has two times.
            if zone.utc(local) == time {
                assert_eq!(calendar.utc(local, "Own"), Some(time), "{name} {seconds}");
            }
        }
    }
}
