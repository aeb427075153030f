//! ARP, ICMP and UDP on the link: which packets are answered, and how.

use core::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::vec::Vec;

use machine::{Ethernet, Micros};
use smoltcp::wire::*;

use super::machine_in_memory::CARD;
use super::messages::*;
use super::world::{World, WorldEvent};
use crate::Counter;
use crate::Unsent;

const NO_CARD: Ethernet = Ethernet([0; 6]);

fn echo(ident: u16, data: &[u8]) -> Vec<u8> {
    icmp(&Icmpv4Repr::EchoRequest { ident, seq_no: 1, data })
}

/// The two parts of `payload`, cut at `cut`, as fragments to us.
fn fragments(payload: &[u8], protocol: IpProtocol, cut: usize) -> [Vec<u8>; 2] {
    [(0, &payload[..cut], true), (cut, &payload[cut..], false)].map(|(offset, part, more)| {
        let mut packet = ipv4(PEER, US, protocol, part);
        let mut view = Ipv4Packet::new_unchecked(&mut packet);
        view.set_dont_frag(false);
        view.set_ident(77);
        view.set_frag_offset(offset as u16);
        view.set_more_frags(more);
        view.fill_checksum();
        ethernet(PEER_CARD, CARD, EthernetProtocol::Ipv4, &packet)
    })
}

#[test]
fn a_new_address_is_announced_and_the_gateway_asked_for() {
    let address = crate::Addressing::Static(super::world::our_address());
    let mut world = World::with(address, super::world::limits(), machine::Offloads::default());
    let sent: Vec<_> = world.says().iter().map(|frame| read_arp(frame)).collect();
    let announcement = (EVERYBODY, ArpOperation::Request, (US, CARD), (US, NO_CARD));
    let question = (EVERYBODY, ArpOperation::Request, (US, CARD), (GATEWAY, NO_CARD));
    assert_eq!(sent, [announcement, question]);
}

#[test]
fn arp_requests_are_answered_only_for_our_address() {
    let mut world = World::new();
    world.hears(&arp(ArpOperation::Request, (PEER, PEER_CARD), (US, NO_CARD)));
    let answer = read_arp(&world.says_one());
    assert_eq!(answer, (PEER_CARD, ArpOperation::Reply, (US, CARD), (PEER, PEER_CARD)));
    world.hears(&arp(ArpOperation::Request, (PEER, PEER_CARD), (FAR, NO_CARD)));
    world.says_nothing();
}

#[test]
fn an_arp_probe_for_our_address_is_answered() {
    let mut world = World::new();
    world.hears(&arp(ArpOperation::Request, (Ipv4Addr::UNSPECIFIED, PEER_CARD), (US, NO_CARD)));
    assert_eq!(read_arp(&world.says_one()).2, (US, CARD));
}

#[test]
fn our_address_is_defended_at_a_limited_rate() {
    let mut world = World::new();
    for _ in 0..5 {
        world.hears(&arp(ArpOperation::Request, (US, PEER_CARD), (US, NO_CARD)));
    }
    let announcement = read_arp(&world.says_one());
    assert_eq!(announcement, (EVERYBODY, ArpOperation::Request, (US, CARD), (US, NO_CARD)));
    assert_eq!(world.net.counters().of(Counter::ArpConflicts), 5);
}

#[test]
fn a_ping_comes_back_as_it_was_sent() {
    let mut world = World::new();
    for data in [&b""[..], b"odd", b"four", &[0xa5; 1472]] {
        world.hears(&to_us(PEER, IpProtocol::Icmp, &echo(7, data)));
        let (to, ip, reply) = read_icmp(&world.says_one());
        assert_eq!((to, ip.src_addr, ip.dst_addr), (PEER_CARD, US, PEER));
        assert_eq!(reply, icmp(&Icmpv4Repr::EchoReply { ident: 7, seq_no: 1, data }));
    }
}

#[test]
fn a_ping_in_fragments_is_answered_in_one_piece_or_not_at_all() {
    let mut world = World::new();
    let ping = echo(7, &[0x5a; 1400]);
    let [first, last] = fragments(&ping, IpProtocol::Icmp, 800);
    world.hears(&last);
    world.says_nothing();
    world.hears(&first);
    assert_eq!(read_icmp(&world.says_one()).2[8..], ping[8..]);

    let large = echo(7, &[0x5a; 3000]);
    for part in fragments(&large, IpProtocol::Icmp, 1480) {
        world.hears(&part);
    }
    world.says_nothing();
    assert_eq!(world.net.counters().of(Counter::Reassembled), 2);
}

#[test]
fn broadcast_pings_and_impossible_sources_are_not_answered() {
    let mut world = World::new();
    let ping = echo(7, b"smurf");
    for to in [Ipv4Addr::BROADCAST, Ipv4Addr::new(10, 0, 0, 255), Ipv4Addr::new(224, 0, 0, 1)] {
        let packet = ipv4(PEER, to, IpProtocol::Icmp, &ping);
        world.hears(&ethernet(PEER_CARD, EVERYBODY, EthernetProtocol::Ipv4, &packet));
    }
    world.hears(&ethernet(
        PEER_CARD,
        EVERYBODY,
        EthernetProtocol::Ipv4,
        &ipv4(PEER, US, IpProtocol::Icmp, &ping),
    ));
    for from in [
        [127, 0, 0, 1],
        [0, 0, 0, 0],
        [224, 0, 0, 1],
        [255, 255, 255, 255],
        [10, 0, 0, 255],
        US.octets(),
    ] {
        world.hears(&to_us(from.into(), IpProtocol::Icmp, &ping));
    }
    world.says_nothing();
    assert_eq!(world.net.counters().of(Counter::DroppedBadSource), 6);
}

#[test]
fn senders_without_a_unicast_card_address_get_no_answer() {
    let mut world = World::new();
    let syn = Tcp {
        from: (PEER, 4_000),
        to: (US, 25),
        control: TcpControl::Syn,
        sequence: 1_000,
        acknowledgment: None,
        window: 60_000,
        mss: Some(1460),
        payload: Vec::new(),
    };
    for card in [EVERYBODY, Ethernet([3, 0, 0, 0, 0, 7]), NO_CARD] {
        let ping = ipv4(PEER, US, IpProtocol::Icmp, &echo(1, b"there?"));
        assert_eq!(world.hears(&ethernet(card, CARD, EthernetProtocol::Ipv4, &ping)), []);
        assert_eq!(world.hears(&syn.frame(card)), []);
        world.says_nothing();
    }
    world.hears(&Tcp { from: (PEER, 4_001), ..syn }.frame(PEER_CARD));
    assert_eq!(Tcp::read(&world.says_one()).0, PEER_CARD);
}

#[test]
fn frames_for_other_hosts_are_dropped() {
    let mut world = World::new();
    let packet = ipv4(PEER, US, IpProtocol::Icmp, &echo(7, b""));
    world.hears(&ethernet(PEER_CARD, GATEWAY_CARD, EthernetProtocol::Ipv4, &packet));
    world.hears(&ethernet(
        PEER_CARD,
        CARD,
        EthernetProtocol::Ipv4,
        &ipv4(PEER, FAR, IpProtocol::Icmp, &echo(7, b"")),
    ));
    world.hears(&ethernet(PEER_CARD, CARD, EthernetProtocol::Ipv6, &packet));
    world.says_nothing();
    let counters = world.net.counters();
    assert_eq!(
        (
            counters.of(Counter::DroppedNotOurs),
            counters.of(Counter::DroppedBadDestination),
            counters.of(Counter::DroppedUnknownProtocol)
        ),
        (1, 1, 1)
    );
}

#[test]
fn pings_are_limited_in_rate() {
    let mut world = World::new();
    for _ in 0..1_000 {
        world.hears(&to_us(PEER, IpProtocol::Icmp, &echo(7, b"flood")));
    }
    assert_eq!(world.says().len(), 100);
    assert_eq!(world.net.counters().of(Counter::IcmpLimited), 900);
}

#[test]
fn a_datagram_to_an_unbound_port_gets_port_unreachable() {
    let mut world = World::new();
    let datagram = udp((PEER, 4000), (US, 4001), &[9; 700]);
    let frame = to_us(PEER, IpProtocol::Udp, &datagram);
    world.hears(&frame);
    let (_, ip, error) = read_icmp(&world.says_one());
    assert_eq!(ip.dst_addr, PEER);
    assert_eq!(error[..2], [3, 3]);
    assert_eq!(error[8..], frame[14..14 + 548], "as much as fits 576 bytes");

    let broadcast = ipv4(PEER, Ipv4Addr::BROADCAST, IpProtocol::Udp, &datagram);
    world.hears(&ethernet(PEER_CARD, EVERYBODY, EthernetProtocol::Ipv4, &broadcast));
    world.says_nothing();
}

#[test]
fn an_unknown_protocol_is_reported_but_never_an_icmp_error() {
    let mut world = World::new();
    world.hears(&to_us(PEER, IpProtocol::Unknown(132), b"sctp?"));
    assert_eq!(read_icmp(&world.says_one()).2[..2], [3, 2]);
    let header = Ipv4Repr {
        src_addr: US,
        dst_addr: PEER,
        next_header: IpProtocol::Udp,
        payload_len: 8,
        hop_limit: 64,
    };
    let error = icmp(&Icmpv4Repr::DstUnreachable {
        reason: Icmpv4DstUnreachable::PortUnreachable,
        header,
        data: &[0; 8],
    });
    world.hears(&to_us(PEER, IpProtocol::Icmp, &error));
    world.says_nothing();
}

#[test]
fn icmp_errors_are_limited_in_rate() {
    let mut world = World::new();
    for port in 1_000..1_500 {
        world.hears(&to_us(PEER, IpProtocol::Udp, &udp((PEER, 4000), (US, port), b"scan")));
    }
    assert_eq!(world.says().len(), 20);
}

#[test]
fn a_bound_port_gets_its_datagrams_whole_or_in_fragments() {
    let mut world = World::new();
    assert!(world.net.bind(53));
    let peer = SocketAddr::V4(SocketAddrV4::new(PEER, 4000));
    let small = udp((PEER, 4000), (US, 53), b"question");
    let events = world.hears(&to_us(PEER, IpProtocol::Udp, &small));
    assert_eq!(events, [WorldEvent::Datagram(53, peer, b"question".to_vec())]);

    let large = udp((PEER, 4000), (US, 53), &[3; 4000]);
    let [first, last] = fragments(&large, IpProtocol::Udp, 1480);
    assert_eq!(world.hears(&first), []);
    assert_eq!(world.hears(&last), [WorldEvent::Datagram(53, peer, [3; 4000].to_vec())]);

    let mut wrong = small.clone();
    wrong[10] ^= 1;
    assert_eq!(world.hears(&to_us(PEER, IpProtocol::Udp, &wrong)), []);
    let mut unsummed = small;
    unsummed[6..8].fill(0);
    assert_eq!(
        world.hears(&to_us(PEER, IpProtocol::Udp, &unsummed)).len(),
        1,
        "zero means that no checksum was computed"
    );
    world.net.release(53);
    assert_eq!(world.hears(&to_us(PEER, IpProtocol::Udp, &large)), []);
}

#[test]
fn a_datagram_waits_for_its_neighbour_to_answer() {
    let mut world = World::new();
    let to = SocketAddr::V4(SocketAddrV4::new(PEER, 53));
    world.net.send_datagram(world.now, 5353, to, b"question").unwrap();
    let (_, operation, _, target) = read_arp(&world.says_one());
    assert_eq!((operation, target.0), (ArpOperation::Request, PEER));
    world.hears(&arp(ArpOperation::Reply, (PEER, PEER_CARD), (US, CARD)));
    let (card, ip, ports, payload) = read_udp(&world.says_one());
    assert_eq!((card, ip.src_addr, ip.dst_addr), (PEER_CARD, US, PEER));
    assert_eq!((ports, payload.as_slice()), ((5353, 53), &b"question"[..]));
}

#[test]
fn far_packets_use_the_gateway_and_silent_hosts_get_none() {
    let mut world = World::new();
    let far = SocketAddr::V4(SocketAddrV4::new(FAR, 53));
    world.net.send_datagram(world.now, 5353, far, b"one").unwrap();
    world.hears(&arp(ArpOperation::Reply, (GATEWAY, GATEWAY_CARD), (US, CARD)));
    assert_eq!(read_udp(&world.says_one()).0, GATEWAY_CARD);

    let silent = SocketAddr::V4(SocketAddrV4::new(PEER, 53));
    world.net.send_datagram(world.now, 5353, silent, b"two").unwrap();
    world.waits(Micros::from_secs(10));
    assert_eq!(world.net.counters().of(Counter::DroppedUnresolved), 1);
    assert_eq!(world.net.send_datagram(world.now, 5353, far, &[0; 1473]), Err(Unsent::TooLong));
}
