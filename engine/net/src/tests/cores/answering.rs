//! To its link, a machine with several cores is one machine: it has one address of each kind, and
//! answers once.

use core::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::collections::BTreeSet;
use std::vec;
use std::vec::Vec;

use machine::{Ethernet, Micros};
use smoltcp::wire::*;

use super::super::dhcp_life;
use super::super::machine_in_memory::CARD;
use super::super::messages::*;
use super::super::messages_ipv6 as six;
use super::super::world::{SECRET, limits, our_address};
use super::finding::MACHINES;
use super::world::{CoreEvent, MultiCoreWorld, Peer};
use crate::Counter;
use crate::{Addressing, Ipv6Addressing};

/// Starts a machine with DHCP and automatic IPv6 addresses, and runs it until all addresses are
/// assigned. Returns the machine, and the frames that it sent.
fn starts(cores: u8, queues: u8) -> (MultiCoreWorld, Vec<Vec<u8>>) {
    let mut world =
        MultiCoreWorld::with(cores, queues, Addressing::Dhcp, Ipv6Addressing::Automatic, limits());
    let last = usize::from(queues) - 1;
    world.settles();
    // This call has no effect on the other cores: they follow the first core.
    let now = world.now;
    world.nets.iter_mut().for_each(|net| net.begin_ipv6(now, &SECRET));
    let mut sent = world.says();
    let discover = dhcp_life::read(sent.iter().find(|frame| frame[12..14] == [8, 0]).unwrap());
    let offer = dhcp_life::frame(&dhcp_life::answer(DhcpMessageType::Offer, &discover));
    let requests = world.hears(last, &offer);
    let request = dhcp_life::read(&requests[0]);
    sent.extend(requests);
    sent.extend(
        world.hears(0, &dhcp_life::frame(&dhcp_life::answer(DhcpMessageType::Ack, &request))),
    );
    sent.extend(world.hears(last, &arp(ArpOperation::Reply, (GATEWAY, GATEWAY_CARD), (US, CARD))));
    sent.extend(world.waits(Micros::from_secs(2)));
    sent.extend(world.hears(last, &six::Advertisement::new().frame()));
    sent.extend(world.waits(Micros::from_secs(5)));
    (world, sent)
}

/// The machine's IPv6 addresses, as one core knows them.
fn ipv6_of(world: &MultiCoreWorld, core: usize) -> BTreeSet<Ipv6Addr> {
    world.nets[core].ipv6_addresses().map(|own| own.address).collect()
}

#[test]
fn several_cores_announce_and_ask_like_one_machine() {
    let (_, alone) = starts(1, 1);
    for (cores, queues) in MACHINES {
        let (mut world, sent) = starts(cores, queues);
        assert_eq!(sent, alone, "{cores} cores, {queues} queues");
        for core in 0..world.count() {
            assert_eq!(world.nets[core].address(), Some(our_address()));
            assert_eq!(ipv6_of(&world, core), ipv6_of(&world, 0));
            assert_eq!(ipv6_of(&world, core).len(), 2);
            assert_eq!(world.nets[core].ipv6_router(), Some(six::ROUTER));
        }
        let events = world.takes_events();
        assert!(
            events.iter().all(|(core, _)| *core == 0),
            "only the first core reports: {events:?}"
        );
        assert_eq!(
            events.iter().filter(|(_, event)| *event == CoreEvent::Address(true)).count(),
            1
        );
    }
}

#[test]
fn requests_through_any_queue_are_answered_once() {
    for (cores, queues) in MACHINES {
        let (mut world, _) = starts(cores, queues);
        let own = *ipv6_of(&world, 0).iter().find(|own| own.segments()[0] == 0xfe80).unwrap();
        let far_away = Peer::at_port(4_000);
        let echo = Icmpv4Repr::EchoRequest { ident: 7, seq_no: 1, data: b"there?" };
        let questions = [
            arp(ArpOperation::Request, (PEER, PEER_CARD), (US, Ethernet([0; 6]))),
            to_us(PEER, IpProtocol::Icmp, &icmp(&echo)),
            to_us(PEER, IpProtocol::Udp, &udp((PEER, 999), (US, 999), b"not listening!")),
            to_us(PEER, IpProtocol::Igmp, b"not spoken"),
            six::solicitation(PEER_CARD, six::PEER, six::solicited_node(own), own),
            six::frame(
                PEER_CARD,
                &six::ipv6(six::PEER, own, 58, 64, &six::echo(six::PEER, own, b"there?")),
            ),
            Tcp { to: (US, 26), ..far_away.segment(TcpControl::None, b"") }.frame(PEER_CARD),
        ];
        for queue in 0..usize::from(queues) {
            for question in &questions {
                assert_eq!(
                    world.hears(queue, question).len(),
                    1,
                    "{cores} cores, queue {queue}: {question:02x?}"
                );
            }
            world.waits(Micros::from_secs(1));
        }
        world.nets[0].bind(53);
        for queue in 0..usize::from(queues) {
            world.takes_events();
            world
                .hears(queue, &to_us(PEER, IpProtocol::Udp, &udp((PEER, 999), (US, 53), b"name?")));
            assert_eq!(world.takes_events(), [(0, CoreEvent::Datagram(b"name?".to_vec()))]);
        }
    }
}

#[test]
fn a_neighbours_answer_reaches_the_core_that_asked() {
    for (cores, queues) in MACHINES {
        for core in 0..usize::from(cores) {
            let (mut world, _) = starts(cores, queues);
            let queue = (core + 1) % usize::from(queues);
            world.takes_events();
            let connection = world.nets[core].connect(world.now, (PEER, 25).into()).unwrap();
            let sent = world.says();
            let [question] = &sent[..] else { panic!("{sent:?}") };
            assert_eq!(read_arp(question).3.0, PEER);
            let sent = world.hears(queue, &arp(ArpOperation::Reply, (PEER, PEER_CARD), (US, CARD)));
            let [syn] = &sent[..] else { panic!("core {core} of {cores}: {sent:?}") };
            let (card, syn) = Tcp::read(syn);
            assert_eq!((card, syn.control), (PEER_CARD, TcpControl::Syn));
            let answer = Tcp {
                from: syn.to,
                to: syn.from,
                control: TcpControl::Syn,
                sequence: 5_000,
                acknowledgment: Some(syn.sequence.wrapping_add(1)),
                window: 8_000,
                mss: Some(1460),
                payload: Vec::new(),
            };
            // The answer to our SYN reaches the core of the connection.
            assert_eq!(world.hears(queue, &answer.frame(PEER_CARD)).len(), 1);
            assert_eq!(world.takes_events(), [(core, CoreEvent::Connected(connection))]);

            let near: SocketAddr = (six::NEAR, 25).into();
            world.nets[core].connect(world.now, near).unwrap();
            let sent = world.says();
            let [question] = &sent[..] else { panic!("{sent:?}") };
            let six::SentNdp::Solicit(target, own, _) = six::read_ndp(question) else {
                panic!("{question:?}")
            };
            assert_eq!(target, six::NEAR);
            let flags = NdiscNeighborFlags::SOLICITED | NdiscNeighborFlags::OVERRIDE;
            let sent = world.hears(queue, &six::advertisement(PEER_CARD, six::NEAR, own, flags));
            assert_eq!(sent.len(), 1, "its SYN, from core {core} of {cores}");
            assert_eq!(sent[0][..6], PEER_CARD.0);
        }
    }
}

#[test]
fn no_two_cores_connect_from_one_port() {
    let mut world = MultiCoreWorld::new(4, 4);
    let mut ports = BTreeSet::new();
    let peer: SocketAddr = (PEER, 25).into();
    world.hears(0, &arp(ArpOperation::Request, (PEER, PEER_CARD), (US, Ethernet([0; 6]))));
    for _ in 0..16 {
        for core in 0..4 {
            world.nets[core].connect(world.now, peer).unwrap();
        }
        world.now = world.now + Micros(4);
    }
    let mut sent = world.says();
    sent.extend(world.hears(0, &arp(ArpOperation::Reply, (PEER, PEER_CARD), (US, CARD))));
    let syns: Vec<u16> = sent
        .iter()
        .filter(|frame| frame[12..14] == [8, 0])
        .map(|frame| Tcp::read(frame).1.from.1)
        .collect();
    assert!(syns.len() >= 16);
    assert!(syns.iter().all(|port| ports.insert(*port)), "{syns:?}");
}

#[test]
fn icmp_errors_reach_the_core_of_the_connection() {
    for (cores, queues) in MACHINES {
        let mut world = MultiCoreWorld::new(cores, queues);
        for queue in 0..usize::from(queues) {
            let mut peer = Peer::at_port(4_000 + queue as u16);
            let (core, connection) = peer.connects(&mut world, queue);
            world.nets[core].send(world.now, connection, &[b'm'; 2_920]);
            let sent = world.says();
            assert_eq!(sent.iter().map(Vec::len).collect::<Vec<_>>(), [1514, 1514]);
            let [high, low] = 1_000u16.to_be_bytes();
            let mut error = [&[3, 4, 0, 0, 0, 0, high, low], &sent[0][14..42]].concat();
            let sum = crate::checksum::Sum::of(&error).field();
            error[2..4].copy_from_slice(&sum);
            let by = (queue + 1) % usize::from(queues);
            let again = world.hears(by, &to_us(GATEWAY, IpProtocol::Icmp, &error));
            let lengths = again.iter().filter(|frame| frame[12..14] == [8, 0]).map(Vec::len);
            assert_eq!(lengths.max(), Some(1_014), "core {core} of {cores}");
            world.nets[core].abort(connection);
            world.says();
        }
    }
}

#[test]
fn a_lost_address_closes_its_connections_on_every_core() {
    for (cores, queues) in MACHINES {
        let (mut world, _) = starts(cores, queues);
        let mut held = vec![0; usize::from(cores)];
        world.takes_events();
        for port in 0..16 {
            let (core, _) = Peer::at_port(4_000 + port)
                .connects(&mut world, usize::from(port) % usize::from(queues));
            held[core] += 1;
        }
        assert!(held.iter().all(|held| *held > 0));
        world.waits(Micros::from_secs(3_700));
        let events = world.takes_events();
        for (core, held) in held.iter().enumerate() {
            let closed = events
                .iter()
                .filter(|(by, event)| *by == core && matches!(event, CoreEvent::Closed(_)))
                .count();
            assert_eq!(
                (closed, world.nets[core].address()),
                (*held, None),
                "core {core} of {cores}"
            );
        }
        assert_eq!(
            events.iter().filter(|(_, event)| *event == CoreEvent::Address(false)).count(),
            1
        );
    }
}

#[test]
fn an_expired_ipv6_network_is_removed_on_every_core() {
    for (cores, queues) in MACHINES {
        let (mut world, _) = starts(cores, queues);
        world.hears(
            0,
            &six::Advertisement {
                valid: 8_000,
                preferred: 8_000,
                lifetime: 0,
                ..six::Advertisement::new()
            }
            .frame(),
        );
        assert!((0..world.count()).all(|core| world.nets[core].ipv6_router().is_none()));
        world.waits(Micros::from_secs(7_990));
        world.takes_events();
        for core in 0..world.count() {
            world.nets[core].connect(world.now, (six::NEAR, 25).into()).unwrap();
        }
        world.waits(Micros::from_secs(11));
        let events = world.takes_events();
        for core in 0..world.count() {
            assert_eq!(ipv6_of(&world, core).len(), 1, "core {core}");
            let is_closed = events
                .iter()
                .any(|(by, event)| *by == core && matches!(event, CoreEvent::Closed(_)));
            assert!(is_closed, "core {core} of {cores}: {events:?}");
        }
    }
}

#[test]
fn one_core_defends_our_address() {
    for (cores, queues) in MACHINES {
        let mut world = MultiCoreWorld::new(cores, queues);
        let thief = arp(
            ArpOperation::Request,
            (US, PEER_CARD),
            (Ipv4Addr::new(10, 0, 0, 99), Ethernet([0; 6])),
        );
        let sent = world.hears(usize::from(queues) - 1, &thief);
        let [defence] = &sent[..] else { panic!("{sent:?}") };
        assert_eq!(read_arp(defence).2, (US, CARD));
        assert_eq!(world.sum(|counters| counters.of(Counter::ArpConflicts)), 1);
    }
}
