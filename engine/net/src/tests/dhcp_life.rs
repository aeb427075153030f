//! The life of a DHCP client, against a server played by the test, in virtual time.

use core::net::{IpAddr, Ipv4Addr};
use std::vec;
use std::vec::Vec;

use machine::{Ethernet, Micros, Offloads};
use smoltcp::wire::*;

use super::machine_in_memory::CARD;
use super::messages::*;
use super::world::{World, WorldEvent, limits, our_address};
use crate::Addressing;
use crate::tcp::CloseReason;

const SERVER: Ipv4Addr = GATEWAY;
const OTHER_SERVER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 3);
const LEASE: u32 = 3_600;
const NO_CARD: Ethernet = Ethernet([0; 6]);

/// A request of the client.
#[derive(Debug)]
pub(super) struct ClientMessage {
    kind: DhcpMessageType,
    transaction: u32,
    requested: Option<Ipv4Addr>,
    server: Option<Ipv4Addr>,
    client: Ipv4Addr,
    from: Ipv4Addr,
    to: Ipv4Addr,
    card: Ethernet,
}

pub(super) fn read(frame: &[u8]) -> ClientMessage {
    let (card, ip, ports, payload) = read_udp(frame);
    assert_eq!(ports, (68, 67));
    assert!(payload.len() >= 300, "BOOTP relays drop shorter ones");
    let packet = DhcpPacket::new_checked(payload.as_slice()).unwrap();
    let repr = DhcpRepr::parse(&packet).unwrap();
    assert_eq!(repr.client_hardware_address, EthernetAddress(CARD.0));
    ClientMessage {
        kind: repr.message_type,
        transaction: repr.transaction_id,
        requested: repr.requested_ip,
        server: repr.server_identifier,
        client: repr.client_ip,
        from: ip.src_addr,
        to: ip.dst_addr,
        card,
    }
}

/// A server's answer to a request. Servers send it to the address that they assign, unless the
/// client wants a broadcast.
pub(super) fn answer(kind: DhcpMessageType, request: &ClientMessage) -> DhcpRepr<'static> {
    let refuses = kind == DhcpMessageType::Nak;
    DhcpRepr {
        message_type: kind,
        transaction_id: request.transaction,
        secs: 0,
        client_hardware_address: EthernetAddress(CARD.0),
        client_ip: Ipv4Addr::UNSPECIFIED,
        your_ip: if refuses { Ipv4Addr::UNSPECIFIED } else { US },
        server_ip: SERVER,
        router: (!refuses).then_some(GATEWAY),
        subnet_mask: (!refuses).then_some(Ipv4Addr::new(255, 255, 255, 0)),
        relay_agent_ip: Ipv4Addr::UNSPECIFIED,
        broadcast: false,
        requested_ip: None,
        client_identifier: None,
        server_identifier: Some(SERVER),
        parameter_request_list: None,
        dns_servers: None,
        max_size: None,
        lease_duration: (!refuses).then_some(LEASE),
        renew_duration: None,
        rebind_duration: None,
        additional_options: &[],
    }
}

fn frame_to(to: Ipv4Addr, card: Ethernet, repr: &DhcpRepr<'_>) -> Vec<u8> {
    let mut message = vec![0; repr.buffer_len()];
    repr.emit(&mut DhcpPacket::new_unchecked(message.as_mut_slice())).unwrap();
    let packet = ipv4(SERVER, to, IpProtocol::Udp, &udp((SERVER, 67), (to, 68), &message));
    ethernet(GATEWAY_CARD, card, EthernetProtocol::Ipv4, &packet)
}

pub(super) fn frame(repr: &DhcpRepr<'_>) -> Vec<u8> {
    frame_to(US, CARD, repr)
}

fn starting() -> World {
    World::with(Addressing::Dhcp, limits(), Offloads::default())
}

/// A world that has its address and has announced it.
fn bound() -> World {
    bound_for(LEASE)
}

fn bound_for(seconds: u32) -> World {
    let mut world = starting();
    let discover = read(&world.says_one());
    world.hears(&frame(&answer(DhcpMessageType::Offer, &discover)));
    let request = read(&world.says_one());
    let acknowledgment =
        DhcpRepr { lease_duration: Some(seconds), ..answer(DhcpMessageType::Ack, &request) };
    assert_eq!(world.hears(&frame(&acknowledgment)), [WorldEvent::Address(Some(our_address()))]);
    world.says();
    world.hears(&arp(ArpOperation::Reply, (GATEWAY, GATEWAY_CARD), (US, CARD)));
    world
}

/// Moves the time to the next deadline at which the client sends a request, and returns the
/// request. Servers answer ARP requests on the way.
fn asks(world: &mut World) -> ClientMessage {
    for _ in 0..200 {
        world.next_deadline();
        for frame in world.says() {
            if frame[12..14] == [8, 0] {
                return read(&frame);
            }
            let (_, _, sender, (wanted, _)) = read_arp(&frame);
            if [SERVER, OTHER_SERVER].contains(&wanted) {
                world.hears(&arp(ArpOperation::Reply, (wanted, GATEWAY_CARD), sender));
            }
        }
        if let Some(frame) = world.says().first() {
            return read(frame);
        }
    }
    panic!("the client sends no request")
}

#[test]
fn discover_offer_request_and_ack_assign_an_address() {
    let mut world = starting();
    let discover = read(&world.says_one());
    assert_eq!(
        (discover.kind, discover.from, discover.to),
        (DhcpMessageType::Discover, UNSPECIFIED, BROADCAST)
    );
    assert_eq!(world.hears(&frame(&answer(DhcpMessageType::Offer, &discover))), []);
    let request = read(&world.says_one());
    assert_eq!((request.kind, request.card), (DhcpMessageType::Request, EVERYBODY));
    assert_eq!((request.requested, request.server), (Some(US), Some(SERVER)));
    assert_eq!((request.client, request.from, request.to), (UNSPECIFIED, UNSPECIFIED, BROADCAST));
    assert_eq!(request.transaction, discover.transaction);
    let mut acknowledgment = answer(DhcpMessageType::Ack, &request);
    acknowledgment.dns_servers = Some([Ipv4Addr::new(10, 0, 0, 53)].into_iter().collect());
    let events = world.hears(&frame_to(BROADCAST, EVERYBODY, &acknowledgment));
    assert_eq!(events, [WorldEvent::Address(Some(our_address()))]);
    assert!(world.net.name_servers().eq([IpAddr::V4(Ipv4Addr::new(10, 0, 0, 53))]));
    let announcement = read_arp(&world.says()[0]);
    assert_eq!(announcement, (EVERYBODY, ArpOperation::Request, (US, CARD), (US, NO_CARD)));
    world.hears(&to_us(
        PEER,
        IpProtocol::Icmp,
        &icmp(&Icmpv4Repr::EchoRequest { ident: 1, seq_no: 1, data: b"" }),
    ));
    assert_eq!(read_icmp(&world.says_one()).1.src_addr, US);
}

const UNSPECIFIED: Ipv4Addr = Ipv4Addr::UNSPECIFIED;
const BROADCAST: Ipv4Addr = Ipv4Addr::BROADCAST;

#[test]
fn unanswered_requests_back_off() {
    let mut world = starting();
    let first = read(&world.says_one());
    let mut waits = Vec::new();
    for _ in 0..9 {
        let before = world.now;
        let again = asks(&mut world);
        assert_eq!((again.kind, again.transaction), (DhcpMessageType::Discover, first.transaction));
        waits.push(world.now.since(before).as_secs());
    }
    for (wait, least) in waits.iter().zip([1, 2, 4, 8, 16, 32, 64, 64, 64]) {
        assert!((least..=least + 1).contains(wait), "{waits:?}");
    }
}

#[test]
fn an_unacknowledged_dhcp_offer_is_abandoned() {
    let mut world = starting();
    let discover = read(&world.says_one());
    world.hears(&frame(&answer(DhcpMessageType::Offer, &discover)));
    assert_eq!(read(&world.says_one()).kind, DhcpMessageType::Request);
    let kinds: Vec<_> = (0..4).map(|_| asks(&mut world).kind).collect();
    use DhcpMessageType::{Discover, Request};
    assert_eq!(kinds, [Request, Request, Request, Discover]);
}

#[test]
fn answers_for_other_clients_or_servers_are_ignored() {
    let mut world = starting();
    let discover = read(&world.says_one());
    let offer = answer(DhcpMessageType::Offer, &discover);
    world.hears(&frame(&DhcpRepr { transaction_id: discover.transaction ^ 1, ..offer.clone() }));
    world.hears(&frame(&DhcpRepr {
        client_hardware_address: EthernetAddress(PEER_CARD.0),
        ..offer.clone()
    }));
    world.hears(&frame(&DhcpRepr { your_ip: Ipv4Addr::new(127, 0, 0, 1), ..offer.clone() }));
    world.hears(&frame(&DhcpRepr { server_identifier: None, ..offer.clone() }));
    world.says_nothing();
    world.hears(&frame(&offer));
    let request = read(&world.says_one());
    let acknowledgment = answer(DhcpMessageType::Ack, &request);
    for wrong in [
        DhcpRepr { server_identifier: Some(OTHER_SERVER), ..acknowledgment.clone() },
        DhcpRepr { your_ip: PEER, ..acknowledgment.clone() },
        DhcpRepr { lease_duration: None, ..acknowledgment.clone() },
        DhcpRepr { subnet_mask: Some(Ipv4Addr::new(255, 0, 255, 0)), ..acknowledgment.clone() },
    ] {
        assert_eq!(world.hears(&frame(&wrong)), []);
    }
    assert_eq!(world.hears(&frame(&acknowledgment)).len(), 1);
}

#[test]
fn a_lease_is_renewed_at_half_time_by_unicast() {
    let mut world = bound();
    let start = world.now;
    let renewal = asks(&mut world);
    assert_eq!(world.now.since(start).as_secs(), u64::from(LEASE / 2));
    assert_eq!((renewal.kind, renewal.client, renewal.from), (DhcpMessageType::Request, US, US));
    assert_eq!((renewal.to, renewal.requested, renewal.server), (SERVER, None, None));
    assert_eq!(
        world.hears(&frame(&answer(DhcpMessageType::Ack, &renewal))),
        [],
        "the address has not changed"
    );
    let renewed = world.now;
    asks(&mut world);
    assert_eq!(
        world.now.since(renewed).as_secs(),
        u64::from(LEASE / 2),
        "the new lease has its full length"
    );
}

#[test]
fn renewal_falls_back_to_rebinding_and_then_expiry() {
    let mut world = bound();
    let start = world.now;
    let mut requests = Vec::new();
    let discover = loop {
        let next = asks(&mut world);
        let at = world.now.since(start).as_secs() as u32;
        if next.kind == DhcpMessageType::Discover {
            assert_eq!(at, LEASE);
            break next;
        }
        requests.push((at, next.to));
    };
    let rebind = LEASE / 8 * 7;
    assert_eq!(requests[0], (LEASE / 2, SERVER));
    assert!(
        requests.iter().all(|(at, to)| *to == if *at < rebind { SERVER } else { BROADCAST }),
        "{requests:?}"
    );
    assert!(
        requests.windows(2).all(|pair| pair[1].0 - pair[0].0 >= 59 || pair[1].0 == rebind),
        "{requests:?}"
    );
    assert!(requests.iter().any(|(_, to)| *to == BROADCAST));
    assert_eq!(world.net.address(), None);
    // The client starts over.
    world.hears(&frame(&answer(DhcpMessageType::Offer, &discover)));
    assert_eq!(read(&world.says_one()).kind, DhcpMessageType::Request);
}

#[test]
fn another_server_may_rebind_the_lease() {
    let mut world = bound();
    let rebinding = loop {
        let next = asks(&mut world);
        if next.to == BROADCAST {
            break next;
        }
    };
    let acknowledgment = DhcpRepr {
        server_identifier: Some(OTHER_SERVER),
        ..answer(DhcpMessageType::Ack, &rebinding)
    };
    world.hears(&frame(&acknowledgment));
    let renewal = asks(&mut world);
    assert_eq!((renewal.kind, renewal.to), (DhcpMessageType::Request, OTHER_SERVER));
}

#[test]
fn a_refused_renewal_ends_the_address_and_its_connections() {
    // The lease is so short that the peer's silence does not close the connection first.
    let mut world = bound_for(200);
    let syn = Tcp {
        from: (PEER, 4000),
        to: (US, 25),
        control: TcpControl::Syn,
        sequence: 1_000,
        acknowledgment: None,
        window: 1_000,
        mss: None,
        payload: Vec::new(),
    };
    world.hears(&syn.frame(PEER_CARD));
    let syn_ack = world.says_tcp();
    let ack = Tcp {
        control: TcpControl::None,
        sequence: 1_001,
        acknowledgment: Some(syn_ack.sequence.wrapping_add(1)),
        ..syn
    };
    let events = world.hears(&ack.frame(PEER_CARD));
    let [WorldEvent::Accepted(connection, ..)] = events[..] else { panic!("{events:?}") };
    let renewal = asks(&mut world);
    let events = world.hears(&frame(&answer(DhcpMessageType::Nak, &renewal)));
    assert_eq!(events, [WorldEvent::Address(None)]);
    assert_eq!(world.next_deadline(), [WorldEvent::Closed(connection, CloseReason::Aborted)]);
    assert_eq!((world.net.connection_count(), world.net.flow_count()), (0, 0));
    assert_eq!(read(&world.says_one()).kind, DhcpMessageType::Discover);
}

#[test]
fn a_server_refusing_its_own_offers_is_asked_with_pauses() {
    let mut world = starting();
    let discover = read(&world.says_one());
    world.hears(&frame(&answer(DhcpMessageType::Offer, &discover)));
    let request = read(&world.says_one());
    world.hears(&frame(&answer(DhcpMessageType::Nak, &request)));
    world.says_nothing();
    let refused = world.now;
    assert_eq!(asks(&mut world).kind, DhcpMessageType::Discover);
    assert!(world.now.since(refused) >= Micros::from_secs(10));
}

#[test]
fn a_conflict_declines_a_new_address_and_defends_an_old_one() {
    let mut world = bound();
    let claim = arp(ArpOperation::Request, (US, PEER_CARD), (US, NO_CARD));
    assert_eq!(world.hears(&claim), [WorldEvent::Address(None)]);
    let decline = world
        .says()
        .iter()
        .map(|frame| frame.to_vec())
        .find(|frame| frame[12..14] == [8, 0])
        .unwrap();
    let decline = read(&decline);
    assert_eq!((decline.kind, decline.requested), (DhcpMessageType::Decline, Some(US)));
    assert_eq!(asks(&mut world).kind, DhcpMessageType::Discover);

    let mut world = bound();
    world.waits(Micros::from_secs(60));
    assert_eq!(world.hears(&claim), []);
    assert_eq!(world.net.address(), Some(our_address()));
    assert_eq!(read_arp(&world.says_one()).2, (US, CARD));
}

#[test]
fn an_infinite_lease_is_never_renewed() {
    let mut world = starting();
    let discover = read(&world.says_one());
    world.hears(&frame(&answer(DhcpMessageType::Offer, &discover)));
    let request = read(&world.says_one());
    let endless =
        DhcpRepr { lease_duration: Some(u32::MAX), ..answer(DhcpMessageType::Ack, &request) };
    assert_eq!(world.hears(&frame(&endless)).len(), 1);
    world.says();
    world.waits(Micros::from_secs(100_000_000));
    assert_eq!(world.net.address(), Some(our_address()));
}

#[test]
fn the_first_of_several_routers_is_used_even_if_off_link() {
    let mut world = starting();
    let discover = read(&world.says_one());
    world.hears(&frame(&answer(DhcpMessageType::Offer, &discover)));
    let request = read(&world.says_one());
    let routers = [DhcpOption { kind: 3, data: &[169, 254, 1, 1, 10, 0, 0, 1] }];
    let acknowledgment = DhcpRepr {
        router: None,
        subnet_mask: Some(BROADCAST),
        additional_options: &routers,
        ..answer(DhcpMessageType::Ack, &request)
    };
    world.hears(&frame(&acknowledgment));
    let gateway = Ipv4Addr::new(169, 254, 1, 1);
    let address = world.net.address().unwrap();
    assert_eq!((address.prefix_bits, address.gateway), (32, Some(gateway)));
    world.says();
    let to = core::net::SocketAddr::from((FAR, 53));
    world.net.send_datagram(world.now, 5353, to, b"?").unwrap();
    world.hears(&arp(ArpOperation::Reply, (gateway, GATEWAY_CARD), (US, CARD)));
    assert_eq!(read_udp(&world.says_one()).0, GATEWAY_CARD);
}
