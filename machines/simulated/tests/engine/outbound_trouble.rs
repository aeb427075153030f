//! Problems of outbound mail: hosts that are down, silent or endless, a disk that is busy or
//! broken, and a machine that stops. No message is duplicated or forgotten, and nothing stalls.

#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a test may fail")]

use chance::Dice;
use machine::{Micros, Sector};
use simulated::Mood as DiskMood;

use super::dns::IPV4;
use super::queue_page;
use super::relay::{GRACE, MESSAGE, Mood, PEER, World, is_whole, serving, serving_narrowly};
use super::room::{DISK_BYTES, Room};

/// Steps until the peer has begun to receive a message.
fn until_message(world: &mut World, room: &mut Room) {
    world.until(room, "a message has begun", |world, _| {
        world.peer.conversations.iter().any(|talk| talk.is_message)
    });
}

/// The number of open connections at the peer's host.
fn callers(world: &World, room: &Room) -> usize {
    world.peer.conversations.iter().filter(|talk| room.hosts[PEER].is_open(talk.connection)).count()
}

#[test]
fn a_read_for_a_lost_connection_affects_nothing_else() {
    let (mut room, mut world) = serving(740, Mood::RefusesBob);
    let message = [MESSAGE, &b"Line.\r\n".repeat(100_000)].concat();
    world.submit(&mut room, &["bob@far.test", "carol@far.test"], &message);
    until_message(&mut world, &mut room);
    room.machine.disk.mood = DiskMood::Waits;
    world.until(&mut room, "a part of the message is being read", |_, room| {
        room.machine.disk.waiting() > 0
    });
    let talk = world
        .peer
        .conversations
        .iter()
        .find(|talk| talk.is_message)
        .expect("the peer receives a message")
        .connection;
    room.hosts[PEER].abort(talk);
    // The server now reports Bob's failure, which needs the disk too.
    world.pass(&mut room, 10);
    assert!(room.machine.disk.waiting() > 0);
    while room.machine.disk.waiting() > 0 {
        room.machine.disk.carry_out_next();
    }
    room.machine.disk.mood = DiskMood::Works;
    world.pass(&mut room, 10);
    assert_eq!((world.peer.taken.len(), world.inbox(&mut room, "ada").len()), (0, 1));
    world.pass(&mut room, 7200);
    let to: Vec<String> = world.peer.taken.iter().flat_map(|taken| taken.to.clone()).collect();
    assert_eq!((to, world.inbox(&mut room, "ada").len()), (vec!["carol@far.test".to_string()], 1));
    assert!(is_whole(&world.peer.taken[0].content, &message));
    room.until_nothing_is_in_use();
}

#[test]
fn delivery_attempts_wait_for_a_busy_store() {
    for (seed, transactions) in [(741, 1), (742, 2)] {
        let (mut room, mut world) = serving(seed, Mood::RefusesForNow);
        for number in 0..8 {
            world.submit(
                &mut room,
                &[&format!("friend{number}@far.test"), "grace@barepost.test"],
                MESSAGE,
            );
        }
        // All entries are due at once when a core begins to serve.
        let disk = room.machine.disk.power_cut(&mut Dice::new(seed));
        let (mut room, mut world) = serving_narrowly(seed, disk, transactions, Mood::Takes);
        world.pass(&mut room, 240);
        assert_eq!((world.peer.taken.len(), world.inbox(&mut room, "grace").len()), (8, 8));
        room.until_nothing_is_in_use();
    }
}

#[test]
fn a_stop_waits_for_the_reply_to_a_complete_message() {
    let (mut room, mut world) = serving(743, Mood::Thinks);
    world.submit(&mut room, &["bob@far.test", "carol@far.test"], MESSAGE);
    world.until(&mut room, "the whole message is there", |world, _| {
        world.peer.conversations.iter().any(|talk| talk.awaits_reply)
    });
    room.machine.stop = true;
    world.pass(&mut room, 1);
    assert!(room.ended.is_none());
    world.peer.mood = Mood::RefusesBob;
    world.until(&mut room, "the machine has stopped", |_, room| room.ended.is_some());
    assert_eq!(world.peer.taken.len(), 1);
    let (mut room, mut world) = world.power_cut(room, 743);
    world.pass(&mut room, 7200);
    assert_eq!((world.peer.taken.len(), world.inbox(&mut room, "ada").len()), (1, 1));
}

/// A host has taken a message, and the disk cannot store this result. If retries sent the message
/// again, they would send it for ever.
#[test]
fn an_unstored_result_is_not_retried_while_the_disk_fails() {
    for (seed, mood) in [(744, DiskMood::FailsWrites), (745, DiskMood::FailsFlushes)] {
        let (mut room, mut world) = serving(seed, Mood::RefusesForNow);
        world.submit(&mut room, &["dave@far.test"], MESSAGE);
        world.pass(&mut room, 120);
        world.peer.mood = Mood::Thinks;
        world.submit(&mut room, &["carol@far.test"], MESSAGE);
        world.until(&mut room, "the whole message is there", |world, _| {
            world.peer.conversations.iter().any(|talk| talk.awaits_reply)
        });
        room.machine.disk.mood = mood;
        world.peer.mood = Mood::Takes;
        world.pass(&mut room, 7200);
        let to: Vec<String> = world.peer.taken.iter().flat_map(|taken| taken.to.clone()).collect();
        assert_eq!(to, ["carol@far.test"]);
        // The result is stored when the disk works again, so the message is not sent a second time.
        room.machine.disk.mood = DiskMood::Works;
        world.pass(&mut room, 7200);
        let to: Vec<String> = world.peer.taken.iter().flat_map(|taken| taken.to.clone()).collect();
        assert_eq!(to, ["carol@far.test", "dave@far.test"]);
        room.until_nothing_is_in_use();
    }
}

#[test]
fn all_messages_for_a_dead_host_are_returned_in_time() {
    let (mut room, mut world) = serving(746, Mood::Takes);
    for number in 0..200 {
        world.submit(&mut room, &[&format!("friend{number}@silent.test")], MESSAGE);
    }
    world.pass(&mut room, 5 * 86_400 + 8 * 3600);
    let inbox = world.inbox(&mut room, "ada");
    assert_eq!(inbox.iter().filter(|text| text.contains("Action: failed")).count(), 200);
}

#[test]
fn a_host_that_takes_no_mail_is_not_final_if_another_is_down() {
    let (mut room, mut world) = serving(747, Mood::SendsAway);
    world.submit(&mut room, &["bob@far.test"], MESSAGE);
    world.pass(&mut room, 1800);
    assert_eq!(world.inbox(&mut room, "ada").len(), 0);
    world.peer.mood = Mood::Takes;
    world.pass(&mut room, 7200);
    assert_eq!((world.inbox(&mut room, "ada").len(), world.peer.taken.len()), (0, 1));
}

/// If one host refuses the message, and name servers cannot resolve the other host, the failure is
/// not final.
#[test]
fn a_refusing_host_is_not_final_if_another_is_unresolved() {
    let (mut room, mut world) = serving(756, Mood::SendsAway);
    world.names.failing.push("lost.test");
    world.submit(&mut room, &["bob@half.test"], MESSAGE);
    world.pass(&mut room, 1800);
    assert_eq!(world.inbox(&mut room, "ada").len(), 0);
    world.names.failing.clear();
    world.names.zone.push(("lost.test", IPV4, vec![10, 0, 0, 13]));
    world.peer.mood = Mood::Takes;
    world.pass(&mut room, 7200);
    assert_eq!((world.inbox(&mut room, "ada").len(), world.peer.taken.len()), (0, 1));
}

#[test]
fn a_host_that_drips_its_greeting_is_abandoned() {
    let (mut room, mut world) = serving(748, Mood::Drips);
    world.submit(&mut room, &["bob@far.test"], MESSAGE);
    world.until(&mut room, "the host is called", |world, room| callers(world, room) == 1);
    let start = room.machine.now;
    world.until(&mut room, "the server has closed the connection", |world, room| {
        callers(world, room) == 0
    });
    assert!(
        room.machine.now.since(start) < Micros::from_secs(3 * 3600),
        "{:?}",
        room.machine.now.since(start)
    );
}

/// The number of messages that the peer has received and not answered.
fn thought_about(world: &World) -> usize {
    world.peer.conversations.iter().filter(|talk| talk.awaits_reply).count()
}

/// An entry that waits for a destination gets its turn, even if none of the earlier entries could
/// be read in its turn.
#[test]
fn an_unreadable_entry_does_not_block_later_ones() {
    let (mut room, mut world) = serving(749, Mood::Thinks);
    for number in 0..4 {
        world.submit(&mut room, &[&format!("first{number}@far.test")], MESSAGE);
    }
    world.until(&mut room, "the peer has four messages", |world, _| thought_about(world) == 4);
    for number in 0..4 {
        world.submit(&mut room, &[&format!("rotten{number}@far.test")], MESSAGE);
    }
    world.pass(&mut room, 5);
    (0..DISK_BYTES / 512).for_each(|sector| room.machine.disk.spoil(Sector(sector)));
    for number in 0..4 {
        world.submit(&mut room, &[&format!("last{number}@far.test")], MESSAGE);
    }
    world.pass(&mut room, 5);
    // The peer answers and closes the connections before the result is stored. So no other entry
    // can use these connections.
    room.machine.disk.mood = DiskMood::Waits;
    world.peer.mood = Mood::Takes;
    world.until(&mut room, "the peer has answered all messages", |world, _| {
        thought_about(world) == 0
    });
    let talks: Vec<_> = world.peer.conversations.iter().map(|talk| talk.connection).collect();
    world.pass(&mut room, 1);
    talks.into_iter().for_each(|talk| room.hosts[PEER].close(talk));
    world.pass(&mut room, 1);
    room.machine.disk.mood = DiskMood::Works;
    world.pass(&mut room, 3600);
    let to: Vec<String> = world.peer.taken.iter().flat_map(|taken| taken.to.clone()).collect();
    assert_eq!(to.iter().filter(|to| to.starts_with("last")).count(), 4, "{to:?}");
    assert_eq!(to.len(), 8);
}

/// An entry may have other work to do before it waits for a destination. If the destination has
/// become free by then, the entry still leaves.
#[test]
fn an_entry_leaves_if_its_destination_is_free_before_it_waits() {
    let mut cases = 0;
    for seed in 760..772 {
        let (mut room, mut world) = serving(seed, Mood::RefusesForNow);
        for number in 0..5 {
            world.submit(&mut room, &[&format!("friend{number}@far.test")], MESSAGE);
        }
        world.pass(&mut room, 4 * 3600);
        world.peer.mood = Mood::Drips;
        let end = room.machine.now + Micros::from_secs(6 * 3600);
        world.until(&mut room, "four are on the road", |world, room| {
            room.machine.now > end || callers(world, room) == 4
        });
        room.machine.disk.mood = DiskMood::Waits;
        world
            .until(&mut room, "another message is read", |_, room| room.machine.disk.waiting() > 0);
        if callers(&world, &room) < 4 {
            continue;
        }
        cases += 1;
        // The fifth entry finds the destination busy, and must first send a delay notice.
        room.machine.disk.carry_out_next();
        world.pass(&mut room, 1);
        world.peer.mood = Mood::Takes;
        while world.peer.taken.len() < 4 {
            room.machine.disk.carry_out_next();
            world.pass(&mut room, 1);
        }
        room.machine.disk.mood = DiskMood::Works;
        world.pass(&mut room, 8 * 3600);
        assert_eq!(world.peer.taken.len(), 5, "{seed}");
    }
    assert!(cases > 0);
}

/// Messages that were deferred together are retried at different times.
#[test]
fn messages_deferred_together_are_retried_apart() {
    let (mut room, mut world) = serving(751, Mood::RefusesForNow);
    for number in 0..20 {
        world.submit(&mut room, &[&format!("friend{number}@far.test")], MESSAGE);
    }
    world.until(&mut room, "all messages were refused", |world, _| world.peer.rcpt_count == 20);
    world.until(&mut room, "a message is tried again", |world, _| world.peer.rcpt_count > 20);
    let first = room.machine.now;
    world.until(&mut room, "the last message is tried again", |world, _| {
        world.peer.rcpt_count >= 40
    });
    let time = room.machine.now.since(first);
    assert!(time > Micros::from_secs(60), "{time:?}");
}

#[test]
fn a_connection_that_the_host_keeps_open_lasts_half_a_minute() {
    let (mut room, mut world) = serving(760, Mood::Stays);
    world.submit(&mut room, &["bob@far.test"], MESSAGE);
    world.until(&mut room, "the message has arrived", |world, _| !world.peer.taken.is_empty());
    world.pass(&mut room, 25);
    let connections = |room: &Room| room.engines.in_use().connections;
    assert_eq!(connections(&room), 1, "the connection waits for the host to close it");
    world.pass(&mut room, 40);
    assert_eq!(connections(&room), 0);
}

/// The first host of the domain is down. So each attempt takes half a minute, and at most four run
/// at a time.
#[test]
fn a_deleted_entry_frees_its_attempt_for_the_next() {
    let (mut room, mut world, _, mut grace) = queue_page::serving(774, Mood::Takes);
    for number in 0..5 {
        world.submit(&mut room, &[&format!("friend{number}@far.test")], MESSAGE);
    }
    let calls = |room: &Room| room.engines.in_use().connections;
    world.until(&mut room, "the host is called for four", |_, room| calls(room) == 4);
    let page = queue_page::look(&mut grace, &mut room).text();
    assert_eq!(page.matches("Sending").count(), 4, "{page}");
    let page_text = queue_page::handle(&mut grace, &mut room, "delete", "friend0@far.test");
    assert!(page_text.contains("The message was deleted."), "{page_text}");
    world.pass(&mut room, 1);
    assert_eq!(calls(&room), 4);
    let page = queue_page::look(&mut grace, &mut room).text();
    assert_eq!(
        (page.matches("Sending").count(), page.contains("friend0@far.test")),
        (4, false),
        "{page}"
    );
    grace.hang_up(&mut room);
    world.pass(&mut room, 60);
    let mut to: Vec<String> = world.peer.taken.iter().flat_map(|taken| taken.to.clone()).collect();
    to.sort();
    assert_eq!(to, [1, 2, 3, 4].map(|number| format!("friend{number}@far.test")));
    queue_page::assert_idle(&mut world, &mut room);
}

/// With several cores, the deleted entry waits on another core than the entries with an attempt.
#[test]
fn entry_deleted_while_it_waits_leaves_its_connection_to_others() {
    for seed in 777..780 {
        let (mut room, mut world, _, mut grace) = queue_page::serving(seed, Mood::Thinks);
        for number in 0..4 {
            world.submit(&mut room, &[&format!("friend{number}@far.test")], MESSAGE);
        }
        world.until(&mut room, "the peer thinks about four", |world, _| thought_about(world) == 4);
        let message = String::from_utf8_lossy(MESSAGE).replace("ada@", "grace@");
        let sender = (GRACE, "grace@barepost.test");
        world.submit_from(&mut room, sender, &["carol@far.test"], message.as_bytes());
        world.pass(&mut room, 1);
        let page_text = queue_page::handle(&mut grace, &mut room, "delete", "carol@far.test");
        assert!(page_text.contains("The message was deleted."), "{page_text}");
        grace.hang_up(&mut room);
        world.peer.mood = Mood::Takes;
        world.submit(&mut room, &["friend4@far.test"], MESSAGE);
        world.until(&mut room, "all messages have arrived", |world, _| world.peer.taken.len() == 5);
        assert!(world.peer.taken.iter().all(|taken| taken.to != ["carol@far.test"]), "{seed}");
        queue_page::assert_idle(&mut world, &mut room);
    }
}

/// While the result of an attempt cannot be stored, the queue page shows the attempt, which does
/// not delay the stop for long.
#[test]
fn an_unstored_result_is_shown_and_does_not_block_a_stop() {
    for (seed, mood) in [(775, DiskMood::FailsWrites), (776, DiskMood::FailsFlushes)] {
        let (mut room, mut world, trust, mut grace) = queue_page::serving(seed, Mood::Thinks);
        world.submit(&mut room, &["carol@far.test"], MESSAGE);
        world.until(&mut room, "the peer has it", |world, _| thought_about(world) == 1);
        room.machine.disk.mood = mood;
        world.peer.mood = Mood::Takes;
        world.pass(&mut room, 300);
        let page = queue_page::look(&mut grace, &mut room).text();
        grace.hang_up(&mut room);
        let is_shown = page.contains("the result of the delivery could not be written to");
        assert!(is_shown && page.contains("Sending"), "{page}");
        let start = room.machine.now;
        room.machine.stop = true;
        world.until(&mut room, "the machine has stopped", |_, room| room.ended.is_some());
        let time = room.machine.now.since(start);
        assert!(time < Micros::from_secs(10), "{time:?}");
        // After the restart the disk does not record that the host has the message, so the server
        // sends it again.
        room.machine.disk.mood = DiskMood::Works;
        let (mut room, mut world) = queue_page::power_cut(world, room, seed, &trust);
        world.pass(&mut room, 7200);
        assert_eq!(world.peer.taken.len(), 2);
        queue_page::assert_idle(&mut world, &mut room);
    }
}
