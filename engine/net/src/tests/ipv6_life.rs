//! The assignment and loss of IPv6 addresses, on a link played by the test, in virtual time.

use core::net::{IpAddr, Ipv6Addr};
use std::vec;
use std::vec::Vec;

use machine::Micros;
use smoltcp::wire::*;

use super::machine_in_memory::CARD;
use super::messages::PEER_CARD;
use super::messages_ipv6::*;
use super::world::{World, WorldEvent};
use crate::Counter;
use crate::{Ipv6Address, Ipv6Addressing, Unsent};

const SECOND: Micros = Micros::from_secs(1);
const HOUR: u32 = 3_600;

fn automatic() -> World {
    World::of_ipv6(Ipv6Addressing::Automatic)
}

fn sent_ndp(world: &mut World) -> Vec<SentNdp> {
    world.says().iter().map(|frame| read_ndp(frame)).collect()
}

/// Our addresses.
fn own(world: &World) -> Vec<Ipv6Addr> {
    world.net.ipv6_addresses().map(|own| own.address).collect()
}

/// The address that we are about to assign, from its duplicate address detection.
fn asked_for(world: &mut World) -> Ipv6Addr {
    let target = sent_ndp(world).into_iter().find_map(|message| match message {
        SentNdp::Solicit(target, from, _) if from.is_unspecified() => Some(target),
        _ => None,
    });
    target.expect("a solicitation of duplicate address detection")
}

/// Completes duplicate address detection for the link-local address.
fn with_link_local() -> (World, Ipv6Addr) {
    let mut world = automatic();
    let address = asked_for(&mut world);
    world.waits(SECOND);
    (world, address)
}

#[test]
fn an_address_is_assigned_after_duplicate_detection() {
    let mut world = automatic();
    let words = sent_ndp(&mut world);
    let [SentNdp::Listen(group, 1), SentNdp::Solicit(link_local, UNSPECIFIED, to)] = words[..]
    else {
        panic!("{words:?}")
    };
    assert_eq!((group, to), (solicited_node(link_local), solicited_node(link_local)));
    assert_eq!(link_local.segments()[..4], [0xfe80, 0, 0, 0]);
    assert!(own(&world).is_empty(), "no address before duplicate detection");

    world.now = world.now + SECOND;
    let words = sent_ndp(&mut world);
    assert_eq!(words, [SentNdp::Listen(group, 1), SentNdp::SolicitRouters(link_local)]);
    assert_eq!(world.waits(Micros(1)), [WorldEvent::Ipv6Addresses(vec![link_local])]);

    assert_eq!(world.hears(&Advertisement::new().frame()), []);
    let global = asked_for(&mut world);
    assert_eq!(global.segments()[..4], NETWORK.segments()[..4]);
    assert_eq!(own(&world), [link_local]);
    assert_eq!(world.waits(SECOND), [WorldEvent::Ipv6Addresses(vec![link_local, global])]);
    assert_eq!(world.net.ipv6_router(), Some(ROUTER));
}

#[test]
fn addresses_are_stable_across_starts_and_hide_the_card() {
    let (mut one, mut other) = (automatic(), automatic());
    let address = asked_for(&mut one);
    assert_eq!(asked_for(&mut other), address);
    assert_ne!(address.octets()[13..], CARD.0[3..]);
}

#[test]
fn a_duplicate_address_is_replaced_by_another_one() {
    let mut world = automatic();
    let mut tried = Vec::new();
    for _ in 0..3 {
        let address = asked_for(&mut world);
        assert!(!tried.contains(&address));
        tried.push(address);
        let events = world.hears(&advertisement(
            PEER_CARD,
            address,
            ALL_NODES,
            NdiscNeighborFlags::OVERRIDE,
        ));
        let gives_up = tried.len() == 3;
        assert_eq!(
            events == [WorldEvent::AddressTaken(address)],
            gives_up,
            "after three duplicates there is no address"
        );
    }
    world.says_nothing();
    assert_eq!(world.net.next_deadline(), None);
    assert_eq!(world.net.counters().of(Counter::Duplicates), 3);
}

#[test]
fn competing_solicitation_is_a_conflict_but_a_looped_one_is_not() {
    let mut world = automatic();
    let first = world.says();
    let question =
        first.iter().find(|frame| matches!(read_ndp(frame), SentNdp::Solicit(..))).unwrap().clone();
    let SentNdp::Solicit(address, _, group) = read_ndp(&question) else { panic!() };
    // A loop in the link returns our own solicitation (RFC 7527).
    let mut echo = question;
    echo[6..12].copy_from_slice(&PEER_CARD.0);
    world.hears(&echo);
    world.says_nothing();

    world.hears(&solicitation(PEER_CARD, UNSPECIFIED, group, address));
    assert_ne!(asked_for(&mut world), address);
}

#[test]
fn a_tentative_address_is_not_answered_for() {
    let mut world = automatic();
    let address = asked_for(&mut world);
    world.hears(&solicitation(PEER_CARD, PEER, solicited_node(address), address));
    world.hears(&frame(PEER_CARD, &ipv6(PEER, address, 58, 64, &echo(PEER, address, b"?"))));
    world.says_nothing();
    assert_eq!(world.net.counters().of(Counter::DroppedBadDestination), 1);
}

#[test]
fn router_solicitations_back_off_until_an_answer() {
    let (mut world, _) = with_link_local();
    let mut asked_at = Vec::new();
    for _ in 0..6 {
        world.now = world.net.next_deadline().unwrap();
        assert!(matches!(sent_ndp(&mut world)[..], [SentNdp::SolicitRouters(_)]));
        asked_at.push(world.now);
    }
    let waits: Vec<u64> =
        asked_at.windows(2).map(|pair| pair[1].since(pair[0]).as_secs()).collect();
    assert!(waits.windows(2).all(|pair| pair[1] > pair[0] * 3 / 2), "{waits:?}");
    world.hears(&Advertisement::new().frame());
    world.waits(SECOND);
    assert_eq!(world.net.counters().of(Counter::RouterSolicitationsOut), 7);
    world.waits(Micros::from_secs(1_700));
    assert_eq!(world.net.counters().of(Counter::RouterSolicitationsOut), 7);
}

#[test]
fn invalid_router_advertisements_are_ignored() {
    let (mut world, _) = with_link_local();
    world.says();
    let advertisement = Advertisement::new();
    let message = advertisement.message();
    // The first is forwarded by a router, and the second comes from off the link. The third has an
    // option of length zero, and the fourth is truncated.
    world.hears(&frame(ROUTER_CARD, &ipv6(ROUTER, ALL_NODES, 58, 254, &message)));
    world.hears(&Advertisement { from: FAR, ..advertisement.clone() }.frame());
    let mut endless = message.clone();
    endless[17] = 0;
    world.hears(&frame(
        ROUTER_CARD,
        &ipv6(ROUTER, ALL_NODES, 58, 255, &sealed(ROUTER, ALL_NODES, endless)),
    ));
    let cut = sealed(ROUTER, ALL_NODES, message[..message.len() - 8].to_vec());
    world.hears(&frame(ROUTER_CARD, &ipv6(ROUTER, ALL_NODES, 58, 255, &cut)));
    assert_eq!(world.net.ipv6_router(), None);
    world.waits(SECOND);
    assert_eq!(own(&world).len(), 1);
    assert_eq!(world.net.counters().of(Counter::DroppedMalformed), 4);
}

#[test]
fn no_address_is_formed_from_an_invalid_prefix() {
    let (mut world, _) = with_link_local();
    let good = Advertisement::new();
    for bad in [
        Advertisement { prefix: Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0), ..good.clone() },
        Advertisement { bits: 63, ..good.clone() },
        Advertisement { preferred: 2, valid: 1, ..good.clone() },
        Advertisement { preferred: 0, valid: 0, ..good.clone() },
        Advertisement { flags: NdiscPrefixInfoFlags::ON_LINK, ..good.clone() },
    ] {
        world.hears(&bad.frame());
    }
    world.waits(SECOND);
    assert_eq!(own(&world).len(), 1);
}

#[test]
fn the_number_of_addresses_is_bounded() {
    let (mut world, _) = with_link_local();
    for number in 0..1_000 {
        let prefix = Ipv6Addr::new(0x2001, 0xdb8, 1, number, 0, 0, 0, 0);
        world.hears(&Advertisement { prefix, ..Advertisement::new() }.frame());
        let from = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 1, number);
        world.hears(&Advertisement { from, prefix, ..Advertisement::new() }.frame());
    }
    world.waits(SECOND);
    assert_eq!(own(&world).len(), 8);
}

#[test]
fn a_lifetime_may_grow_but_not_shrink_below_two_hours() {
    let (mut world, _) = with_link_local();
    let lives =
        |valid, preferred| Advertisement { valid, preferred, ..Advertisement::new() }.frame();
    world.hears(&lives(24 * HOUR, HOUR));
    world.waits(SECOND);
    assert_eq!(own(&world).len(), 2);
    world.hears(&lives(1, 1));
    world.waits(Micros::from_secs(7_100));
    assert_eq!(own(&world).len(), 2, "the address has two hours left");
    world.hears(&lives(1, 1));
    let events = world.waits(Micros::from_secs(101));
    assert!(
        matches!(&events[..], [WorldEvent::Ipv6Addresses(left)] if left.len() == 1),
        "the address has expired: {events:?}"
    );

    world.hears(&lives(HOUR, HOUR));
    world.waits(Micros::from_secs(1_800));
    world.hears(&lives(HOUR + 1, HOUR));
    world.waits(Micros::from_secs(3_000));
    assert_eq!(own(&world).len(), 2, "a longer lifetime is accepted");
}

#[test]
fn a_deprecated_address_is_used_only_without_alternative() {
    let (mut world, _, old) = World::of_ipv6_at_work(machine::Offloads::default());
    let prefix = Ipv6Addr::new(0x2001, 0xdb8, 0, 2, 0, 0, 0, 0);
    world.hears(&Advertisement { prefix, ..Advertisement::new() }.frame());
    world.waits(SECOND);
    let source = |world: &mut World| {
        world.net.send_datagram(world.now, 5353, (NEAR, 53).into(), b"?").unwrap();
        world.hears(&advertisement(
            PEER_CARD,
            NEAR,
            old,
            NdiscNeighborFlags::SOLICITED | NdiscNeighborFlags::OVERRIDE,
        ));
        world
            .says()
            .iter()
            .map(|frame| read_ipv6(frame).1)
            .find(|ip| ip.next_header == IpProtocol::Udp)
            .unwrap()
            .src_addr
    };
    assert_eq!(source(&mut world), old, "the address with the longest common prefix");
    world.hears(&Advertisement { preferred: 0, ..Advertisement::new() }.frame());
    let new = own(&world)[2];
    assert_eq!(source(&mut world), new);
    world.hears(&Advertisement { prefix, preferred: 0, ..Advertisement::new() }.frame());
    assert_eq!(source(&mut world), old);
}

#[test]
fn a_resigned_or_silent_router_is_replaced() {
    let (mut world, ..) = World::of_ipv6_at_work(machine::Offloads::default());
    let other = Advertisement { from: OTHER_ROUTER, ..Advertisement::new() };
    world.hears(&other.frame());
    assert_eq!(world.net.ipv6_router(), Some(ROUTER), "the first router stays");
    world.hears(&Advertisement { lifetime: 0, ..Advertisement::new() }.frame());
    assert_eq!(world.net.ipv6_router(), Some(OTHER_ROUTER));
    world.hears(&Advertisement { lifetime: 9_000, ..Advertisement::new() }.frame());
    world.waits(Micros::from_secs(1_801));
    assert_eq!(world.net.ipv6_router(), Some(ROUTER), "the other router has expired");

    world.hears(&other.frame());
    world.net.send_datagram(world.now, 5353, (FAR, 53).into(), b"?").unwrap();
    assert_eq!(read_ipv6(&world.says_one()).0, ROUTER_CARD);
    // The router does not answer the probes.
    world.waits(Micros::from_secs(10));
    assert_eq!(world.net.ipv6_router(), Some(OTHER_ROUTER));
}

#[test]
fn without_a_router_only_the_link_is_reachable() {
    let (mut world, _, _) = World::of_ipv6_at_work(machine::Offloads::default());
    world.hears(&Advertisement { lifetime: 0, ..Advertisement::new() }.frame());
    assert_eq!(
        world.net.send_datagram(world.now, 5353, (FAR, 53).into(), b"?"),
        Err(Unsent::NoRoute)
    );
    assert_eq!(world.net.send_datagram(world.now, 5353, (NEAR, 53).into(), b"?"), Ok(()));
    // A prefix is on-link only if it is announced so (RFC 5942).
    let off = Advertisement {
        flags: NdiscPrefixInfoFlags::ON_LINK,
        valid: 0,
        preferred: 0,
        lifetime: 0,
        ..Advertisement::new()
    };
    world.hears(&off.frame());
    assert_eq!(
        world.net.send_datagram(world.now, 5353, (NEAR, 53).into(), b"?"),
        Err(Unsent::NoRoute)
    );
}

#[test]
fn name_servers_expire_with_their_lifetime() {
    let (mut world, ..) = World::of_ipv6_at_work(machine::Offloads::default());
    let servers = vec![(NEAR, 100), (FAR, u32::MAX)];
    world.hears(&Advertisement { name_servers: servers, ..Advertisement::new() }.frame());
    assert!(world.net.name_servers().eq([IpAddr::V6(NEAR), IpAddr::V6(FAR)]));
    world.waits(Micros::from_secs(101));
    assert!(world.net.name_servers().eq([IpAddr::V6(FAR)]));
    world.hears(&Advertisement { name_servers: vec![(FAR, 0)], ..Advertisement::new() }.frame());
    assert_eq!(world.net.name_servers().next(), None);
}

#[test]
fn fixed_addresses_are_checked_and_advertisements_ignored() {
    let fixed = |last| Ipv6Address {
        address: Ipv6Addr::new(0x2001, 0xdb8, 0, 1, 0, 0, 0, last),
        prefix_bits: 64,
    };
    let addresses = [Some(fixed(2)), Some(fixed(3)), None, None];
    let mut world = World::of_ipv6(Ipv6Addressing::Static { addresses, gateway: Some(ROUTER) });
    world.says();
    let events = world.hears(&advertisement(
        PEER_CARD,
        fixed(3).address,
        ALL_NODES,
        NdiscNeighborFlags::OVERRIDE,
    ));
    assert_eq!(events, [WorldEvent::AddressTaken(fixed(3).address)]);
    world.waits(Micros::from_secs(3_600));
    let ours = own(&world);
    assert_eq!((ours.len(), ours.contains(&fixed(2).address)), (2, true));
    assert_eq!(world.net.counters().of(Counter::RouterSolicitationsOut), 0);
    world.hears(&Advertisement { from: OTHER_ROUTER, ..Advertisement::new() }.frame());
    world.hears(&Advertisement { lifetime: 0, ..Advertisement::new() }.frame());
    world.waits(SECOND);
    assert_eq!((own(&world), world.net.ipv6_router()), (ours, Some(ROUTER)));
}

#[test]
fn listener_queries_are_answered_with_our_groups() {
    let (mut world, link_local, global) = World::of_ipv6_at_work(machine::Offloads::default());
    let asks = |world: &mut World, length: usize| {
        let mut query = vec![0; length];
        query[0] = 130;
        query[4..6].copy_from_slice(&10_000u16.to_be_bytes());
        let mut bytes = vec![58, 0, 5, 2, 0, 0, 1, 0];
        bytes.extend(sealed(ROUTER, ALL_NODES, query));
        world.hears(&frame(ROUTER_CARD, &ipv6(ROUTER, ALL_NODES, 0, 1, &bytes)));
        world.says_nothing();
        let asked_at = world.now;
        world.now = world.net.next_deadline().unwrap();
        assert!(
            world.now.since(asked_at) <= Micros::from_secs(10),
            "the report has a random delay"
        );
        sent_ndp(world)
    };
    assert_eq!(asks(&mut world, 28), [SentNdp::Listen(solicited_node(link_local), 2)]);
    let one_by_one = [link_local, global].map(|own| SentNdp::Listen(solicited_node(own), 1));
    assert_eq!(asks(&mut world, 24), one_by_one, "an old querier gets version 1 reports");
}

#[test]
fn disabled_ipv6_ignores_all_ipv6_packets() {
    let mut world = World::new();
    world.hears(&Advertisement::new().frame());
    world.says_nothing();
    assert_eq!(world.net.counters().of(Counter::DroppedUnknownProtocol), 1);
}
