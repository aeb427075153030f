//! Tests of calendars in messages.

use std::format;
use std::string::{String, ToString};
use std::vec;
use std::vec::Vec;

use icalendar::{Component, EventLike, Property};
use machine::{Date, UnixTime};
use proptest::prelude::*;

use crate::calendar::*;
use crate::shown::is_shown;

fn read(text: &str) -> Option<Calendar> {
    let whole = Calendar::read(text.as_bytes(), None);
    assert_eq!(Calendar::read(text.replace('\n', "\r\n").as_bytes(), Some("utf-8")), whole);
    whole
}

/// A calendar with one event with these lines.
fn event(lines: &str) -> CalendarEvent {
    let text = format!(
        "BEGIN:VCALENDAR\nBEGIN:VEVENT\nUID:1\nX-ANY:1\n{lines}\nEND:VEVENT\nEND:VCALENDAR\n"
    );
    read(&text).map(|calendar| calendar.events[0].clone()).unwrap_or_default()
}

/// A time in words: the date and time of day, and the zone.
fn in_words(time: Option<&EventTime>) -> String {
    let words = |time: &UnixTime| Date::of(*time).to_string().replace('Z', "");
    match time {
        None => "-".to_string(),
        Some(EventTime::Day(time)) => format!("{} day", words(time)),
        Some(EventTime::Utc(time)) => format!("{} UTC", words(time)),
        Some(EventTime::Local { time, zone }) => format!("{} [{zone}]", words(time)),
    }
}

#[test]
fn texts_of_an_event_are_read() {
    for (lines, expected) in [
        ("SUMMARY:Planning", "Planning"),
        ("summary;LANGUAGE=en:Planning", "Planning"),
        ("SUMMARY:Lunch\\, then\\; work\\nat C:\\\\home", "Lunch, then; work at C:\\home"),
        ("SUMMARY:Pla\n nning \n\tof work", "Planning of work"),
        ("SUMMARY;X-A=\"a:b;c\";X-B=d:At 10:30", "At 10:30"),
        ("SUMMARY:\u{202e}Plan\u{200b}\u{7}", "Plan"),
        ("SUMMARY:first\nSUMMARY:second", "second"),
        ("SUMMARY", ""),
        ("SUMMARY;X=\":x", ""),
        ("BEGIN:VALARM\nSUMMARY:Alarm\nEND:VALARM\nSUMMARY:Planning", "Planning"),
        ("SUMMARY:Planning\nBEGIN:VALARM\nBEGIN:X\nEND:X\nSUMMARY:Alarm\nEND:VALARM", "Planning"),
    ] {
        assert_eq!(event(lines).summary, expected, "{lines}");
    }
    assert_eq!(event("LOCATION:Room 4\\, left").location, "Room 4, left");
}

#[test]
fn a_fold_within_a_character_is_joined() {
    let folded: &[u8] = b"BEGIN:VCALENDAR\r\nBEGIN:VEVENT\r\nSUMMARY:caf\xc3\r\n \xa9\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n";
    for charset in [None, Some("utf-8")] {
        let calendar = Calendar::read(folded, charset).unwrap();
        assert_eq!(calendar.events[0].summary, "café");
    }
    let marked = [b"\xef\xbb\xbf", folded].concat();
    for charset in [None, Some("utf-8")] {
        assert!(Calendar::read(&marked, charset).is_some());
    }
    let latin = b"BEGIN:VCALENDAR\nBEGIN:VEVENT\nSUMMARY:caf\xe9\n";
    let calendar = Calendar::read(latin, Some("iso-8859-1")).unwrap();
    assert_eq!(calendar.events[0].summary, "café");
}

#[test]
fn people_of_an_event_are_read() {
    let event = event(
        "ORGANIZER;CN=\"Grace; ^'Amazing^' Hopper\":MAILTO:grace@example.org\nATTENDEE;CN=Ada;PARTSTAT=ACCEPTED:mailto:ada@example.org\nATTENDEE;PARTSTAT=DECLINED:mailto:bob@example.org",
    );
    let [organizer, attendee] =
        [&event.organizer, &event.attendee].map(|person| [&*person.name, &*person.address]);
    assert_eq!(organizer, ["Grace; \"Amazing\" Hopper", "grace@example.org"]);
    assert_eq!(attendee, ["Ada", "ada@example.org"]);
    assert_eq!(event.participation, Some(Participation::Accepted));
    assert_eq!(self::event("ORGANIZER:invalid:nomail").organizer.address, "");
}

#[test]
fn times_of_an_event_are_read() {
    for (lines, start, end) in [
        ("DTSTART:20261103T140506Z", "2026-11-03 14:05:06 UTC", "-"),
        ("DTSTART:20261103T140500", "2026-11-03 14:05:00 []", "-"),
        (
            "DTSTART;TZID=\u{202e}Mars\u{200b} Time:20261103T140500",
            "2026-11-03 14:05:00 [Mars Time]",
            "-",
        ),
        (
            "DTSTART;TZID=\"Europe/Berlin\":20261103T140500\nDTEND;TZID=Other:20261103T150000",
            "2026-11-03 14:05:00 [Europe/Berlin]",
            "2026-11-03 15:00:00 [Other]",
        ),
        (
            "DTSTART;VALUE=DATE:20240228\nDTEND;VALUE=DATE:20240301",
            "2024-02-28 00:00:00 day",
            "2024-03-01 00:00:00 day",
        ),
        (
            "DURATION:PT1H30M\nDTSTART:20261103T233000Z",
            "2026-11-03 23:30:00 UTC",
            "2026-11-04 01:00:00 UTC",
        ),
        ("DTSTART:20261103\nDURATION:P1W2D", "2026-11-03 00:00:00 day", "2026-11-12 00:00:00 day"),
        ("DTSTART:20261103T140500Z\nDURATION:-PT1H", "2026-11-03 14:05:00 UTC", "-"),
        (
            "DTSTART:20261103T140500Z\nDURATION:P99999999999999999999D",
            "2026-11-03 14:05:00 UTC",
            "-",
        ),
        ("SUMMARY:x\nDTSTART:20260229T140500Z", "-", "-"),
        ("SUMMARY:x\nDTSTART:20261103T240000Z", "-", "-"),
        ("SUMMARY:x\nDTSTART:2026-11-03", "-", "-"),
        ("SUMMARY:x\nDTSTART:19691231T235959Z", "-", "-"),
        ("SUMMARY:x\nDTSTART:", "-", "-"),
    ] {
        let event = event(lines);
        assert_eq!([in_words(event.start.as_ref()), in_words(event.end.as_ref())], [start, end]);
    }
}

#[test]
fn repetitions_are_read() {
    let of = |rule: &str| event(&format!("SUMMARY:x\nRRULE:{rule}")).repetition;
    let weekly = Repetition {
        unit: RepetitionUnit::Week,
        interval: 2,
        is_on_certain_days: false,
        times: Some(10),
        until: None,
    };
    assert_eq!(of("FREQ=WEEKLY;INTERVAL=2;COUNT=10;BYDAY=MO"), Some(weekly));
    for (rule, expected) in [
        ("FREQ=DAILY;INTERVAL=1;COUNT=2;WKST=MO", false),
        ("FREQ=DAILY;BYDAY=MO", true),
        ("FREQ=WEEKLY;BYDAY=MO,WE", true),
        ("FREQ=MONTHLY;BYMONTHDAY=3", false),
        ("FREQ=MONTHLY;BYMONTHDAY=-1", true),
        ("FREQ=MONTHLY;BYDAY=2TU", true),
        ("FREQ=YEARLY;bymonth=3", false),
        ("FREQ=YEARLY;BYMONTHDAY=3", true),
        ("FREQ=MONTHLY;BYMONTHDAY=3;BYSETPOS=1", true),
    ] {
        assert_eq!(of(rule).unwrap().is_on_certain_days, expected, "{rule}");
    }
    let until = of("freq=daily;UNTIL=20261231T000000Z").unwrap();
    assert_eq!(in_words(until.until.as_ref()), "2026-12-31 00:00:00 UTC");
    assert_eq!((until.unit, until.interval), (RepetitionUnit::Day, 1));
    assert_eq!(of("FREQ=SECONDLY"), None);
    assert_eq!(of("COUNT=3"), None);
}

#[test]
fn the_method_of_a_calendar_is_read() {
    for (method, expected) in [
        ("REQUEST", CalendarMethod::Request),
        ("Cancel", CalendarMethod::Cancel),
        ("REPLY", CalendarMethod::Reply),
        ("COUNTER", CalendarMethod::Counter),
        ("PUBLISH", CalendarMethod::Publish),
        ("OTHER", CalendarMethod::Publish),
    ] {
        let text = format!(
            "BEGIN:VCALENDAR\nMETHOD:{method}\nBEGIN:VTODO\nSUMMARY:no\nEND:VTODO\nBEGIN:VEVENT\nSTATUS:CANCELLED\nEND:VEVENT\nEND:VCALENDAR"
        );
        let calendar = read(&text).unwrap();
        assert_eq!(calendar.method, expected, "{method}");
        assert!(calendar.events[0].is_cancelled && calendar.events[0].summary.is_empty());
    }
}

#[test]
fn calendars_without_an_event_are_not_read() {
    for text in [
        "",
        "BEGIN:VCALENDAR\nEND:VCALENDAR",
        "BEGIN:VEVENT\nSUMMARY:x\nEND:VEVENT",
        "BEGIN:VCALENDAR\nBEGIN:VTODO\nSUMMARY:x\nEND:VTODO\nEND:VCALENDAR",
        "hello",
    ] {
        assert_eq!(read(text), None, "{text}");
    }
    // The end is missing.
    let cut = read("BEGIN:VCALENDAR\nBEGIN:VEVENT\nSUMMARY:Planning\nDESCR").unwrap();
    assert_eq!(cut.events[0].summary, "Planning");
}

#[test]
fn calendars_are_bounded() {
    let long = "x".repeat(2 * EVENT_CHARS_MAX);
    let event =
        format!("BEGIN:VEVENT\nSUMMARY:{long}\nORGANIZER;CN={long}:mailto:{long}\nEND:VEVENT\n");
    let of =
        |count| read(&format!("BEGIN:VCALENDAR\n{}END:VCALENDAR", event.repeat(count))).unwrap();
    let most = of(EVENTS_MAX);
    assert!(most.events.len() == EVENTS_MAX && !most.has_more);
    let first = &most.events[0];
    for text in [&first.summary, &first.organizer.name, &first.organizer.address] {
        assert_eq!(text.len(), EVENT_CHARS_MAX);
    }
    // A long name of a zone is cut alike in both places.
    let name = format!("{}\u{200b}", "Z".repeat(150));
    let text = format!(
        "BEGIN:VCALENDAR\nBEGIN:VTIMEZONE\nTZID:{name}\nBEGIN:STANDARD\nDTSTART:19700101T000000\nTZOFFSETTO:+0100\nEND:STANDARD\nEND:VTIMEZONE\nBEGIN:VEVENT\nDTSTART;TZID={name}:20260101T000000\n"
    );
    let calendar = read(&text).unwrap();
    let Some(EventTime::Local { time, zone }) = &calendar.events[0].start else { panic!("{text}") };
    assert_eq!(*zone, "Z".repeat(100));
    assert!(calendar.utc(*time, zone).is_some());
    let more = of(EVENTS_MAX + 1);
    assert!(more.events.len() == EVENTS_MAX && more.has_more);
}

/// A calendar with a zone of these observances.
fn zone(observances: &str) -> Calendar {
    read(&format!("BEGIN:VCALENDAR\nBEGIN:VEVENT\nSUMMARY:x\nEND:VEVENT\nBEGIN:VTIMEZONE\nTZID:Z\n{observances}END:VTIMEZONE\nEND:VCALENDAR\n")).unwrap()
}

fn observance(start: &str, before: &str, offset: &str, rule: &str) -> String {
    format!(
        "BEGIN:STANDARD\nDTSTART:{start}\nTZOFFSETFROM:{before}\nTZOFFSETTO:{offset}\n{rule}\nEND:STANDARD\n"
    )
}

/// The hours from UTC at a local time in the zone.
fn hours(calendar: &Calendar, local: &str) -> Option<f64> {
    let event = event(&format!("DTSTART:{local}"));
    let Some(EventTime::Local { time, .. }) = event.start else { panic!("{local}") };
    let utc = calendar.utc(time, "Z")?;
    Some((time.seconds() as f64 - utc.seconds() as f64) / 3_600.0)
}

#[test]
fn zones_of_a_calendar_have_their_offsets() {
    let spring = "RRULE:FREQ=YEARLY;BYDAY=-1SU;BYMONTH=3";
    let autumn = "RRULE:FREQ=YEARLY;INTERVAL=1;BYDAY=-1SU;BYMONTH=10";
    let berlin = zone(
        &[
            observance("16010101T030000", "+0200", "+0100", autumn),
            observance("16010101T020000", "+0100", "+0200", spring),
        ]
        .concat(),
    );
    for (local, expected) in [
        ("20260101T000000", 1.0),
        ("20260329T015959", 1.0),
        // Clocks skip this hour.
        ("20260329T020000", 1.0),
        ("20260329T025959", 1.0),
        ("20260329T030000", 2.0),
        ("20260701T120000", 2.0),
        ("20261025T025959", 2.0),
        ("20261025T030000", 1.0),
        ("20301027T030000", 1.0),
        ("19710101T000000", 1.0),
    ] {
        assert_eq!(hours(&berlin, local), Some(expected), "{local}");
    }
    // The first and the second of a day of the week, in the southern half of the world.
    let south = zone(
        &[
            observance(
                "20080406T030000",
                "+1100",
                "+1000",
                "RRULE:FREQ=YEARLY;BYMONTH=4;BYDAY=1SU",
            ),
            observance(
                "20081005T020000",
                "+1000",
                "+1100",
                "RRULE:FREQ=YEARLY;BYMONTH=10;BYDAY=2SU",
            ),
        ]
        .concat(),
    );
    for (local, expected) in [
        ("20070101T000000", 11.0),
        ("20260101T000000", 11.0),
        ("20260405T030000", 10.0),
        ("20261011T015959", 10.0),
        ("20261011T020000", 10.0),
        ("20261011T030000", 11.0),
    ] {
        assert_eq!(hours(&south, local), Some(expected), "{local}");
    }
    let fixed = zone(&observance("19700101T000000", "+0530", "-033000", ""));
    assert_eq!(hours(&fixed, "20260101T000000"), Some(-3.5));
    let ended = zone(
        &[
            observance("20000101T000000", "+0000", "+0100", ""),
            observance(
                "20010301T000000",
                "+0100",
                "+0200",
                "RRULE:FREQ=YEARLY;UNTIL=20030228T230000Z",
            ),
            observance("20010901T000000", "+0200", "+0100", "RRULE:FREQ=YEARLY;BYMONTHDAY=1"),
        ]
        .concat(),
    );
    assert_eq!(hours(&ended, "20030601T000000"), Some(2.0));
    assert_eq!(hours(&ended, "20040601T000000"), Some(1.0));
}

#[test]
fn zones_that_changed_before_1970_have_their_offsets() {
    let [first, second] = [("18910315T000100", "+0001"), ("19110311T000100", "+0100")];
    let of = |(start, offset)| observance(start, "+0000", offset, "");
    for both in [[of(first), of(second)], [of(second), of(first)]] {
        assert_eq!(hours(&zone(&both.concat()), "20260101T000000"), Some(1.0));
    }
    // The last rule ended in 1967.
    let until = "RRULE:FREQ=YEARLY;BYMONTH=10;BYDAY=-1SU;UNTIL=19671029T060000Z";
    let since = observance("19740106T020000", "-0500", "-0400", "");
    let rule = observance("19180101T020000", "-0400", "-0500", until);
    let zone = zone(&[rule, since].concat());
    assert_eq!(hours(&zone, "19730101T000000"), Some(-5.0));
    assert_eq!(hours(&zone, "20260101T000000"), Some(-4.0));
}

#[test]
fn zones_with_other_rules_are_unknown() {
    for rule in [
        "RRULE:FREQ=MONTHLY",
        "RRULE:FREQ=YEARLY;BYMONTH=3;BYMONTHDAY=8,9,10,11,12,13,14;BYDAY=SU",
        "RRULE:FREQ=YEARLY;BYSETPOS=1",
        "RRULE:FREQ=YEARLY;BYDAY=0SU",
        "RRULE:FREQ=YEARLY;BYDAY=1XX",
        "RRULE:FREQ=YEARLY;BYDAY=é",
        "RRULE:FREQ=YEARLY;INTERVAL=2",
        "RDATE:20260101T000000",
        "RDATE:20260101T000000\nRRULE:FREQ=YEARLY",
        "RRULE:FREQ=YEARLY;UNTIL=x",
        &format!("RRULE:FREQ=YEARLY;{}BYSETPOS=1", "WKST=SU;".repeat(25)),
        &format!("RRULE:FREQ=YEARLY;{}é", "WKST=SU;".repeat(25)),
    ] {
        let known = observance("20000101T000000", "+0000", "+0100", "");
        let zone = zone(&[known, observance("20000101T000000", "+0000", "+0100", rule)].concat());
        assert_eq!(hours(&zone, "20260101T000000"), None, "{rule}");
    }
    let none = zone("");
    assert_eq!(hours(&none, "20260101T000000"), None);
    let spelled = "RRULE:freq=yearly; bymonth=3;BYDAY=-1su";
    let zone = zone(&observance("20000301T000000", "+0000", "+0100", spelled));
    assert_eq!(hours(&zone, "20260601T000000"), Some(1.0));
    assert_eq!(none.utc(UnixTime::from_seconds(0), "Other"), None);
}

const TEXT: &str = "[ -~äß€日本語😀\n]{0,150}";
const NAME: &str = "[ -~äß€日本語😀&&[^\"^]]{1,60}";

proptest! {
    #[test]
    fn any_calendar_is_read_with_bounded_texts(
        lines in proptest::collection::vec(
            prop_oneof![
                Just("BEGIN:VCALENDAR".to_string()),
                Just("BEGIN:VEVENT".to_string()),
                Just("BEGIN:VTIMEZONE".to_string()),
                Just("BEGIN:STANDARD".to_string()),
                Just("BEGIN:VALARM".to_string()),
                Just("END:X".to_string()),
                Just(" ".to_string()),
                "(DTSTART|DTEND);TZID=[^:;\"]{0,20}:20261103T140500",
                "(TZID|SUMMARY|DTSTART|DTEND|RRULE|DURATION|ORGANIZER|TZOFFSETTO)[:;].{0,20}",
                "(DTSTART|DTEND|DURATION|TZOFFSETTO):[-+]?P?T?[0-9]{0,16}T?[0-9]{0,6}[ZSD]?",
                "RRULE:FREQ=(YEARLY|DAILY);(UNTIL|COUNT|BYMONTH|BYDAY)=-?[0-9]{0,9}(SU)?",
                "\\PC{0,20}",
            ],
            0..60,
        ),
        seconds in 0_u64..300_000_000_000,
    ) {
        let Some(calendar) = read(&lines.join("\n")) else { return Ok(()) };
        prop_assert!((1..=EVENTS_MAX).contains(&calendar.events.len()));
        for event in &calendar.events {
            let zones = [&event.start, &event.end].into_iter().filter_map(|time| match time {
                Some(EventTime::Local { zone, .. }) => Some(zone),
                _ => None,
            });
            let texts = [&event.summary, &event.location, &event.organizer.name];
            for text in texts.into_iter().chain(zones) {
                prop_assert!(text.chars().count() <= EVENT_CHARS_MAX);
                prop_assert!(text.chars().all(is_shown), "{text:?}");
            }
        }
        for line in &lines {
            let zone = line.strip_prefix("TZID:").unwrap_or_default();
            let _ = calendar.utc(UnixTime::from_seconds(seconds), zone);
        }
    }

    #[test]
    fn calendars_of_another_library_are_read_back(
        texts in [TEXT, TEXT],
        people in [NAME, NAME],
        is_long_fold: bool,
    ) {
                let person = |field, name: &str| {
            Property::new(field, "mailto:ada@example.org").add_parameter("CN", name).done()
        };
        let event = icalendar::Event::new()
            .summary(&texts[0])
            .location(&texts[1])
            .append_property(person("ORGANIZER", &people[0]))
            .append_multi_property(person("ATTENDEE", &people[1]))
            .done();
        let written = icalendar::Calendar::new().push(event).done().to_string();
        let written = if is_long_fold { written.replace("\r\n ", "\n\t") } else { written };
        let read = Calendar::read(written.as_bytes(), None).expect("it has an event");
        let event = &read.events[0];
        let one_line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        prop_assert_eq!(&event.summary, &one_line(&texts[0]), "{}", written);
        prop_assert_eq!(&event.location, &one_line(&texts[1]), "{}", written);
        prop_assert_eq!(&event.organizer.name, &one_line(&people[0]), "{}", written);
        prop_assert_eq!(&event.attendee.name, &one_line(&people[1]), "{}", written);
        prop_assert_eq!(&*event.organizer.address, "ada@example.org");
    }

    #[test]
    fn calendars_are_read_as_by_another_library(
        lines in proptest::collection::vec(
            (
                "(SUMMARY|LOCATION|X-OTHER)",
                "(;X-P=[a-z]{1,4}|;X-Q=\"[a-z:;, ]{1,8}\"){0,2}",
                "[a-z:;, \"äö\\\\]{1,30}",
            ),
            1..6,
        ),
        folds in proptest::collection::vec(1..40_usize, 8),
    ) {
        let lines: Vec<String> =
            lines.into_iter().map(|(name, parameters, value)| {
                format!("{name}{parameters}:{}", value.replace('\\', "\\\\"))
            }).collect();
        let text = format!(
            "BEGIN:VCALENDAR\r\nBEGIN:VEVENT\r\n{}\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n",
            lines.join("\r\n")
        );
        let mut folded = String::new();
        for line in text.lines() {
            let mut column = 0;
            for (character, fold) in line.chars().zip(folds.iter().cycle()) {
                if column >= *fold {
                    folded.push_str("\r\n ");
                    column = 0;
                }
                folded.push(character);
                column += 1;
            }
            folded.push_str("\r\n");
        }
        let theirs = icalendar::parser::unfold(&folded);
        let theirs = icalendar::parser::read_calendar_simple(&theirs).expect("a calendar");
        let event = &theirs[0].components[0];
        let last = |name: &str| {
            let values = event.properties.iter().rev().find(|property| property.name == name);
            let value = values.map(|property| property.val.clone());
            let value = value.map(|value| value.as_str().split_whitespace().collect::<Vec<_>>().join(" "));
            value.unwrap_or_default()
        };
        let ours = Calendar::read(folded.as_bytes(), None).map(|calendar| calendar.events[0].clone());
        let ours = ours.unwrap_or_default();
        prop_assert_eq!(ours.summary, last("SUMMARY"), "{}", folded);
        prop_assert_eq!(ours.location, last("LOCATION"), "{}", folded);
    }

    #[test]
    fn any_bytes_are_read_as_a_calendar(bytes: Vec<u8>) {
        let begun = [b"BEGIN:VCALENDAR\nBEGIN:VEVENT\n", &bytes[..]].concat();
        let _ = Calendar::read(&begun, None);
        let _ = Calendar::read(&bytes, Some("utf-16le"));
    }
}
