//! TCP connections over IPv6, and their differences from connections over IPv4.

use core::net::{Ipv6Addr, SocketAddr};
use std::vec;
use std::vec::Vec;

use machine::{Ethernet, Micros, Offloads};
use smoltcp::phy::ChecksumCapabilities;
use smoltcp::wire::*;

use super::messages::{PEER_CARD, Tcp, US};
use super::messages_ipv6::*;
use super::world::{SMTP, World, WorldEvent, our_address};
use crate::Counter;
use crate::tcp::CloseReason;
use crate::{Addressing, ConnectionId};

/// A segment of either side.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Segment {
    from: (Ipv6Addr, u16),
    to: (Ipv6Addr, u16),
    control: TcpControl,
    sequence: u32,
    acknowledgment: Option<u32>,
    mss: Option<u16>,
    payload: Vec<u8>,
}

impl Segment {
    fn frame(&self, card: Ethernet) -> Vec<u8> {
        let repr = TcpRepr {
            src_port: self.from.1,
            dst_port: self.to.1,
            control: self.control,
            seq_number: TcpSeqNumber(self.sequence as i32),
            ack_number: self.acknowledgment.map(|number| TcpSeqNumber(number as i32)),
            window_len: 60_000,
            window_scale: None,
            max_seg_size: self.mss,
            sack_permitted: false,
            sack_ranges: [None; 3],
            timestamp: None,
            payload: &self.payload,
        };
        let mut packet = vec![0; repr.buffer_len()];
        let capabilities = ChecksumCapabilities::default();
        repr.emit(
            &mut TcpPacket::new_unchecked(&mut packet),
            &self.from.0.into(),
            &self.to.0.into(),
            &capabilities,
        );
        frame(card, &ipv6(self.from.0, self.to.0, 6, 64, &packet))
    }

    /// Parses a segment of ours and verifies its checksum. Also returns the card that it is sent
    /// to.
    fn read(frame: &[u8]) -> (Ethernet, Segment) {
        let (card, ip, payload) = read_ipv6(frame);
        assert_eq!(ip.next_header, IpProtocol::Tcp);
        assert!(
            matches!(ip.hop_limit, 61 | 64),
            "the hop limit that routers advertise, or the default"
        );
        let packet = TcpPacket::new_checked(payload.as_slice()).unwrap();
        let capabilities = ChecksumCapabilities::default();
        let repr = TcpRepr::parse(&packet, &ip.src_addr.into(), &ip.dst_addr.into(), &capabilities)
            .unwrap();
        let segment = Segment {
            from: (ip.src_addr, repr.src_port),
            to: (ip.dst_addr, repr.dst_port),
            control: repr.control,
            sequence: repr.seq_number.0 as u32,
            acknowledgment: repr.ack_number.map(|number| number.0 as u32),
            mss: repr.max_seg_size,
            payload: repr.payload.to_vec(),
        };
        (card, segment)
    }
}

/// The peer's end of a connection.
struct Peer {
    own: (Ipv6Addr, u16),
    us: Ipv6Addr,
    next: u32,
    expects: u32,
}

impl Peer {
    fn of(us: Ipv6Addr) -> Peer {
        Peer { own: (NEAR, 4000), us, next: 1_000, expects: 0 }
    }

    fn segment(&self, control: TcpControl, payload: &[u8]) -> Segment {
        Segment {
            from: self.own,
            to: (self.us, 25),
            control,
            sequence: self.next,
            acknowledgment: Some(self.expects),
            mss: None,
            payload: payload.to_vec(),
        }
    }

    fn says(&mut self, world: &mut World, control: TcpControl, payload: &[u8]) -> Vec<WorldEvent> {
        let frame = self.segment(control, payload).frame(PEER_CARD);
        self.next =
            self.next.wrapping_add(payload.len() as u32 + u32::from(control == TcpControl::Fin));
        world.hears(&frame)
    }

    fn connects(&mut self, world: &mut World, mss: Option<u16>) -> (ConnectionId, u16) {
        let syn = Segment { acknowledgment: None, mss, ..self.segment(TcpControl::Syn, b"") };
        assert_eq!(world.hears(&syn.frame(PEER_CARD)), []);
        let (card, syn_ack) = Segment::read(&world.says_one());
        assert_eq!((card, syn_ack.from, syn_ack.to), (PEER_CARD, (self.us, 25), self.own));
        self.next = self.next.wrapping_add(1);
        self.expects = syn_ack.sequence.wrapping_add(1);
        match self.says(world, TcpControl::None, b"").as_slice() {
            [WorldEvent::Accepted(connection, SMTP, peer)] => {
                assert_eq!(*peer, SocketAddr::from(self.own));
                (*connection, syn_ack.mss.unwrap())
            }
            events => panic!("{events:?}"),
        }
    }
}

/// The TCP segments that we send now.
fn segments(world: &mut World) -> Vec<Segment> {
    let sent = world.says();
    sent.iter().filter(|frame| frame[20] == 6).map(|frame| Segment::read(frame).1).collect()
}

fn world() -> (World, Ipv6Addr, Ipv6Addr) {
    World::of_ipv6_at_work(Offloads::default())
}

#[test]
fn a_conversation_from_the_handshake_to_time_wait() {
    let (mut world, _, own) = world();
    let mut peer = Peer::of(own);
    let (connection, mss) = peer.connects(&mut world, Some(1440));
    assert_eq!(mss, 1440);
    assert_eq!(world.net.send(world.now, connection, b"220 hello\r\n"), 11);
    let greeting = segments(&mut world).remove(0);
    assert_eq!(
        (greeting.payload.as_slice(), greeting.acknowledgment),
        (&b"220 hello\r\n"[..], Some(peer.next))
    );
    peer.expects += 11;
    assert_eq!(
        peer.says(&mut world, TcpControl::Psh, b"QUIT\r\n"),
        [WorldEvent::Data(connection, b"QUIT\r\n".to_vec())]
    );
    world.net.close(connection);
    assert_eq!(segments(&mut world)[0].control, TcpControl::Fin);
    peer.expects += 1;
    let events = peer.says(&mut world, TcpControl::Fin, b"");
    assert_eq!(
        events,
        [WorldEvent::PeerClosed(connection), WorldEvent::Closed(connection, CloseReason::Normal)]
    );
    assert_eq!(segments(&mut world)[0].acknowledgment, Some(peer.next));
    assert_eq!(world.net.connection_count(), 0);
    assert_eq!(world.net.time_wait_count(), 1);
    world.waits(Micros::from_secs(61));
    assert_eq!(world.net.flow_count(), 0);
}

#[test]
fn segments_fit_the_mtu_that_routers_advertise() {
    let (mut world, near, own) = world();
    let (connection, mss) = Peer::of(own).connects(&mut world, None);
    assert_eq!(mss, 1440);
    world.net.send(world.now, connection, &[7; 4_000]);
    assert_eq!(
        segments(&mut world)[0].payload.len(),
        1220,
        "without an MSS option the minimum MTU counts"
    );

    for (mtu, expected) in [(1_400, 1340), (1_279, 1340), (9_000, 1340), (1_280, 1220)] {
        world.hears(&Advertisement { mtu: Some(mtu), ..Advertisement::new() }.frame());
        let mut peer = Peer { own: (NEAR, 4_000 + mtu as u16), ..Peer::of(near) };
        let (connection, mss) = peer.connects(&mut world, Some(8_000));
        assert_eq!(mss, expected, "{mtu}");
        world.net.send(world.now, connection, &[7; 4_000]);
        assert_eq!(segments(&mut world)[0].payload.len(), usize::from(expected));
    }
}

#[test]
fn a_cookie_handshake_fits_the_link_mtu_too() {
    let none = crate::Limits { half_open: 0, ..super::world::limits() };
    let own = Ipv6Addr::new(0x2001, 0xdb8, 0, 1, 0, 0, 0, 2);
    let fixed = Some(crate::Ipv6Address { address: own, prefix_bits: 64 });
    let addresses =
        crate::Ipv6Addressing::Static { addresses: [fixed, None, None, None], gateway: None };
    let mut world = World::with_both(Addressing::None, addresses, none, Offloads::default());
    world.waits(Micros::from_secs(2));
    let (connection, mss) = Peer::of(own).connects(&mut world, Some(8_000));
    assert_eq!(mss, 1440);
    world.net.send(world.now, connection, &[7; 4_000]);
    assert!(segments(&mut world)[0].payload.len() <= 1440);
    assert_eq!(world.net.counters().of(Counter::CookiesIn), 1);
}

#[test]
fn same_ports_on_other_addresses_are_other_connections() {
    let mut world = World::with_both(
        Addressing::Static(our_address()),
        crate::Ipv6Addressing::Automatic,
        super::world::limits(),
        Offloads::default(),
    );
    world.waits(Micros::from_secs(1));
    world.hears(&Advertisement::new().frame());
    world.waits(Micros::from_secs(10));
    let own: Vec<Ipv6Addr> = world.net.ipv6_addresses().map(|own| own.address).collect();
    let syn = Tcp {
        from: (super::messages::PEER, 4000),
        to: (US, 25),
        control: TcpControl::Syn,
        sequence: 1,
        acknowledgment: None,
        window: 1_000,
        mss: Some(1460),
        payload: Vec::new(),
    };
    world.hears(&syn.frame(PEER_CARD));
    assert_eq!(world.says_tcp().mss, Some(1460));
    let mut peers = [Peer::of(own[0]), Peer::of(own[1])];
    let connections = peers.each_mut().map(|peer| peer.connects(&mut world, Some(1440)).0);
    assert_ne!(connections[0], connections[1]);
    assert_eq!(world.net.flow_count(), 3);
    for (peer, connection) in peers.iter_mut().zip(connections) {
        assert_eq!(
            peer.says(&mut world, TcpControl::Psh, b"x"),
            [WorldEvent::Data(connection, b"x".to_vec())]
        );
    }
    // An IPv6 packet cannot pose as one of IPv4.
    let (peer, us) = (super::messages::PEER.to_ipv6_mapped(), US.to_ipv6_mapped());
    let forged = Peer { own: (peer, 4000), ..Peer::of(us) };
    assert_eq!(world.hears(&forged.segment(TcpControl::Rst, b"").frame(PEER_CARD)), []);
    assert_eq!(world.net.flow_count(), 3);
}

#[test]
fn a_path_mtu_report_counts_but_not_below_the_minimum_mtu() {
    let (mut world, _, own) = world();
    let mut peer = Peer { own: (FAR, 4000), ..Peer::of(own) };
    let (connection, _) = {
        let syn =
            Segment { acknowledgment: None, mss: Some(1440), ..peer.segment(TcpControl::Syn, b"") };
        world.hears(&syn.frame(ROUTER_CARD));
        let syn_ack = Segment::read(&world.says_one()).1;
        peer.next += 1;
        peer.expects = syn_ack.sequence.wrapping_add(1);
        match peer.says(&mut world, TcpControl::None, b"")[..] {
            [WorldEvent::Accepted(connection, ..)] => (connection, syn_ack),
            ref events => panic!("{events:?}"),
        }
    };
    world.net.send(world.now, connection, &[7; 10_000]);
    let sent = segments(&mut world);
    assert_eq!(sent[0].payload.len(), 1440);
    let too_big = |mtu: u32, segment: &Segment| {
        let header = Ipv6Repr {
            src_addr: own,
            dst_addr: FAR,
            next_header: IpProtocol::Tcp,
            payload_len: 1460,
            hop_limit: 60,
        };
        let mut data = vec![];
        data.extend(25u16.to_be_bytes());
        data.extend(4000u16.to_be_bytes());
        data.extend(segment.sequence.to_be_bytes());
        data.extend([0; 12]);
        let message = icmp(ROUTER, own, &Icmpv6Repr::PktTooBig { mtu, header, data: &data });
        frame(ROUTER_CARD, &ipv6(ROUTER, own, 58, 64, &message))
    };
    // A report about a segment that was never sent.
    let never = Segment { sequence: sent[0].sequence.wrapping_sub(50_000), ..sent[0].clone() };
    world.hears(&too_big(1_300, &never));
    assert!(segments(&mut world).is_empty());
    world.hears(&too_big(1_400, &sent[0]));
    let again = segments(&mut world);
    assert_eq!((again[0].sequence, again[0].payload.len()), (sent[0].sequence, 1340));
    world.hears(&too_big(1_279, &again[0]));
    assert!(segments(&mut world).is_empty());
    world.hears(&too_big(1_280, &again[0]));
    let again = segments(&mut world);
    assert_eq!((again[0].sequence, again[0].payload.len()), (sent[0].sequence, 1220));
}

#[test]
fn a_lost_address_closes_its_connections_and_no_others() {
    let (mut world, near, global) = world();
    let prefix = Ipv6Addr::new(0x2001, 0xdb8, 0, 2, 0, 0, 0, 0);
    world.hears(
        &Advertisement { prefix, valid: 100, preferred: 100, ..Advertisement::new() }.frame(),
    );
    world.waits(Micros::from_secs(1));
    let short = world.net.ipv6_addresses().last().unwrap().address;
    let (stays, _) = Peer::of(global).connects(&mut world, None);
    let (goes, _) = Peer::of(short).connects(&mut world, None);
    let events = world.waits(Micros::from_secs(100));
    assert_eq!(
        events,
        [
            WorldEvent::Ipv6Addresses(vec![near, global]),
            WorldEvent::Closed(goes, CloseReason::Aborted)
        ]
    );
    assert_eq!(world.net.send(world.now, stays, b"still here"), 10);
}

#[test]
fn connect_resolves_the_neighbour_first() {
    let (mut world, _, own) = world();
    let connection = world.net.connect(world.now, (NEAR, 25).into()).unwrap();
    assert_eq!(read_ndp(&world.says_one()), SentNdp::Solicit(NEAR, own, solicited_node(NEAR)));
    world.hears(&advertisement(PEER_CARD, NEAR, own, NdiscNeighborFlags::SOLICITED));
    let (card, syn) = Segment::read(&world.says_one());
    assert_eq!((card, syn.from.0, syn.to, syn.mss), (PEER_CARD, own, (NEAR, 25), Some(1440)));
    let syn_ack = Segment {
        from: (NEAR, 25),
        to: syn.from,
        control: TcpControl::Syn,
        sequence: 5,
        acknowledgment: Some(syn.sequence.wrapping_add(1)),
        mss: Some(1440),
        payload: Vec::new(),
    };
    assert_eq!(world.hears(&syn_ack.frame(PEER_CARD)), [WorldEvent::Connected(connection)]);
    let link_local = PEER;
    assert!(world.net.connect(world.now, (link_local, 25).into()).is_ok());
    for impossible in [own, ALL_NODES, UNSPECIFIED] {
        assert!(world.net.connect(world.now, (impossible, 25).into()).is_err());
    }
}

#[test]
fn offloads_work_for_ipv6_too() {
    for offloads in [
        Offloads { checksum: true, ..Offloads::default() },
        Offloads { checksum: true, segmentation_ipv4: true, ..Offloads::default() },
        Offloads { checksum: true, segmentation_ipv4: true, segmentation_ipv6: true },
    ] {
        let (mut world, _, own) = World::of_ipv6_at_work(offloads);
        let mut peer = Peer::of(own);
        let (connection, _) = peer.connects(&mut world, Some(1440));
        let before = world.machine.handed_over;
        let bytes: Vec<u8> = (0..10_000u32).map(|at| (at % 251) as u8).collect();
        world.net.send(world.now, connection, &bytes);
        let sent = segments(&mut world);
        assert!(sent.iter().all(|segment| segment.payload.len() <= 1440));
        let seen: Vec<u8> =
            sent.iter().flat_map(|segment| segment.payload.iter().copied()).collect();
        assert_eq!(seen, bytes[..seen.len()]);
        assert!(seen.len() >= 4 * 1440);
        let frames = world.machine.handed_over - before;
        assert_eq!(frames == 1, offloads.segmentation_ipv6, "{frames} frames");
    }
}
