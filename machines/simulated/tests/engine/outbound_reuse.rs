//! Several messages over one connection: each recipient gets each message exactly once, even if
//! either side closes the connection at any time.

#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a test may fail")]

use machine::Micros;

use super::dns::IPV4;
use super::relay::{ADA, Conversation, GRACE, MESSAGE, Mood, PEER, Peer, World, is_whole, serving};
use super::relay_tls::TlsBehaviour;
use super::room::Room;

/// Submits a message to each of this many friends. The messages wait while the server contacts the
/// first host of the domain, which is down.
fn waiting(seed: u64, mood: Mood, tls_behaviour: TlsBehaviour, friends: usize) -> (Room, World) {
    let (mut room, mut world) = serving(seed, mood);
    world.peer.tls_behaviour = tls_behaviour;
    for number in 0..friends {
        world.submit(&mut room, &[&format!("friend{number}@far.test")], MESSAGE);
    }
    (room, world)
}

/// The number of messages that have reached each of this many friends.
fn reached(world: &World, friends: usize) -> Vec<usize> {
    assert!(world.peer.taken.iter().all(|taken| is_whole(&taken.content, MESSAGE)));
    let to: Vec<&str> =
        world.peer.taken.iter().flat_map(|taken| taken.to.iter().map(String::as_str)).collect();
    let count = |number| to.iter().filter(|to| **to == format!("friend{number}@far.test")).count();
    let counts: Vec<usize> = (0..friends).map(count).collect();
    assert_eq!(counts.iter().sum::<usize>(), to.len());
    counts
}

#[test]
fn many_messages_for_a_domain_share_few_connections() {
    for (seed, tls_behaviour, friends) in
        [(760, TlsBehaviour::None, 450), (764, TlsBehaviour::Tls13, 60)]
    {
        let (mut room, mut world) = waiting(seed, Mood::Takes, tls_behaviour, friends);
        world.until(&mut room, "all messages have arrived", |world, _| {
            world.peer.taken.len() >= friends
        });
        assert!(reached(&world, friends).iter().all(|count| *count == 1));
        assert!(
            world
                .peer
                .taken
                .iter()
                .all(|taken| taken.is_over_tls == (tls_behaviour == TlsBehaviour::Tls13))
        );
        let Peer { accepted, messages_max, .. } = world.peer;
        assert!(
            accepted <= friends.div_ceil(100) + 7 && messages_max <= 100,
            "{accepted}, {messages_max}"
        );
        world.pass(&mut room, 3600);
        assert_eq!((world.peer.taken.len(), world.peer.accepted), (friends, accepted));
        room.until_nothing_is_in_use();
    }
}

/// Submits this many messages, alternately from two accounts. With several cores, the accounts are
/// on two cores in some of the rooms.
fn submit_of_two(room: &mut Room, world: &mut World, messages: usize) {
    for number in 0..messages {
        let (login, name) = [(ADA, "ada"), (GRACE, "grace")][number % 2];
        let message = String::from_utf8_lossy(MESSAGE).replace("ada@", &format!("{name}@"));
        let sender = (login, &*format!("{name}@barepost.test"));
        world.submit_from(room, sender, &[&format!("friend{number}@far.test")], message.as_bytes());
    }
}

/// The number of open connections of the machine to the peer.
fn open(room: &Room, world: &World) -> usize {
    world.peer.conversations.iter().filter(|talk| room.hosts[PEER].is_open(talk.connection)).count()
}

#[test]
fn a_destination_gets_four_connections_from_all_cores() {
    for seed in 790..794 {
        let (mut room, mut world) = serving(seed, Mood::Thinks);
        let listening: Vec<Conversation> =
            (0..8).map(|_| Conversation::awaited(&mut room)).collect();
        world.peer.conversations.extend(listening);
        submit_of_two(&mut room, &mut world, 12);
        for _ in 0..12 {
            world.pass(&mut room, 10);
            let open = open(&room, &world);
            assert!(open <= 4, "{seed}: {open}");
        }
        let thinking = world.peer.conversations.iter().filter(|talk| talk.awaits_reply).count();
        assert_eq!(thinking, 4, "{seed}");
        world.peer.mood = Mood::Takes;
        let before = room.machine.now;
        world
            .until(&mut room, "all messages have arrived", |world, _| world.peer.taken.len() >= 12);
        let time = room.machine.now.since(before);
        assert!(time < Micros::from_secs(120), "{seed}: {time:?}");
        let mut to: Vec<&str> = world.peer.taken.iter().map(|taken| taken.to[0].as_str()).collect();
        to.sort_unstable();
        to.dedup();
        assert_eq!((to.len(), world.peer.taken.len()), (12, 12), "{seed}: each once");
        room.until_nothing_is_in_use();
    }
}

/// Adds a domain with one host, which is the peer.
fn know_solo(world: &mut World) {
    world.names.zone.push(("solo.test", IPV4, vec![10, 0, 0, 13]));
}

fn submit_of_grace(room: &mut Room, world: &mut World, recipient: &str) {
    let message = String::from_utf8_lossy(MESSAGE).replace("ada@", "grace@");
    world.submit_from(room, (GRACE, "grace@barepost.test"), &[recipient], message.as_bytes());
}

/// The core of one account has all four connections, and has further messages for them.
#[test]
fn a_connection_is_given_up_for_another_core() {
    for seed in 795..799 {
        let (mut room, mut world) = serving(seed, Mood::Thinks);
        know_solo(&mut world);
        for number in 0..100 {
            world.submit(&mut room, &[&format!("friend{number}@solo.test")], MESSAGE);
        }
        submit_of_grace(&mut room, &mut world, "bob@solo.test");
        world.pass(&mut room, 5);
        world.peer.mood = Mood::Takes;
        world.until(&mut room, "all messages have arrived", |world, _| {
            world.peer.taken.len() == 101
        });
        let before = world.peer.taken.iter().position(|taken| taken.to == ["bob@solo.test"]);
        // The other connections carry a few messages while the new one is opened.
        assert!(before.is_some_and(|before| before < 20), "{seed}: {before:?}");
        // Each connection that was given up led to one more, and few were given up.
        assert!(world.peer.accepted <= 12, "{seed}: {}", world.peer.accepted);
        room.until_nothing_is_in_use();
    }
}

/// Two accounts submit many messages at the same time. Their cores share the connections, and reuse
/// them.
#[test]
fn cores_with_many_messages_for_a_host_share_connections() {
    for seed in 800..804 {
        let (mut room, mut world) = serving(seed, Mood::Thinks);
        know_solo(&mut world);
        for number in 0..60 {
            world.submit(&mut room, &[&format!("friend{number}@solo.test")], MESSAGE);
            submit_of_grace(&mut room, &mut world, &format!("friend{}@solo.test", 60 + number));
        }
        world.peer.mood = Mood::Takes;
        world.until(&mut room, "all messages have arrived", |world, _| {
            world.peer.taken.len() == 120
        });
        let first = world.peer.taken.iter().take(40);
        let of_ada = first.filter(|taken| taken.from.starts_with("ada@")).count();
        assert!((10..=30).contains(&of_ada), "{seed}: {of_ada} of 40");
        assert!(world.peer.accepted <= 12, "{seed}: {}", world.peer.accepted);
        room.until_nothing_is_in_use();
    }
}

/// One core decides about the delivery attempts to a destination. It learns that the destination is
/// down, even if another core has found this out.
#[test]
fn all_cores_know_that_a_destination_is_down() {
    for seed in 785..789 {
        let (mut room, mut world) = serving(seed, Mood::Silent);
        know_solo(&mut world);
        world.submit(&mut room, &["ann@solo.test"], MESSAGE);
        world.until(&mut room, "the peer is called", |world, room| open(room, world) == 1);
        world.until(&mut room, "the server has closed the connection", |world, room| {
            open(room, world) == 0
        });
        world.peer.mood = Mood::Takes;
        let down = room.machine.now;
        submit_of_grace(&mut room, &mut world, "bob@solo.test");
        world.until(&mut room, "one message has arrived", |world, _| !world.peer.taken.is_empty());
        let time = room.machine.now.since(down);
        assert!(time > Micros::from_secs(40), "{seed}: {time:?}");
        world
            .until(&mut room, "both messages have arrived", |world, _| world.peer.taken.len() == 2);
        room.until_nothing_is_in_use();
    }
}

/// A closed connection delays none of the messages that were to follow on it.
#[test]
fn a_host_that_closes_between_messages_gets_all_soon() {
    let moods = [
        (761, Mood::Tires, TlsBehaviour::None),
        (762, Mood::Leaves, TlsBehaviour::None),
        (763, Mood::Leaves, TlsBehaviour::Tls13),
    ];
    for (seed, mood, tls_behaviour) in moods {
        let (mut room, mut world) = waiting(seed, mood, tls_behaviour, 16);
        let start = room.machine.now;
        world
            .until(&mut room, "all messages have arrived", |world, _| world.peer.taken.len() >= 16);
        // Each message needs its own connection, with four at a time. Before each connection the
        // server tries a host that is down.
        let time = room.machine.now.since(start);
        assert!(time < Micros::from_secs(4 * 35), "{mood:?}: {time:?}");
        world.pass(&mut room, 3600);
        assert!(reached(&world, 16).iter().all(|count| *count == 1), "{mood:?}");
        room.until_nothing_is_in_use();
    }
}

#[test]
fn a_stop_between_messages_delays_the_rest_to_the_restart() {
    for seed in 770..776 {
        let (mut room, mut world) = waiting(seed, Mood::Takes, TlsBehaviour::None, 40);
        let before = 3 + (seed as usize - 770) * 5;
        world.until(&mut room, "some messages have arrived", |world, _| {
            world.peer.taken.len() >= before
        });
        room.machine.stop = true;
        world.until(&mut room, "the machine has stopped", |_, room| room.ended.is_some());
        assert!(world.peer.taken.len() < 40);
        let (mut room, mut world) = world.power_cut(room, seed);
        world.pass(&mut room, 7200);
        assert!(reached(&world, 40).iter().all(|count| *count == 1), "{seed}");
        room.until_nothing_is_in_use();
    }
}

#[test]
fn messages_of_one_connection_survive_any_power_cut() {
    let (mut steps, mut once, mut twice) = (0, 0, 0);
    loop {
        let (mut room, mut world) = waiting(780, Mood::Takes, TlsBehaviour::None, 8);
        world.until(&mut room, "the first is there", |world, _| !world.peer.taken.is_empty());
        world.step(&mut room, steps);
        let is_over = world.peer.taken.len() == 8;
        let (mut room, mut world) = world.power_cut(room, 6000 + steps);
        world.pass(&mut room, 3600);
        let counts = reached(&world, 8);
        assert!(
            counts.iter().all(|count| (1..=2).contains(count)),
            "{counts:?} after {steps} steps"
        );
        once += counts.iter().filter(|count| **count == 1).count();
        twice += counts.iter().filter(|count| **count == 2).count();
        if is_over {
            break;
        }
        steps += 1 + steps / 20;
    }
    assert!(once > 4 * twice && once > 100, "{once} once, {twice} twice");
}
