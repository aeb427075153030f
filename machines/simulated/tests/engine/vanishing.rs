//! Clients that disconnect at every step of a conversation, in every way. Afterwards the server
//! holds no resources for them, and each request was carried out completely or not at all. A
//! machine that stops at any step tells the clients, and stops.

#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a test may fail")]

use super::room::{Room, Talk};
use machine::Micros;
use server::{Ending, InUse};
use simulated::{Cable, Mood};

/// A step of a conversation: the data that the client sends, and a part of the reply.
type Step = (&'static [u8], &'static [u8]);

const DELIVERY: &[Step] = &[
    (b"", b"220 "),
    (b"EHLO client.test\r\n", b"\r\n250 "),
    (b"MAIL FROM:<sender@elsewhere.test>\r\n", b"250 2.1.0"),
    (b"RCPT TO:<ada@barepost.test>\r\n", b"250 2.1.5"),
    (b"RCPT TO:<grace@barepost.test>\r\n", b"250 2.1.5"),
    (b"DATA\r\n", b"354 "),
    (b"Subject: Hello\r\n\r\nDear both\r\n.\r\n", b"250 2.0.0"),
    (
        b"MAIL FROM:<sender@elsewhere.test>\r\nRCPT TO:<ada@barepost.test>\r\nBDAT 20\r\n01234567890123456789",
        b"250 2.0.0",
    ),
    (b"BDAT 9 LAST\r\n0123456\r\n", b"250 2.0.0"),
    (b"MAIL FROM:<>\r\nRSET\r\nMAIL FROM:<>\r\nRCPT TO:<ada@barepost.test>\r\nDATA\r\n", b"354 "),
    (b"x\r\n", b""),
    (b".\r\nQUIT\r\n", b"221 "),
];

const COLLECTION: &[Step] = &[
    (b"", b"+OK"),
    (b"USER ada\r\n", b"+OK"),
    (b"PASS wrong\r\n", b"-ERR [AUTH]"),
    (b"USER ada\r\nPASS lovelace\r\n", b"messages"),
    (b"LIST\r\n", b"\r\n.\r\n"),
    (b"RETR 1\r\n", b"\r\n.\r\n"),
    (b"TOP 1 2\r\n", b"\r\n.\r\n"),
    (b"RETR 2\r\nDELE 1\r\n", b"\r\n.\r\n+OK"),
    (b"DELE 2\r\nNOOP\r\n", b"+OK"),
    (b"QUIT\r\n", b"+OK"),
];

/// The way in which a client disconnects.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Way {
    /// The client resets the connection.
    Reset,
    /// The client closes its direction, and still reads.
    Close,
    /// The client's cable is unplugged.
    Silence,
}

/// The moment within a step at which a client disconnects.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Moment {
    /// In the middle of the command.
    HalfSaid,
    /// After the command, without waiting for the reply.
    Said,
    /// While the disk works on the command.
    DiskAtWork,
    /// After the reply.
    Answered,
}

const MOMENTS: [Moment; 4] = [Moment::HalfSaid, Moment::Said, Moment::DiskAtWork, Moment::Answered];

fn hears(room: &mut Room, talk: &mut Talk, words: &[u8]) {
    room.until(&format!("{:?} is heard", String::from_utf8_lossy(words)), |room| {
        room.listen(talk);
        talk.heard.windows(words.len().max(1)).any(|heard| heard == words) || words.is_empty()
    });
    talk.heard.clear();
}

/// Goes through the steps before `last`, and through step `last` up to `moment`.
fn converse(room: &mut Room, talk: &mut Talk, steps: &[Step], last: usize, moment: Moment) {
    for (command, answer) in &steps[..last] {
        room.send(talk, command);
        hears(room, talk, answer);
    }
    let (command, answer) = steps[last];
    match moment {
        Moment::HalfSaid => room.send(talk, &command[..command.len() / 2]),
        Moment::Said => room.send(talk, command),
        Moment::DiskAtWork => {
            room.machine.disk.mood = Mood::Waits;
            room.send(talk, command);
            room.pass(Micros::from_millis(100));
        }
        Moment::Answered => {
            room.send(talk, command);
            hears(room, talk, answer);
        }
    }
}

fn leave(room: &mut Room, talk: &Talk, way: Way) {
    match way {
        Way::Reset => room.abort(talk),
        Way::Close => room.close(talk),
        Way::Silence => room.hosts[talk.host].cable = Cable::Out,
    }
    room.pass(Micros::from_millis(100));
    room.machine.disk.mood = Mood::Works;
    // Without this loop, the disk would carry out the waiting requests only at the engine's next
    // doorbell.
    while room.machine.disk.waiting() > 0 {
        room.machine.disk.carry_out_next();
    }
}

/// Delivers two messages to Ada, so that a step can delete both.
fn deliver_two(room: &mut Room) {
    for size in [100, 50_000] {
        assert!(
            room.deliver("ada@barepost.test", &b"A line of its text\r\n".repeat(size / 20))
                .starts_with("250")
        );
    }
}

/// The number of messages in the inbox of `user`. Reads each, to check that none is partial.
fn messages_of(room: &mut Room, user: &str) -> usize {
    let mut talk = room.log_in(user);
    let status = room.pop3(&mut talk, "STAT");
    let messages = status.split(' ').nth(1).and_then(|count| count.parse().ok()).expect("a count");
    for number in 1..=messages {
        room.retrieve_any(&mut talk, number);
    }
    room.pop3(&mut talk, "QUIT");
    room.close(&talk);
    room.until_nothing_is_in_use();
    messages
}

fn leaves_nothing_behind(port: u16, steps: &[Step], way: Way) {
    let mut room = Room::new(u64::from(port));
    for last in 0..steps.len() {
        for moment in MOMENTS {
            deliver_two(&mut room);
            let host = room.add_host();
            let mut talk = room.connect_from(host, port);
            converse(&mut room, &mut talk, steps, last, moment);
            leave(&mut room, &talk, way);
            room.until_nothing_is_in_use();
            room.hosts.truncate(host);
            // Login failures expire after this time.
            room.pass(Micros::from_secs(3_000));
        }
    }
    assert!(messages_of(&mut room, "ada") >= 2);
    assert!(room.deliver("ada@barepost.test", b"still here\r\n").starts_with("250"));
}

#[test]
fn a_sender_that_resets_its_connection_leaves_nothing_behind() {
    leaves_nothing_behind(25, DELIVERY, Way::Reset);
}

#[test]
fn a_sender_that_closes_its_connection_leaves_nothing_behind() {
    leaves_nothing_behind(25, DELIVERY, Way::Close);
}

#[test]
fn a_sender_that_falls_silent_leaves_nothing_behind() {
    leaves_nothing_behind(25, DELIVERY, Way::Silence);
}

#[test]
fn a_reader_that_resets_its_connection_leaves_nothing_behind() {
    leaves_nothing_behind(110, COLLECTION, Way::Reset);
}

#[test]
fn a_reader_that_closes_its_connection_leaves_nothing_behind() {
    leaves_nothing_behind(110, COLLECTION, Way::Close);
}

#[test]
fn a_reader_that_falls_silent_leaves_nothing_behind() {
    leaves_nothing_behind(110, COLLECTION, Way::Silence);
}

#[test]
fn a_client_that_half_closes_still_gets_every_answer() {
    let mut room = Room::new(7);
    let mut talk = room.connect(25);
    room.send(
        &talk,
        b"EHLO client.test\r\nMAIL FROM:<sender@elsewhere.test>\r\nRCPT TO:<ada@barepost.test>\r\nDATA\r\n",
    );
    room.send(&talk, b"Dear Ada\r\n.\r\nMAIL FROM:<>\r\n");
    room.close(&talk);
    room.until("the server has hung up", |room| room.has_hung_up(&mut talk));
    let heard = String::from_utf8_lossy(&talk.heard).to_string();
    let codes: Vec<&str> =
        heard.lines().filter(|line| line.as_bytes()[3] == b' ').map(|line| &line[..3]).collect();
    assert_eq!(codes, ["220", "250", "250", "250", "354", "250", "250"], "{heard}");

    let mut talk = room.connect(110);
    room.send(&talk, b"USER ada\r\nPASS lovelace\r\nRETR 1\r\nDELE 1\r\nQUIT\r\n");
    room.close(&talk);
    room.until("the server has hung up", |room| room.has_hung_up(&mut talk));
    let heard = String::from_utf8_lossy(&talk.heard).to_string();
    assert!(heard.contains("Dear Ada\r\n.\r\n+OK") && !heard.contains("-ERR"), "{heard}");
    room.until_nothing_is_in_use();
    assert_eq!(messages_of(&mut room, "ada"), 0);
}

#[test]
fn a_stop_at_any_step_tells_clients_and_keeps_acknowledged_mail() {
    for (port, steps) in [(25, DELIVERY), (110, COLLECTION)] {
        for last in 0..steps.len() {
            for moment in MOMENTS {
                let mut room = Room::new(last as u64);
                deliver_two(&mut room);
                let mut talk = room.connect(port);
                converse(&mut room, &mut talk, steps, last, moment);
                room.machine.stop = true;
                room.pass(Micros::from_millis(1));
                room.machine.disk.mood = Mood::Works;
                while room.machine.disk.waiting() > 0 {
                    room.machine.disk.carry_out_next();
                }
                let stop_requested_at = room.machine.now;
                room.until("the engine has stopped", |room| {
                    if room.has_hung_up(&mut talk) {
                        room.close(&talk);
                    }
                    room.ended.is_some()
                });
                assert_eq!(room.ended, Some(Ending::Asked));
                assert!(
                    room.machine.now.since(stop_requested_at) < Micros::from_millis(7_500),
                    "{port} {last} {moment:?}"
                );
                assert_eq!(room.engines.in_use(), InUse::default(), "{port} {last} {moment:?}");
                room.listen(&mut talk);
                let heard = String::from_utf8_lossy(&talk.heard).to_string();
                let has_reply =
                    ["421 ", "221 ", "-ERR", "+OK"].iter().any(|word| heard.contains(word));
                let has_quit = last + 1 == steps.len() && moment == Moment::Answered;
                let is_before_greeting = last == 0 && moment != Moment::Answered;
                assert!(
                    has_reply || has_quit || is_before_greeting,
                    "{port} {last} {moment:?}: {heard}"
                );
                let mut room = room.power_cut(last as u64);
                assert!(messages_of(&mut room, "ada") <= 5);
            }
        }
    }
}
