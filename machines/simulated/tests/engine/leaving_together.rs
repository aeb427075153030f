//! Several letters by one connection: nobody gets one twice or not at all, whoever ends the connection and whenever.

#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a test may fail")]

use machine::Micros;

use super::far::{LETTER, Mood, Peer, World, is_whole, serving};
use super::far_secrets::Secrecy;
use super::room::Room;

/// Letters to so many friends, which wait while the first host of their domain is called, who is gone.
fn waiting(seed: u64, mood: Mood, secrecy: Secrecy, friends: usize) -> (Room, World) {
    let (mut room, mut world) = serving(seed, mood);
    world.peer.secrecy = secrecy;
    for number in 0..friends {
        world.submit(&mut room, &[&format!("friend{number}@far.test")], LETTER);
    }
    (room, world)
}

/// How many letters have reached each of so many friends.
fn reached(world: &World, friends: usize) -> Vec<usize> {
    assert!(world.peer.taken.iter().all(|taken| is_whole(&taken.content, LETTER)));
    let to: Vec<&str> = world.peer.taken.iter().flat_map(|taken| taken.to.iter().map(String::as_str)).collect();
    let count = |number| to.iter().filter(|to| **to == format!("friend{number}@far.test")).count();
    let counts: Vec<usize> = (0..friends).map(count).collect();
    assert_eq!(counts.iter().sum::<usize>(), to.len());
    counts
}

#[test]
fn many_letters_for_a_domain_go_by_few_connections() {
    for (seed, secrecy, friends) in [(760, Secrecy::None, 450), (764, Secrecy::Tls13, 60)] {
        let (mut room, mut world) = waiting(seed, Mood::Takes, secrecy, friends);
        world.until(&mut room, "all have arrived", |world, _| world.peer.taken.len() >= friends);
        assert!(reached(&world, friends).iter().all(|count| *count == 1));
        assert!(world.peer.taken.iter().all(|taken| taken.is_sealed == (secrecy == Secrecy::Tls13)));
        let Peer { accepted, letters_max, .. } = world.peer;
        assert!(accepted <= friends.div_ceil(100) + 7 && letters_max <= 100, "{accepted}, {letters_max}");
        world.pass(&mut room, 3600);
        assert_eq!((world.peer.taken.len(), world.peer.accepted), (friends, accepted));
        room.until_nothing_is_in_use();
    }
}

/// No letter is put off because of the connection that another one went by.
#[test]
fn a_host_that_ends_connections_between_letters_gets_them_all_once_and_soon() {
    let moods =
        [(761, Mood::Tires, Secrecy::None), (762, Mood::Leaves, Secrecy::None), (763, Mood::Leaves, Secrecy::Tls13)];
    for (seed, mood, secrecy) in moods {
        let (mut room, mut world) = waiting(seed, mood, secrecy, 16);
        let start = room.machine.now;
        world.until(&mut room, "all have arrived", |world, _| world.peer.taken.len() >= 16);
        // Each is by another connection, four at a time, and before each of these a host is called that is gone.
        let time = room.machine.now.since(start);
        assert!(time < Micros::from_secs(4 * 35), "{mood:?}: {time:?}");
        world.pass(&mut room, 3600);
        assert!(reached(&world, 16).iter().all(|count| *count == 1), "{mood:?}");
        room.until_nothing_is_in_use();
    }
}

#[test]
fn a_machine_that_stops_between_letters_of_one_connection_sends_the_others_in_its_next_life() {
    for seed in 770..776 {
        let (mut room, mut world) = waiting(seed, Mood::Takes, Secrecy::None, 40);
        let before = 3 + (seed as usize - 770) * 5;
        world.until(&mut room, "some have arrived", |world, _| world.peer.taken.len() >= before);
        room.machine.stop = true;
        world.until(&mut room, "it has stopped", |_, room| room.ended.is_some());
        assert!(world.peer.taken.len() < 40);
        let (mut room, mut world) = world.power_cut(room, seed);
        world.pass(&mut room, 7200);
        assert!(reached(&world, 40).iter().all(|count| *count == 1), "{seed}");
        room.until_nothing_is_in_use();
    }
}

#[test]
fn letters_of_one_connection_are_neither_lost_nor_sent_in_vain_whenever_the_power_fails() {
    let (mut steps, mut once, mut twice) = (0, 0, 0);
    loop {
        let (mut room, mut world) = waiting(780, Mood::Takes, Secrecy::None, 8);
        world.until(&mut room, "the first is there", |world, _| !world.peer.taken.is_empty());
        world.step(&mut room, steps);
        let is_over = world.peer.taken.len() == 8;
        let (mut room, mut world) = world.power_cut(room, 6000 + steps);
        world.pass(&mut room, 3600);
        let counts = reached(&world, 8);
        assert!(counts.iter().all(|count| (1..=2).contains(count)), "{counts:?} after {steps} steps");
        once += counts.iter().filter(|count| **count == 1).count();
        twice += counts.iter().filter(|count| **count == 2).count();
        if is_over {
            break;
        }
        steps += 1 + steps / 20;
    }
    assert!(once > 4 * twice && once > 100, "{once} once, {twice} twice");
}
