//! Daily sending limits: an account that has reached its limit cannot send until the next day, on
//! any core and by any protocol. The console notifies administrators.

#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a test may fail")]

use chance::Dice;
use http::Site;
use machine::{Machine as _, Micros};
use simulated::MemoryDisk;

use super::relay::ADA;
use super::room::tls_stream::Trust;
use super::room::{CONFIGURATION, DISK_BYTES, Room, usual_sizes};
use super::settings::forget_connections;
use super::webmail::Browser;

/// Grace's login: NUL, `grace@barepost.test`, NUL, `lovelace`, in base64.
const GRACE: &str = "AUTH PLAIN AGdyYWNlQGJhcmVwb3N0LnRlc3QAbG92ZWxhY2U=";
const MANY: &str = "451 4.7.0 Daily message limit reached";
const NEW: &str = "451 4.7.0 Daily limit for new recipients reached";

/// The configuration: an account may send four messages a day, to three new recipients. Grace may
/// send more.
fn limited() -> String {
    let grace = "address = \"grace@barepost.test\"";
    let more = format!("{grace}\nmessages_per_day = \"unlimited\"\nnew_recipients_per_day = 5");
    let limits = "[limits]\nmessages_per_day = 4\nnew_recipients_per_day = 3\n\n[access]";
    CONFIGURATION.replace(grace, &more).replace("[access]", limits)
}

fn serving(seed: u64, disk: MemoryDisk, trust: &Trust) -> Room {
    let certificates = vec![trust.certificate.clone()];
    let mut room =
        Room::certified(seed, disk, usual_sizes(), &limited(), Site::default(), certificates);
    room.until("the engine serves", |room| room.console_says("serving"));
    room
}

/// The machine after a power cut, restarted at the same time of day.
fn power_cut(room: Room, seed: u64, trust: &Trust) -> Room {
    let Room { mut machine, .. } = room;
    let wall = machine.wall_clock();
    let mut room = serving(seed, machine.disk.power_cut(&mut Dice::new(seed)), trust);
    room.machine.started = wall;
    room
}

/// Submits a message as this user on a new connection. Returns the last reply.
fn submit(room: &mut Room, login: &str, to: &[&str]) -> String {
    let name = if login == ADA { "ada" } else { "grace" };
    let mut talk = room.connect(587);
    assert!(room.smtp_reply(&mut talk).starts_with("220 "));
    for command in ["EHLO client.test", login, &format!("MAIL FROM:<{name}@barepost.test>")] {
        let reply = room.smtp(&mut talk, command);
        assert!(reply.starts_with('2'), "{command}: {reply}");
    }
    for recipient in to {
        assert!(
            room.smtp(&mut talk, &format!("RCPT TO:<{recipient}>")).starts_with("250 "),
            "{recipient}"
        );
    }
    let mut reply = room.smtp(&mut talk, "DATA");
    if reply.starts_with("354 ") {
        reply = room.smtp(&mut talk, "Subject: x\r\n\r\nHello.\r\n.");
    }
    room.part(talk);
    reply
}

fn limit_lines(room: &Room) -> Vec<&str> {
    room.machine
        .console
        .iter()
        .map(String::as_str)
        .filter(|line| line.starts_with("limits: "))
        .collect()
}

#[test]
fn the_daily_message_limit_is_enforced_and_announced_once() {
    let trust = Trust::new("mail.barepost.test");
    for seed in [1500, 1501] {
        let mut room = serving(seed, MemoryDisk::blank(DISK_BYTES), &trust);
        for _ in 0..4 {
            assert!(submit(&mut room, ADA, &["grace@barepost.test"]).starts_with("250 "));
        }
        assert_eq!(limit_lines(&room), [""; 0]);
        for _ in 0..3 {
            assert!(submit(&mut room, ADA, &["grace@barepost.test"]).starts_with(MANY));
            assert_eq!(
                limit_lines(&room),
                ["limits: ada@barepost.test has reached its limit of 4 messages a day"]
            );
        }
        for _ in 0..6 {
            assert!(submit(&mut room, GRACE, &["ada@barepost.test"]).starts_with("250 "));
        }
        // Inbound mail still arrives.
        assert!(room.deliver("ada@barepost.test", b"Subject: x\r\n\r\n").starts_with("250 "));
        room.pass(Micros::from_secs(86_400));
        for _ in 0..4 {
            assert!(submit(&mut room, ADA, &["grace@barepost.test"]).starts_with("250 "));
        }
        assert!(submit(&mut room, ADA, &["grace@barepost.test"]).starts_with(MANY));
        assert_eq!(limit_lines(&room).len(), 2);
    }
}

#[test]
fn the_daily_limit_of_new_recipients_is_enforced() {
    let trust = Trust::new("mail.barepost.test");
    let mut room = serving(1502, MemoryDisk::blank(DISK_BYTES), &trust);
    for (login, to, reply) in [
        (GRACE, &["bob@far.test", "carol@far.test"][..], "250 "),
        (GRACE, &["1@far.test", "2@far.test", "3@far.test", "4@far.test"], NEW),
        (
            GRACE,
            &["Bob@far.test", "bob@FAR.test", "1@far.test", "2@far.test", "3@far.test"],
            "250 ",
        ),
        (GRACE, &["4@far.test"], NEW),
        (
            GRACE,
            &["1@far.test", "2@far.test", "3@far.test", "carol@far.test", "ada@barepost.test"],
            "250 ",
        ),
        (ADA, &["4@far.test"], "250 "),
        (ADA, &["5@far.test", "6@far.test", "7@far.test"], NEW),
        (ADA, &["5@far.test", "6@far.test"], "250 "),
        (ADA, &["grace@barepost.test"], "250 "),
        (ADA, &["4@far.test"], "250 "),
        (ADA, &["4@far.test"], MANY),
    ] {
        let last_reply = submit(&mut room, login, to);
        assert!(last_reply.starts_with(reply), "{to:?}: {last_reply}");
    }
    let lines = [
        "limits: grace@barepost.test has reached its limit of 5 new recipients a day",
        "limits: ada@barepost.test has reached its limit of 3 new recipients a day",
    ];
    assert_eq!(limit_lines(&room), lines);
    room.pass(Micros::from_secs(86_400));
    for (to, reply) in [
        ("4@far.test", "250 "),
        ("8@far.test", "250 "),
        ("9@far.test", "250 "),
        ("10@far.test", "250 "),
        ("11@far.test", MANY),
    ] {
        let last_reply = submit(&mut room, ADA, &[to]);
        assert!(last_reply.starts_with(reply), "{to}: {last_reply}");
    }
}

#[test]
fn sending_limits_survive_a_power_cut() {
    let trust = Trust::new("mail.barepost.test");
    let mut room = serving(1503, MemoryDisk::blank(DISK_BYTES), &trust);
    for to in ["1@far.test", "2@far.test"] {
        assert!(submit(&mut room, ADA, &[to]).starts_with("250 "));
    }
    let mut room = power_cut(room, 1503, &trust);
    assert!(submit(&mut room, ADA, &["3@far.test", "4@far.test"]).starts_with(NEW));
    assert!(
        submit(&mut room, ADA, &["1@far.test", "2@far.test", "3@far.test"]).starts_with("250 ")
    );
    let mut room = power_cut(room, 1504, &trust);
    assert!(submit(&mut room, ADA, &["3@far.test"]).starts_with("250 "));
    let mut room = power_cut(room, 1505, &trust);
    assert!(submit(&mut room, ADA, &["3@far.test"]).starts_with(MANY));
}

#[test]
fn webmail_messages_count_against_the_limits() {
    let trust = Trust::new("mail.barepost.test");
    let mut room = serving(1506, MemoryDisk::blank(DISK_BYTES), &trust);
    let mut ada = Browser::new(&trust);
    ada.log_in(&mut room, "ada", "lovelace");
    let mut write = |room: &mut Room, to: &str| {
        forget_connections(&mut [&mut ada]);
        let token = ada.get(room, "/mail/compose").token();
        let form = [
            ("token", token.as_str()),
            ("to", to),
            ("subject", "Away"),
            ("text", "It computes."),
            ("do", "send"),
        ];
        let page = ada.send(room, "/mail/compose", &form);
        room.pass(Micros::from_secs(15));
        (page.status, page.text())
    };
    assert!(submit(&mut room, ADA, &["1@far.test"]).starts_with("250 "));
    let (_, page) = write(&mut room, "1@far.test, 2@far.test, 3@far.test, 4@far.test");
    assert!(
        page.contains("This message would exceed today’s limit of 3 new recipients.")
            && page.contains("It computes."),
        "{page}"
    );
    for to in ["1@far.test, 2@far.test", "grace@barepost.test", "2@far.test"] {
        let (status, page) = write(&mut room, to);
        assert_eq!(status, 303, "{page}");
    }
    let (_, page) = write(&mut room, "grace@barepost.test");
    assert!(
        page.contains("You have reached today’s limit of 4 sent messages.")
            && page.contains("It computes."),
        "{page}"
    );
    assert!(submit(&mut room, ADA, &["grace@barepost.test"]).starts_with(MANY));
    assert_eq!(
        limit_lines(&room),
        ["limits: ada@barepost.test has reached its limit of 3 new recipients a day"]
    );
}
