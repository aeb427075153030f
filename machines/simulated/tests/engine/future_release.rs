//! Messages with a future release time (RFC 4865). When released, they get the full time for
//! delivery attempts.

#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a test may fail")]

use chance::Dice;
use machine::{Machine as _, Micros};

use super::relay::{ADA, MESSAGE, Mood, World, configuration, serving, world_of};
use super::room::{Room, usual_sizes};

const HOUR: u64 = 3600;
const DAY: u64 = 24 * HOUR;

/// The number of remote and of local recipients that have the message.
fn arrived(room: &mut Room, world: &mut World) -> (usize, usize) {
    (world.peer.taken.iter().map(|taken| taken.to.len()).sum(), world.inbox(room, "grace").len())
}

/// Cuts the power for this many seconds.
fn power_cut(room: Room, world: World, seed: u64, seconds: u64) -> (Room, World) {
    let Room { mut machine, .. } = room;
    let wall = machine.wall_clock();
    let disk = machine.disk.power_cut(&mut Dice::new(seed));
    let mut room = Room::configured(seed, disk, usual_sizes(), &configuration());
    room.machine.started = wall;
    room.machine.started.0 += Micros::from_secs(seconds).0;
    let (taken, mood) = (world.peer.taken, world.peer.mood);
    let (room, mut world) = world_of(room, mood);
    world.peer.taken = taken;
    (room, world)
}

#[test]
fn a_message_waits_for_its_release_time() {
    for (seed, to, expected) in [
        (1400, &["<bob@far.test>", "<grace@barepost.test>"][..], (1, 1)),
        (1401, &["<grace@barepost.test>"], (0, 1)),
        (1402, &["<bob@far.test>", "<carol@far.test> NOTIFY=NEVER"], (2, 0)),
    ] {
        let (mut room, mut world) = serving(seed, Mood::Takes);
        world.submit_with(&mut room, "<ada@barepost.test> BODY=8BITMIME HOLDFOR=3600", to, MESSAGE);
        world.submit_with(
            &mut room,
            "<ada@barepost.test> BODY=8BITMIME HOLDUNTIL=2026-01-01T03:00:00+01:00",
            to,
            MESSAGE,
        );
        world.pass(&mut room, HOUR - 300);
        assert_eq!(arrived(&mut room, &mut world), (0, 0));
        world.pass(&mut room, 600);
        assert_eq!(arrived(&mut room, &mut world), expected);
        world.pass(&mut room, HOUR - 900);
        assert_eq!(arrived(&mut room, &mut world), expected);
        world.pass(&mut room, 900);
        let twice = (2 * expected.0, 2 * expected.1);
        assert_eq!(arrived(&mut room, &mut world), twice);
        world.pass(&mut room, DAY);
        assert_eq!(
            (arrived(&mut room, &mut world), world.inbox(&mut room, "ada").len()),
            (twice, 0)
        );
        room.until_nothing_is_in_use();
    }
}

#[test]
fn futurerelease_is_announced_only_on_submission() {
    let (mut room, mut world) = serving(1403, Mood::Takes);
    for (port, is_held) in [(25, false), (587, true)] {
        let (mut talk, lines) = world.offered(&mut room, port);
        let is_announced = lines
            .iter()
            .any(|line| line.starts_with("250-FUTURERELEASE 5184000 2026-03-02T00:00:"));
        assert_eq!(is_announced, is_held, "{lines:?}");
        if is_held {
            assert!(world.say(&mut room, &mut talk, ADA).starts_with("235"));
        }
        for (parameter, code) in [
            ("HOLDFOR=5184000", "250"),
            ("HOLDFOR=5184001", "501 5.5.4"),
            ("HOLDUNTIL=2026-03-02T00:00:00Z", "250"),
            ("HOLDUNTIL=2026-03-03T00:00:00Z", "501 5.5.4"),
            ("HOLDUNTIL=2025-12-31T23:59:59Z", "501 5.5.4"),
        ] {
            let reply = world.say(
                &mut room,
                &mut talk,
                &format!("MAIL FROM:<ada@barepost.test> {parameter}"),
            );
            assert!(
                reply.starts_with(if is_held { code } else { "555 5.5.4" }),
                "{parameter}: {reply}"
            );
            world.say(&mut room, &mut talk, "RSET");
        }
        room.close(&talk);
    }
}

#[test]
fn a_release_time_survives_a_power_cut() {
    for (number, (before, away, after)) in
        [(0, 0, HOUR), (1, 1200, HOUR - 1201), (1800, 1799, 1), (1800, 1800, 0), (60, DAY, 0)]
            .into_iter()
            .enumerate()
    {
        let (mut room, mut world) = serving(1410 + number as u64, Mood::Takes);
        let to = ["<bob@far.test>", "<grace@barepost.test>"];
        world.submit_with(
            &mut room,
            "<ada@barepost.test> BODY=8BITMIME HOLDFOR=3600",
            &to,
            MESSAGE,
        );
        world.pass(&mut room, before);
        let (mut room, mut world) = power_cut(room, world, 1410 + number as u64, away);
        if after > 300 {
            world.pass(&mut room, after - 300);
            assert_eq!(arrived(&mut room, &mut world), (0, 0), "{before} {away}");
        }
        world.pass(&mut room, 600);
        assert_eq!(arrived(&mut room, &mut world), (1, 1), "{before} {away}");
        world.pass(&mut room, DAY);
        assert_eq!(arrived(&mut room, &mut world), (1, 1), "{before} {away}");
    }
}

/// The message is held for twelve days, which is longer than the time for delivery attempts.
#[test]
fn a_released_message_has_the_full_retry_time() {
    let (mut room, mut world) = serving(1404, Mood::RefusesForNow);
    world.submit_with(
        &mut room,
        "<ada@barepost.test> BODY=8BITMIME HOLDFOR=1036800",
        &["<bob@far.test>"],
        MESSAGE,
    );
    world.pass(&mut room, 12 * DAY - 60);
    assert_eq!((world.peer.rcpt_count, world.inbox(&mut room, "ada").len()), (0, 0));
    world.pass(&mut room, 3 * HOUR);
    assert!(world.peer.rcpt_count > 0);
    assert_eq!(world.inbox(&mut room, "ada").len(), 0);
    world.pass(&mut room, 6 * HOUR);
    let inbox = world.inbox(&mut room, "ada");
    assert_eq!(inbox.len(), 1, "{inbox:?}");
    assert!(
        inbox[0].contains("Action: delayed")
            && inbox[0].contains("Will-Retry-Until: Sun, 18 Jan 2026 00:00:"),
        "{}",
        inbox[0]
    );
    world.pass(&mut room, 4 * DAY);
    assert_eq!(world.inbox(&mut room, "ada").len(), 1);
    world.pass(&mut room, 2 * DAY);
    let failed =
        world.inbox(&mut room, "ada").iter().filter(|text| text.contains("Action: failed")).count();
    assert_eq!((failed, world.inbox(&mut room, "ada").len()), (1, 2));
}
