//! Mail of several people leaves: whoever writes to many, or to hosts that are slow, holds up nobody else.

#![allow(clippy::indexing_slicing, reason = "a test may fail")]

use machine::Micros;
use simulated::MemoryDisk;
use smoltcp::wire::Ipv4Address;

use crate::CORES;

use super::far::{ADA, GRACE, Mood, PEER, World, configuration, serving, world_of};
use super::names::{IPV4, STRANGER};
use super::room::{CONFIGURATION, DISK_BYTES, Room, usual_sizes};

const WHO_ADA: (&str, &str) = (ADA, "ada@barepost.test");
const WHO_ALAN: (&str, &str) =
    ("AUTH PLAIN AGFsYW5AYmFyZXBvc3QudGVzdABsb3ZlbGFjZQ==", "alan@barepost.test");
const WHO_GRACE: (&str, &str) = (GRACE, "grace@barepost.test");

/// Without a `From` field, which the server adds: several accounts submit it.
const LETTER: &[u8] = b"Subject: Away\r\n\r\nHello.\r\n";

/// Letters to so many domains, at none of which anybody answers.
fn submit_in_vain(world: &mut World, room: &mut Room, who: (&str, &str), domains: usize) {
    for number in 0..domains {
        let domain: &'static str = format!("silent{number}.test").leak();
        world.names.zone.push((domain, IPV4, vec![10, 0, 0, 98]));
        world.submit_from(room, who, &[&format!("friend@{domain}")], LETTER);
    }
}

#[test]
fn whoever_writes_to_many_hosts_that_are_silent_holds_up_nobody_else() {
    for (seed, many, one) in [(800, WHO_ADA, WHO_GRACE), (801, WHO_GRACE, WHO_ADA)] {
        let (mut room, mut world) = serving(seed, Mood::Takes);
        submit_in_vain(&mut world, &mut room, many, 100);
        world.pass(&mut room, 5);
        world.submit_from(&mut room, one, &["bob@two.test"], LETTER);
        let start = room.machine.now;
        world.until(&mut room, "bob has his letter", |world, _| !world.peer.taken.is_empty());
        // The first host of his domain is silent, too.
        let time = room.machine.now.since(start);
        assert!(time < Micros::from_secs(35), "{seed}: {time:?}");
    }
}

#[test]
fn whoever_writes_to_many_at_a_domain_takes_turns_with_others() {
    for (seed, many, one) in [(802, WHO_ADA, WHO_GRACE), (803, WHO_GRACE, WHO_ADA)] {
        let (mut room, mut world) = serving(seed, Mood::Takes);
        for number in 0..100 {
            world.submit_from(&mut room, many, &[&format!("friend{number}@far.test")], LETTER);
        }
        world.submit_from(&mut room, one, &["bob@far.test"], LETTER);
        world.until(&mut room, "all have arrived", |world, _| world.peer.taken.len() == 101);
        let before = world.peer.taken.iter().position(|taken| taken.to == ["bob@far.test"]);
        assert!(before.is_some_and(|before| before < 12), "{seed}: {before:?}");
        room.until_nothing_is_in_use();
    }
}

/// Whoever has as many couriers as he may have does not stand in the way of others where they wait for the same.
#[test]
fn whoever_waits_for_others_of_his_own_lets_those_pass_who_do_not() {
    if CORES > 1 {
        // Each of the two may have a core of his own, with couriers of its own.
        return;
    }
    for (seed, many, one) in [(804, WHO_ADA, WHO_GRACE), (805, WHO_GRACE, WHO_ADA)] {
        let (mut room, mut world) = serving(seed, Mood::Thinks);
        for number in 0..4 {
            world.submit_from(&mut room, one, &[&format!("friend{number}@far.test")], LETTER);
        }
        world.until(&mut room, "the peer thinks about four", |world, _| {
            world.peer.conversations.iter().filter(|talk| talk.is_thought_over).count() == 4
        });
        world.submit_from(&mut room, many, &["first@far.test"], LETTER);
        world.pass(&mut room, 1);
        submit_in_vain(&mut world, &mut room, many, 100);
        world.submit_from(&mut room, one, &["next@far.test"], LETTER);
        world.pass(&mut room, 1);
        // One of the four connections is free, and there is no courier now for whoever is first.
        let talk = world.peer.conversations[0].connection;
        room.hosts[PEER].abort(talk);
        world.until(&mut room, "a fifth letter is there", |world, _| world.peer.named == 5);
        assert!(
            world.peer.conversations.iter().any(|talk| talk.open.to == ["next@far.test"]),
            "{seed}"
        );
    }
}

/// Where all who wait for the same have as many couriers as they may have, the one goes first who may have another first.
#[test]
fn whoever_may_go_first_goes_where_nobody_may_now() {
    if CORES > 1 {
        return;
    }
    let alan =
        CONFIGURATION.lines().find(|line| line.starts_with("password_hash")).unwrap_or_default();
    let configuration = configuration().replace(
        "[access]",
        &format!("[[user]]\naddress = \"alan@barepost.test\"\n{alan}\n\n[access]"),
    );
    let room = Room::configured(807, MemoryDisk::blank(DISK_BYTES), usual_sizes(), &configuration);
    let (mut room, mut world) = world_of(room, Mood::Thinks);
    for number in 0..4 {
        world.submit_from(&mut room, WHO_GRACE, &[&format!("friend{number}@far.test")], LETTER);
    }
    world.until(&mut room, "the peer thinks about four", |world, _| {
        world.peer.conversations.iter().filter(|talk| talk.is_thought_over).count() == 4
    });
    for (who, recipient) in [(WHO_ADA, "first@far.test"), (WHO_ALAN, "next@far.test")] {
        world.submit_from(&mut room, who, &[recipient], LETTER);
        world.pass(&mut room, 1);
    }
    submit_in_vain(&mut world, &mut room, WHO_ADA, 100);
    submit_in_vain(&mut world, &mut room, WHO_ALAN, 100);
    world.pass(&mut room, 1);
    // Now neither has a courier for the free road, and Alan has one as soon as Grace's is gone.
    let talk = world.peer.conversations[0].connection;
    room.hosts[PEER].abort(talk);
    world.until(&mut room, "a fifth letter is there", |world, _| world.peer.named == 5);
    assert!(world.peer.conversations.iter().any(|talk| talk.open.to == ["next@far.test"]));
}

/// Strangers' letters may name as many domains as they like, of which name servers say nothing.
#[test]
fn strangers_who_make_us_ask_for_much_do_not_keep_mail_from_leaving() {
    // Who is not listened to is greeted at once, and so all are asked about at a time.
    let configuration = configuration() + "[abuse]\ngreeting_delay = \"0s\"\n";
    let room = Room::configured(806, MemoryDisk::blank(DISK_BYTES), usual_sizes(), &configuration);
    let (mut room, mut world) = world_of(room, Mood::Takes);
    world.names.ignored = Some(".slow.test");
    // From several networks: one has no more than its share.
    for number in 0..32 {
        if number % 4 == 0 {
            room.hosts[STRANGER].move_to(Ipv4Address::new(203, 0, number as u8, 7));
        }
        let mut talk = world.names.begin(&mut room, "me@pass.test");
        assert!(world.names.smtp(&mut room, &mut talk, "DATA").starts_with("354 "));
        for signer in 0..8 {
            let signature = format!(
                "DKIM-Signature: v=1; a=rsa-sha256; d=d{number}.{signer}.slow.test; s=key; h=from;\r\n bh=47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=; b=AAAA\r\n"
            );
            room.send(&talk, signature.as_bytes());
        }
        room.send(&talk, format!("From: me@d{number}.slow.test\r\n\r\nText\r\n").as_bytes());
        room.pass(Micros::from_millis(20));
    }
    assert!(room.engines.in_use().questions >= 90, "{}", room.engines.in_use().questions);
    world.submit(&mut room, &["bob@far.test"], LETTER);
    let start = room.machine.now;
    world.until(&mut room, "bob has his letter", |world, _| !world.peer.taken.is_empty());
    let time = room.machine.now.since(start);
    assert!(time < Micros::from_secs(35), "{time:?}");
}
