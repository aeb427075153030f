//! Tests with a disk that fails, fills up or stops answering. No client gets a false reply, and all
//! services that can continue do.

#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a test may fail")]

use super::room::tls_stream::Trust;
use super::room::{CONFIGURATION, DISK_BYTES, NO_QUOTA, Room, Talk, usual_sizes};
use chance::Dice;
use http::Site;
use machine::Micros;
use server::{Ending, InUse};
use simulated::room::contents_on;
use simulated::{MemoryDisk, Mood};

const MESSAGE: &[u8] = b"Subject: Hello\r\n\r\nDear Ada\r\n";

fn lines_with(room: &Room, words: &str) -> usize {
    room.machine.console.iter().filter(|line| line.contains(words)).count()
}

/// Delivers a message to Ada until it is refused. Returns the refusal, and counts in `accepted`.
fn deliver_until_refused(room: &mut Room, body: &[u8], accepted: &mut usize) -> String {
    loop {
        let mut talk = room.connect(25);
        room.smtp_reply(&mut talk);
        room.smtp(&mut talk, "EHLO client.test");
        let mut reply = room.smtp(&mut talk, "MAIL FROM:<sender@elsewhere.test>");
        if reply.starts_with("250") {
            room.smtp(&mut talk, "RCPT TO:<ada@barepost.test>");
            room.smtp(&mut talk, "DATA");
            room.send(&talk, body);
            reply = room.smtp(&mut talk, ".");
        }
        room.close(&talk);
        if !reply.starts_with("250") {
            return reply;
        }
        *accepted += 1;
    }
}

#[test]
fn a_failed_write_or_flush_makes_the_store_read_only() {
    for (mood, what) in [(Mood::FailsFlushes, "flush"), (Mood::FailsWrites, "write")] {
        let mut room = Room::new(1);
        assert!(room.deliver("ada@barepost.test", MESSAGE).starts_with("250"));
        room.machine.disk.mood = mood;
        assert!(room.deliver("ada@barepost.test", MESSAGE).starts_with("451"));
        room.machine.disk.mood = Mood::Works;

        let mut talk = room.connect(25);
        room.smtp_reply(&mut talk);
        room.smtp(&mut talk, "EHLO client.test");
        assert!(
            room.smtp(&mut talk, "MAIL FROM:<>")
                .starts_with("451 4.3.0 The server's disk has failed")
        );
        room.close(&talk);

        let mut talk = room.log_in("ada@barepost.test");
        assert!(room.pop3(&mut talk, "STAT").starts_with("+OK 1 "));
        assert_eq!(room.retrieve(&mut talk, 1), MESSAGE);
        assert!(room.pop3(&mut talk, "DELE 1").starts_with("+OK"));
        assert!(room.pop3(&mut talk, "QUIT").starts_with("-ERR [SYS/TEMP]"));
        room.close(&talk);
        room.until_nothing_is_in_use();

        let line = format!(
            "store: the disk failed a {what}; it is tried again every minute; mail can be read, but no mail is accepted until it works again"
        );
        assert_eq!(lines_with(&room, &line), 1, "{:?}", room.machine.console);
        room.machine.stop = true;
        let stop_requested_at = room.machine.now;
        room.until("the engine has stopped", |room| room.ended.is_some());
        assert!(
            room.machine.now.since(stop_requested_at) < Micros::from_millis(100),
            "the stop waits for nothing"
        );
    }
}

#[test]
fn mail_is_accepted_again_when_the_disk_works_again() {
    for mood in [Mood::FailsFlushes, Mood::FailsWrites, Mood::FailsAll] {
        let mut room = Room::new(9);
        assert!(room.deliver("ada@barepost.test", MESSAGE).starts_with("250"));
        room.machine.disk.mood = mood;
        let reply = room.deliver("ada@barepost.test", b"Subject: Not stored\r\n\r\nx\r\n");
        assert!(reply.starts_with("451 4.3.0 The server's disk has failed"), "{reply}");
        // The engine retries the disk, which fails again.
        room.pass(Micros::from_secs(150));
        let refused = |room: &mut Room| {
            let mut talk = room.connect(25);
            room.smtp_reply(&mut talk);
            room.smtp(&mut talk, "EHLO client.test");
            let reply = room.smtp(&mut talk, "MAIL FROM:<>");
            room.close(&talk);
            reply.starts_with("451 4.3.0 The server's disk has failed")
        };
        assert!(refused(&mut room));
        room.machine.disk.mood = Mood::Works;
        assert!(refused(&mut room), "the store is still read-only");
        room.pass(Micros::from_secs(61));
        assert!(
            room.deliver("ada@barepost.test", b"Subject: Stored\r\n\r\ny\r\n").starts_with("250")
        );
        assert_eq!(lines_with(&room, "store: the disk failed"), 1, "{:?}", room.machine.console);
        assert_eq!(
            lines_with(&room, "store: the disk works again; mail is accepted"),
            1,
            "{:?}",
            room.machine.console
        );
        let mut room = room.power_cut(9);
        let mut talk = room.log_in("ada@barepost.test");
        assert!(room.pop3(&mut talk, "STAT").starts_with("+OK 2 "));
        assert_eq!(room.retrieve(&mut talk, 1), MESSAGE);
        assert_eq!(room.retrieve(&mut talk, 2), b"Subject: Stored\r\n\r\ny\r\n");
        room.close(&talk);
    }
}

#[test]
fn the_start_waits_for_a_disk_that_is_away() {
    for mood in [Mood::IsGone, Mood::FailsReads] {
        for steps in 0..40 {
            let mut room = Room::new(10);
            assert!(room.deliver("ada@barepost.test", MESSAGE).starts_with("250"));
            let mut disk = room.machine.disk.power_cut(&mut Dice::new(10));
            disk.mood = Mood::Waits;
            let mut room = Room::opening(11, disk, usual_sizes());
            for _ in 0..steps {
                room.step();
                room.machine.disk.carry_out_next();
            }
            room.machine.disk.mood = mood;
            if !room.console_says("serving") {
                room.pass(Micros::from_secs(600));
            }
            let is_opened = !room.console_says("trying again every second");
            assert!(
                is_opened || lines_with(&room, "store: the disk cannot read sector") == 1,
                "{:?}",
                room.machine.console
            );
            room.machine.disk.mood = Mood::Works;
            if is_opened {
                assert!(steps > 5, "{:?}", room.machine.console);
                continue;
            }
            room.until("the engine serves", |room| room.console_says("serving"));
            let mut talk = room.log_in("ada@barepost.test");
            assert!(room.pop3(&mut talk, "STAT").starts_with("+OK 1 "), "after {steps} steps");
            assert_eq!(room.retrieve(&mut talk, 1), MESSAGE);
            room.close(&talk);
        }
    }
}

/// A machine with `disk`, which carries out this many requests and then fails as `mood` says. The
/// machine has a certificate, and so needs an account for certificates.
fn failing_after(requests: usize, mood: Mood, mut disk: MemoryDisk, configuration: &str) -> Room {
    disk.mood = Mood::Waits;
    let certificates = vec![Trust::new("mail.barepost.test").certificate];
    let mut room =
        Room::certified(12, disk, usual_sizes(), configuration, Site::default(), certificates);
    for _ in 0..requests {
        room.until("the disk is asked", |room| {
            room.machine.disk.waiting() > 0 || room.console_says("serving")
        });
        room.machine.disk.carry_out_next();
    }
    room.machine.disk.mood = mood;
    room.pass(Micros::from_secs(10));
    room
}

#[test]
fn accounts_are_created_when_a_failed_disk_works_again() {
    let mut waited = 0;
    for mood in [Mood::FailsWrites, Mood::FailsFlushes, Mood::FailsAll] {
        for requests in 0.. {
            let mut room =
                failing_after(requests, mood, MemoryDisk::blank(DISK_BYTES), CONFIGURATION);
            let waits =
                lines_with(&room, "cannot be set up yet: the disk fails; retrying for a minute")
                    > 0;
            if waits {
                assert!(
                    !room.console_says("serving"),
                    "after {requests}: {:?}",
                    room.machine.console
                );
                room.machine.disk.mood = Mood::Works;
                room.until("the engine serves", |room| room.console_says("serving"));
                assert_eq!(
                    lines_with(&room, "cannot be set up"),
                    1,
                    "after {requests}: {:?}",
                    room.machine.console
                );
                for user in ["ada@barepost.test", "grace@barepost.test"] {
                    let talk = room.log_in(user);
                    room.close(&talk);
                }
                contents_on(&room.machine.disk, "certificates");
                waited += 1;
            } else if lines_with(&room, "cannot be set up") == 0 && room.console_says("serving") {
                break;
            }
        }
    }
    // The machine makes three accounts, each with a write and a flush.
    assert!(waited >= 9, "{waited}");
}

#[test]
fn a_disk_that_refuses_accounts_is_served_after_a_minute() {
    let mut room = Room::new(13);
    assert!(room.deliver("ada@barepost.test", MESSAGE).starts_with("250"));
    let image = room.machine.disk.image();
    let hash = CONFIGURATION
        .lines()
        .find(|line| line.starts_with("password_hash"))
        .expect("a user has a hash");
    let configuration =
        format!("{CONFIGURATION}[[user]]\naddress = \"mary@barepost.test\"\n{hash}\n");
    let waiting = || {
        let disk = || MemoryDisk::of_image(&image).expect("the image is valid");
        let rooms = (0..100)
            .map(|requests| failing_after(requests, Mood::FailsWrites, disk(), &configuration));
        rooms
            .into_iter()
            .find(|room| room.console_says("cannot be set up yet"))
            .expect("an account is made")
    };
    let mut room = waiting();
    room.pass(Micros::from_secs(45));
    assert!(!room.console_says("serving"), "{:?}", room.machine.console);
    room.pass(Micros::from_secs(10));
    assert!(room.console_says("serving"), "{:?}", room.machine.console);
    let why = "mary@barepost.test cannot be set up: the disk fails; restart the server";
    assert_eq!(
        (lines_with(&room, why), lines_with(&room, "cannot be set up")),
        (1, 3),
        "{:?}",
        room.machine.console
    );
    let mut talk = room.log_in("ada@barepost.test");
    assert_eq!(room.retrieve(&mut talk, 1), MESSAGE);
    room.close(&talk);

    let mut room = waiting();
    room.machine.stop = true;
    let stop_requested_at = room.machine.now;
    room.until("the engine has stopped", |room| room.ended.is_some());
    assert!(
        room.machine.now.since(stop_requested_at) < Micros::from_secs(3),
        "{:?}",
        room.machine.now.since(stop_requested_at)
    );
}

#[test]
fn a_disk_failure_refuses_pending_deliveries() {
    for mood in [Mood::FailsFlushes, Mood::FailsWrites, Mood::FailsAll] {
        let mut room = Room::new(2);
        let mut talks: Vec<Talk> =
            (0..4).map(|_| room.begin_message("ada@barepost.test")).collect();
        // The first message has only begun, and the second has sent much. The third and the fourth
        // are complete, and wait for the disk.
        room.send(&talks[1], &b"A line of its text\r\n".repeat(20_000));
        room.machine.disk.mood = Mood::Waits;
        room.send(&talks[2], b"short\r\n.\r\n");
        room.pass(Micros::from_millis(10));
        room.send(&talks[3], b"short\r\n.\r\n");
        room.pass(Micros::from_millis(10));
        room.machine.disk.mood = mood;
        for _ in 0..100 {
            room.machine.disk.carry_out_next();
            room.pass(Micros::from_millis(1));
        }
        room.send(&talks[0], b"x\r\n.\r\n");
        room.send(&talks[1], b".\r\n");
        for talk in &mut talks {
            let reply = room.smtp_reply(talk);
            assert!(reply.starts_with("451"), "{reply}");
            room.close(talk);
        }
        room.until_nothing_is_in_use();
    }
}

#[test]
fn a_disk_that_does_not_answer_does_not_block_a_stop() {
    let mut room = Room::new(3);
    assert!(room.deliver("ada@barepost.test", MESSAGE).starts_with("250"));
    let mut sender = room.begin_message("ada@barepost.test");
    let mut reader = room.log_in("ada@barepost.test");
    room.machine.disk.mood = Mood::Waits;
    room.send(&sender, b"short\r\n.\r\n");
    room.send(&reader, b"RETR 1\r\n");
    room.pass(Micros::from_secs(1));
    let mut other = room.connect(25);
    assert!(room.smtp_reply(&mut other).starts_with("220"));
    room.machine.stop = true;
    let stop_requested_at = room.machine.now;
    assert!(room.smtp_reply(&mut other).starts_with("421"));
    room.close(&other);
    room.until("the engine has stopped", |room| room.ended.is_some());
    assert!(
        room.machine.now.since(stop_requested_at) < Micros::from_millis(7_500),
        "{:?}",
        room.machine.now.since(stop_requested_at)
    );
    assert!(room.has_hung_up(&mut sender) && room.has_hung_up(&mut reader));
    assert_eq!(room.ended, Some(Ending::Asked));
}

#[test]
fn a_failed_read_is_reported_as_temporary() {
    let mut room = Room::new(10);
    assert!(room.deliver("ada@barepost.test", MESSAGE).starts_with("250"));
    let mut talk = room.log_in("ada@barepost.test");
    room.machine.disk.mood = Mood::FailsReads;
    let reply = room.pop3(&mut talk, "RETR 1");
    assert!(reply.starts_with("-ERR [SYS/TEMP] Message cannot be read now"), "{reply}");
    room.machine.disk.mood = Mood::Works;
    assert_eq!(room.retrieve(&mut talk, 1), MESSAGE);
    assert!(room.machine.disk.spoil_what_holds(b"Dear Ada") > 0);
    let reply = room.pop3(&mut talk, "RETR 1");
    assert!(reply.starts_with("-ERR [SYS/PERM] Message is damaged and cannot be read"), "{reply}");
    room.close(&talk);
    let message = "message 1 in INBOX of ada@barepost.test";
    assert_eq!(
        lines_with(&room, &format!("{message} cannot be read: the disk reported an error")),
        1
    );
    assert_eq!(lines_with(&room, &format!("{message} is damaged: two reads differ")), 1);
}

#[test]
fn a_minute_has_at_most_ten_lines_about_damage() {
    let mut room = Room::new(10);
    assert!(room.deliver("ada@barepost.test", MESSAGE).starts_with("250"));
    assert!(room.machine.disk.spoil_what_holds(b"Dear Ada") > 0);
    let mut talk = room.log_in("ada@barepost.test");
    for _ in 0..25 {
        assert!(room.pop3(&mut talk, "RETR 1").starts_with("-ERR [SYS/PERM]"));
    }
    assert_eq!(lines_with(&room, "is damaged"), 10);
    room.pass(Micros::from_secs(61));
    let rest = "store: 15 more reads of damaged or unreadable messages within a minute";
    assert_eq!(lines_with(&room, rest), 1, "{:?}", room.machine.console);
    assert!(room.pop3(&mut talk, "RETR 1").starts_with("-ERR [SYS/PERM]"));
    assert_eq!(lines_with(&room, "is damaged"), 11);
    room.close(&talk);
}

#[test]
fn a_full_index_is_told_to_senders_and_the_operator() {
    let bytes = 40 * store::RESIDENT_BYTES_PER_MESSAGE as u64;
    let sizes = server::Sizes { index_bytes: bytes / u64::from(crate::CORES), ..usual_sizes() };
    let mut room = Room::configured(4, MemoryDisk::blank(DISK_BYTES), sizes, CONFIGURATION);
    room.until("the engine serves", |room| room.console_says("serving"));
    let mut accepted = 0;
    let refusal = deliver_until_refused(&mut room, MESSAGE, &mut accepted);
    assert!((20..=40).contains(&accepted), "{accepted}");
    let expected = "452 4.3.1 The server has reached its maximum number of messages";
    assert!(refusal.starts_with(expected), "{refusal}");
    assert_eq!(lines_with(&room, "index: up to 40 messages, 0 % used"), 1);
    let full =
        "index: FULL: messages are refused; delete messages, or give the machine more memory";
    assert_eq!(lines_with(&room, full), 1, "{:?}", room.machine.console);
    assert_eq!(lines_with(&room, "disk: FULL"), 0);
    let mut talk = room.log_in("ada");
    for number in 1..=accepted / 2 {
        assert!(room.pop3(&mut talk, &format!("DELE {number}")).starts_with("+OK"));
    }
    assert!(room.pop3(&mut talk, "QUIT").starts_with("+OK"));
    room.close(&talk);
    assert!(room.deliver("ada@barepost.test", MESSAGE).starts_with("250"));
    assert_eq!(lines_with(&room, "used; messages are accepted again"), 1);
}

#[test]
fn a_message_that_never_fits_is_told_so() {
    let mut room = Room::with_disk(4, MemoryDisk::blank(2 << 20));
    let mut talk = room.connect(25);
    room.smtp_reply(&mut talk);
    room.send(&talk, b"EHLO client.test\r\n");
    let offered = loop {
        let line = room.line(&mut talk);
        if let Some(size) = line.strip_prefix("250-SIZE ") {
            break size.parse::<u64>().expect("a number");
        }
    };
    room.smtp_reply(&mut talk);
    assert!((1 << 20..2 << 20).contains(&offered), "{offered}");
    let declared = |octets| format!("MAIL FROM:<a@far.test> SIZE={octets}");
    assert!(room.smtp(&mut talk, &declared(offered + 1)).starts_with("552 5.3.4"));
    assert!(room.smtp(&mut talk, &declared(offered / 2)).starts_with("250"));
    room.close(&talk);
}

#[test]
fn a_full_disk_replies_452_until_messages_are_deleted() {
    let serving = |disk| {
        let configuration = [CONFIGURATION, NO_QUOTA].concat();
        let mut room = Room::configured(4, disk, usual_sizes(), &configuration);
        room.until("the engine serves", |room| room.console_says("serving"));
        room
    };
    let mut room = serving(MemoryDisk::blank(2 << 20));
    let body = b"A line of its text, to fill the disk with\r\n".repeat(1_000);
    let mut accepted = 0;
    let refusal = deliver_until_refused(&mut room, &body, &mut accepted);
    assert!(refusal.starts_with("452 4.3.1 Insufficient system storage"), "{refusal}");
    assert!(accepted > 10);
    let told = |room: &Room| {
        ["before it is full", "disk: FULL", "messages are accepted again"]
            .map(|words| lines_with(room, words))
    };
    let seen = told(&room);
    assert_eq!(seen, [2, 1, 0], "{:?}", room.machine.console);
    let mut room = serving(room.machine.disk.power_cut(&mut Dice::new(4)));
    deliver_until_refused(&mut room, &body, &mut accepted);
    let mut talk = room.log_in("ada");
    for number in 1..=accepted {
        assert_eq!(room.retrieve(&mut talk, number), body);
        assert!(room.pop3(&mut talk, &format!("DELE {number}")).starts_with("+OK"));
    }
    assert!(room.pop3(&mut talk, "QUIT").starts_with("+OK"));
    room.close(&talk);
    room.until_nothing_is_in_use();
    room.pass(Micros::from_secs(1));
    assert_eq!(told(&room)[2], 1, "{:?}", room.machine.console);
    for _ in 0..accepted / 2 {
        assert!(room.deliver("ada@barepost.test", &body).starts_with("250"));
    }
}

#[test]
fn damage_found_at_opening_is_on_the_console() {
    let mut room = Room::new(5);
    assert!(room.deliver("ada@barepost.test", MESSAGE).starts_with("250"));
    assert_eq!(lines_with(&room, "superblock"), 0);
    let mut disk = room.machine.disk.power_cut(&mut Dice::new(5));
    disk.spoil(machine::Sector(0));
    let mut room = Room::with_disk(5, disk);
    assert_eq!(lines_with(&room, "store: sector 0: a copy of the superblock is damaged"), 1);
    let mut talk = room.log_in("ada");
    assert_eq!(room.retrieve(&mut talk, 1), MESSAGE);
}

#[test]
fn a_foreign_disk_is_refused_with_a_console_message() {
    let mut disk = MemoryDisk::blank(16 << 20);
    disk.spoil(machine::Sector(0));
    let mut room = Room::opening(6, disk, usual_sizes());
    room.until("the engine has stopped", |room| room.ended.is_some());
    assert_eq!(room.ended, Some(Ending::Refused));
    assert!(room.console_says("store: the disk is neither blank nor a Barepost disk"));
    assert_eq!(room.engines.first().crash_sector(), None);
    assert_eq!(room.engines.in_use(), InUse::default());
}

#[test]
fn a_used_disk_is_never_formatted() {
    let line = "store: the disk was blank; created a new store of";
    let mut room = Room::new(8);
    assert_eq!(lines_with(&room, line), 1, "{:?}", room.machine.console);
    assert!(room.deliver("ada@barepost.test", MESSAGE).starts_with("250"));
    let room = room.power_cut(8);
    assert_eq!(lines_with(&room, line), 0, "{:?}", room.machine.console);

    // Both ends of the disk are erased, as by a tool that prepares a disk for another use.
    let mut disk = room.machine.disk.power_cut(&mut Dice::new(8));
    let sectors = disk.sectors();
    disk.erase(0..24 * 8);
    disk.erase(sectors - 8 * 8..sectors);
    let mut room = Room::opening(8, disk, usual_sizes());
    room.until("the engine has stopped", |room| room.ended.is_some());
    assert_eq!(room.ended, Some(Ending::Refused));
    assert!(room.console_says(
        "store: the disk holds mail of a Barepost server, but its superblocks are lost"
    ));
}

#[test]
fn a_machine_asked_to_stop_while_it_opens_its_disk_stops() {
    let mut disk = MemoryDisk::blank(16 << 20);
    disk.mood = Mood::Waits;
    let mut room = Room::opening(7, disk, usual_sizes());
    room.pass(Micros::from_secs(1));
    room.machine.stop = true;
    let stop_requested_at = room.machine.now;
    room.until("the engine has stopped", |room| room.ended.is_some());
    assert!(
        room.machine.now.since(stop_requested_at) < Micros::from_secs(3),
        "{:?}",
        room.machine.now.since(stop_requested_at)
    );
}
