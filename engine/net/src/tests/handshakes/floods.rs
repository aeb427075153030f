//! SYN floods from spoofed addresses: real clients are accepted, and no state of the flood remains.

use core::net::Ipv4Addr;
use core::ops::Range;
use std::vec::Vec;

use machine::{Checksum, Micros, Offloads};
use smoltcp::wire::*;

use super::super::messages::*;
use super::super::world::{World, WorldEvent, limits, our_address};
use super::Peer;
use crate::Counter;
use crate::tcp::SYN_ACK_WAIT;
use crate::{Addressing, Limits};

/// The number of entries of the half-open table.
const ROOM: usize = 16;

/// Sends SYNs from `ports` and ignores the answers.
fn flood(world: &mut World, ports: Range<u16>) {
    for port in ports {
        world.hears(&Peer::at_port(port).syn().frame(PEER_CARD));
        if port % 16 == 0 {
            world.says();
        }
    }
    world.says();
}

/// Sends a SYN and returns the answer.
fn sends_syn(peer: &Peer, world: &mut World) -> Option<Tcp> {
    world.hears(&peer.syn().frame(PEER_CARD));
    says_to(peer, world)
}

/// The segment that the world sends to `peer`, if there is one.
fn says_to(peer: &Peer, world: &mut World) -> Option<Tcp> {
    let sent: Vec<Tcp> = world
        .says()
        .iter()
        .filter(|frame| frame[12..14] == [8, 0])
        .map(|frame| Tcp::read(frame).1)
        .filter(|segment| segment.to == (peer.address, peer.port))
        .collect();
    assert!(sent.len() <= 1, "{sent:?}");
    sent.into_iter().next()
}

/// Acknowledges a SYN-ACK with data, and asserts that the connection is accepted.
fn assert_accepted(peer: &mut Peer, answer: &Tcp, world: &mut World) {
    peer.next += 1;
    peer.expects = answer.sequence.wrapping_add(1);
    let events = peer.says(world, TcpControl::Psh, b"HELO");
    assert!(
        matches!(events.as_slice(), [WorldEvent::Accepted(..), WorldEvent::Data(_, sent)] if sent == b"HELO"),
        "{events:?}"
    );
}

fn nothing_is_left(world: &mut World) {
    world.waits(Micros::from_secs(500));
    assert_eq!(world.net.handshake_count(), 0);
    assert_eq!(world.net.flow_count(), world.net.connection_count());
}

#[test]
fn a_crowd_is_accepted_in_turn_without_evictions() {
    let mut world = World::new();
    let mut first = Peer::at_port(1);
    let answer = sends_syn(&first, &mut world).unwrap();
    flood(&mut world, 2..1_000);
    world.now = world.now + Micros(SYN_ACK_WAIT.0 - 1);
    flood(&mut world, 2..1_000);
    assert_eq!(world.net.handshake_count(), ROOM);
    assert_eq!(world.net.counters().of(Counter::CookiesOut), 0);
    assert_accepted(&mut first, &answer, &mut world);
    assert!(
        sends_syn(&Peer::at_port(30_000), &mut world).is_some(),
        "a completed handshake makes room"
    );
    nothing_is_left(&mut world);
}

#[test]
fn a_repeated_syn_is_accepted_during_a_flood() {
    let mut world = World::new();
    flood(&mut world, 1..10_000);
    let mut real = Peer::at_port(30_000);
    assert_eq!(sends_syn(&real, &mut world), None);
    world.waits(SYN_ACK_WAIT);
    flood(&mut world, 10_000..20_000);
    let answer = sends_syn(&real, &mut world).unwrap();
    flood(&mut world, 20_000..29_000);
    assert_accepted(&mut real, &answer, &mut world);
    assert_eq!(
        (world.net.counters().of(Counter::CookiesOut), world.net.handshake_count()),
        (0, ROOM - 1)
    );
    nothing_is_left(&mut world);
}

#[test]
fn a_syn_ack_is_retransmitted_during_a_flood() {
    let mut world = World::new();
    flood(&mut world, 1..1_000);
    let mut real = Peer::at_port(30_000);
    sends_syn(&real, &mut world);
    world.waits(SYN_ACK_WAIT);
    let answer = sends_syn(&real, &mut world).unwrap();
    // The peer's acknowledgment is lost, and the flood goes on.
    world.now = world.now + Micros(SYN_ACK_WAIT.0 - 1);
    flood(&mut world, 1_000..2_000);
    world.now = world.now + Micros(1);
    assert_eq!(says_to(&real, &mut world).as_ref(), Some(&answer));
    assert_accepted(&mut real, &answer, &mut world);
}

#[test]
fn an_entry_of_seven_seconds_is_evicted_by_any_syn() {
    let mut world = World::new();
    flood(&mut world, 1..1_000);
    world.waits(Micros(7 * SYN_ACK_WAIT.0 - 1));
    assert_eq!(sends_syn(&Peer::at_port(30_000), &mut world), None);
    world.waits(Micros(1));
    let mut real = Peer::at_port(30_001);
    let answer = sends_syn(&real, &mut world).unwrap();
    assert_accepted(&mut real, &answer, &mut world);
    nothing_is_left(&mut world);
}

#[test]
fn a_real_client_gets_a_cookie_when_the_flood_repeats_syns() {
    let mut world = World::new();
    flood(&mut world, 1..1_000);
    let mut real = Peer::at_port(30_000);
    assert_eq!(sends_syn(&real, &mut world), None);
    world.waits(SYN_ACK_WAIT);
    flood(&mut world, 1..1_000);
    assert_eq!(world.net.handshake_count(), ROOM);
    let answer = sends_syn(&real, &mut world).unwrap();
    assert_accepted(&mut real, &answer, &mut world);
    assert_eq!(world.net.counters().of(Counter::CookiesIn), 1);
    nothing_is_left(&mut world);
}

#[test]
fn a_flood_repeating_without_pause_blocks_no_client() {
    let mut world = World::new();
    let mut real = Peer::at_port(30_000);
    for _ in 0..10 {
        flood(&mut world, 1..1_000);
        world.waits(Micros::from_millis(100));
    }
    assert_eq!(sends_syn(&real, &mut world), None);
    for _ in 0..10 {
        flood(&mut world, 1..1_000);
        world.waits(Micros::from_millis(100));
    }
    let answer = sends_syn(&real, &mut world).unwrap();
    assert_accepted(&mut real, &answer, &mut world);
    assert_eq!(world.net.counters().of(Counter::CookiesOut), 0);
    nothing_is_left(&mut world);
}

#[test]
fn syns_with_new_sequence_numbers_are_not_repetitions() {
    let mut world = World::new();
    flood(&mut world, 1..1_001);
    world.waits(SYN_ACK_WAIT);
    let refused = world.net.counters().of(Counter::RefusedFull);
    for port in 1..1_001 {
        world.hears(&Peer { next: 2_000, ..Peer::at_port(port) }.syn().frame(PEER_CARD));
    }
    // For peers with an entry, the new sequence number does not count as a repetition either.
    assert_eq!(world.net.counters().of(Counter::RefusedFull), refused + 1_000 - ROOM as u64);
    assert_eq!(world.net.counters().of(Counter::CookiesOut), 0);
    nothing_is_left(&mut world);
}

#[test]
fn an_evicted_client_is_reset() {
    let mut world = World::new();
    let answer = sends_syn(&Peer::at_port(30_000), &mut world).unwrap();
    flood(&mut world, 1..1_000);
    // Each acknowledgment of the peer is lost.
    world.waits(Micros(7 * SYN_ACK_WAIT.0));
    world.hears(&Peer::at_port(30_001).syn().frame(PEER_CARD));
    let reset = says_to(&Peer::at_port(30_000), &mut world).unwrap();
    assert_eq!((reset.control, reset.acknowledgment), (TcpControl::Rst, None));
    assert_eq!(reset.sequence, answer.sequence.wrapping_add(1));
    nothing_is_left(&mut world);
}

#[test]
fn real_clients_are_accepted_among_half_a_million_syns_a_second() {
    const A_SECOND: u64 = 500_000;
    let mut world = World::with(
        Addressing::Static(our_address()),
        Limits { half_open: 512, ..limits() },
        Offloads::default(),
    );
    let flood_frames: Vec<Vec<u8>> = (0..200)
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
            let mut frame = flood_frames[number as usize % flood_frames.len()].clone();
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
        assert_eq!(sends_syn(peer, &mut world), None);
    }
    storm(&mut world, A_SECOND);
    let answers: Vec<Option<Tcp>> = real.iter().map(|peer| sends_syn(peer, &mut world)).collect();
    assert!(answers.iter().flatten().count() >= 95);
    assert_eq!(
        world.net.counters().of(Counter::CookiesOut),
        0,
        "handshakes with an entry need no cookie"
    );
}
