//! The parts of the network that have timers. The deadline of each part is met while all other
//! parts are at rest. A turn in which no part has changed asks no part for its deadline.

use core::net::SocketAddr;

use machine::{Instant, Micros, Offloads};
use smoltcp::wire::*;

use super::machine_in_memory::CARD;
use super::messages::*;
use super::world::{World, limits};
use crate::Counter;
use crate::{Addressing, Ipv6Addressing};

/// A network that has been at rest for a while; the gateway has answered.
fn at_rest() -> World {
    let mut world = World::new();
    world.hears(&arp(ArpOperation::Reply, (GATEWAY, GATEWAY_CARD), (US, CARD)));
    world.waits(Micros::from_secs(100));
    assert_eq!(world.net.next_deadline(), None);
    world
}

/// The next deadline, from the cached value.
fn kept(world: &mut World) -> Option<Instant> {
    assert!(world.net.has_changed(), "the part has changed");
    world.says();
    assert!(!world.net.has_changed());
    world.net.next_deadline()
}

#[test]
fn half_open_deadlines_alone_are_met() {
    let mut world = at_rest();
    let syn = Tcp {
        from: (PEER, 4000),
        to: (US, 25),
        control: TcpControl::Syn,
        sequence: 1,
        acknowledgment: None,
        window: 1000,
        mss: None,
        payload: [].into(),
    };
    world.hears(&syn.frame(PEER_CARD));
    assert_eq!(kept(&mut world), Some(world.now + Micros::from_secs(1)));
    world.next_deadline();
    assert_eq!(world.says_tcp().to.1, 4000);
}

#[test]
fn reassembly_deadlines_alone_are_met() {
    let mut world = at_rest();
    let mut packet = ipv4(PEER, US, IpProtocol::Udp, &[0; 64]);
    let mut view = Ipv4Packet::new_unchecked(&mut packet);
    view.set_more_frags(true);
    view.fill_checksum();
    world.hears(&ethernet(PEER_CARD, CARD, EthernetProtocol::Ipv4, &packet));
    assert_eq!(kept(&mut world), Some(world.now + Micros::from_secs(30)));
    world.next_deadline();
    assert_eq!(world.net.counters().of(Counter::ReassemblyFailed), 1);
    assert_eq!(kept(&mut world), None);
}

#[test]
fn neighbour_deadlines_alone_are_met() {
    let mut world = at_rest();
    assert_eq!(
        world.net.send_datagram(world.now, 9, SocketAddr::new(PEER.into(), 9), b"hello"),
        Ok(())
    );
    assert_eq!(kept(&mut world), Some(world.now + Micros::from_secs(1)));
    world.next_deadline();
    assert_eq!(read_arp(&world.says_one()).3.0, PEER);
}

#[test]
fn dhcp_deadlines_alone_are_met() {
    let mut world = World::with(Addressing::Dhcp, limits(), Offloads::default());
    let first = kept(&mut world).unwrap();
    assert!(first > world.now);
    world.next_deadline();
    assert_eq!((world.now, world.says().len()), (first, 1));
}

#[test]
fn ipv6_deadlines_alone_are_met() {
    let mut world = World::of_ipv6(Ipv6Addressing::Automatic);
    assert_eq!(kept(&mut world), Some(world.now + Micros::from_secs(1)));
    world.next_deadline();
    assert!(!world.says().is_empty());
    assert_eq!(world.net.ipv6_addresses().count(), 1);
}
