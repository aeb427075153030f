//! Paths with a reduced MTU, and the ICMP messages of their router.
//!
//! Implements RFC 1191 §4, RFC 8201 §4, and RFC 2923 §2.1 (black holes).

use machine::Instant;
use smoltcp::wire::{
    EthernetAddress, EthernetFrame, EthernetProtocol, Icmpv4Packet, Icmpv6Packet, IpProtocol,
    Ipv4Address, Ipv4Packet, Ipv6Address, Ipv6Packet,
};

use super::scenario::RouterReport;

/// The smallest MTU that an IPv6 path may have (RFC 8200 §5).
const IPV6_MTU_MIN: u16 = 1280;
/// The router that reports packets that are too long. It forwards no frames itself.
const ROUTER: EthernetAddress = EthernetAddress([0x02, 0, 0, 0, 2, 0xfe]);
const ROUTER_IPV4: Ipv4Address = Ipv4Address::new(10, 0, 0, 254);
const ROUTER_IPV6: Ipv6Address = Ipv6Address::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0xfe);
const ETHERNET_BYTES: usize = 14;
const ICMP_BYTES: usize = 8;

/// An end of the wire.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub(super) enum Endpoint {
    Station(usize),
    Host(usize),
}

/// A path with a smaller MTU than the card.
#[derive(Clone, Copy, Debug)]
pub(super) struct Narrow {
    pub(super) from: Endpoint,
    pub(super) to: Endpoint,
    /// The path's MTU for IPv4, in bytes. For IPv6 the MTU is at least [`IPV6_MTU_MIN`].
    pub(super) mtu: u16,
    pub(super) report: RouterReport,
    pub(super) until: Instant,
}

impl Narrow {
    /// Whether `frame` is too long for this path.
    pub(super) fn stops(&self, now: Instant, from: Endpoint, to: Endpoint, frame: &[u8]) -> bool {
        let bytes = frame.len().saturating_sub(ETHERNET_BYTES);
        (from, to) == (self.from, self.to)
            && now < self.until
            && bytes > usize::from(self.mtu_for(frame))
    }

    fn mtu_for(&self, frame: &[u8]) -> u16 {
        let is_ipv6 = EthernetFrame::new_checked(frame)
            .is_ok_and(|it| it.ethertype() == EthernetProtocol::Ipv6);
        if is_ipv6 { self.mtu.max(IPV6_MTU_MIN) } else { self.mtu }
    }

    /// The router's ICMP message to the sender of a frame that is too long; `None` in a black hole.
    pub(super) fn icmp_report(&self, frame: &[u8]) -> Option<Vec<u8>> {
        if self.report == RouterReport::Missing {
            return None;
        }
        let stopped = EthernetFrame::new_checked(frame).ok()?;
        match stopped.ethertype() {
            EthernetProtocol::Ipv4 => fragmentation_needed(&stopped, self.mtu),
            EthernetProtocol::Ipv6 => packet_too_big(&stopped, self.mtu_for(frame)),
            _ => None,
        }
    }
}

/// A frame from the router to the sender of `stopped`, with space for `bytes` bytes of payload.
fn frame_back(stopped: &EthernetFrame<&[u8]>, kind: EthernetProtocol, bytes: usize) -> Vec<u8> {
    let mut frame = vec![0; ETHERNET_BYTES + bytes];
    let mut ethernet = EthernetFrame::new_unchecked(&mut frame);
    ethernet.set_src_addr(ROUTER);
    ethernet.set_dst_addr(stopped.src_addr());
    ethernet.set_ethertype(kind);
    frame
}

/// The ICMP message of RFC 792 with the next-hop MTU of RFC 1191. It quotes the header of the
/// packet and eight bytes of its payload.
fn fragmentation_needed(stopped: &EthernetFrame<&[u8]>, mtu: u16) -> Option<Vec<u8>> {
    let packet = Ipv4Packet::new_checked(stopped.payload()).ok()?;
    assert!(packet.dont_frag(), "a machine lets routers fragment its packets");
    let quoted = stopped.payload().get(..usize::from(packet.header_len()) + 8)?;
    let mut frame = frame_back(stopped, EthernetProtocol::Ipv4, 20 + ICMP_BYTES + quoted.len());
    let mut ip = Ipv4Packet::new_unchecked(&mut frame[ETHERNET_BYTES..]);
    ip.set_version(4);
    ip.set_header_len(20);
    ip.set_total_len((20 + ICMP_BYTES + quoted.len()) as u16);
    ip.set_hop_limit(64);
    ip.set_next_header(IpProtocol::Icmp);
    ip.set_src_addr(ROUTER_IPV4);
    ip.set_dst_addr(packet.src_addr());
    ip.fill_checksum();
    let [high, low] = mtu.to_be_bytes();
    let message = ip.payload_mut();
    message[..ICMP_BYTES].copy_from_slice(&[3, 4, 0, 0, 0, 0, high, low]);
    message[ICMP_BYTES..].copy_from_slice(quoted);
    Icmpv4Packet::new_unchecked(message).fill_checksum();
    Some(frame)
}

/// The ICMPv6 message of RFC 4443 §3.2. It quotes as much of the packet as fits the minimum MTU.
fn packet_too_big(stopped: &EthernetFrame<&[u8]>, mtu: u16) -> Option<Vec<u8>> {
    let packet = Ipv6Packet::new_checked(stopped.payload()).ok()?;
    let room = usize::from(IPV6_MTU_MIN) - 40 - ICMP_BYTES;
    let quoted = stopped.payload().get(..room).unwrap_or(stopped.payload());
    let mut frame = frame_back(stopped, EthernetProtocol::Ipv6, 40 + ICMP_BYTES + quoted.len());
    let mut ip = Ipv6Packet::new_unchecked(&mut frame[ETHERNET_BYTES..]);
    ip.set_version(6);
    ip.set_payload_len((ICMP_BYTES + quoted.len()) as u16);
    ip.set_hop_limit(64);
    ip.set_next_header(IpProtocol::Icmpv6);
    ip.set_src_addr(ROUTER_IPV6);
    ip.set_dst_addr(packet.src_addr());
    let [high, low] = mtu.to_be_bytes();
    let message = ip.payload_mut();
    message[..ICMP_BYTES].copy_from_slice(&[2, 0, 0, 0, 0, 0, high, low]);
    message[ICMP_BYTES..].copy_from_slice(quoted);
    Icmpv6Packet::new_unchecked(message).fill_checksum(&ROUTER_IPV6, &packet.src_addr());
    Some(frame)
}
