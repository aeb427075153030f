//! Messages that other servers would not accept as they are: with long lines, or in eight bits for
//! a host without 8BITMIME. They are written anew and signed again.

#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a test may fail")]

use machine::Machine as _;
use message::BodyDecoder;
use message::structure::Encoding;
use simulated::MemoryDisk;

use super::relay::{MESSAGE, Mood, is_whole, serving, serving_on, serving_signed};
use super::room::DISK_BYTES;
use super::room::tls_stream::Trust;
use super::signing::{BOTH, keys, verdicts};
use super::webmail::{Browser, between};

/// A message with a line of 6,000 bytes.
fn long() -> Vec<u8> {
    let line = "It weaves, and weaves = ".repeat(250);
    format!(
        "Subject: Away\r\nFrom: ada@barepost.test\r\nDate: then\r\nMessage-ID: <1@client.test>\r\n\r\nDear Bob,\r\n{line}.\r\n"
    )
    .into_bytes()
}

fn has_short_lines(message: &[u8]) -> bool {
    message.split(|byte| *byte == b'\n').all(|line| line.len() <= 999)
}

fn text(message: &[u8]) -> String {
    let message = String::from_utf8_lossy(message);
    let (header, body) = message.split_once("\r\n\r\n").expect("a header and a body");
    let is_encoded = header.contains("Content-Transfer-Encoding: quoted-printable");
    let encoding = if is_encoded { Encoding::QuotedPrintable } else { Encoding::Identity };
    let (mut decoder, mut text) = (BodyDecoder::new(encoding), Vec::new());
    decoder.bytes_arrived(body.as_bytes(), &mut text);
    decoder.body_ended(&mut text);
    String::from_utf8(text).expect("the text is UTF-8")
}

#[test]
fn long_lines_are_rewritten_for_other_servers_only() {
    let (mut room, mut world) = serving(1_520, Mood::Takes);
    let long = long();
    world.submit(&mut room, &["bob@far.test", "grace@barepost.test", "eve@nowhere.test"], &long);
    world.pass(&mut room, 3600);
    let [taken] = &world.peer.taken[..] else { panic!("{:?}", world.peer.taken) };
    assert!(has_short_lines(&taken.content) && !has_short_lines(&long));
    assert_eq!(text(&taken.content), text(&long));
    let content = String::from_utf8_lossy(&taken.content);
    assert!(content.starts_with("Received: from client.test ([10.0.0.1])\r\n"), "{content}");
    assert!(!content.contains("Envelope-"), "{content}");
    let grace = world.inbox(&mut room, "grace");
    assert!(grace.len() == 1 && grace[0].ends_with(&*String::from_utf8_lossy(&long)));
    assert_eq!((world.inbox(&mut room, "ada").len(), room.engines.queue_entries()), (1, 0));
    // A message that the account resends stays as it is.
    let resent = [b"Resent-From: ada@barepost.test\r\n", &long[..]].concat();
    let resent = String::from_utf8(resent).expect("it is text").replace("From: ada@b", "From: x@b");
    let resent = resent.replacen("Resent-From: x@", "Resent-From: ada@", 1).into_bytes();
    world.submit(&mut room, &["bob@far.test"], &resent);
    world.pass(&mut room, 3600);
    assert!(is_whole(&world.peer.taken[1].content, &resent));
    room.until_nothing_is_in_use();
}

#[test]
fn rewritten_messages_are_signed_again() {
    let trust = Trust::new("mail.barepost.test");
    // The second host does not offer 8BITMIME.
    for (seed, mood, message) in
        [(1_521, Mood::Takes, long()), (1_522, Mood::Tells, MESSAGE.to_vec())]
    {
        let (mut room, mut world) = serving_signed(seed, mood, &trust, keys());
        world.submit(&mut room, &["bob@far.test", "carol@far.test"], &message);
        world.pass(&mut room, 3600);
        let [taken] = &world.peer.taken[..] else { panic!("{:?}", world.peer.taken) };
        assert_eq!(taken.to, ["bob@far.test", "carol@far.test"]);
        let now = room.machine.wall_clock();
        assert_eq!(verdicts(&taken.content, now), BOTH);
        assert!(taken.content.is_ascii() && has_short_lines(&taken.content));
        assert_eq!(text(&taken.content), text(&message));
        let inbox = world.inbox(&mut room, "ada");
        assert_eq!((inbox.len(), room.engines.queue_entries()), (0, 0), "{inbox:?}");
        room.until_nothing_is_in_use();
    }
}

#[test]
fn signed_parts_are_returned_if_a_host_takes_only_ascii() {
    let trust = Trust::new("mail.barepost.test");
    let (mut room, mut world) = serving_signed(1_523, Mood::Tells, &trust, keys());
    let signed = "Subject: Away\r\nFrom: ada@barepost.test\r\nContent-Type: multipart/signed; boundary=b\r\n\r\n--b\r\n\r\nZ\u{fc}rich\r\n--b--\r\n";
    world.submit(&mut room, &["bob@far.test"], signed.as_bytes());
    world.pass(&mut room, 3600);
    let inbox = world.inbox(&mut room, "ada");
    assert_eq!((inbox.len(), world.peer.taken.len(), room.engines.queue_entries()), (1, 0, 0));
    assert!(inbox[0].contains("Status: 5.6.3\r\n"), "{inbox:?}");
    room.until_nothing_is_in_use();
}

#[test]
fn canceling_stops_entries_that_were_written_anew() {
    let trust = Trust::new("mail.barepost.test");
    let (mut room, mut world) = serving_signed(1_526, Mood::RefusesForNow, &trust, keys());
    let all: Vec<String> = (0..20).map(|number| format!("user{number}@far.test")).collect();
    let all: Vec<&str> = all.iter().map(|address| &**address).collect();
    world.submit(&mut room, &all, MESSAGE);
    world.pass(&mut room, 60);
    let entries = room.engines.queue_entries();
    assert_eq!(entries, 3, "8, 8 and 4 recipients");
    world.peer.mood = Mood::Tells;
    world.until(&mut room, "an entry is written anew", |_, room| {
        room.engines.queue_entries() > entries
    });
    world.peer.mood = Mood::RefusesForNow;
    world.pass(&mut room, 60);
    let mut ada = Browser::new(&trust);
    ada.log_in(&mut room, "ada", "lovelace");
    let list = ada.get(&mut room, "/mail/box/7").text();
    let key = between(&list, "name=\"key\" value=\"", "\"").expect("a row");
    let token = ada.get(&mut room, "/mail/compose").token();
    let form = [("token", &*token), ("here", "/mail/box/7"), ("do", "cancel"), ("key", key)];
    let page = ada.post(&mut room, "/mail/act", &form).text();
    assert!(page.contains("Sending canceled.") && page.contains("No messages."), "{page}");
    ada.hang_up(&mut room);
    let taken = world.peer.taken.len();
    world.peer.mood = Mood::Takes;
    world.pass(&mut room, 7200);
    assert_eq!((world.peer.taken.len(), room.engines.queue_entries()), (taken, 0));
    room.until_nothing_is_in_use();
}

/// The host defers the message for four days, and then accepts only ASCII, and then defers again.
#[test]
fn a_rewritten_message_has_one_lifetime() {
    let trust = Trust::new("mail.barepost.test");
    let (mut room, mut world) = serving_signed(1_525, Mood::RefusesForNow, &trust, keys());
    let start = room.machine.now;
    world.submit(&mut room, &["bob@far.test"], MESSAGE);
    (0..4).for_each(|_| world.pass(&mut room, 86_400));
    world.peer.mood = Mood::Tells;
    world.until(&mut room, "the message is written anew", |_, room| {
        room.engines.queue_entries() == 2
    });
    world.peer.mood = Mood::RefusesForNow;
    assert!(room.machine.now.since(start).as_secs() < 5 * 86_400 - 3600);
    world.pass(&mut room, 60);
    assert_eq!(room.engines.queue_entries(), 1);
    world.pass(&mut room, 86_400 + 3600);
    let inbox = world.inbox(&mut room, "ada");
    assert_eq!((world.peer.taken.len(), room.engines.queue_entries()), (0, 0), "{inbox:?}");
    let count = |action| inbox.iter().filter(|text| text.contains(action)).count();
    assert_eq!(["Action: delayed", "Action: failed"].map(count), [1, 1], "{inbox:?}");
    room.until_nothing_is_in_use();
}

/// Runs the same scenario repeatedly, with the power cut one step later each time.
#[test]
fn a_rewritten_message_survives_a_power_cut_at_any_step() {
    let (mut steps, mut once, mut twice) = (0, 0, 0);
    loop {
        let (mut room, mut world) =
            serving_on(1_524, MemoryDisk::blank(DISK_BYTES), Mood::RefusesBob);
        world.submit(&mut room, &["bob@far.test", "carol@far.test"], &long());
        let is_over = world.step(&mut room, steps).as_secs() > 50;
        let (mut room, mut world) = world.power_cut(room, 9000 + steps);
        world.pass(&mut room, 5 * 3600);
        let taken = world.peer.taken.len();
        assert!((1..=2).contains(&taken), "{taken} after {steps} steps");
        (once, twice) = (once + usize::from(taken == 1), twice + usize::from(taken == 2));
        assert!(world.peer.taken.iter().all(|taken| has_short_lines(&taken.content)));
        let inbox = world.inbox(&mut room, "ada");
        assert_eq!((inbox.len(), room.engines.queue_entries()), (1, 0), "after {steps} steps");
        if is_over {
            break;
        }
        steps += 1 + steps / 40;
    }
    assert!(once > 8 * twice && once > 30, "{once} once, {twice} twice");
}
