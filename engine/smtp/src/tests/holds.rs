//! Tests of holds: how long a message is held at the client's request.

use std::format;
use std::string::ToString;

use machine::UnixTime;
use proptest::prelude::*;

use super::world::{Conversation, World};
use crate::Holds;
use crate::hold::{DateTime, Hold};

/// Tue, 24 Nov 2026 12:00:00.5 UTC.
const NOW: UnixTime = UnixTime(1_795_521_600_500_000);
const OK: &str = "250 2.1.0 Sender OK\r\n";
const SYNTAX: &str = "501 5.5.4 Invalid parameter value\r\n";
const UNKNOWN: &str = "555 5.5.4 Unsupported parameter\r\n";

fn holding() -> Conversation {
    let mut world = World::new();
    world.settings.holds = Some(Holds { seconds_max: 86_400, now: NOW });
    world.settings.faults_max = 100;
    let mut talk = Conversation::with(world);
    talk.says("EHLO client.test\r\n");
    assert!(talk.replies().contains("\r\n250-FUTURERELEASE 86400 2026-11-25T12:00:00Z\r\n"));
    talk
}

#[test]
fn hold_is_limited_to_the_announced_time() {
    let mut talk = holding();
    for (parameter, until) in [
        ("HOLDFOR=0", Some(0)),
        ("holdfor=60", Some(60)),
        ("HOLDFOR=000086400", Some(86_400)),
        ("HOLDFOR=86401", None),
        ("HOLDFOR=999999999", None),
        ("HOLDFOR=1000000000", None),
        ("HOLDFOR=", None),
        ("HOLDFOR=-1", None),
        ("HOLDFOR=1.5", None),
        ("HOLDFOR", None),
        ("HOLDFOR=1 HOLDFOR=1", None),
        ("HOLDFOR=1 HOLDUNTIL=2026-11-24T12:30:00Z", None),
        ("HOLDUNTIL=2026-11-24T12:30:00Z", Some(1800)),
        ("HOLDUNTIL=2026-11-24t13:30:00.25+01:00", Some(1800)),
        ("HOLDUNTIL=2026-11-24T06:59:00-05:01", Some(0)),
        ("HOLDUNTIL=2026-11-25T12:00:00z", Some(86_400)),
        ("HOLDUNTIL=2026-11-25T12:00:01Z", None),
        ("HOLDUNTIL=2026-11-24T12:00:00Z", None),
        ("HOLDUNTIL=1969-12-31T23:59:59Z", None),
        ("HOLDUNTIL=1970-01-01T00:00:00+00:01", None),
        ("HOLDUNTIL=2026-11-31T12:30:00Z", None),
        ("HOLDUNTIL=2027-02-29T12:30:00Z", None),
        ("HOLDUNTIL=2026-11-24T24:00:00Z", None),
        ("HOLDUNTIL=2026-11-24T12:60:00Z", None),
        ("HOLDUNTIL=2026-11-24T12:30:61Z", None),
        ("HOLDUNTIL=2026-11-24T12:30:00", None),
        ("HOLDUNTIL=2026-11-24T12:30:00.Z", None),
        ("HOLDUNTIL=2026-11-24T12:30Z", None),
        ("HOLDUNTIL=2026-11-24T12:30:00Z0", None),
        ("HOLDUNTIL=2026-11-24T12:30:00+0100", None),
        ("HOLDUNTIL=2026-11-24T12:30:00+24:00", None),
        ("HOLDUNTIL=24.11.2026", None),
        ("HOLDUNTIL=", None),
    ] {
        talk.world.log.clear();
        let is_held = until.filter(|until| *until > 0 || !parameter.contains("UNTIL"));
        let reply = if is_held.is_some() { OK } else { SYNTAX };
        talk.exchange(&[
            (&format!("MAIL FROM:<a@b> {parameter}\r\n"), reply),
            ("RSET\r\n", "250 2.0.0 OK\r\n"),
        ]);
        let held = is_held.map(|until| format!("held until {}", NOW.seconds() + until));
        assert_eq!(
            talk.world.log.get(1).filter(|line| line.starts_with("held")).cloned(),
            held,
            "{parameter}"
        );
    }
}

#[test]
fn hold_is_refused_if_not_announced() {
    let mut talk = Conversation::new();
    talk.says("EHLO client.test\r\n");
    assert!(!talk.replies().contains("FUTURERELEASE"));
    talk.exchange(&[
        ("MAIL FROM:<a@b> HOLDFOR=1\r\n", UNKNOWN),
        ("MAIL FROM:<a@b> HOLDUNTIL=2026-11-24T12:30:00Z\r\n", UNKNOWN),
        ("MAIL FROM:<a@b>\r\n", OK),
    ]);
}

proptest! {
    #[test]
    fn hold_date_round_trips(seconds in 0u64..253_402_300_800) {
        let time = UnixTime::from_seconds(seconds);
        prop_assert_eq!(Hold::read_until(&DateTime(time).to_string()), Some(Hold::Until(time)));
    }

    #[test]
    fn any_text_is_a_date_or_none(text in "[0-9]{0,5}-[0-9]{0,3}-[0-9]{0,3}[tT][0-9:.]{0,12}([zZ]|[+-][0-9:]{0,6})?") {
        let _ = Hold::read_until(&text);
    }
}
