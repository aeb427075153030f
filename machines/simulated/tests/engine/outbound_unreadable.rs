//! Outbox entries that cannot be read: the server sends a notice to the account that has them,
//! shows them on the queue page, and keeps them.

#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a test may fail")]

use chance::Dice;
use machine::Sector;
use simulated::MemoryDisk;
use simulated::room::{messages_on, with_message};
use store::{Flags, OUTBOX};

use super::queue_page::{UNKNOWN, assert_idle, handle, look, power_cut, serving, serving_on};
use super::relay::{MESSAGE, Mood, World};
use super::room::tls_stream::Trust;
use super::room::{DISK_BYTES, Room};
use super::webmail::Browser;

const DAY: u64 = 24 * 3600;
const LINE: &str = "queue: message 1 in the outbox of ada@barepost.test cannot be sent: the message's envelope in this server's queue is not valid";

fn sound(seed: u64, trust: &Trust) -> MemoryDisk {
    let (room, _) = serving_on("", seed, MemoryDisk::blank(DISK_BYTES), Mood::Takes, trust);
    room.machine.disk.power_cut(&mut Dice::new(seed))
}

/// A copy of the disk with an entry in Ada's outbox that has several chunks and no envelope.
fn faulty(disk: &MemoryDisk) -> MemoryDisk {
    let marks = (Flags::SEEN.with(Flags::LEAVING), 0);
    with_message(
        disk,
        ("ada@barepost.test", OUTBOX),
        marks,
        &b"Subject: no envelope\r\n".repeat(2_000),
    )
}

fn notices(world: &mut World, room: &mut Room) -> usize {
    let inbox = world.inbox(room, "ada");
    let is_notice = |message: &&String| {
        message.starts_with("Return-Path: <>\r\n")
            && message.contains("\r\nSubject: A message in your outbox cannot be sent\r\n")
    };
    let notices = inbox.iter().filter(is_notice).count();
    assert_eq!(inbox.len(), notices, "{inbox:?}");
    notices
}

#[test]
fn an_entry_without_an_envelope_is_reported_and_kept() {
    let trust = Trust::new("mail.barepost.test");
    let (mut room, mut world) =
        serving_on("", 961, faulty(&sound(960, &trust)), Mood::Takes, &trust);
    let mut grace = Browser::new(&trust);
    for life in 0..3 {
        world.pass(&mut room, 30);
        assert!(room.console_says(LINE));
        grace.log_in(&mut room, "grace", "lovelace");
        let page = look(&mut grace, &mut room).text();
        grace.hang_up(&mut room);
        for words in [
            "Cannot be sent",
            UNKNOWN,
            "the outbox of ada@barepost.test",
            "envelope in this server&#39;s queue",
        ] {
            assert!(page.contains(words), "{words}: {page}");
        }
        assert_eq!(notices(&mut world, &mut room), 1, "in life {life}");
        world.pass(&mut room, DAY);
        let lines =
            room.machine.console.iter().filter(|line| line.contains("outbox of ada")).count();
        assert_eq!(lines, 1, "the entry is not read again");
        (room, world) = power_cut(world, room, 962 + life, &trust);
        grace = Browser::new(&trust);
    }
    grace.log_in(&mut room, "grace", "lovelace");
    grace.hang_up(&mut room);
    // Only a deletion removes the entry. Other messages still leave.
    world.submit(&mut room, &["bob@far.test"], MESSAGE);
    world.pass(&mut room, 60);
    assert_eq!(world.peer.taken.len(), 1);
    for what in ["retry", "return"] {
        handle(&mut grace, &mut room, what, UNKNOWN);
        world.pass(&mut room, 60);
        assert!(look(&mut grace, &mut room).text().contains(UNKNOWN), "{what}");
        grace.hang_up(&mut room);
    }
    let page_text = handle(&mut grace, &mut room, "delete", UNKNOWN);
    assert!(
        page_text.contains("The message was deleted.") && page_text.contains("The queue is empty"),
        "{page_text}"
    );
    assert_eq!(notices(&mut world, &mut room), 1);
    assert_idle(&mut world, &mut room);
}

#[test]
fn an_entry_for_a_missing_recipient_is_reported_and_kept() {
    let trust = Trust::new("mail.barepost.test");
    let (mut room, mut world) =
        serving_on("", 965, MemoryDisk::blank(DISK_BYTES), Mood::RefusesForNow, &trust);
    world.submit(&mut room, &["bob@far.test"], MESSAGE);
    world.pass(&mut room, 30);
    let disk = room.machine.disk.power_cut(&mut Dice::new(965));
    let (_, entry) = messages_on(&disk, "ada@barepost.test")
        .into_iter()
        .last()
        .expect("the entry is in the outbox");
    // The upper bits give the index of the entry's first recipient. This entry begins with the
    // eighth recipient, but its message has only one.
    let marks = (Flags::SEEN.with(Flags::LEAVING), 7 << 8);
    let disk = with_message(&sound(966, &trust), ("ada@barepost.test", OUTBOX), marks, &entry);
    let (mut room, mut world) = serving_on("", 967, disk, Mood::Takes, &trust);
    world.pass(&mut room, DAY);
    assert!(room.console_says(LINE));
    assert_eq!(notices(&mut world, &mut room), 1);
    assert_eq!(world.peer.taken.len(), 0);
    let mut grace = Browser::new(&trust);
    grace.log_in(&mut room, "grace", "lovelace");
    let page = look(&mut grace, &mut room).text();
    grace.hang_up(&mut room);
    for words in ["Cannot be sent", UNKNOWN, "the outbox of ada@barepost.test"] {
        assert!(page.contains(words), "{words}: {page}");
    }
    let disk = room.machine.disk.power_cut(&mut Dice::new(967));
    assert!(
        messages_on(&disk, "ada@barepost.test").iter().any(|(_, octets)| *octets == entry),
        "the entry is kept"
    );
}

#[test]
fn an_unreadable_entry_is_reported_once_at_any_power_cut() {
    let trust = Trust::new("mail.barepost.test");
    let disk = sound(970, &trust);
    let mut ends = [0; 2];
    for steps in 0..40 {
        let (mut room, mut world) = serving_on("", 971, faulty(&disk), Mood::Takes, &trust);
        world.step(&mut room, steps);
        let left = room.machine.disk.power_cut(&mut Dice::new(steps));
        ends[messages_on(&left, "ada@barepost.test")
            .iter()
            .filter(|(mailbox, _)| *mailbox == 1)
            .count()] += 1;
        let (mut room, mut world) = serving_on("", 4_000 + steps, left, Mood::Takes, &trust);
        world.pass(&mut room, 3_600);
        assert_eq!(notices(&mut world, &mut room), 1, "cut after {steps} steps");
    }
    assert!(ends.iter().all(|cuts| *cuts > 1), "{ends:?}");
}

#[test]
fn an_unreadable_entry_is_reported_after_days() {
    let (mut room, mut world, _, mut grace) = serving(980, Mood::RefusesForNow);
    world.submit(&mut room, &["bob@far.test"], MESSAGE);
    world.pass(&mut room, 10);
    (0..DISK_BYTES / 512).for_each(|sector| room.machine.disk.spoil(Sector(sector)));
    world.pass(&mut room, 2 * DAY);
    assert_eq!(notices(&mut world, &mut room), 0);
    world.pass(&mut room, 4 * DAY);
    assert_eq!(notices(&mut world, &mut room), 1);
    world.pass(&mut room, 2 * DAY);
    assert_eq!(notices(&mut world, &mut room), 1);
    let line = "queue: message 1 in the outbox of ada@barepost.test cannot be sent: a part of the message can no longer be read";
    assert_eq!(room.machine.console.iter().filter(|printed| printed.contains(line)).count(), 1);
    grace.log_in(&mut room, "grace", "lovelace");
    assert!(look(&mut grace, &mut room).text().contains(UNKNOWN));
    grace.hang_up(&mut room);
    assert_idle(&mut world, &mut room);
}

#[test]
fn an_entry_found_by_a_rebuild_is_shown_and_not_sent() {
    let trust = Trust::new("mail.barepost.test");
    let (mut room, mut world) =
        serving_on("", 990, MemoryDisk::blank(DISK_BYTES), Mood::RefusesForNow, &trust);
    world.submit(&mut room, &["bob@far.test", "carol@silent.test"], MESSAGE);
    world.pass(&mut room, 30);
    let disk = room.machine.disk.power_cut(&mut Dice::new(990));
    let (_, entry) = messages_on(&disk, "ada@barepost.test")
        .into_iter()
        .last()
        .expect("the entry is in the outbox");
    // A rebuild restores no flags. The second message arrived for an account that forwards its
    // mail.
    let arrived = b"Return-Path: <frank@far.test>\r\nSubject: Arrived\r\n\r\nHello.\r\n";
    let found = [&entry[..], arrived].into_iter().fold(disk, |disk, octets| {
        with_message(&disk, ("ada@barepost.test", OUTBOX), (Flags::default(), 0), octets)
    });
    let (mut room, mut world) = serving_on("", 991, found, Mood::Takes, &trust);
    let mut grace = Browser::new(&trust);
    grace.log_in(&mut room, "grace", "lovelace");
    let both = "bob@far.test, carol@silent.test";
    for (what, wait) in [("hold", 0), ("retry", DAY), ("release", 60), ("return", 60), ("hold", 60)]
    {
        // The first command is sent right after the start.
        for recipients in [both, UNKNOWN] {
            handle(&mut grace, &mut room, what, recipients);
        }
        for recipients in ["far.test", "silent.test"] {
            if what != "hold" || wait > 0 {
                handle(&mut grace, &mut room, what, recipients);
            }
        }
        grace.hang_up(&mut room);
        world.pass(&mut room, wait);
        let page = look(&mut grace, &mut room).text();
        grace.hang_up(&mut room);
        assert_eq!(page.matches("Cannot be sent").count(), 2, "{what}: {page}");
        assert_eq!(page.matches("may have been delivered before").count(), 2, "{what}: {page}");
        assert!(
            page.contains(&format!(">{both}</h2>")) && page.contains(UNKNOWN),
            "{what}: {page}"
        );
    }
    // Of the other message, Bob has a copy, and Carol's copy was returned. The two unreadable
    // entries caused no report.
    let page_text = handle(&mut grace, &mut room, "delete", "far.test");
    assert!(
        !page_text.contains("The rest failed") && !page_text.contains("Try again"),
        "{page_text}"
    );
    assert_eq!(look(&mut grace, &mut room).text().matches("Cannot be sent").count(), 2);
    grace.hang_up(&mut room);
    let inbox = world.inbox(&mut room, "ada");
    assert_eq!(
        inbox.iter().filter(|message| message.contains("Action: failed")).count(),
        1,
        "{inbox:?}"
    );
    assert!(!inbox.iter().any(|message| message.contains("cannot be sent")), "{inbox:?}");
    assert_eq!(world.peer.taken.len(), 1);
    let page_text = handle(&mut grace, &mut room, "delete", both);
    assert!(page_text.contains("The message was deleted."), "{page_text}");
    let page_text = handle(&mut grace, &mut room, "delete", UNKNOWN);
    assert!(page_text.contains("The message was deleted."), "{page_text}");
    assert!(!look(&mut grace, &mut room).text().contains("Cannot be sent"));
    grace.hang_up(&mut room);
    assert_idle(&mut world, &mut room);
}
