//! Held messages that cannot be sent at the end of the hold: the writer gets a notice, and the
//! messages are drafts again.

#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a test may fail")]

use chance::Dice;
use http::Site;
use machine::Micros;
use simulated::MemoryDisk;

use super::room::tls_stream::Trust;
use super::room::{CONFIGURATION, DISK_BYTES, Room, usual_sizes};
use super::webmail::{Browser, serving};

const NOTICE: &str = "Subject: Your message could not be sent";

/// Sends a message from Ada to Grace by the webmail. Its text continues beyond the first chunk.
fn send(room: &mut Room, trust: &Trust) -> Browser {
    send_to(room, trust, "grace@barepost.test, countess@barepost.test")
}

fn send_to(room: &mut Room, trust: &Trust, recipients: &str) -> Browser {
    let mut ada = Browser::new(trust);
    ada.log_in(room, "ada", "lovelace");
    let token = ada.get(room, "/mail/compose").token();
    let text = [&"Words. ".repeat(20_000), "ENDING"].concat();
    let form = [
        ("token", token.as_str()),
        ("to", recipients),
        ("subject", "Held"),
        ("text", &text),
        ("do", "send"),
    ];
    assert!(ada.post(room, "/mail/compose", &form).text().contains("Sending…"));
    ada.hang_up(room);
    ada
}

/// The number of messages in the inbox of an account.
fn count(room: &mut Room, user: &str) -> usize {
    let mut reader = room.log_in(user);
    let count = room.pop3(&mut reader, "STAT");
    room.pop3(&mut reader, "QUIT");
    room.close(&reader);
    count.split(' ').nth(1).and_then(|count| count.parse().ok()).expect("a count")
}

/// The number of messages in the inbox of an account, and the last message.
fn inbox(room: &mut Room, user: &str) -> (usize, String) {
    let count = count(room, user);
    if count == 0 {
        return (0, String::new());
    }
    let mut reader = room.log_in(user);
    let text = String::from_utf8_lossy(&room.retrieve_any(&mut reader, count)).into_owned();
    room.pop3(&mut reader, "QUIT");
    room.close(&reader);
    (count, text)
}

#[test]
fn a_held_message_with_a_damaged_part_is_a_draft_again() {
    // The damaged part is the end of the text, or the header.
    for (seed, part) in [(1_030, &b"ENDING"[..]), (1_031, b"Subject: Held")] {
        let (mut room, trust) = serving(seed);
        let mut ada = send(&mut room, &trust);
        assert!(room.machine.disk.spoil_what_holds(part) > 0);
        room.pass(Micros::from_secs(60));
        assert_eq!(inbox(&mut room, "ada").0, 0, "no notice arrives while the server tries again");
        room.pass(Micros::from_secs(20 * 60));
        let (count, notice) = inbox(&mut room, "ada");
        assert_eq!(count, 1);
        assert!(notice.contains(NOTICE), "{notice}");
        let is_named = notice.contains("\r\nSubject: Held\r\n");
        assert_eq!(is_named, part == b"ENDING", "{notice}");
        let drafts = ada.get(&mut room, "/mail/box/2").text();
        assert!(!drafts.contains("Sending…") && drafts.contains("class=\"rows\""), "{drafts}");
        ada.hang_up(&mut room);
        room.pass(Micros::from_secs(24 * 3600));
        assert_eq!((inbox(&mut room, "ada").0, inbox(&mut room, "grace").0), (1, 0));
        room.until_nothing_is_in_use();
    }
}

#[test]
fn a_disk_that_reads_again_sends_the_held_message() {
    let (mut room, trust) = serving(1_035);
    let mut ada = send(&mut room, &trust);
    room.machine.disk.mood = simulated::Mood::FailsReads;
    room.pass(Micros::from_secs(100));
    room.machine.disk.mood = simulated::Mood::Works;
    room.pass(Micros::from_secs(600));
    assert_eq!((inbox(&mut room, "ada").0, inbox(&mut room, "grace").0), (1, 1));
    assert!(!inbox(&mut room, "ada").1.contains(NOTICE));
    assert!(!ada.get(&mut room, "/mail/box/2").text().contains("class=\"rows\""));
    ada.hang_up(&mut room);
    room.until_nothing_is_in_use();
}

/// The disk is damaged when some recipient may have the message already.
#[test]
fn a_message_damaged_while_it_leaves_arrives_at_most_once() {
    let mut ends = [0; 3];
    for steps in (0..80).step_by(4) {
        let (mut room, trust) = serving(1_040);
        let mut ada = send(&mut room, &trust);
        room.pass(Micros::from_secs(9));
        room.until("the message begins to leave", |room| room.engines.in_use().deliveries > 0);
        let begin = room.machine.now;
        for _ in 0..steps {
            if room.machine.now.since(begin) < Micros::from_secs(5) {
                room.step();
            }
        }
        room.machine.disk.spoil_what_holds(b"ENDING");
        room.pass(Micros::from_secs(30 * 60));
        let drafts = ada.get(&mut room, "/mail/box/2").text();
        ada.hang_up(&mut room);
        assert!(!drafts.contains("Sending…"), "after {steps} steps");
        let is_draft = drafts.contains("class=\"rows\"");
        let at_grace = count(&mut room, "grace");
        assert!(at_grace <= 1, "after {steps} steps");
        let sent = ada.get(&mut room, "/mail/box/3").text();
        ada.hang_up(&mut room);
        assert_eq!(sent.contains("class=\"rows\""), !is_draft, "after {steps} steps");
        ends[if is_draft { at_grace } else { 2 }] += 1;
        room.until_nothing_is_in_use();
    }
    assert!(ends[1] > 0 && ends[2] > 0, "{ends:?}");
}

/// While the message is held, the server restarts with a configuration that has no catch-all
/// account for one of the recipients.
#[test]
fn a_held_message_without_its_recipient_is_a_draft_again() {
    let trust = Trust::new("mail.barepost.test");
    let catching =
        CONFIGURATION.replace("aliases = [", "catch_all = [\"barepost.test\"]\naliases = [");
    let disk = MemoryDisk::blank(DISK_BYTES);
    let certificates = vec![trust.certificate.clone()];
    let sizes = usual_sizes();
    let mut room = Room::certified(1_036, disk, sizes, &catching, Site::default(), certificates);
    room.until("the engine serves", |room| room.console_says("serving"));
    send_to(&mut room, &trust, "grace@barepost.test, hopper@barepost.test");
    let disk = room.machine.disk.power_cut(&mut Dice::new(1));
    let mut room = Room::with_disk(1_037, disk);
    room.pass(Micros::from_secs(120));
    let (count, notice) = inbox(&mut room, "ada");
    assert_eq!((count, inbox(&mut room, "grace").0), (1, 0));
    assert!(
        notice.contains(NOTICE) && notice.contains("has no mailbox on this server"),
        "{notice}"
    );
    assert!(notice.contains("No recipient has received it."), "{notice}");
    room.pass(Micros::from_secs(3600));
    assert_eq!(inbox(&mut room, "ada").0, 1, "the notice comes once");
    room.until_nothing_is_in_use();
}
