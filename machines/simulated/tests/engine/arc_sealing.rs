//! ARC seals on forwarded messages from outside: the server seals its results, and the seal is
//! valid.

#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a test may fail")]

use chance::Dice;
use dkim::{Algorithm, ChainVerdict, MessageReader, SigningKey};
use dns::{Answer, Knowledge, Record};
use http::Site;
use machine::Machine;
use simulated::MemoryDisk;

use super::arc::{publish, sealed};
use super::dmarc::{key, message_from};
use super::dns::{EXTERNAL, FAR};
use super::forwarding::{BOB, FRANK, delivered_locally, of, taken, text_of, unmarked};
use super::relay::{Mood, World, world_of};
use super::room::tls_stream::Trust;
use super::room::{DISK_BYTES, Room, stuffed, usual_sizes};
use super::signing::{keys, verdicts};

/// A machine with these signing keys that forwards Grace's mail.
fn serving(seed: u64, disk: MemoryDisk, lines: &str, keys: Vec<SigningKey>) -> (Room, World) {
    let configuration = of("grace", lines, &super::relay::configuration());
    let certificates = vec![Trust::new("mail.barepost.test").certificate];
    let room =
        Room::keyed(seed, disk, usual_sizes(), &configuration, Site::default(), certificates, keys);
    let (mut room, mut world) = world_of(room, Mood::Takes);
    room.hosts[EXTERNAL].move_to(FAR);
    publish(&mut world.names, &["list.test"]);
    (room, world)
}

/// An external client delivers a message for Grace.
fn deliver_to_grace(world: &mut World, room: &mut Room, message: &str) {
    let mut talk = room.connect_from(EXTERNAL, 25);
    assert!(world.reply(room, &mut talk).starts_with("220 "));
    for command in
        ["EHLO far.test", "MAIL FROM:<frank@far.test>", "RCPT TO:<grace@barepost.test>", "DATA"]
    {
        assert!(world.say(room, &mut talk, command).starts_with(['2', '3']), "{command}");
    }
    room.send(&talk, &stuffed(message.as_bytes()));
    let reply = world.say(room, &mut talk, ".");
    assert!(reply.starts_with("250 "), "{reply}");
    room.close(&talk);
}

/// The verdict on the ARC chain of a message, with the keys that all domains publish.
fn judged(room: &mut Room, octets: &[u8]) -> ChainVerdict {
    let mut reading = MessageReader::to_verify();
    octets.chunks(1000).for_each(|piece| reading.arrived(piece));
    let (message, now) = (reading.ended(), room.machine.wall_clock());
    let mut knowledge = Knowledge::default();
    for question in message.missing(&knowledge, now) {
        let key = if question.name.as_str() == "one._domainkey.barepost.test" {
            keys().remove(0)
        } else {
            key()
        };
        let records = vec![Record::Text(key.record().as_bytes().into())];
        knowledge.learn(question, Ok(Answer { exists: true, is_authenticated: false, records }));
    }
    (0..)
        .find_map(|step| message.judge_chain(step, &knowledge, now).expect("all records are known"))
        .expect("a verdict")
}

const ON_TOP: &str = "Delivered-To: grace@barepost.test\r\n";

#[test]
fn results_of_a_forwarded_message_are_sealed() {
    let lines = "forward = [\"bob@far.test\", \"carol@far.test\"]";
    let (mut room, mut world) = serving(1060, MemoryDisk::blank(DISK_BYTES), lines, keys());
    let plain = message_from("frank@far.test");
    let large = plain.clone() + &"A line. \t of many\r\n.\r\n".repeat(40_000);
    let handed_on = sealed(&mut room, "list.test", "mx.list.test; dmarc=pass", &plain);
    for (number, (message, seal, found)) in [
        (plain, "i=1; a=rsa-sha256; cv=none", "none"),
        (large, "i=1; a=rsa-sha256; cv=none", "none"),
        (handed_on, "i=2; a=rsa-sha256; cv=pass", "pass"),
    ]
    .into_iter()
    .enumerate()
    {
        deliver_to_grace(&mut world, &mut room, &message);
        world.pass(&mut room, 120);
        let [bob, carol] = ["bob@far.test", "carol@far.test"].map(|to| taken(&world, to));
        assert_eq!([bob.len(), carol.len()], [number + 1; 2]);
        assert!(
            bob[number].content == carol[number].content,
            "both recipients get the same sealed message"
        );
        let text = text_of(&bob[number]);
        let begins = format!("{ON_TOP}ARC-Seal: {seal}; d=barepost.test; s=one; t=");
        assert!(
            unmarked(&bob[number]).starts_with(&begins) && text.ends_with(&message),
            "{}",
            &text[..2000]
        );
        let results = format!("\r\n\tarc={found} smtp.remote-ip=203.0.113.7;\r\n\tdkim=none\r\n");
        let sealed_results =
            text.split_once("\r\nARC-Authentication-Results: i=").expect("results").1;
        let (sealed_results, _) = sealed_results
            .split_once("Authentication-Results: mail.barepost.test;")
            .expect("results");
        assert!(
            sealed_results[1..]
                .starts_with("; mail.barepost.test;\r\n\tspf=none smtp.mailfrom=far.test;"),
            "{sealed_results}"
        );
        assert!(sealed_results.ends_with(&results), "{sealed_results}");
        assert_eq!(judged(&mut room, &bob[number].content), ChainVerdict::Pass);
        let changed = text.replace("\r\nSubject: looms", "\r\nSubject: rooms");
        assert_ne!(judged(&mut room, changed.as_bytes()), ChainVerdict::Pass);
        let kept = world.inbox(&mut room, "grace");
        assert!(
            kept.len() == number + 1 && !kept[number].contains("d=barepost.test"),
            "the copy in the mailbox is not sealed"
        );
    }
    room.until_nothing_is_in_use();
}

#[test]
fn a_message_is_sealed_although_a_read_of_it_failed() {
    let long = message_from("frank@far.test") + &"A line. \t of many\r\n".repeat(10_000);
    let mut failed = 0;
    for read in 0..50 {
        let (mut room, mut world) = serving(1080, MemoryDisk::blank(DISK_BYTES), BOB, keys());
        deliver_to_grace(&mut world, &mut room, &long);
        room.machine.disk.mood = simulated::Mood::Waits;
        for _ in 0..read {
            world.step(&mut room, 1);
            room.machine.disk.carry_out_next();
        }
        world.step(&mut room, 1);
        room.machine.disk.mood = simulated::Mood::FailsReads;
        failed += room.machine.disk.waiting();
        while room.machine.disk.waiting() > 0 {
            room.machine.disk.carry_out_next();
        }
        room.machine.disk.mood = simulated::Mood::Works;
        // A delivery attempt that cannot read the body is repeated after some hours.
        world.pass(&mut room, 100_000);
        let bob = taken(&world, "bob@far.test");
        assert_eq!(bob.len(), 1, "read {read}");
        let begins = format!("{ON_TOP}ARC-Seal: i=1; ");
        assert!(
            unmarked(&bob[0]).starts_with(&begins) && text_of(&bob[0]).ends_with(&long),
            "read {read}"
        );
    }
    assert!(failed > 10, "only {failed} reads failed");
}

#[test]
fn unchecked_messages_and_broken_chains_are_not_sealed() {
    let (mut room, mut world) = serving(1061, MemoryDisk::blank(DISK_BYTES), BOB, keys());
    let broken =
        sealed(&mut room, "list.test", "mx.list.test; dmarc=pass", &message_from("frank@far.test"));
    deliver_to_grace(&mut world, &mut room, &broken.replace("Hello", "Hullo"));
    world.pass(&mut room, 120);
    let text = unmarked(&taken(&world, "bob@far.test")[0]);
    assert!(
        text.starts_with(&format!("{ON_TOP}Authentication-Results: mail.barepost.test;")),
        "{text}"
    );
    assert!(
        text.contains("arc=fail reason=\"set 1: ") && text.matches("ARC-Seal: ").count() == 1,
        "{text}"
    );
    // One message is from a host of the local network, the other from a local user. The server
    // signs the second one.
    let lie = "Authentication-Results: mail.barepost.test;\r\n\tspf=pass;\r\n\tarc=none\r\n";
    delivered_locally(
        &mut world,
        &mut room,
        FRANK,
        &["grace@barepost.test"],
        (lie.to_string() + &message_from(FRANK)).as_bytes(),
    );
    world.submit(&mut room, &["grace@barepost.test"], message_from("ada@barepost.test").as_bytes());
    world.pass(&mut room, 120);
    let [_, strange, own] = &taken(&world, "bob@far.test")[..] else {
        panic!("{:?}", world.peer.taken)
    };
    assert!(unmarked(strange).starts_with(&format!("{ON_TOP}Received: ")), "{}", text_of(strange));
    assert!(unmarked(own).starts_with(&format!("{ON_TOP}DKIM-Signature: ")), "{}", text_of(own));
    assert!(![strange, own].iter().any(|taken| text_of(taken).contains("ARC-")));
    assert_eq!(verdicts(&own.content, room.machine.wall_clock()).len(), 2);
    room.until_nothing_is_in_use();
}

#[test]
fn without_an_rsa_key_nothing_is_sealed() {
    let ed25519: Vec<SigningKey> =
        keys().into_iter().filter(|key| key.algorithm() != Algorithm::RsaSha256).collect();
    assert_eq!(ed25519.len(), 1);
    let (mut room, mut world) = serving(1062, MemoryDisk::blank(DISK_BYTES), BOB, ed25519);
    deliver_to_grace(&mut world, &mut room, &message_from("frank@far.test"));
    world.pass(&mut room, 120);
    let text = unmarked(&taken(&world, "bob@far.test")[0]);
    assert!(
        text.starts_with(&format!("{ON_TOP}Authentication-Results: ")) && !text.contains("ARC-"),
        "{text}"
    );
    room.until_nothing_is_in_use();
}

/// Runs the same scenario repeatedly, with the power cut one step later each time.
#[test]
fn a_message_is_sealed_at_any_power_cut() {
    let (mut once, mut twice, mut steps) = (0, 0, 0);
    loop {
        let (mut room, mut world) = serving(1063, MemoryDisk::blank(DISK_BYTES), BOB, keys());
        deliver_to_grace(&mut world, &mut room, &message_from("frank@far.test"));
        let is_over = world.step(&mut room, steps).as_secs() > 20;
        let before = world.peer.taken;
        let disk = room.machine.disk.power_cut(&mut Dice::new(8000 + steps));
        let (mut room, mut world) = serving(8000 + steps, disk, BOB, keys());
        world.peer.taken = before;
        world.pass(&mut room, 3600);
        let bob = taken(&world, "bob@far.test");
        assert!((1..=2).contains(&bob.len()), "{} after {steps} steps", bob.len());
        for taken in &bob {
            assert!(
                unmarked(taken).starts_with(&format!("{ON_TOP}ARC-Seal: i=1; ")),
                "after {steps} steps"
            );
            assert_eq!(judged(&mut room, &taken.content), ChainVerdict::Pass);
        }
        (once, twice) = (once + usize::from(bob.len() == 1), twice + usize::from(bob.len() == 2));
        assert_eq!(world.inbox(&mut room, "grace").len(), 1, "after {steps} steps");
        if is_over {
            break;
        }
        steps += 1 + steps / 10;
    }
    assert!(once > 4 * twice && once > 20, "{once} once, {twice} twice");
}
