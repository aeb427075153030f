//! SYNs that nobody stands behind: who is real gets in, and nothing is left of the flood.

use core::net::Ipv4Addr;
use core::ops::Range;
use std::vec::Vec;

use machine::{Checksum, Micros, Offloads};
use smoltcp::wire::*;

use super::super::messages::*;
use super::super::world::{Told, World, limits, our_address};
use super::Peer;
use crate::Counter;
use crate::tcp::SYN_ACK_WAIT;
use crate::{Addressing, Limits};

/// Entries for handshakes.
const ROOM: usize = 16;

/// SYNs from `ports`, whatever they are answered.
fn flood(world: &mut World, ports: Range<u16>) {
    for port in ports {
        world.hears(&Peer::at_port(port).syn().frame(PEER_CARD));
        if port % 16 == 0 {
            world.says();
        }
    }
    world.says();
}

/// What is answered to a SYN.
fn knocks(peer: &Peer, world: &mut World) -> Option<Tcp> {
    world.hears(&peer.syn().frame(PEER_CARD));
    says_to(peer, world)
}

/// The segment that is sent to `peer`, if one is.
fn says_to(peer: &Peer, world: &mut World) -> Option<Tcp> {
    let said: Vec<Tcp> = world
        .says()
        .iter()
        .filter(|frame| frame[12..14] == [8, 0])
        .map(|frame| Tcp::read(frame).1)
        .filter(|segment| segment.to == (peer.address, peer.port))
        .collect();
    assert!(said.len() <= 1, "{said:?}");
    said.into_iter().next()
}

/// Acknowledges a SYN-ACK and speaks.
fn is_let_in(peer: &mut Peer, answer: &Tcp, world: &mut World) {
    peer.next += 1;
    peer.expects = answer.sequence.wrapping_add(1);
    let told = peer.says(world, TcpControl::Psh, b"HELO");
    assert!(
        matches!(told.as_slice(), [Told::Accepted(..), Told::Data(_, said)] if said == b"HELO"),
        "{told:?}"
    );
}

fn nothing_is_left(world: &mut World) {
    world.waits(Micros::from_secs(500));
    assert_eq!(world.net.handshake_count(), 0);
    assert_eq!(world.net.flow_count(), world.net.connection_count());
}

#[test]
fn a_crowd_is_let_in_by_turns_and_pushes_nobody_out() {
    let mut world = World::new();
    let mut first = Peer::at_port(1);
    let answer = knocks(&first, &mut world).unwrap();
    flood(&mut world, 2..1_000);
    world.now = world.now + Micros(SYN_ACK_WAIT.0 - 1);
    flood(&mut world, 2..1_000);
    assert_eq!(world.net.handshake_count(), ROOM);
    assert_eq!(world.net.counters().of(Counter::CookiesOut), 0);
    is_let_in(&mut first, &answer, &mut world);
    assert!(knocks(&Peer::at_port(30_000), &mut world).is_some(), "there is room again");
    nothing_is_left(&mut world);
}

#[test]
fn while_syns_flood_in_who_knocks_again_gets_in_and_nothing_leaks() {
    let mut world = World::new();
    flood(&mut world, 1..10_000);
    let mut real = Peer::at_port(30_000);
    assert_eq!(knocks(&real, &mut world), None);
    world.waits(SYN_ACK_WAIT);
    flood(&mut world, 10_000..20_000);
    let answer = knocks(&real, &mut world).unwrap();
    flood(&mut world, 20_000..29_000);
    is_let_in(&mut real, &answer, &mut world);
    assert_eq!(
        (world.net.counters().of(Counter::CookiesOut), world.net.handshake_count()),
        (0, ROOM - 1)
    );
    nothing_is_left(&mut world);
}

#[test]
fn in_a_flood_a_lost_acknowledgment_is_asked_for_again() {
    let mut world = World::new();
    flood(&mut world, 1..1_000);
    let mut real = Peer::at_port(30_000);
    knocks(&real, &mut world);
    world.waits(SYN_ACK_WAIT);
    let answer = knocks(&real, &mut world).unwrap();
    // What he says to it is lost, and the flood goes on.
    world.now = world.now + Micros(SYN_ACK_WAIT.0 - 1);
    flood(&mut world, 1_000..2_000);
    world.now = world.now + Micros(1);
    assert_eq!(says_to(&real, &mut world).as_ref(), Some(&answer));
    is_let_in(&mut real, &answer, &mut world);
}

#[test]
fn who_is_there_for_seven_seconds_gives_way_to_anybody() {
    let mut world = World::new();
    flood(&mut world, 1..1_000);
    world.waits(Micros(7 * SYN_ACK_WAIT.0 - 1));
    assert_eq!(knocks(&Peer::at_port(30_000), &mut world), None);
    world.waits(Micros(1));
    let mut real = Peer::at_port(30_001);
    let answer = knocks(&real, &mut world).unwrap();
    is_let_in(&mut real, &answer, &mut world);
    nothing_is_left(&mut world);
}

#[test]
fn where_a_flood_knocks_again_too_who_is_real_gets_in_by_a_cookie() {
    let mut world = World::new();
    flood(&mut world, 1..1_000);
    let mut real = Peer::at_port(30_000);
    assert_eq!(knocks(&real, &mut world), None);
    world.waits(SYN_ACK_WAIT);
    flood(&mut world, 1..1_000);
    assert_eq!(world.net.handshake_count(), ROOM);
    let answer = knocks(&real, &mut world).unwrap();
    is_let_in(&mut real, &answer, &mut world);
    assert_eq!(world.net.counters().of(Counter::CookiesIn), 1);
    nothing_is_left(&mut world);
}

#[test]
fn a_flood_that_repeats_itself_without_pause_keeps_nobody_out() {
    let mut world = World::new();
    let mut real = Peer::at_port(30_000);
    for _ in 0..10 {
        flood(&mut world, 1..1_000);
        world.waits(Micros::from_millis(100));
    }
    assert_eq!(knocks(&real, &mut world), None);
    for _ in 0..10 {
        flood(&mut world, 1..1_000);
        world.waits(Micros::from_millis(100));
    }
    let answer = knocks(&real, &mut world).unwrap();
    is_let_in(&mut real, &answer, &mut world);
    assert_eq!(world.net.counters().of(Counter::CookiesOut), 0);
    nothing_is_left(&mut world);
}

#[test]
fn a_flood_of_other_numbers_from_the_same_ports_is_not_known() {
    let mut world = World::new();
    flood(&mut world, 1..1_001);
    world.waits(SYN_ACK_WAIT);
    let refused = world.net.counters().of(Counter::RefusedFull);
    for port in 1..1_001 {
        world.hears(&Peer { next: 2_000, ..Peer::at_port(port) }.syn().frame(PEER_CARD));
    }
    // Of those who have an entry the other number is no news either.
    assert_eq!(world.net.counters().of(Counter::RefusedFull), refused + 1_000 - ROOM as u64);
    assert_eq!(world.net.counters().of(Counter::CookiesOut), 0);
    nothing_is_left(&mut world);
}

#[test]
fn whose_entry_gives_way_is_told_that_he_waits_in_vain() {
    let mut world = World::new();
    let answer = knocks(&Peer::at_port(30_000), &mut world).unwrap();
    flood(&mut world, 1..1_000);
    // What he says to the answers is lost each time.
    world.waits(Micros(7 * SYN_ACK_WAIT.0));
    world.hears(&Peer::at_port(30_001).syn().frame(PEER_CARD));
    let farewell = says_to(&Peer::at_port(30_000), &mut world).unwrap();
    assert_eq!((farewell.control, farewell.acknowledgment), (TcpControl::Rst, None));
    assert_eq!(farewell.sequence, answer.sequence.wrapping_add(1));
    nothing_is_left(&mut world);
}

#[test]
fn among_half_a_million_syns_a_second_whoever_is_real_is_answered_at_his_second() {
    const A_SECOND: u64 = 500_000;
    let mut world = World::with(
        Addressing::Static(our_address()),
        Limits { half_open: 512, ..limits() },
        Offloads::default(),
    );
    let strangers: Vec<Vec<u8>> = (0..200)
        .map(|last| {
            Peer { address: Ipv4Addr::new(10, 7, 7, last), ..Peer::at_port(0) }
                .syn()
                .frame(PEER_CARD)
        })
        .collect();
    let mut number = 1u32 << 8;
    let mut storm = |world: &mut World, frames: u64| {
        let began = world.now;
        for passed in 0..frames {
            number += 1;
            let mut frame = strangers[number as usize % strangers.len()].clone();
            frame[34..36].copy_from_slice(&((number >> 8) as u16).to_be_bytes());
            frame[38..42].copy_from_slice(&number.wrapping_mul(0x9E37_79B9).to_be_bytes());
            world.now = began + Micros(passed * 1_000_000 / A_SECOND);
            world.hears_as(&frame, Checksum::Verified);
            if passed % 64 == 0 {
                world.says();
            }
        }
        world.says();
    };
    storm(&mut world, A_SECOND / 10);
    let real: Vec<Peer> = (1..=100).map(Peer::at_port).collect();
    for peer in &real {
        assert_eq!(knocks(peer, &mut world), None);
    }
    storm(&mut world, A_SECOND);
    let answers: Vec<Option<Tcp>> = real.iter().map(|peer| knocks(peer, &mut world)).collect();
    assert!(answers.iter().flatten().count() >= 95);
    assert_eq!(world.net.counters().of(Counter::CookiesOut), 0, "all have an entry");
}
