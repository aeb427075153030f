//! Mail that leaves from a disk of which a part cannot be read any more: who sent it hears that in the end, and nobody is sent half a letter for ever.

#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a test may fail")]

use simulated::Mood as DiskMood;

use super::far::{LETTER, Mood, World, serving};
use super::forwarding::{self, BOB, FRANK, taken, text_of};
use super::names::STRANGER;
use super::room::{Room, stuffed};

const DAY: u64 = 24 * 3600;
const MARK: &[u8] = b"Nobody reads this line again.";
const WHY: &str = "a part of it cannot be read from this server's disk any more";

/// A letter of several parts, of which one in the middle holds the mark.
fn long() -> Vec<u8> {
    let lines = b"Line.\r\n".repeat(10_000);
    [b"Subject: Long\r\n\r\n", &lines[..], MARK, b"\r\n", &lines[..]].concat()
}

/// A host outside brings `long()`. The sectors that hold the mark are damaged before the message
/// ends.
pub(super) fn brought_damaged(world: &mut World, room: &mut Room, to: &str) {
    let mut talk = room.connect_from(STRANGER, 25);
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
fn a_letter_that_cannot_be_read_to_its_end_is_given_up_and_who_sent_it_hears_why() {
    // Of these hosts one is sent what can be read, and for the other it is looked through before.
    for (seed, mood) in [(930, Mood::Takes), (931, Mood::Tells)] {
        let (mut room, mut world) = serving(seed, Mood::RefusesForNow);
        world.submit_with(&mut room, "<ada@barepost.test> RET=FULL", &["<bob@far.test>"], &long());
        world.pass(&mut room, 60);
        assert!(room.machine.disk.spoil_what_holds(MARK) > 0);
        world.peer.mood = mood;
        world.pass(&mut room, 6 * DAY);
        let heard = world.inbox(&mut room, "ada");
        let failed: Vec<&String> =
            heard.iter().filter(|letter| letter.contains("Action: failed")).collect();
        let [failed] = failed[..] else { panic!("{heard:?}") };
        assert!(
            failed.contains(WHY) && failed.contains("Subject: Long") && !failed.contains("Line."),
            "{failed}"
        );
        assert!(
            heard.iter().any(|letter| letter.contains("Action: delayed") && letter.contains(WHY)),
            "{heard:?}"
        );
        let named = world.peer.named;
        world.pass(&mut room, DAY);
        assert_eq!(
            (world.peer.named, world.peer.taken.len()),
            (named, 0),
            "nobody is called for it any more"
        );
        room.until_nothing_is_in_use();
    }
}

#[test]
fn a_letter_that_was_to_be_sent_on_and_cannot_be_read_is_given_up_for_all_whom_it_was_for() {
    for (seed, keep, whom) in
        [(932, false, &["bob@far.test"][..]), (933, true, &["bob@far.test", "grace@barepost.test"])]
    {
        let (mut room, mut world) =
            forwarding::serving(seed, Mood::Takes, &format!("{BOB}\nkeep = {keep}"));
        brought_damaged(&mut world, &mut room, "grace@barepost.test");
        world.pass(&mut room, 6 * DAY);
        assert!(
            taken(&world, "bob@far.test").is_empty() && world.inbox(&mut room, "grace").is_empty()
        );
        let told: Vec<String> = taken(&world, FRANK).iter().map(text_of).collect();
        for whom in whom {
            let fate = format!("Final-Recipient: rfc822; {whom}\r\nAction: failed");
            let is_told = |told: &&String| told.contains(&fate) && told.contains(WHY);
            assert_eq!(told.iter().filter(is_told).count(), 1, "{whom}: {told:?}");
        }
        room.until_nothing_is_in_use();
    }
}

#[test]
fn a_disk_that_cannot_be_read_for_a_while_delays_a_letter_and_nothing_else() {
    let (mut room, mut world) = serving(934, Mood::RefusesForNow);
    world.submit(&mut room, &["bob@far.test"], LETTER);
    world.pass(&mut room, 60);
    (room.machine.disk.mood, world.peer.mood) = (DiskMood::FailsReads, Mood::Takes);
    world.pass(&mut room, 3600);
    assert_eq!(world.peer.taken.len(), 0);
    room.machine.disk.mood = DiskMood::Works;
    world.pass(&mut room, 1800);
    assert_eq!((world.peer.taken.len(), world.inbox(&mut room, "ada").len()), (1, 0));
    room.until_nothing_is_in_use();
}
