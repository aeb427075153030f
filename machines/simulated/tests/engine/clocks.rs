//! Wrong clocks. If the clock shows a time before the build of the program, the server uses a later
//! time instead. Otherwise it uses the time that the clock shows, even if that time is wrong. It
//! announces a wrong clock on the console, and keeps messages in their order.

#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a test may fail")]

use super::relay::{MESSAGE as MESSAGE_AWAY, Mood, World, serving};
use super::room::{Room, usual_sizes};
use chance::Dice;
use machine::UnixTime;
use simulated::MemoryDisk;

const MESSAGE: &[u8] = b"Subject: Hello\r\n\r\nDear Ada\r\n";
/// The build date of the program: the 25th of November 2026.
const MADE: UnixTime = UnixTime::from_seconds(1_795_600_000);
const DAY_SECONDS: u64 = 24 * 3600;

/// A machine with a clock that shows `clock` at its start, and with a program that was built at
/// `made`.
fn starting(disk: MemoryDisk, clock: UnixTime, made: UnixTime) -> Room {
    let mut room = Room::opening(1, disk, usual_sizes());
    (room.machine.started, room.machine.program_date) = (clock, made);
    room.until("the engine serves", |room| room.console_says("serving"));
    room
}

fn disk_of(room: Room) -> MemoryDisk {
    room.machine.disk.power_cut(&mut Dice::new(1))
}

/// The line of a message's trace fields that has the date of arrival.
fn received(room: &mut Room, number: usize) -> String {
    let mut talk = room.log_in("ada");
    let message =
        String::from_utf8(room.retrieve_any(&mut talk, number)).expect("the message is ASCII");
    room.close(&talk);
    message.lines().find(|line| line.contains(" +0000")).expect("a date").to_string()
}

#[test]
fn a_clock_before_the_program_was_made_is_not_used() {
    let blank = || MemoryDisk::blank(32 << 20);
    let mut room = starting(blank(), UnixTime::default(), MADE);
    assert!(
        room.console_says("clock: SET THE CLOCK: it shows 1970-01-01"),
        "{:?}",
        room.machine.console
    );
    assert!(room.deliver("ada@barepost.test", MESSAGE).starts_with("250"));
    let date = received(&mut room, 1);
    assert!(date.contains("Nov 2026"), "{date}");

    let after = UnixTime::from_seconds(MADE.seconds() + 60);
    let room = starting(blank(), after, MADE);
    assert!(!room.console_says("clock:"), "{:?}", room.machine.console);
}

#[test]
fn a_clock_behind_the_newest_message_is_used_and_announced() {
    let later = |days: u64| UnixTime::from_seconds(MADE.seconds() + days * DAY_SECONDS);
    let mut room = starting(MemoryDisk::blank(32 << 20), later(30), MADE);
    assert!(room.deliver("ada@barepost.test", b"Subject: First\r\n\r\nx\r\n").starts_with("250"));
    let mut room = starting(disk_of(room), later(2), MADE);
    assert!(
        room.console_says("clock: SET THE CLOCK: it shows 2026-11-27"),
        "{:?}",
        room.machine.console
    );
    assert!(room.deliver("ada@barepost.test", b"Subject: Second\r\n\r\nx\r\n").starts_with("250"));
    let mut talk = room.log_in("ada");
    assert_eq!(room.retrieve(&mut talk, 1), b"Subject: First\r\n\r\nx\r\n");
    assert_eq!(room.retrieve(&mut talk, 2), b"Subject: Second\r\n\r\nx\r\n");
    room.close(&talk);

    let half_a_day_behind = UnixTime::from_seconds(later(30).seconds() - DAY_SECONDS / 2);
    let room = starting(disk_of(room), half_a_day_behind, MADE);
    assert!(!room.console_says("clock:"), "{:?}", room.machine.console);
}

/// The number of reports of failed deliveries in Ada's inbox.
fn failed(world: &mut World, room: &mut Room) -> usize {
    world.inbox(room, "ada").iter().filter(|text| text.contains("Action: failed")).count()
}

#[test]
fn a_clock_that_jumps_ahead_gives_up_no_message_in_the_queue() {
    let (mut room, mut world) = serving(720, Mood::RefusesForNow);
    world.submit(&mut room, &["bob@far.test"], MESSAGE_AWAY);
    world.pass(&mut room, 3600);
    let jump = |room: &mut Room| {
        room.machine.started =
            UnixTime::from_seconds(room.machine.started.seconds() + 25 * DAY_SECONDS)
    };
    jump(&mut room);
    world.pass(&mut room, 4 * DAY_SECONDS);
    assert_eq!(failed(&mut world, &mut room), 0, "the message is in the queue for four days");
    world.pass(&mut room, 2 * DAY_SECONDS);
    assert_eq!(failed(&mut world, &mut room), 1, "the message is returned after five days");

    // The age of a message from before a start is unknown, because the clock may be wrong. Such a
    // message stays in the queue for at least another day.
    world.submit(&mut room, &["bob@far.test"], MESSAGE_AWAY);
    world.pass(&mut room, 3600);
    let (mut room, mut world) = world.power_cut(room, 720);
    jump(&mut room);
    jump(&mut room);
    world.pass(&mut room, DAY_SECONDS - 4 * 3600);
    assert_eq!(failed(&mut world, &mut room), 1, "a day is left for the message");
    world.pass(&mut room, DAY_SECONDS);
    assert_eq!(failed(&mut world, &mut room), 2);
}

#[test]
fn a_clock_that_jumps_back_keeps_no_message_in_the_queue() {
    let (mut room, mut world) = serving(721, Mood::RefusesForNow);
    room.machine.started =
        UnixTime::from_seconds(room.machine.started.seconds() + 25 * DAY_SECONDS);
    world.submit(&mut room, &["bob@far.test"], MESSAGE_AWAY);
    // After the restart the clock shows a time 25 days earlier.
    let (mut room, mut world) = world.power_cut(room, 721);
    world.peer.mood = Mood::Takes;
    world.pass(&mut room, 3600);
    assert_eq!(world.peer.taken.len(), 1, "the message has left");
}

#[test]
fn a_message_that_is_dated_ahead_is_given_up_in_time() {
    let (mut room, mut world) = serving(722, Mood::RefusesForNow);
    room.machine.started =
        UnixTime::from_seconds(room.machine.started.seconds() + 25 * DAY_SECONDS);
    world.submit(&mut room, &["bob@far.test"], MESSAGE_AWAY);
    // After the restart the clock shows a time 25 days earlier.
    let (mut room, mut world) = world.power_cut(room, 722);
    world.pass(&mut room, 4 * DAY_SECONDS);
    assert_eq!(failed(&mut world, &mut room), 0, "the message is tried for days");
    world.pass(&mut room, 2 * DAY_SECONDS);
    assert_eq!(failed(&mut world, &mut room), 1, "the sender gets a report");
}

#[test]
fn a_hold_by_a_clock_that_was_ahead_costs_no_attempt() {
    let (mut room, mut world) = serving(723, Mood::RefusesForNow);
    let set =
        |room: &mut Room, seconds: u64| room.machine.started = UnixTime::from_seconds(seconds);
    let right = room.machine.started.seconds();
    set(&mut room, right + 10 * DAY_SECONDS);
    world.submit_with(
        &mut room,
        "<ada@barepost.test> BODY=8BITMIME HOLDFOR=300",
        &["<bob@far.test>"],
        MESSAGE_AWAY,
    );
    // The corrected clock reaches the end of the hold ten days later.
    set(&mut room, right);
    world.pass(&mut room, 14 * DAY_SECONDS);
    assert_eq!(failed(&mut world, &mut room), 0, "the message is tried for days after the hold");
    world.pass(&mut room, 2 * DAY_SECONDS);
    assert_eq!(failed(&mut world, &mut room), 1);
}
