//! Outbound mail on a disk with unreadable sectors: the sender finally gets a report, and the
//! server stops sending partial messages to hosts.

#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a test may fail")]

use simulated::Mood as DiskMood;

use super::dns::EXTERNAL;
use super::forwarding::{self, BOB, FRANK, taken, text_of};
use super::relay::{MESSAGE, Mood, World, serving};
use super::room::{Room, stuffed};

const DAY: u64 = 24 * 3600;
const MARK: &[u8] = b"This line is unreadable later";
const WHY: &str = "part of the message can no longer be read from this server's disk";

/// A message of several chunks. A chunk in the middle holds [`MARK`], by which the sectors to
/// damage are found.
fn long() -> Vec<u8> {
    let lines = b"Line.\r\n".repeat(10_000);
    [b"Subject: Long\r\n\r\n", &lines[..], MARK, b"\r\n", &lines[..]].concat()
}

/// Delivers [`long`] from the external client. The sectors that hold the mark are damaged before
/// the message ends.
pub(super) fn delivered_damaged(world: &mut World, room: &mut Room, to: &str) {
    let mut talk = room.connect_from(EXTERNAL, 25);
    assert!(world.reply(room, &mut talk).starts_with("220 "));
    for command in
        ["EHLO far.test", &format!("MAIL FROM:<{FRANK}>"), &format!("RCPT TO:<{to}>"), "DATA"]
    {
        let reply = world.say(room, &mut talk, command);
        assert!(reply.starts_with(['2', '3']), "{command}: {reply}");
    }
    room.send(&talk, &stuffed(&[&b"From: frank@far.test\r\n"[..], &long()].concat()));
    world.pass(room, 5);
    assert!(room.machine.disk.spoil_what_holds(MARK) > 0);
    let reply = world.say(room, &mut talk, ".");
    assert!(reply.starts_with("250 "), "{reply}");
    room.close(&talk);
}

#[test]
fn an_unreadable_message_is_given_up_with_a_report() {
    // The first host gets the part that can be read. The second host takes only ASCII, so the
    // server reads the whole message before it sends any of it.
    for (seed, mood) in [(930, Mood::Takes), (931, Mood::Tells)] {
        let (mut room, mut world) = serving(seed, Mood::RefusesForNow);
        world.submit_with(&mut room, "<ada@barepost.test> RET=FULL", &["<bob@far.test>"], &long());
        world.pass(&mut room, 60);
        assert!(room.machine.disk.spoil_what_holds(MARK) > 0);
        world.peer.mood = mood;
        world.pass(&mut room, 6 * DAY);
        let heard = world.inbox(&mut room, "ada");
        let failed: Vec<&String> =
            heard.iter().filter(|message| message.contains("Action: failed")).collect();
        let [failed] = failed[..] else { panic!("{heard:?}") };
        assert!(
            failed.contains(WHY) && failed.contains("Subject: Long") && !failed.contains("Line."),
            "{failed}"
        );
        assert!(
            heard
                .iter()
                .any(|message| message.contains("Action: delayed") && message.contains(WHY)),
            "{heard:?}"
        );
        let named = world.peer.rcpt_count;
        world.pass(&mut room, DAY);
        assert_eq!(
            (world.peer.rcpt_count, world.peer.taken.len()),
            (named, 0),
            "no host is contacted again for the message"
        );
        room.until_nothing_is_in_use();
    }
}

#[test]
fn an_unreadable_forward_is_given_up_for_all_recipients() {
    for (seed, keep, recipients) in
        [(932, false, &["bob@far.test"][..]), (933, true, &["bob@far.test", "grace@barepost.test"])]
    {
        let (mut room, mut world) =
            forwarding::serving(seed, Mood::Takes, &format!("{BOB}\nkeep = {keep}"));
        delivered_damaged(&mut world, &mut room, "grace@barepost.test");
        world.pass(&mut room, 6 * DAY);
        assert!(
            taken(&world, "bob@far.test").is_empty() && world.inbox(&mut room, "grace").is_empty()
        );
        let reports: Vec<String> = taken(&world, FRANK).iter().map(text_of).collect();
        for recipient in recipients {
            let fate = format!("Final-Recipient: rfc822; {recipient}\r\nAction: failed");
            let is_failure = |reports: &&String| reports.contains(&fate) && reports.contains(WHY);
            assert_eq!(reports.iter().filter(is_failure).count(), 1, "{recipient}: {reports:?}");
        }
        room.until_nothing_is_in_use();
    }
}

#[test]
fn temporary_read_errors_only_delay_a_message() {
    let (mut room, mut world) = serving(934, Mood::RefusesForNow);
    world.submit(&mut room, &["bob@far.test"], MESSAGE);
    world.pass(&mut room, 60);
    (room.machine.disk.mood, world.peer.mood) = (DiskMood::FailsReads, Mood::Takes);
    world.pass(&mut room, 3600);
    assert_eq!(world.peer.taken.len(), 0);
    room.machine.disk.mood = DiskMood::Works;
    world.pass(&mut room, 1800);
    assert_eq!((world.peer.taken.len(), world.inbox(&mut room, "ada").len()), (1, 0));
    room.until_nothing_is_in_use();
}
