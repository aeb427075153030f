//! TCP connections from the SYN to the last acknowledgment, as far as the layers around the TCB
//! take part.

use core::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::vec::Vec;

use machine::{Checksum, Ethernet, Micros, Offloads, Piece};
use smoltcp::wire::*;
use tasks::Budget;

use super::machine_in_memory::CARD;
use super::messages::*;
use super::world::{SMTP, World, WorldEvent, limits, our_address};
use crate::Counter;
use crate::tcp::CloseReason;
use crate::{Addressing, ConnectionId, Limits, OutputProgress, Service};

/// The peer's end of a connection.
struct Peer {
    address: Ipv4Addr,
    port: u16,
    card: Ethernet,
    next: u32,
    expects: u32,
}

impl Peer {
    fn at_port(port: u16) -> Peer {
        Peer { address: PEER, port, card: PEER_CARD, next: 1_000, expects: 0 }
    }

    fn segment(&self, control: TcpControl, payload: &[u8]) -> Tcp {
        Tcp {
            from: (self.address, self.port),
            to: (US, 25),
            control,
            sequence: self.next,
            acknowledgment: Some(self.expects),
            window: 60_000,
            mss: None,
            payload: payload.to_vec(),
        }
    }

    fn syn(&self) -> Tcp {
        Tcp { acknowledgment: None, mss: Some(1460), ..self.segment(TcpControl::Syn, b"") }
    }

    /// Sends a segment and advances the sequence number.
    fn says(&mut self, world: &mut World, control: TcpControl, payload: &[u8]) -> Vec<WorldEvent> {
        let frame = self.segment(control, payload).frame(self.card);
        self.next =
            self.next.wrapping_add(payload.len() as u32 + u32::from(control == TcpControl::Fin));
        world.hears(&frame)
    }

    fn hears(&mut self, segment: &Tcp) {
        assert_eq!(segment.sequence, self.expects);
        self.expects =
            self.expects.wrapping_add(segment.payload.len() as u32 + segment.control.len() as u32);
    }

    fn connects(&mut self, world: &mut World) -> ConnectionId {
        assert_eq!(world.hears(&self.syn().frame(self.card)), []);
        let (card, syn_ack) = Tcp::read(&world.says_one());
        assert_eq!((card, syn_ack.control, syn_ack.mss), (self.card, TcpControl::Syn, Some(1460)));
        assert_eq!(syn_ack.acknowledgment, Some(self.next.wrapping_add(1)));
        self.next = self.next.wrapping_add(1);
        self.expects = syn_ack.sequence.wrapping_add(1);
        match self.says(world, TcpControl::None, b"").as_slice() {
            [WorldEvent::Accepted(connection, SMTP, peer)] => {
                assert_eq!(*peer, SocketAddr::V4(SocketAddrV4::new(self.address, self.port)));
                *connection
            }
            events => panic!("{events:?}"),
        }
    }
}

#[test]
fn data_on_a_syn_is_taken_once_the_client_repeats_it() {
    let mut world = World::new();
    let mut peer = Peer::at_port(4000);
    let syn = Tcp { payload: b"EHLO a\r\n".to_vec(), ..peer.syn() };
    assert_eq!(world.hears(&syn.frame(peer.card)), []);
    let syn_ack = world.says_tcp();
    assert_eq!(syn_ack.acknowledgment, Some(peer.next + 1), "the data is not acknowledged");
    (peer.next, peer.expects) = (peer.next + 1, syn_ack.sequence.wrapping_add(1));
    match peer.says(&mut world, TcpControl::Psh, b"EHLO a\r\n").as_slice() {
        [WorldEvent::Accepted(first, ..), WorldEvent::Data(second, bytes)] => {
            assert!(first == second && bytes == b"EHLO a\r\n");
        }
        events => panic!("{events:?}"),
    }
}

#[test]
fn a_conversation_from_the_handshake_to_time_wait() {
    let mut world = World::new();
    let mut peer = Peer::at_port(4000);
    let connection = peer.connects(&mut world);
    world.says_nothing();

    assert_eq!(world.net.send(world.now, connection, b"220 hello\r\n"), 11);
    let greeting = world.says_tcp();
    assert_eq!(
        (greeting.payload.as_slice(), greeting.acknowledgment),
        (&b"220 hello\r\n"[..], Some(peer.next))
    );
    peer.hears(&greeting);

    assert_eq!(
        peer.says(&mut world, TcpControl::Psh, b"QUIT\r\n"),
        [WorldEvent::Data(connection, b"QUIT\r\n".to_vec())]
    );
    world.net.send(world.now, connection, b"221 bye\r\n");
    world.net.close(connection);
    let fin = world.says_tcp();
    assert_eq!((fin.control, fin.payload.as_slice()), (TcpControl::Fin, &b"221 bye\r\n"[..]));
    peer.hears(&fin);
    let events = peer.says(&mut world, TcpControl::Fin, b"");
    assert_eq!(
        events,
        [WorldEvent::PeerClosed(connection), WorldEvent::Closed(connection, CloseReason::Normal)]
    );
    let last = world.says_tcp();
    assert_eq!(last.acknowledgment, Some(peer.next));
    assert_eq!(world.net.connection_count(), 0);
    assert_eq!(world.net.time_wait_count(), 1);

    // The last acknowledgment was lost: the peer repeats its FIN, and we repeat the acknowledgment.
    peer.next -= 1;
    assert_eq!(peer.says(&mut world, TcpControl::Fin, b""), []);
    assert_eq!(world.says_tcp(), last);
    world.waits(Micros::from_secs(61));
    assert_eq!(world.net.time_wait_count(), 0);
    assert_eq!(world.net.send(world.now, connection, b"?"), 0, "the id is no longer valid");
}

#[test]
fn a_bare_acknowledgment_causes_no_output_and_no_new_deadline() {
    let mut world = World::new();
    let mut peer = Peer::at_port(4000);
    let connection = peer.connects(&mut world);
    world.says_nothing();
    world.net.send(world.now, connection, b"220 hello\r\n");
    peer.hears(&world.says_tcp());
    let before = world.net.next_deadline();
    assert_eq!(peer.says(&mut world, TcpControl::None, b""), []);
    assert!(world.net.is_quiet());
    assert_eq!(world.net.next_deadline(), before);

    // Data without a reply is acknowledged after a delay, which is earlier than any other deadline.
    assert_eq!(
        peer.says(&mut world, TcpControl::Psh, b"NO"),
        [WorldEvent::Data(connection, b"NO".to_vec())]
    );
    world.says_nothing();
    world.waits(Micros::from_millis(30));
    world.next_deadline();
    assert_eq!(world.says_tcp().acknowledgment, Some(peer.next));
}

#[test]
fn a_listener_resets_stray_acks_and_ignores_other_segments() {
    let mut world = World::new();
    let peer = Peer::at_port(4000);
    for (port, acknowledgment, resets) in
        [(25, None, 0), (25, Some(7), 1), (26, None, 1), (26, Some(7), 1)]
    {
        let mut fin = Tcp { acknowledgment, ..peer.segment(TcpControl::Fin, b"") };
        fin.to.1 = port;
        world.hears(&fin.frame(PEER_CARD));
        assert_eq!(world.says().len(), resets, "port {port}, acknowledgment {acknowledgment:?}");
    }
}

#[test]
fn resets_from_a_closed_port_are_rate_limited() {
    let mut world = World::new();
    let peer = Peer::at_port(4000);
    for _ in 0..1_000 {
        let mut syn = peer.syn();
        syn.to.1 = 26;
        world.hears(&syn.frame(PEER_CARD));
    }
    let sent = world.says();
    assert_eq!(sent.len(), 50);
    let (_, reset) = Tcp::read(&sent[0]);
    assert_eq!((reset.control, reset.acknowledgment), (TcpControl::Rst, Some(peer.next + 1)));
    assert_eq!(world.net.counters().of(Counter::RefusedClosed), 1_000);
}

#[test]
fn a_stray_segment_is_reset_and_a_stray_reset_is_not() {
    let mut world = World::new();
    let peer = Peer { expects: 555, ..Peer::at_port(4000) };
    world.hears(&peer.segment(TcpControl::None, b"hello?").frame(PEER_CARD));
    let reset = world.says_tcp();
    assert_eq!((reset.control, reset.sequence), (TcpControl::Rst, 555));
    world.hears(&peer.segment(TcpControl::Rst, b"").frame(PEER_CARD));
    world.says_nothing();
}

#[test]
fn segments_to_groups_are_dropped_silently() {
    let mut world = World::new();
    let peer = Peer::at_port(4000);
    for (to, card) in
        [(US, EVERYBODY), (Ipv4Addr::BROADCAST, EVERYBODY), (Ipv4Addr::new(10, 0, 0, 255), CARD)]
    {
        let syn = Tcp { to: (to, 25), ..peer.syn() };
        let packet = ipv4(PEER, to, IpProtocol::Tcp, &syn.packet());
        world.hears(&ethernet(PEER_CARD, card, EthernetProtocol::Ipv4, &packet));
    }
    world.says_nothing();
}

#[test]
fn a_syn_ack_is_retransmitted_and_given_up() {
    let mut world = World::new();
    let peer = Peer::at_port(4000);
    world.hears(&peer.syn().frame(PEER_CARD));
    let first = world.says_tcp();
    world.next_deadline();
    // The gateway has not answered yet, so a repeated ARP request is sent too.
    let repeated = world.says();
    assert!(repeated.iter().any(|frame| frame[12..14] == [8, 0] && Tcp::read(frame).1 == first));
    world.waits(Micros::from_secs(300));
    assert_eq!(world.net.handshake_count(), 0);
    assert_eq!(world.net.next_deadline(), None, "no state of the handshake is left");
}

#[test]
fn a_full_connection_table_ignores_syns_and_counts_them() {
    let few = Limits { connections: 2, ..limits() };
    let mut world = World::with(Addressing::Static(our_address()), few, Offloads::default());
    world.says();
    for port in [4000, 4001] {
        Peer::at_port(port).connects(&mut world);
    }
    world.hears(&Peer::at_port(4002).syn().frame(PEER_CARD));
    world.says_nothing();
    assert_eq!(world.net.counters().of(Counter::RefusedFull), 1);
}

#[test]
fn without_half_open_entries_every_syn_gets_a_cookie() {
    let none = Limits { half_open: 0, ..limits() };
    let mut world = World::with(Addressing::Static(our_address()), none, Offloads::default());
    world.says();
    for port in 4000..4010 {
        Peer::at_port(port).connects(&mut world);
    }
    assert_eq!(
        (world.net.counters().of(Counter::CookiesIn), world.net.connection_count()),
        (10, 10)
    );
}

#[test]
fn answers_return_to_the_sender_card_until_arp_resolves_it() {
    let mut world = World::new();
    // The peer is off the link, behind a router that we do not know yet. So the answer goes to the
    // card that the frame came from.
    let mut far = Peer { address: FAR, card: PEER_CARD, ..Peer::at_port(4000) };
    far.connects(&mut world);
    // The gateway answers ARP: from now on the route decides.
    world.hears(&arp(ArpOperation::Reply, (GATEWAY, GATEWAY_CARD), (US, CARD)));
    let other = Peer { address: FAR, card: PEER_CARD, ..Peer::at_port(4001) };
    world.hears(&other.syn().frame(PEER_CARD));
    assert_eq!(Tcp::read(&world.says_one()).0, GATEWAY_CARD);
}

#[test]
fn a_peer_may_change_its_card_only_if_arp_confirms_it() {
    let new_card = Ethernet([0x02, 0, 0, 0, 0, 0x70]);
    let mut world = World::new();
    let mut peer = Peer::at_port(4000);
    let connection = peer.connects(&mut world);
    peer.card = new_card;
    peer.says(&mut world, TcpControl::Psh, b"NOOP\r\n");
    world.net.send(world.now, connection, b"250\r\n");
    let sent = world.says();
    assert_eq!(read_arp(&sent[0]).3.0, PEER);
    assert_eq!(Tcp::read(&sent[1]).0, PEER_CARD, "not yet confirmed");
    peer.hears(&Tcp::read(&sent[1]).1);
    world.hears(&arp(ArpOperation::Reply, (PEER, new_card), (US, CARD)));
    peer.says(&mut world, TcpControl::Psh, b"NOOP\r\n");
    world.net.send(world.now, connection, b"250\r\n");
    assert_eq!(Tcp::read(&world.says_one()).0, new_card);
}

#[test]
fn unconsumed_data_waits_for_the_user() {
    let mut world = World::new();
    let mut peer = Peer::at_port(4000);
    let connection = peer.connects(&mut world);
    assert_eq!(
        peer.says(&mut world, TcpControl::Psh, b"first second"),
        [WorldEvent::Data(connection, b"first second".to_vec())]
    );
    world.net.keep(connection, b"second");
    assert_eq!(world.net.waiting(connection), b"second");
    let events = peer.says(&mut world, TcpControl::Psh, b" third");
    assert_eq!(events, [WorldEvent::Buffered(connection)]);
    assert_eq!(world.net.waiting(connection), b"second third");
    world.net.consumed(connection, 12);
    assert_eq!(world.net.waiting(connection), b"");
    assert_eq!(
        peer.says(&mut world, TcpControl::Psh, b"x"),
        [WorldEvent::Data(connection, b"x".to_vec())]
    );
}

#[test]
fn a_fragmented_segment_is_delivered_from_the_receive_queue() {
    let mut world = World::new();
    let mut peer = Peer::at_port(4000);
    let connection = peer.connects(&mut world);
    let packet = peer.segment(TcpControl::Psh, &[b'x'; 1000]).packet();
    let mut events = Vec::new();
    for (offset, part, more) in [(0, &packet[..512], true), (512, &packet[512..], false)] {
        let mut fragment = ipv4(PEER, US, IpProtocol::Tcp, part);
        let mut view = Ipv4Packet::new_unchecked(&mut fragment);
        view.set_dont_frag(false);
        view.set_frag_offset(offset);
        view.set_more_frags(more);
        view.fill_checksum();
        // The card verifies the checksum of one fragment, not of the segment.
        events.extend(world.hears_as(
            &ethernet(PEER_CARD, CARD, EthernetProtocol::Ipv4, &fragment),
            Checksum::Verified,
        ));
    }
    assert_eq!(events, [WorldEvent::Buffered(connection)]);
    assert_eq!(world.net.waiting(connection), [b'x'; 1000]);
}

#[test]
fn a_frame_of_joined_segments_is_one_piece_of_data() {
    let mut world = World::new();
    let mut peer = Peer::at_port(4000);
    let connection = peer.connects(&mut world);
    let bytes: Vec<u8> = (0..20_000u32).map(|at| at as u8).collect();
    assert_eq!(
        peer.says(&mut world, TcpControl::Psh, &bytes),
        [WorldEvent::Data(connection, bytes)]
    );
}

#[test]
fn checksums_are_verified_unless_the_card_vouches_for_them() {
    let mut world = World::new();
    let mut peer = Peer::at_port(4000);
    let connection = peer.connects(&mut world);
    let mut frame = peer.segment(TcpControl::Psh, b"data").frame(PEER_CARD);
    frame[50] ^= 0xff;
    assert_eq!(world.hears(&frame), []);
    assert_eq!(world.net.counters().of(Counter::DroppedChecksum), 1);
    assert_eq!(
        world.hears_as(&frame, Checksum::Verified),
        [WorldEvent::Data(connection, b"data".to_vec())]
    );
}

#[test]
fn offloads_get_large_frames_and_the_peer_gets_the_same_bytes() {
    for offloads in [
        Offloads::default(),
        Offloads { checksum: true, ..Offloads::default() },
        Offloads { checksum: true, segmentation_ipv4: true, segmentation_ipv6: true },
    ] {
        let mut world = World::with(Addressing::Static(our_address()), limits(), offloads);
        world.says();
        let mut peer = Peer::at_port(4000);
        let connection = peer.connects(&mut world);
        let handed_over = world.machine.handed_over;
        let bytes: Vec<u8> = (0..8_191u32).map(|at| (at * 31 / 8) as u8).collect();
        // A piece after one of an odd length starts at an odd offset of the segment, where its sum
        // is added differently.
        let odd: &'static [u8] = b"odd";
        assert!(world.net.send_piece(world.now, connection, Piece::from_static(odd)).is_ok());
        assert_eq!(world.net.send(world.now, connection, &bytes), bytes.len());
        let mut got = Vec::new();
        for frame in world.says() {
            let (_, segment) = Tcp::read(&frame);
            peer.hears(&segment);
            got.extend(segment.payload);
        }
        assert_eq!(got, [odd, &bytes].concat());
        let frames = world.machine.handed_over - handed_over;
        assert_eq!(frames == 1, offloads.segmentation_ipv4, "{frames} frames with {offloads:?}");
    }
}

#[test]
fn a_full_card_delays_and_loses_nothing() {
    let mut world = World::new();
    let mut peers: Vec<_> = (4000..4008).map(Peer::at_port).collect();
    let connections: Vec<_> = peers.iter_mut().map(|peer| peer.connects(&mut world)).collect();
    for connection in &connections {
        world.net.send(world.now, *connection, &[b'm'; 4000]);
    }
    world.machine.ring = 5;
    let mut rounds = 0;
    loop {
        let outcome = world.net.output(world.now, &mut world.machine, &mut Budget::new(100));
        for frame in world.machine.sent.drain(..) {
            let (_, segment) = Tcp::read(&frame);
            peers.iter_mut().find(|peer| peer.port == segment.to.1).unwrap().hears(&segment);
        }
        rounds += 1;
        if outcome == OutputProgress::All {
            break;
        }
        assert_eq!(outcome, OutputProgress::CardFull);
    }
    assert!(rounds > 3);
    let greeted = peers[0].expects;
    assert!(peers.iter().all(|peer| peer.expects != 0) && greeted != 0);
    assert_eq!(world.net.counters().of(Counter::Retransmits), 0);
    assert_eq!(world.net.counters().of(Counter::SegmentsOut), 8 + 8 * 3);
}

#[test]
fn a_spent_budget_is_reported_and_the_rest_follows() {
    let mut world = World::new();
    let connections = [4000, 4001, 4002, 4003].map(|port| Peer::at_port(port).connects(&mut world));
    for connection in connections {
        world.net.send(world.now, connection, b"220\r\n");
    }
    assert_eq!(
        world.net.output(world.now, &mut world.machine, &mut Budget::new(3)),
        OutputProgress::More
    );
    assert_eq!(world.machine.sent.drain(..).count(), 3);
    assert_eq!(world.says().len(), 1);
}

#[test]
fn syn_acks_count_against_the_output_budget() {
    let mut world = World::new();
    for port in 4000..4008 {
        world.hears(&Peer::at_port(port).syn().frame(PEER_CARD));
    }
    assert_eq!(
        world.net.output(world.now, &mut world.machine, &mut Budget::new(5)),
        OutputProgress::More
    );
    assert_eq!(world.machine.sent.drain(..).count(), 5);
    assert_eq!(world.says().len(), 3);
}

#[test]
fn an_aborted_connection_resets_its_peer_and_is_gone() {
    let mut world = World::new();
    let mut peer = Peer::at_port(4000);
    let connection = peer.connects(&mut world);
    world.net.abort(connection);
    assert_eq!(world.says_tcp().control, TcpControl::Rst);
    assert_eq!(world.net.connection_count(), 0);
    assert_eq!(world.net.flow_count(), 0);
}

#[test]
fn a_reset_closes_the_connection_and_is_reported_once() {
    let mut world = World::new();
    let mut peer = Peer::at_port(4000);
    let connection = peer.connects(&mut world);
    assert_eq!(
        peer.says(&mut world, TcpControl::Rst, b""),
        [WorldEvent::Closed(connection, CloseReason::Reset)]
    );
    world.says_nothing();
    assert_eq!((world.net.connection_count(), world.net.counters().of(Counter::ResetsIn)), (0, 1));
}

#[test]
fn a_silent_peer_times_out_and_the_user_is_told() {
    let mut world = World::new();
    let mut peer = Peer::at_port(4000);
    let connection = peer.connects(&mut world);
    world.net.send(world.now, connection, b"220\r\n");
    world.says();
    let events = world.waits(Micros::from_secs(3_600));
    assert_eq!(events, [WorldEvent::Closed(connection, CloseReason::TimedOut)]);
    assert!(world.net.counters().of(Counter::Retransmits) > 3);
    assert_eq!(world.net.connection_count(), 0);
}

#[test]
fn icmp_errors_end_no_established_connection() {
    let mut world = World::new();
    let mut peer = Peer::at_port(4000);
    let connection = peer.connects(&mut world);
    world.net.send(world.now, connection, b"220\r\n");
    let sent = world.says_one();
    for kind in [3, 11, 12] {
        for code in 0..16 {
            let mut error = [&[kind, code, 0, 0, 0, 0, 0, 0], &sent[14..42]].concat();
            let sum = crate::checksum::Sum::of(&error).field();
            error[2..4].copy_from_slice(&sum);
            assert_eq!(world.hears(&to_us(GATEWAY, IpProtocol::Icmp, &error)), []);
        }
    }
    assert_eq!(world.net.counters().of(Counter::IcmpErrorsIn), 48);
    peer.hears(&Tcp::read(&sent).1);
    assert_eq!(
        peer.says(&mut world, TcpControl::Psh, b"HELO\r\n"),
        [WorldEvent::Data(connection, b"HELO\r\n".to_vec())]
    );
}

#[test]
fn a_path_mtu_report_counts_only_for_a_segment_in_flight() {
    let mut world = World::new();
    let connection = Peer::at_port(4000).connects(&mut world);
    world.net.send(world.now, connection, &[b'm'; 2_920]);
    let sent = world.says();
    assert_eq!(sent.iter().map(Vec::len).collect::<Vec<_>>(), [1514, 1514]);
    let mut error = [
        &[3, 4, 0, 0, 0, 0, 1_000u16.to_be_bytes()[0], 1_000u16.to_be_bytes()[1]],
        &sent[0][14..42],
    ]
    .concat();
    let sum = crate::checksum::Sum::of(&error).field();
    error[2..4].copy_from_slice(&sum);
    // A report about a segment that was never sent is forged, or too late.
    let mut forged = error.clone();
    forged[8 + 24] ^= 0x40;
    forged[2..4].fill(0);
    let sum = crate::checksum::Sum::of(&forged).field();
    forged[2..4].copy_from_slice(&sum);
    world.hears(&to_us(GATEWAY, IpProtocol::Icmp, &forged));
    world.says_nothing();
    world.hears(&to_us(GATEWAY, IpProtocol::Icmp, &error));
    let again = world.says();
    let lengths: Vec<_> =
        again.iter().filter(|frame| frame[12..14] == [8, 0]).map(Vec::len).collect();
    assert_eq!(lengths, [1_014, 1_014, 1_014, 14 + 40 + 40]);
}

#[test]
fn ports_are_listened_on_once_and_can_be_given_up() {
    let mut world = World::new();
    assert!(!world.net.listen(25, Service(9)));
    assert!(world.net.listen(110, Service(2)));
    world.net.stop_listening(25);
    world.hears(&Peer::at_port(4000).syn().frame(PEER_CARD));
    assert_eq!(world.says_tcp().control, TcpControl::Rst);
}

#[test]
fn ecn_marks_are_read_from_and_ect_is_set_in_the_ip_header() {
    let mut world = World::new();
    let mut peer = Peer::at_port(4000);
    let mut syn = peer.syn().frame(PEER_CARD);
    syn[47] |= 0xc0;
    world.hears_as(&syn, Checksum::Verified);
    let answer = world.says_one();
    assert_eq!((answer[47] & 0xc0, answer[15]), (0x40, 0));
    peer.next += 1;
    peer.expects = Tcp::read(&answer).1.sequence.wrapping_add(1);
    let events = peer.says(&mut world, TcpControl::None, b"");
    let [WorldEvent::Accepted(connection, ..)] = events[..] else { panic!("{events:?}") };
    assert_eq!(world.net.send(world.now, connection, b"220 "), 4);
    let text = world.says_one();
    assert_eq!(text[15], 2, "ECT(0)");
    assert!(crate::ipv4::Ipv4Header::parse(&text[14..]).is_ok());
    peer.hears(&Tcp::read(&text).1);
    let mut marked = peer.segment(TcpControl::None, b"EHLO").frame(PEER_CARD);
    marked[15] = 3;
    marked[24..26].fill(0);
    let field = crate::checksum::Sum::of(&marked[14..34]).field();
    marked[24..26].copy_from_slice(&field);
    world.hears(&marked);
    let echo = world.says_one();
    assert_eq!((echo[47] & 0xc0, echo[15]), (0x40, 0));
}

mod floods;
