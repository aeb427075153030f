//! Outbound mail of several users: a user with many messages or slow hosts does not delay the
//! others.

#![allow(clippy::indexing_slicing, reason = "a test may fail")]

use machine::Micros;
use simulated::MemoryDisk;
use smoltcp::wire::Ipv4Address;

use crate::CORES;

use super::dns::{EXTERNAL, IPV4};
use super::relay::{ADA, GRACE, Mood, PEER, World, configuration, serving, world_of};
use super::room::{CONFIGURATION, DISK_BYTES, Room, usual_sizes};

const AS_ADA: (&str, &str) = (ADA, "ada@barepost.test");
const AS_ALAN: (&str, &str) =
    ("AUTH PLAIN AGFsYW5AYmFyZXBvc3QudGVzdABsb3ZlbGFjZQ==", "alan@barepost.test");
const AS_GRACE: (&str, &str) = (GRACE, "grace@barepost.test");

/// A message that several accounts submit. It has no `From` field, so the server adds one.
const MESSAGE: &[u8] = b"Subject: Away\r\n\r\nHello.\r\n";

/// Submits a message to each of this many domains with silent hosts.
fn submit_in_vain(world: &mut World, room: &mut Room, sender: (&str, &str), domains: usize) {
    for number in 0..domains {
        let domain: &'static str = format!("silent{number}.test").leak();
        world.names.zone.push((domain, IPV4, vec![10, 0, 0, 98]));
        world.submit_from(room, sender, &[&format!("friend@{domain}")], MESSAGE);
    }
}

#[test]
fn a_user_with_many_silent_hosts_does_not_delay_others() {
    for (seed, many, one) in [(800, AS_ADA, AS_GRACE), (801, AS_GRACE, AS_ADA)] {
        let (mut room, mut world) = serving(seed, Mood::Takes);
        submit_in_vain(&mut world, &mut room, many, 100);
        world.pass(&mut room, 5);
        world.submit_from(&mut room, one, &["bob@two.test"], MESSAGE);
        let start = room.machine.now;
        world.until(&mut room, "bob has the message", |world, _| !world.peer.taken.is_empty());
        // The first host of Bob's domain is silent, too.
        let time = room.machine.now.since(start);
        assert!(time < Micros::from_secs(35), "{seed}: {time:?}");
    }
}

#[test]
fn users_take_turns_at_a_shared_destination() {
    for (seed, many, one) in [(802, AS_ADA, AS_GRACE), (803, AS_GRACE, AS_ADA)] {
        let (mut room, mut world) = serving(seed, Mood::Takes);
        for number in 0..100 {
            world.submit_from(&mut room, many, &[&format!("friend{number}@far.test")], MESSAGE);
        }
        world.submit_from(&mut room, one, &["bob@far.test"], MESSAGE);
        world.until(&mut room, "all messages have arrived", |world, _| {
            world.peer.taken.len() == 101
        });
        let before = world.peer.taken.iter().position(|taken| taken.to == ["bob@far.test"]);
        assert!(before.is_some_and(|before| before < 12), "{seed}: {before:?}");
        room.until_nothing_is_in_use();
    }
}

/// An account with all its delivery attempts in use does not block other accounts that wait for the
/// same destination.
#[test]
fn an_account_at_its_limit_does_not_block_others() {
    if CORES > 1 {
        // The two accounts may be on different cores, with separate limits.
        return;
    }
    for (seed, many, one) in [(804, AS_ADA, AS_GRACE), (805, AS_GRACE, AS_ADA)] {
        let (mut room, mut world) = serving(seed, Mood::Thinks);
        for number in 0..4 {
            world.submit_from(&mut room, one, &[&format!("friend{number}@far.test")], MESSAGE);
        }
        world.until(&mut room, "the peer thinks about four", |world, _| {
            world.peer.conversations.iter().filter(|talk| talk.awaits_reply).count() == 4
        });
        world.submit_from(&mut room, many, &["first@far.test"], MESSAGE);
        world.pass(&mut room, 1);
        submit_in_vain(&mut world, &mut room, many, 100);
        world.submit_from(&mut room, one, &["next@far.test"], MESSAGE);
        world.pass(&mut room, 1);
        // One of the four connections becomes free, but the account that is first in line has no
        // free attempt.
        let talk = world.peer.conversations[0].connection;
        room.hosts[PEER].abort(talk);
        world.until(&mut room, "the peer has received a fifth RCPT", |world, _| {
            world.peer.rcpt_count == 5
        });
        assert!(
            world.peer.conversations.iter().any(|talk| talk.open.to == ["next@far.test"]),
            "{seed}"
        );
    }
}

/// If all accounts that wait for a destination have used up their attempts, the next attempt is for
/// the first account that may start one again.
#[test]
fn the_first_account_with_a_free_attempt_goes_first() {
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
        world.submit_from(&mut room, AS_GRACE, &[&format!("friend{number}@far.test")], MESSAGE);
    }
    world.until(&mut room, "the peer thinks about four", |world, _| {
        world.peer.conversations.iter().filter(|talk| talk.awaits_reply).count() == 4
    });
    for (sender, recipient) in [(AS_ADA, "first@far.test"), (AS_ALAN, "next@far.test")] {
        world.submit_from(&mut room, sender, &[recipient], MESSAGE);
        world.pass(&mut room, 1);
    }
    submit_in_vain(&mut world, &mut room, AS_ADA, 100);
    submit_in_vain(&mut world, &mut room, AS_ALAN, 100);
    world.pass(&mut room, 1);
    // Neither account has an attempt for the connection that becomes free. Alan gets one as soon as
    // Grace's attempt has ended.
    let talk = world.peer.conversations[0].connection;
    room.hosts[PEER].abort(talk);
    world.until(&mut room, "the peer has received a fifth RCPT", |world, _| {
        world.peer.rcpt_count == 5
    });
    assert!(world.peer.conversations.iter().any(|talk| talk.open.to == ["next@far.test"]));
}

/// Messages from outside name many domains that no name server answers for.
#[test]
fn lookups_for_inbound_mail_do_not_block_outbound_mail() {
    // Without a greeting delay, the lookups for all messages are made at the same time.
    let configuration = configuration() + "[abuse]\ngreeting_delay = \"0s\"\n";
    let room = Room::configured(806, MemoryDisk::blank(DISK_BYTES), usual_sizes(), &configuration);
    let (mut room, mut world) = world_of(room, Mood::Takes);
    world.names.ignored = Some(".slow.test");
    // The messages are from several networks, because a single network gets only its share.
    for number in 0..32 {
        if number % 4 == 0 {
            room.hosts[EXTERNAL].move_to(Ipv4Address::new(203, 0, number as u8, 7));
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
    world.submit(&mut room, &["bob@far.test"], MESSAGE);
    let start = room.machine.now;
    world.until(&mut room, "bob has the message", |world, _| !world.peer.taken.is_empty());
    let time = room.machine.now.since(start);
    assert!(time < Micros::from_secs(35), "{time:?}");
}
