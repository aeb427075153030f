//! Packets on the wire: builds frames for the machine byte by byte, and parses frames from it while
//! verifying every checksum.
//!
//! Scripts send packets that no stack would send: wrong flags, odd options, segments to unused
//! ports. So this module corrects nothing.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use machine::Ethernet;

use super::options;
use super::script::{Flags, TcpOption};
use crate::ADDRESS;

pub(super) const PROTOCOL_ICMP: u8 = 1;
pub(super) const PROTOCOL_TCP: u8 = 6;
pub(super) const PROTOCOL_UDP: u8 = 17;
pub(super) const PROTOCOL_ICMP6: u8 = 58;

const ETHERNET_BYTES: usize = 14;
const TYPE_IPV4: [u8; 2] = [8, 0];
const TYPE_ARP: [u8; 2] = [8, 6];
const TYPE_IPV6: [u8; 2] = [0x86, 0xdd];

/// The hardware address of every other host.
pub(super) const PEER_CARD: Ethernet = Ethernet([0x02, 0, 0, 0, 0, 0xfe]);

/// A TCP segment with the numbers on the wire.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Segment {
    pub(super) source_port: u16,
    pub(super) destination_port: u16,
    pub(super) sequence: u32,
    pub(super) acknowledgment: u32,
    pub(super) flags: Flags,
    pub(super) window: u16,
    pub(super) urgent: u16,
    pub(super) options: Vec<TcpOption>,
    pub(super) payload: Vec<u8>,
}

/// The parts of an IP packet that scripts use.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct IpPacket {
    pub(super) source: IpAddr,
    pub(super) destination: IpAddr,
    pub(super) tos: u8,
    pub(super) ttl: u8,
    pub(super) flow_label: u32,
    pub(super) protocol: u8,
    pub(super) payload: Vec<u8>,
}

/// The contents of a frame that the machine has sent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum ReadFrame {
    Tcp(IpPacket, Segment),
    /// A packet of another protocol over IP.
    Ip(IpPacket),
    /// An ARP request or neighbour solicitation. The frame is the answer to it.
    Asked(Vec<u8>),
    /// A frame that concerns no script.
    Other,
}

impl Segment {
    /// The bytes of the segment, with a checksum for these addresses.
    pub(super) fn bytes(&self, source: IpAddr, destination: IpAddr) -> Vec<u8> {
        let options = options::bytes(&self.options);
        let words = u16::try_from((20 + options.len()) / 4).unwrap_or(15);
        let offset_and_flags = (words << 12) | (self.flags.bits & 0x1ff);
        let mut bytes = Vec::with_capacity(20 + options.len() + self.payload.len());
        bytes.extend_from_slice(&self.source_port.to_be_bytes());
        bytes.extend_from_slice(&self.destination_port.to_be_bytes());
        bytes.extend_from_slice(&self.sequence.to_be_bytes());
        bytes.extend_from_slice(&self.acknowledgment.to_be_bytes());
        bytes.extend_from_slice(&offset_and_flags.to_be_bytes());
        bytes.extend_from_slice(&self.window.to_be_bytes());
        bytes.extend_from_slice(&[0, 0]);
        bytes.extend_from_slice(&self.urgent.to_be_bytes());
        bytes.extend_from_slice(&options);
        bytes.extend_from_slice(&self.payload);
        put_checksum(&mut bytes, 16, pseudo_header(source, destination, PROTOCOL_TCP));
        bytes
    }

    fn read(bytes: &[u8]) -> Option<Segment> {
        let [a, b, c, d, s0, s1, s2, s3, k0, k1, k2, k3, o, f, w0, w1, _, _, u0, u1] =
            *bytes.first_chunk::<20>()?;
        let header_bytes = usize::from(o >> 4) * 4;
        Some(Segment {
            source_port: u16::from_be_bytes([a, b]),
            destination_port: u16::from_be_bytes([c, d]),
            sequence: u32::from_be_bytes([s0, s1, s2, s3]),
            acknowledgment: u32::from_be_bytes([k0, k1, k2, k3]),
            flags: Flags { bits: u16::from_be_bytes([o & 0x0f, f]) },
            window: u16::from_be_bytes([w0, w1]),
            urgent: u16::from_be_bytes([u0, u1]),
            options: options::read(bytes.get(20..header_bytes)?),
            payload: bytes.get(header_bytes..)?.to_vec(),
        })
    }
}

impl IpPacket {
    /// A packet between two addresses.
    pub(super) fn new(
        source: IpAddr,
        destination: IpAddr,
        protocol: u8,
        payload: Vec<u8>,
    ) -> IpPacket {
        IpPacket { source, destination, tos: 0, ttl: 64, flow_label: 0, protocol, payload }
    }

    /// The bytes of the packet.
    pub(super) fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(40 + self.payload.len());
        let length = self.payload.len();
        match (self.source, self.destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                let [high, low] = u16::try_from(20 + length).unwrap_or(u16::MAX).to_be_bytes();
                bytes.extend_from_slice(&[
                    0x45,
                    self.tos,
                    high,
                    low,
                    0,
                    0,
                    0x40,
                    0,
                    self.ttl,
                    self.protocol,
                    0,
                    0,
                ]);
                bytes.extend_from_slice(&source.octets());
                bytes.extend_from_slice(&destination.octets());
                put_checksum(&mut bytes, 10, 0);
            }
            (source, destination) => {
                let first = 6 << 28 | u32::from(self.tos) << 20 | (self.flow_label & 0xf_ffff);
                bytes.extend_from_slice(&first.to_be_bytes());
                bytes.extend_from_slice(&u16::try_from(length).unwrap_or(u16::MAX).to_be_bytes());
                bytes.extend_from_slice(&[self.protocol, self.ttl]);
                bytes.extend_from_slice(&in_v6(source).octets());
                bytes.extend_from_slice(&in_v6(destination).octets());
            }
        }
        bytes.extend_from_slice(&self.payload);
        bytes
    }

    /// The packet in a frame from the peer's card to the machine's.
    pub(super) fn frame(&self, machine: Ethernet) -> Vec<u8> {
        let kind = if self.source.is_ipv4() { TYPE_IPV4 } else { TYPE_IPV6 };
        [&machine.0[..], &PEER_CARD.0, &kind, &self.bytes()].concat()
    }

    /// Parses an IP packet. Errors: the fault of the packet.
    fn read(bytes: &[u8]) -> Result<IpPacket, &'static str> {
        let cut = "an IP packet that is cut short";
        let version = bytes.first().ok_or(cut)? >> 4;
        if version == 6 {
            let [v0, v1, v2, v3, l0, l1, protocol, ttl, ..] =
                *bytes.first_chunk::<40>().ok_or(cut)?;
            let first = u32::from_be_bytes([v0, v1, v2, v3]);
            let length = usize::from(u16::from_be_bytes([l0, l1]));
            let address = |at: usize| {
                let octets =
                    bytes.get(at..).and_then(|rest| rest.first_chunk::<16>()).ok_or(cut)?;
                Ok::<_, &'static str>(IpAddr::V6(Ipv6Addr::from(*octets)))
            };
            return Ok(IpPacket {
                source: address(8)?,
                destination: address(24)?,
                tos: u8::try_from(first >> 20 & 0xff).unwrap_or(0),
                ttl,
                flow_label: first & 0xf_ffff,
                protocol,
                payload: bytes.get(40..40 + length).ok_or(cut)?.to_vec(),
            });
        }
        let [first, tos, l0, l1, _, _, _, _, ttl, protocol, _, _, s0, s1, s2, s3, d0, d1, d2, d3] =
            *bytes.first_chunk::<20>().ok_or(cut)?;
        let header = usize::from(first & 15) * 4;
        let length = usize::from(u16::from_be_bytes([l0, l1]));
        if checksum(0, bytes.get(..header).ok_or(cut)?) != 0 {
            return Err("an IP header with a wrong checksum");
        }
        Ok(IpPacket {
            source: IpAddr::V4(Ipv4Addr::new(s0, s1, s2, s3)),
            destination: IpAddr::V4(Ipv4Addr::new(d0, d1, d2, d3)),
            tos,
            ttl,
            flow_label: 0,
            protocol,
            payload: bytes.get(header..length).ok_or(cut)?.to_vec(),
        })
    }
}

/// Parses a frame of the machine.
///
/// Errors: the fault of the frame. No script may cause the machine to send such a frame.
pub(super) fn read(frame: &[u8]) -> Result<ReadFrame, &'static str> {
    let (header, rest) =
        frame.split_first_chunk::<ETHERNET_BYTES>().ok_or("a frame that is cut short")?;
    let [.., high, low] = *header;
    match [high, low] {
        TYPE_ARP => Ok(arp_answer(rest).map_or(ReadFrame::Other, ReadFrame::Asked)),
        TYPE_IPV4 | TYPE_IPV6 => {
            let ip = IpPacket::read(rest)?;
            if ip.protocol == PROTOCOL_ICMP6
                && let Some(answer) = neighbour_answer(&ip)
            {
                return Ok(ReadFrame::Asked(answer));
            }
            if ip.protocol != PROTOCOL_TCP {
                return Ok(ReadFrame::Ip(ip));
            }
            let length = u32::try_from(ip.payload.len()).unwrap_or(0);
            if checksum(
                pseudo_header(ip.source, ip.destination, PROTOCOL_TCP) + length,
                &ip.payload,
            ) != 0
            {
                return Err("a TCP segment with a wrong checksum");
            }
            let segment = Segment::read(&ip.payload).ok_or("a TCP segment that is cut short")?;
            Ok(ReadFrame::Tcp(ip, segment))
        }
        _ => Ok(ReadFrame::Other),
    }
}

/// The answer to an ARP request, unless the sender probes for its own address.
fn arp_answer(packet: &[u8]) -> Option<Vec<u8>> {
    let [_, _, _, _, _, _, _, operation, sender @ .., t0, t1, t2, t3] =
        *packet.first_chunk::<28>()?;
    let (asker, rest) = sender.split_first_chunk::<6>()?;
    let asker_address: [u8; 4] = *rest.first_chunk()?;
    if operation != 1 || asker_address == [t0, t1, t2, t3] {
        return None;
    }
    let answer =
        [&[0, 1, 8, 0, 6, 4, 0, 2][..], &PEER_CARD.0, &[t0, t1, t2, t3], asker, &asker_address]
            .concat();
    Some([&asker[..], &PEER_CARD.0, &TYPE_ARP, &answer].concat())
}

/// The neighbour advertisement that answers a solicitation, unless the sender probes for a
/// duplicate address.
fn neighbour_answer(ip: &IpPacket) -> Option<Vec<u8>> {
    const SOLICITATION: u8 = 135;
    const ADVERTISEMENT: u8 = 136;
    let IpAddr::V6(asker) = ip.source else { return None };
    if ip.payload.first() != Some(&SOLICITATION) || asker.is_unspecified() {
        return None;
    }
    let target: [u8; 16] = *ip.payload.get(8..)?.first_chunk()?;
    let mut message =
        [&[ADVERTISEMENT, 0, 0, 0, 0x60, 0, 0, 0][..], &target, &[2, 1], &PEER_CARD.0].concat();
    let source = IpAddr::V6(Ipv6Addr::from(target));
    put_checksum(&mut message, 2, pseudo_header(source, ip.source, PROTOCOL_ICMP6));
    let answer = IpPacket { ttl: 255, ..IpPacket::new(source, ip.source, PROTOCOL_ICMP6, message) };
    Some(answer.frame(ADDRESS))
}

fn in_v6(address: IpAddr) -> Ipv6Addr {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    }
}

/// The checksum's sum over a pseudo header without the length.
pub(super) fn pseudo_header(source: IpAddr, destination: IpAddr, protocol: u8) -> u32 {
    let octets = |address: IpAddr| match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    };
    sum(&octets(source)) + sum(&octets(destination)) + u32::from(protocol)
}

/// Writes the checksum of `bytes` at `at`. `start`: the sum of a pseudo header without its length,
/// or zero for none.
pub(super) fn put_checksum(bytes: &mut [u8], at: usize, start: u32) {
    let length = if start == 0 { 0 } else { u32::try_from(bytes.len()).unwrap_or(0) };
    let field = checksum(start + length, bytes).to_be_bytes();
    if let Some(place) = bytes.get_mut(at..at + 2) {
        place.copy_from_slice(&field);
    }
}

fn sum(bytes: &[u8]) -> u32 {
    bytes
        .chunks(2)
        .map(|pair| {
            u32::from(u16::from_be_bytes([
                pair.first().copied().unwrap_or(0),
                pair.get(1).copied().unwrap_or(0),
            ]))
        })
        .sum()
}

/// The checksum of RFC 1071 over `bytes`, added to `start`.
fn checksum(start: u32, bytes: &[u8]) -> u16 {
    let mut total = start + sum(bytes);
    while total > 0xffff {
        total = (total & 0xffff) + (total >> 16);
    }
    !u16::try_from(total).unwrap_or(0)
}
