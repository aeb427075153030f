//! IPv6 below TCP: neighbours, echoes, errors, datagrams, fragments, and packets for other hosts.

use core::net::{Ipv6Addr, SocketAddr};
use std::vec;
use std::vec::Vec;

use machine::{Ethernet, Micros, Offloads};
use smoltcp::wire::*;

use super::machine_in_memory::CARD;
use super::messages::{EVERYBODY, GATEWAY_CARD, PEER_CARD, ethernet};
use super::messages_ipv6::*;
use super::world::{World, WorldEvent};
use crate::Counter;

const SOLICITED: NdiscNeighborFlags = NdiscNeighborFlags::SOLICITED;
const OVERRIDE: NdiscNeighborFlags = NdiscNeighborFlags::OVERRIDE;
const OTHER_CARD: Ethernet = Ethernet([0x02, 0, 0, 0, 0, 0x55]);

fn world() -> (World, Ipv6Addr, Ipv6Addr) {
    World::of_ipv6_at_work(Offloads::default())
}

fn to(own: Ipv6Addr, from: Ipv6Addr, next_header: u8, payload: &[u8]) -> Vec<u8> {
    frame(PEER_CARD, &ipv6(from, own, next_header, 64, payload))
}

fn ping(world: &mut World, from: Ipv6Addr, own: Ipv6Addr) -> usize {
    world.hears(&to(own, from, 58, &echo(from, own, b"?")));
    world.says().len()
}

fn send(world: &mut World, to: Ipv6Addr, bytes: &[u8]) {
    world.net.send_datagram(world.now, 5353, (to, 53).into(), bytes).unwrap();
}

#[test]
fn a_ping_comes_back_as_it_was_sent() {
    let (mut world, near, global) = world();
    for (from, own) in [(PEER, near), (NEAR, global), (FAR, global)] {
        for data in [&b""[..], b"odd", b"four", &[0xa5; 1452]] {
            let ping = echo(from, own, data);
            world.hears(&to(own, from, 58, &ping));
            let (card, ip, reply) = read_icmp(&world.says_one());
            let expected = if from == FAR { ROUTER_CARD } else { PEER_CARD };
            assert_eq!((card, ip.src_addr, ip.dst_addr, ip.hop_limit), (expected, own, from, 61));
            assert_eq!((reply[0], &reply[4..]), (129, &ping[4..]));
        }
    }
}

#[test]
fn a_ping_to_a_group_is_answered_on_the_link_only() {
    let (mut world, near, _) = world();
    world.hears(&to(ALL_NODES, PEER, 58, &echo(PEER, ALL_NODES, b"any?")));
    assert_eq!(read_icmp(&world.says_one()).1.src_addr, near);
    world.hears(&to(ALL_NODES, FAR, 58, &echo(FAR, ALL_NODES, b"smurf")));
    world.hears(&to(ALL_NODES, UNSPECIFIED, 58, &echo(UNSPECIFIED, ALL_NODES, b"?")));
    world.says_nothing();
}

#[test]
fn a_neighbour_is_resolved_before_packets_are_sent() {
    let (mut world, _, global) = world();
    send(&mut world, NEAR, b"question");
    assert_eq!(read_ndp(&world.says_one()), SentNdp::Solicit(NEAR, global, solicited_node(NEAR)));
    world.hears(&advertisement(PEER_CARD, NEAR, global, SOLICITED | OVERRIDE));
    let (card, ip, payload) = read_ipv6(&world.says_one());
    assert_eq!(
        (card, ip.src_addr, ip.dst_addr, &payload[8..]),
        (PEER_CARD, global, NEAR, &b"question"[..])
    );
    assert!(
        UdpPacket::new_checked(payload.as_slice())
            .unwrap()
            .verify_checksum(&global.into(), &NEAR.into())
    );
}

#[test]
fn a_silent_neighbour_is_asked_three_times_and_given_up() {
    let (mut world, ..) = world();
    send(&mut world, NEAR, b"?");
    for _ in 0..3 {
        assert!(matches!(read_ndp(&world.says_one()), SentNdp::Solicit(NEAR, ..)));
        world.now = world.now + Micros::from_secs(1);
    }
    world.says_nothing();
    assert_eq!(world.net.counters().of(Counter::DroppedUnresolved), 1);
}

#[test]
fn a_neighbour_in_use_is_probed_and_an_idle_one_is_not() {
    let (mut world, _, global) = world();
    send(&mut world, NEAR, b"1");
    world.says();
    world.hears(&advertisement(PEER_CARD, NEAR, global, SOLICITED | OVERRIDE));
    world.says();
    let before = world.net.counters().of(Counter::NeighbourSolicitationsOut);
    world.waits(Micros::from_secs(600));
    assert_eq!(world.net.counters().of(Counter::NeighbourSolicitationsOut), before);

    send(&mut world, NEAR, b"2");
    assert_eq!(
        read_ipv6(&world.says_one()).0,
        PEER_CARD,
        "the neighbour is used until it fails to answer"
    );
    world.now = world.now + Micros::from_millis(4_999);
    world.says_nothing();
    world.now = world.now + Micros::from_millis(1);
    let question = world.says_one();
    assert_eq!(read_ndp(&question), SentNdp::Solicit(NEAR, global, NEAR));
    assert_eq!(question[..6], PEER_CARD.0, "the probe is unicast");
    world.hears(&advertisement(PEER_CARD, NEAR, global, SOLICITED));
    world.waits(Micros::from_secs(10));
    send(&mut world, NEAR, b"3");
    assert_eq!(read_ipv6(&world.says_one()).0, PEER_CARD);

    // Without an answer the neighbour is removed, and resolved by multicast again.
    world.waits(Micros::from_secs(60));
    send(&mut world, NEAR, b"4");
    world.waits(Micros::from_secs(9));
    send(&mut world, NEAR, b"5");
    assert_eq!(read_ndp(&world.says_one()), SentNdp::Solicit(NEAR, global, solicited_node(NEAR)));
}

#[test]
fn unsolicited_advertisements_need_the_override_flag() {
    let (mut world, _, global) = world();
    world.hears(&advertisement(PEER_CARD, NEAR, ALL_NODES, OVERRIDE));
    send(&mut world, NEAR, b"1");
    assert!(
        matches!(read_ndp(&world.says_one()), SentNdp::Solicit(..)),
        "an unsolicited advertisement adds no entry"
    );
    world.hears(&advertisement(PEER_CARD, NEAR, global, SOLICITED | OVERRIDE));
    world.says();

    world.hears(&advertisement(OTHER_CARD, NEAR, ALL_NODES, NdiscNeighborFlags::empty()));
    send(&mut world, NEAR, b"2");
    assert_eq!(read_ipv6(&world.says_one()).0, PEER_CARD);
    world.hears(&advertisement(OTHER_CARD, NEAR, ALL_NODES, OVERRIDE));
    send(&mut world, NEAR, b"3");
    assert_eq!(read_ipv6(&world.says_one()).0, OTHER_CARD);
}

#[test]
fn a_solicitation_is_answered_and_its_sender_cached() {
    let (mut world, near, global) = world();
    for own in [near, global] {
        world.hears(&solicitation(PEER_CARD, NEAR, solicited_node(own), own));
        assert_eq!(read_ndp(&world.says_one()), SentNdp::Advertise(own, NEAR, true));
        world.hears(&solicitation(PEER_CARD, UNSPECIFIED, solicited_node(own), own));
        assert_eq!(
            read_ndp(&world.says_one()),
            SentNdp::Advertise(own, ALL_NODES, false),
            "duplicate address detection is answered"
        );
    }
    send(&mut world, NEAR, b"?");
    assert_eq!(read_ipv6(&world.says_one()).0, PEER_CARD);
}

#[test]
fn invalid_solicitations_are_not_answered() {
    let (mut world, _, own) = world();
    let group = solicited_node(own);
    let question = |from: Ipv6Addr, to: Ipv6Addr, lladdr| {
        icmp(from, to, &Icmpv6Repr::Ndisc(NdiscRepr::NeighborSolicit { target_addr: own, lladdr }))
    };
    let card = Some(EthernetAddress(PEER_CARD.0).into());
    let good = question(NEAR, group, card);
    world.hears(&frame(PEER_CARD, &ipv6(NEAR, group, 58, 254, &good)));
    let mut of_another_code = good.clone();
    of_another_code[1] = 1;
    world.hears(&frame(
        PEER_CARD,
        &ipv6(NEAR, group, 58, 255, &sealed(NEAR, group, of_another_code)),
    ));
    let mut endless = good.clone();
    endless[25] = 0;
    world.hears(&frame(PEER_CARD, &ipv6(NEAR, group, 58, 255, &sealed(NEAR, group, endless))));
    let mut wrong = good.clone();
    wrong[30] ^= 1;
    world.hears(&frame(PEER_CARD, &ipv6(NEAR, group, 58, 255, &wrong)));
    // Two solicitations from the unspecified source: one has a link-layer address, and the other is
    // not sent to the group.
    world.hears(&frame(
        PEER_CARD,
        &ipv6(UNSPECIFIED, group, 58, 255, &question(UNSPECIFIED, group, card)),
    ));
    world.hears(&frame(
        PEER_CARD,
        &ipv6(UNSPECIFIED, own, 58, 255, &question(UNSPECIFIED, own, None)),
    ));
    world.says_nothing();
    assert_eq!(
        (
            world.net.counters().of(Counter::DroppedMalformed),
            world.net.counters().of(Counter::DroppedChecksum)
        ),
        (5, 1)
    );
    world.hears(&frame(PEER_CARD, &ipv6(NEAR, group, 58, 255, &good)));
    assert_eq!(world.says().len(), 1);
}

#[test]
fn redirects_are_ignored() {
    let (mut world, near, _) = world();
    let lladdr = Some(EthernetAddress(OTHER_CARD.0).into());
    let repr =
        NdiscRepr::Redirect { target_addr: PEER, dest_addr: FAR, lladdr, redirected_hdr: None };
    world.hears(&ndp(ROUTER_CARD, ROUTER, near, repr));
    send(&mut world, FAR, b"?");
    assert_eq!(read_ipv6(&world.says_one()).0, ROUTER_CARD);
    assert_eq!(world.net.counters().of(Counter::RedirectsIgnored), 1);
}

#[test]
fn many_solicitors_do_not_evict_neighbours_in_use() {
    let (mut world, _, global) = world();
    send(&mut world, NEAR, b"1");
    world.says();
    world.hears(&advertisement(PEER_CARD, NEAR, global, SOLICITED | OVERRIDE));
    world.says();
    for number in 0..1_000 {
        let stranger = Ipv6Addr::new(0x2001, 0xdb8, 0, 1, 1, 1, 1, number);
        world.hears(&solicitation(OTHER_CARD, stranger, solicited_node(global), global));
        world.says();
    }
    send(&mut world, NEAR, b"2");
    assert_eq!(read_ipv6(&world.says_one()).0, PEER_CARD);
    send(&mut world, FAR, b"3");
    assert_eq!(read_ipv6(&world.says_one()).0, ROUTER_CARD);
}

#[test]
fn frames_for_other_hosts_or_without_source_are_dropped() {
    let (mut world, _, own) = world();
    let ping = |from: Ipv6Addr, to: Ipv6Addr| ipv6(from, to, 58, 64, &echo(from, to, b"?"));
    world.hears(&ethernet(PEER_CARD, GATEWAY_CARD, EthernetProtocol::Ipv6, &ping(NEAR, own)));
    world.hears(&frame(PEER_CARD, &ping(NEAR, FAR)));
    world.hears(&frame(PEER_CARD, &ping(NEAR, "ff02::fb".parse().unwrap())));
    world.hears(&frame(PEER_CARD, &ping(NEAR, "::ffff:10.0.0.2".parse().unwrap())));
    for from in ["::1", "ff02::1", "::ffff:10.0.0.7"] {
        world.hears(&frame(PEER_CARD, &ping(from.parse().unwrap(), own)));
    }
    world.hears(&frame(PEER_CARD, &ping(own, own)));
    world.hears(&frame(
        PEER_CARD,
        &ipv6(UNSPECIFIED, own, 17, 64, &udp((UNSPECIFIED, 1), (own, 53), b"?")),
    ));
    world.says_nothing();
    let counters = world.net.counters();
    assert_eq!(
        (
            counters.of(Counter::DroppedNotOurs),
            counters.of(Counter::DroppedBadDestination),
            counters.of(Counter::DroppedBadSource)
        ),
        (1, 3, 5)
    );
}

#[test]
fn pings_and_errors_are_limited_in_rate() {
    let (mut world, _, own) = world();
    let pings: usize = (0..1_000).map(|_| ping(&mut world, NEAR, own)).sum();
    assert_eq!((pings, world.net.counters().of(Counter::IcmpLimited)), (100, 900));
    for port in 1_000..1_500 {
        world.hears(&to(own, NEAR, 17, &udp((NEAR, 4000), (own, port), b"scan")));
    }
    assert_eq!(world.says().len(), 20);
}

/// The type, code and pointer of the ICMPv6 error that we send, and the bytes that it quotes.
fn complaint(world: &mut World) -> (u8, u8, u32, Vec<u8>) {
    let (_, _, error) = read_icmp(&world.says_one());
    (error[0], error[1], u32::from_be_bytes(error[4..8].try_into().unwrap()), error[8..].to_vec())
}

#[test]
fn an_unreachable_port_or_protocol_is_reported_with_a_quote() {
    let (mut world, _, own) = world();
    let datagram = to(own, NEAR, 17, &udp((NEAR, 4000), (own, 4001), &[9; 1400]));
    world.hears(&datagram);
    let (kind, code, _, quoted) = complaint(&mut world);
    assert_eq!(
        (kind, code, &quoted[..]),
        (1, 4, &datagram[14..14 + 1232]),
        "as much as fits 1280 bytes"
    );
    world.hears(&to(own, NEAR, 132, b"sctp?"));
    assert_eq!(complaint(&mut world).0, 4);
    let mut behind_options = vec![132, 0, 1, 4, 0, 0, 0, 0];
    behind_options.extend(b"sctp?");
    world.hears(&to(own, NEAR, 60, &behind_options));
    let (kind, code, pointer, _) = complaint(&mut world);
    assert_eq!((kind, code, pointer), (4, 1, 40), "the field that names the protocol");
}

#[test]
fn an_unknown_option_is_reported_as_its_type_says() {
    let (mut world, near, own) = world();
    let with_option =
        |kind: u8| [vec![17, 0, 1, 0, kind, 2, 0, 0], udp((NEAR, 1), (own, 53), b"")].concat();
    assert!(world.net.bind(53));
    assert_eq!(world.hears(&to(own, NEAR, 60, &with_option(0x1e))).len(), 1);
    for (kind, answers, to_group) in [(0x5e, 0, 0), (0x9e, 1, 1), (0xde, 1, 0)] {
        world.hears(&to(own, NEAR, 60, &with_option(kind)));
        let sent = world.says();
        assert_eq!(sent.len(), answers);
        if let Some(error) = sent.first() {
            assert_eq!(read_icmp(error).2[..8][..2], [4, 2]);
            assert_eq!(read_icmp(error).2[7], 44);
        }
        world.hears(&to(ALL_NODES, PEER, 60, &with_option(kind)));
        let sent = world.says();
        assert_eq!(sent.len(), to_group);
        assert!(sent.iter().all(|error| read_icmp(error).1.src_addr == near));
    }
}

#[test]
fn no_error_is_sent_about_an_error() {
    let (mut world, _, own) = world();
    // The packet has an unknown option before an ICMPv6 error.
    let header = Ipv6Repr {
        src_addr: own,
        dst_addr: NEAR,
        next_header: IpProtocol::Udp,
        payload_len: 8,
        hop_limit: 64,
    };
    let reason = Icmpv6DstUnreachable::PortUnreachable;
    let error = icmp(NEAR, own, &Icmpv6Repr::DstUnreachable { reason, header, data: &[0; 8] });
    let behind_option = [vec![58, 0, 1, 0, 0xde, 2, 0, 0], error].concat();
    world.hears(&to(own, NEAR, 60, &behind_option));
    world.says_nothing();
    // No error is sent about a packet in a group's frame either.
    let datagram = ipv6(NEAR, own, 17, 64, &udp((NEAR, 4000), (own, 4001), b"?"));
    world.hears(&ethernet(PEER_CARD, EVERYBODY, EthernetProtocol::Ipv6, &datagram));
    world.says_nothing();
}

#[test]
fn a_bound_port_gets_its_datagrams_whole_or_in_fragments() {
    let (mut world, _, own) = world();
    assert!(world.net.bind(53));
    let peer = SocketAddr::from((NEAR, 4000));
    let small = udp((NEAR, 4000), (own, 53), b"question");
    let expected = [WorldEvent::Datagram(53, peer, b"question".to_vec())];
    assert_eq!(world.hears(&to(own, NEAR, 17, &small)), expected);

    let large = udp((NEAR, 4000), (own, 53), &[3; 4000]);
    let parts =
        [0..1448, 1448..2896, 2896..large.len()].map(|at| fragment(NEAR, own, 17, &large, at, 99));
    assert_eq!(world.hears(&parts[2]), []);
    assert_eq!(world.hears(&parts[0]), []);
    assert_eq!(world.hears(&parts[0]), [], "networks repeat fragments");
    assert_eq!(world.hears(&parts[1]), [WorldEvent::Datagram(53, peer, [3; 4000].to_vec())]);

    let whole = fragment(NEAR, own, 17, &small, 0..small.len(), 7);
    assert_eq!(world.hears(&whole), expected, "a fragment that is the whole packet");
    assert_eq!(world.net.counters().of(Counter::FragmentsIn), 4);

    let mut wrong = small.clone();
    wrong[10] ^= 1;
    assert_eq!(world.hears(&to(own, NEAR, 17, &wrong)), []);
    let mut unsummed = small;
    unsummed[6..8].fill(0);
    assert_eq!(world.hears(&to(own, NEAR, 17, &unsummed)), [], "IPv6 has no other checksum");
    assert_eq!(world.net.counters().of(Counter::DroppedChecksum), 2);
}

#[test]
fn fragments_that_overlap_end_their_datagram() {
    let (mut world, _, own) = world();
    assert!(world.net.bind(53));
    let mut datagram = udp((NEAR, 4000), (own, 53), &[3; 40]);
    let parts = [0..24, 24..48].map(|at| fragment(NEAR, own, 17, &datagram, at, 1));
    datagram[20..28].fill(4);
    let false_part = fragment(NEAR, own, 17, &datagram, 16..32, 1);
    for part in [&parts[0], &false_part, &parts[1]] {
        assert_eq!(world.hears(part), []);
    }
    world.says_nothing();
    assert_eq!(
        (
            world.net.counters().of(Counter::Reassembled),
            world.net.counters().of(Counter::ReassemblyFailed)
        ),
        (0, 1)
    );
}

#[test]
fn invalid_fragments_are_reported() {
    let (mut world, _, own) = world();
    let datagram = udp((NEAR, 4000), (own, 53), &[3; 100]);
    // The fragment's length is not a multiple of eight, and more fragments follow.
    world.hears(&fragment(NEAR, own, 17, &datagram, 0..50, 1));
    let (kind, code, pointer, _) = complaint(&mut world);
    assert_eq!((kind, code, pointer), (4, 0, 4));
    // The fragment ends beyond the largest packet.
    let mut bytes = vec![17, 0, 0xff, 0xf8, 0, 0, 0, 2];
    bytes.extend([0; 16]);
    world.hears(&to(own, NEAR, 44, &bytes));
    assert_eq!(world.net.counters().of(Counter::ReassemblyFailed), 2);
    world.says_nothing();
    // The first fragment does not contain all headers.
    let cut = [vec![60u8, 0, 0, 1, 0, 0, 0, 3, 17, 1], vec![0; 6]].concat();
    world.hears(&to(own, NEAR, 44, &cut));
    assert_eq!(complaint(&mut world).1, 3);
    // Incomplete datagrams expire.
    world.hears(&fragment(NEAR, own, 17, &datagram, 0..48, 4));
    world.waits(Micros::from_secs(60));
    assert_eq!(world.net.counters().of(Counter::ReassemblyFailed), 4);
}

#[test]
fn a_checksum_verified_by_the_card_is_trusted() {
    let (mut world, _, own) = world();
    assert!(world.net.bind(53));
    let mut wrong = udp((NEAR, 4000), (own, 53), b"?");
    wrong[6] ^= 1;
    assert_eq!(world.hears_as(&to(own, NEAR, 17, &wrong), machine::Checksum::Verified).len(), 1);
    assert_eq!(world.net.hardware(), CARD);
}
