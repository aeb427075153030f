//! Writes the peer's frames and parses our frames, both with smoltcp. So an independent parser
//! checks our output.

use core::net::Ipv4Addr;
use std::vec;
use std::vec::Vec;

use machine::Ethernet;
use smoltcp::phy::ChecksumCapabilities;
use smoltcp::wire::*;

use super::machine_in_memory::CARD;

pub(super) const US: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
pub(super) const PEER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 7);
pub(super) const GATEWAY: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
pub(super) const FAR: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 9);
pub(super) const PEER_CARD: Ethernet = Ethernet([0x02, 0, 0, 0, 0, 0x07]);
pub(super) const GATEWAY_CARD: Ethernet = Ethernet([0x02, 0, 0, 0, 0, 0x01]);
pub(super) const EVERYBODY: Ethernet = Ethernet([0xff; 6]);

pub(super) fn ethernet(
    from: Ethernet,
    to: Ethernet,
    kind: EthernetProtocol,
    payload: &[u8],
) -> Vec<u8> {
    let repr = EthernetRepr {
        src_addr: EthernetAddress(from.0),
        dst_addr: EthernetAddress(to.0),
        ethertype: kind,
    };
    let mut frame = vec![0; 14 + payload.len()];
    repr.emit(&mut EthernetFrame::new_unchecked(&mut frame));
    frame[14..].copy_from_slice(payload);
    frame
}

pub(super) fn ipv4(from: Ipv4Addr, to: Ipv4Addr, protocol: IpProtocol, payload: &[u8]) -> Vec<u8> {
    let repr = Ipv4Repr {
        src_addr: from,
        dst_addr: to,
        next_header: protocol,
        payload_len: payload.len(),
        hop_limit: 64,
    };
    let mut packet = vec![0; 20 + payload.len()];
    repr.emit(&mut Ipv4Packet::new_unchecked(&mut packet), &ChecksumCapabilities::default());
    packet[20..].copy_from_slice(payload);
    packet
}

/// A packet to us, in a frame from the peer's card.
pub(super) fn to_us(from: Ipv4Addr, protocol: IpProtocol, payload: &[u8]) -> Vec<u8> {
    ethernet(PEER_CARD, CARD, EthernetProtocol::Ipv4, &ipv4(from, US, protocol, payload))
}

pub(super) fn arp(
    operation: ArpOperation,
    from: (Ipv4Addr, Ethernet),
    to: (Ipv4Addr, Ethernet),
) -> Vec<u8> {
    let repr = ArpRepr::EthernetIpv4 {
        operation,
        source_hardware_addr: EthernetAddress(from.1.0),
        source_protocol_addr: from.0,
        target_hardware_addr: EthernetAddress(to.1.0),
        target_protocol_addr: to.0,
    };
    let mut packet = vec![0; repr.buffer_len()];
    repr.emit(&mut ArpPacket::new_unchecked(&mut packet));
    let destination = if operation == ArpOperation::Request { EVERYBODY } else { to.1 };
    ethernet(from.1, destination, EthernetProtocol::Arp, &packet)
}

pub(super) fn udp(from: (Ipv4Addr, u16), to: (Ipv4Addr, u16), payload: &[u8]) -> Vec<u8> {
    let repr = UdpRepr { src_port: from.1, dst_port: to.1 };
    let mut packet = vec![0; repr.header_len() + payload.len()];
    repr.emit(
        &mut UdpPacket::new_unchecked(&mut packet),
        &from.0.into(),
        &to.0.into(),
        payload.len(),
        |room| room.copy_from_slice(payload),
        &ChecksumCapabilities::default(),
    );
    packet
}

pub(super) fn icmp(repr: &Icmpv4Repr<'_>) -> Vec<u8> {
    let mut packet = vec![0; repr.buffer_len()];
    repr.emit(&mut Icmpv4Packet::new_unchecked(&mut packet), &ChecksumCapabilities::default());
    packet
}

/// The fields of an ARP frame: destination card, operation, sender and target.
pub(super) fn read_arp(
    frame: &[u8],
) -> (Ethernet, ArpOperation, (Ipv4Addr, Ethernet), (Ipv4Addr, Ethernet)) {
    let view = EthernetFrame::new_checked(frame).unwrap();
    assert_eq!(view.ethertype(), EthernetProtocol::Arp);
    let ArpRepr::EthernetIpv4 {
        operation,
        source_hardware_addr,
        source_protocol_addr,
        target_hardware_addr,
        target_protocol_addr,
    } = ArpRepr::parse(&ArpPacket::new_checked(view.payload()).unwrap()).unwrap()
    else {
        panic!("not ARP for IPv4")
    };
    let sender = (source_protocol_addr, Ethernet(source_hardware_addr.0));
    let target = (target_protocol_addr, Ethernet(target_hardware_addr.0));
    (Ethernet(view.dst_addr().0), operation, sender, target)
}

/// Parses an IPv4 frame of ours and verifies its header checksum. Returns the card that it is sent
/// to, the header and the payload.
pub(super) fn read_ipv4(frame: &[u8]) -> (Ethernet, Ipv4Repr, Vec<u8>) {
    let view = EthernetFrame::new_checked(frame).unwrap();
    assert_eq!(view.src_addr().0, CARD.0);
    let packet = Ipv4Packet::new_checked(view.payload()).unwrap();
    assert!(
        packet.dont_frag() && !packet.more_frags() && packet.frag_offset() == 0,
        "no fragments are sent"
    );
    assert_eq!(usize::from(packet.total_len()), view.payload().len());
    let repr = Ipv4Repr::parse(&packet, &ChecksumCapabilities::default()).unwrap();
    (Ethernet(view.dst_addr().0), repr, packet.payload().to_vec())
}

pub(super) fn read_icmp(frame: &[u8]) -> (Ethernet, Ipv4Repr, Vec<u8>) {
    let (to, ip, payload) = read_ipv4(frame);
    assert_eq!(ip.next_header, IpProtocol::Icmp);
    assert!(Icmpv4Packet::new_checked(&payload).unwrap().verify_checksum());
    (to, ip, payload)
}

/// The card, the IPv4 header, the ports and the payload of a UDP datagram of ours.
pub(super) fn read_udp(frame: &[u8]) -> (Ethernet, Ipv4Repr, (u16, u16), Vec<u8>) {
    let (to, ip, payload) = read_ipv4(frame);
    assert_eq!(ip.next_header, IpProtocol::Udp);
    let packet = UdpPacket::new_checked(payload.as_slice()).unwrap();
    assert!(packet.verify_checksum(&ip.src_addr.into(), &ip.dst_addr.into()));
    (to, ip, (packet.src_port(), packet.dst_port()), packet.payload().to_vec())
}

/// A TCP segment of either side.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Tcp {
    pub(super) from: (Ipv4Addr, u16),
    pub(super) to: (Ipv4Addr, u16),
    pub(super) control: TcpControl,
    pub(super) sequence: u32,
    pub(super) acknowledgment: Option<u32>,
    pub(super) window: u16,
    pub(super) mss: Option<u16>,
    pub(super) payload: Vec<u8>,
}

impl Tcp {
    pub(super) fn packet(&self) -> Vec<u8> {
        let repr = TcpRepr {
            src_port: self.from.1,
            dst_port: self.to.1,
            control: self.control,
            seq_number: TcpSeqNumber(self.sequence as i32),
            ack_number: self.acknowledgment.map(|number| TcpSeqNumber(number as i32)),
            window_len: self.window,
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
        packet
    }

    pub(super) fn frame(&self, card: Ethernet) -> Vec<u8> {
        let packet = ipv4(self.from.0, self.to.0, IpProtocol::Tcp, &self.packet());
        ethernet(card, CARD, EthernetProtocol::Ipv4, &packet)
    }

    /// Parses a segment of ours and verifies its checksum. Also returns the card that it is sent
    /// to.
    pub(super) fn read(frame: &[u8]) -> (Ethernet, Tcp) {
        let (card, ip, payload) = read_ipv4(frame);
        assert_eq!(ip.next_header, IpProtocol::Tcp);
        let packet = TcpPacket::new_checked(payload.as_slice()).unwrap();
        let capabilities = ChecksumCapabilities::default();
        let repr = TcpRepr::parse(&packet, &ip.src_addr.into(), &ip.dst_addr.into(), &capabilities)
            .unwrap();
        let segment = Tcp {
            from: (ip.src_addr, repr.src_port),
            to: (ip.dst_addr, repr.dst_port),
            control: repr.control,
            sequence: repr.seq_number.0 as u32,
            acknowledgment: repr.ack_number.map(|number| number.0 as u32),
            window: repr.window_len,
            mss: repr.max_seg_size,
            payload: repr.payload.to_vec(),
        };
        (card, segment)
    }
}
