//! Writes the peer's IPv6 frames and parses ours, both with smoltcp.

use core::net::Ipv6Addr;
use std::vec;
use std::vec::Vec;

use machine::Ethernet;
use smoltcp::phy::ChecksumCapabilities;
use smoltcp::wire::*;

use super::machine_in_memory::CARD;
use super::messages::{PEER_CARD, ethernet};

pub(super) const PEER: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 7);
pub(super) const ROUTER: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1);
pub(super) const OTHER_ROUTER: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 3);
pub(super) const NETWORK: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 1, 0, 0, 0, 0);
pub(super) const NEAR: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 1, 0, 0, 0, 7);
pub(super) const FAR: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 9, 9, 0, 0, 0, 9);
pub(super) const UNSPECIFIED: Ipv6Addr = Ipv6Addr::UNSPECIFIED;
pub(super) const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
pub(super) const ROUTER_CARD: Ethernet = Ethernet([0x02, 0, 0, 0, 0, 0x01]);

/// A packet with `payload` after its header.
pub(super) fn ipv6(
    from: Ipv6Addr,
    to: Ipv6Addr,
    next_header: u8,
    hop_limit: u8,
    payload: &[u8],
) -> Vec<u8> {
    let next_header = IpProtocol::from(next_header);
    let repr = Ipv6Repr {
        src_addr: from,
        dst_addr: to,
        next_header,
        payload_len: payload.len(),
        hop_limit,
    };
    let mut packet = vec![0; 40 + payload.len()];
    repr.emit(&mut Ipv6Packet::new_unchecked(&mut packet));
    packet[40..].copy_from_slice(payload);
    packet
}

/// A packet in a frame, from `card` to our card or to the group of its destination.
pub(super) fn frame(card: Ethernet, packet: &[u8]) -> Vec<u8> {
    let to: [u8; 16] = packet[24..40].try_into().unwrap();
    let destination =
        if to[0] == 0xff { Ethernet([0x33, 0x33, to[12], to[13], to[14], to[15]]) } else { CARD };
    ethernet(card, destination, EthernetProtocol::Ipv6, packet)
}

pub(super) fn solicited_node(address: Ipv6Addr) -> Ipv6Addr {
    let [.., a, b, c] = address.octets();
    Ipv6Addr::from([0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, a, b, c])
}

pub(super) fn icmp(from: Ipv6Addr, to: Ipv6Addr, repr: &Icmpv6Repr<'_>) -> Vec<u8> {
    let mut message = vec![0; repr.buffer_len()];
    let mut packet = Icmpv6Packet::new_unchecked(message.as_mut_slice());
    repr.emit(&from, &to, &mut packet, &ChecksumCapabilities::default());
    message
}

/// Writes the checksum of an ICMPv6 message that was built by hand.
pub(super) fn sealed(from: Ipv6Addr, to: Ipv6Addr, mut message: Vec<u8>) -> Vec<u8> {
    Icmpv6Packet::new_unchecked(message.as_mut_slice()).fill_checksum(&from, &to);
    message
}

/// A Neighbor Discovery message.
pub(super) fn ndp(card: Ethernet, from: Ipv6Addr, to: Ipv6Addr, repr: NdiscRepr<'_>) -> Vec<u8> {
    frame(card, &ipv6(from, to, 58, 255, &icmp(from, to, &Icmpv6Repr::Ndisc(repr))))
}

pub(super) fn solicitation(
    card: Ethernet,
    from: Ipv6Addr,
    to: Ipv6Addr,
    target: Ipv6Addr,
) -> Vec<u8> {
    let lladdr = (!from.is_unspecified()).then(|| EthernetAddress(card.0).into());
    ndp(card, from, to, NdiscRepr::NeighborSolicit { target_addr: target, lladdr })
}

/// An answer to a solicitation of ours, with `flags`.
pub(super) fn advertisement(
    card: Ethernet,
    target: Ipv6Addr,
    to: Ipv6Addr,
    flags: NdiscNeighborFlags,
) -> Vec<u8> {
    let lladdr = Some(EthernetAddress(card.0).into());
    ndp(card, target, to, NdiscRepr::NeighborAdvert { flags, target_addr: target, lladdr })
}

/// The contents of a router advertisement.
#[derive(Clone)]
pub(super) struct Advertisement {
    pub(super) from: Ipv6Addr,
    pub(super) lifetime: u16,
    pub(super) valid: u32,
    pub(super) preferred: u32,
    pub(super) flags: NdiscPrefixInfoFlags,
    pub(super) prefix: Ipv6Addr,
    pub(super) bits: u8,
    pub(super) mtu: Option<u32>,
    pub(super) name_servers: Vec<(Ipv6Addr, u32)>,
}

impl Advertisement {
    pub(super) fn new() -> Advertisement {
        Advertisement {
            from: ROUTER,
            lifetime: 1800,
            valid: 86_400,
            preferred: 14_400,
            flags: NdiscPrefixInfoFlags::ON_LINK | NdiscPrefixInfoFlags::ADDRCONF,
            prefix: NETWORK,
            bits: 64,
            mtu: None,
            name_servers: Vec::new(),
        }
    }

    pub(super) fn message(&self) -> Vec<u8> {
        let seconds = |count: u32| smoltcp::time::Duration::from_secs(count.into());
        let repr = NdiscRepr::RouterAdvert {
            hop_limit: 61,
            flags: NdiscRouterFlags::empty(),
            router_lifetime: seconds(self.lifetime.into()),
            reachable_time: seconds(0),
            retrans_time: seconds(0),
            lladdr: Some(EthernetAddress(ROUTER_CARD.0).into()),
            mtu: self.mtu,
            prefix_info: Some(NdiscPrefixInformation {
                prefix_len: self.bits,
                flags: self.flags,
                valid_lifetime: seconds(self.valid),
                preferred_lifetime: seconds(self.preferred),
                prefix: self.prefix,
            }),
        };
        let mut message = icmp(self.from, ALL_NODES, &Icmpv6Repr::Ndisc(repr));
        for (server, lifetime) in &self.name_servers {
            message.extend([25, 3, 0, 0]);
            message.extend(lifetime.to_be_bytes());
            message.extend(server.octets());
        }
        sealed(self.from, ALL_NODES, message)
    }

    pub(super) fn frame(&self) -> Vec<u8> {
        frame(ROUTER_CARD, &ipv6(self.from, ALL_NODES, 58, 255, &self.message()))
    }
}

/// A packet of ours: the card that it is sent to, its IPv6 header, and the bytes after this header.
pub(super) fn read_ipv6(frame: &[u8]) -> (Ethernet, Ipv6Repr, Vec<u8>) {
    let view = EthernetFrame::new_checked(frame).unwrap();
    assert_eq!((view.src_addr().0, view.ethertype()), (CARD.0, EthernetProtocol::Ipv6));
    let packet = Ipv6Packet::new_checked(view.payload()).unwrap();
    assert_eq!(packet.total_len(), view.payload().len());
    let repr = Ipv6Repr::parse(&packet).unwrap();
    assert_ne!(repr.next_header, IpProtocol::Ipv6Frag, "no fragments are sent");
    (Ethernet(view.dst_addr().0), repr, packet.payload().to_vec())
}

/// An ICMPv6 message of ours, after its checksum was verified.
pub(super) fn read_icmp(frame: &[u8]) -> (Ethernet, Ipv6Repr, Vec<u8>) {
    let (card, ip, mut payload) = read_ipv6(frame);
    if ip.next_header == IpProtocol::HopByHop {
        assert_eq!(payload[..8], [58, 0, 5, 2, 0, 0, 1, 0], "the options are a router alert");
        payload.drain(..8);
    } else {
        assert_eq!(ip.next_header, IpProtocol::Icmpv6);
    }
    assert!(Icmpv6Packet::new_unchecked(&payload).verify_checksum(&ip.src_addr, &ip.dst_addr));
    (card, ip, payload)
}

/// The Neighbor Discovery messages that we send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum SentNdp {
    /// A neighbour solicitation: target, source, destination.
    Solicit(Ipv6Addr, Ipv6Addr, Ipv6Addr),
    /// An advertisement of our address, its destination, and whether it is solicited.
    Advertise(Ipv6Addr, Ipv6Addr, bool),
    /// A router solicitation.
    SolicitRouters(Ipv6Addr),
    /// The first group of a listener report, and the number of groups.
    Listen(Ipv6Addr, usize),
    /// Another message, with its ICMPv6 type.
    Other(u8),
}

pub(super) fn read_ndp(frame: &[u8]) -> SentNdp {
    let (card, ip, message) = read_icmp(frame);
    if message[0] == 143 || message[0] == 131 {
        assert_eq!(ip.hop_limit, 1);
        let group: [u8; 16] =
            if message[0] == 143 { &message[12..28] } else { &message[8..24] }.try_into().unwrap();
        let count = if message[0] == 143 { usize::from(message[7]) } else { 1 };
        return SentNdp::Listen(Ipv6Addr::from(group), count);
    }
    let packet = Icmpv6Packet::new_checked(message.as_slice()).unwrap();
    match NdiscRepr::parse(&packet) {
        Ok(_) => assert_eq!(ip.hop_limit, 255),
        Err(_) => return SentNdp::Other(message[0]),
    }
    if ip.dst_addr.is_multicast() {
        let [.., a, b, c, d] = ip.dst_addr.octets();
        assert_eq!(card, Ethernet([0x33, 0x33, a, b, c, d]));
    }
    match NdiscRepr::parse(&packet).unwrap() {
        NdiscRepr::NeighborSolicit { target_addr, .. } => {
            SentNdp::Solicit(target_addr, ip.src_addr, ip.dst_addr)
        }
        NdiscRepr::NeighborAdvert { flags, target_addr, lladdr } => {
            assert_eq!(lladdr.unwrap().as_bytes(), CARD.0);
            assert!(!flags.contains(NdiscNeighborFlags::ROUTER), "we are not a router");
            SentNdp::Advertise(
                target_addr,
                ip.dst_addr,
                flags.contains(NdiscNeighborFlags::SOLICITED),
            )
        }
        NdiscRepr::RouterSolicit { lladdr } => {
            assert_eq!(lladdr.unwrap().as_bytes(), CARD.0);
            assert_eq!(ip.dst_addr, Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 2));
            SentNdp::SolicitRouters(ip.src_addr)
        }
        other => panic!("{other:?}"),
    }
}

pub(super) fn udp(from: (Ipv6Addr, u16), to: (Ipv6Addr, u16), payload: &[u8]) -> Vec<u8> {
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

pub(super) fn echo(from: Ipv6Addr, to: Ipv6Addr, data: &[u8]) -> Vec<u8> {
    icmp(from, to, &Icmpv6Repr::EchoRequest { ident: 7, seq_no: 1, data })
}

/// A fragment of a packet: the bytes of `whole` in the range `at`. `first`: the kind of the first
/// header of `whole`.
pub(super) fn fragment(
    from: Ipv6Addr,
    to: Ipv6Addr,
    first: u8,
    whole: &[u8],
    at: core::ops::Range<usize>,
    identification: u32,
) -> Vec<u8> {
    let more = at.end < whole.len();
    let field = (at.start as u16) | u16::from(more);
    let mut bytes = vec![first, 0];
    bytes.extend(field.to_be_bytes());
    bytes.extend(identification.to_be_bytes());
    bytes.extend(&whole[at]);
    frame(PEER_CARD, &ipv6(from, to, 44, 64, &bytes))
}
