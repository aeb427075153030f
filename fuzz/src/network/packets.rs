//! Well-formed packets, as a peer sends them.

use std::net::{Ipv4Addr, Ipv6Addr};

use machine::Ethernet;

use super::check::{field, sum};

/// An Ethernet frame of type `kind`.
pub(crate) fn ethernet(from: Ethernet, to: Ethernet, kind: u16, payload: &[u8]) -> Vec<u8> {
    [&to.0[..], &from.0, &kind.to_be_bytes(), payload].concat()
}

/// An ARP packet of `operation` (RFC 826).
pub(crate) fn arp(
    operation: u16,
    sender: (Ethernet, Ipv4Addr),
    target: (Ethernet, Ipv4Addr),
) -> Vec<u8> {
    let mut packet = vec![0, 1, 8, 0, 6, 4];
    packet.extend_from_slice(&operation.to_be_bytes());
    for (hardware, address) in [sender, target] {
        packet.extend_from_slice(&hardware.0);
        packet.extend_from_slice(&address.octets());
    }
    packet
}

/// An IPv4 packet or a fragment. `fragment`: the flags and the fragment offset (RFC 791).
pub(crate) fn ipv4(
    from: Ipv4Addr,
    to: Ipv4Addr,
    protocol: u8,
    fragment: u16,
    payload: &[u8],
) -> Vec<u8> {
    let mut header = vec![0x45, 0];
    header.extend_from_slice(&((20 + payload.len()) as u16).to_be_bytes());
    header.extend_from_slice(&[0, 7]);
    header.extend_from_slice(&fragment.to_be_bytes());
    header.extend_from_slice(&[64, protocol, 0, 0]);
    header.extend_from_slice(&from.octets());
    header.extend_from_slice(&to.octets());
    let checksum = field(sum(&header));
    header[10..12].copy_from_slice(&checksum);
    [&header, payload].concat()
}

/// An IPv6 packet (RFC 8200) with the hop limit 255 that neighbours use. If the payload contains
/// the checksum field of its protocol, the function sets the checksum.
pub(crate) fn ipv6(from: Ipv6Addr, to: Ipv6Addr, protocol: u8, payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x60, 0, 0, 0];
    packet.extend_from_slice(&(payload.len() as u16).to_be_bytes());
    packet.extend_from_slice(&[protocol, 255]);
    packet.extend_from_slice(&from.octets());
    packet.extend_from_slice(&to.octets());
    let mut payload = payload.to_vec();
    let at = match protocol {
        6 => 16,
        17 => 6,
        58 => 2,
        _ => usize::MAX - 2,
    };
    if let Some(room) = payload.get_mut(at..at + 2) {
        room.fill(0);
        let pseudo = sum(&from.octets()) + sum(&to.octets()) + u32::from(protocol);
        payload = with_checksum(payload, at, pseudo);
    }
    [packet, payload].concat()
}

/// The fields of a TCP segment (RFC 9293 §3.1), with the addresses.
pub(crate) struct Tcp<'a> {
    pub(crate) from: (Ipv4Addr, u16),
    pub(crate) to: (Ipv4Addr, u16),
    pub(crate) sequence: u32,
    pub(crate) acknowledgment: u32,
    pub(crate) flags: u8,
    pub(crate) window: u16,
    pub(crate) options: &'a [u8],
    pub(crate) payload: &'a [u8],
}

impl Tcp<'_> {
    /// The bytes of the segment, with its checksum.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let options = &self.options[..self.options.len().min(40)];
        let padded = options.len().next_multiple_of(4);
        let mut bytes = [self.from.1.to_be_bytes(), self.to.1.to_be_bytes()].concat();
        bytes.extend_from_slice(&self.sequence.to_be_bytes());
        bytes.extend_from_slice(&self.acknowledgment.to_be_bytes());
        bytes.extend_from_slice(&[((20 + padded) / 4 << 4) as u8, self.flags]);
        bytes.extend_from_slice(&self.window.to_be_bytes());
        bytes.extend_from_slice(&[0; 4]);
        bytes.extend_from_slice(options);
        bytes.resize(20 + padded, 0);
        bytes.extend_from_slice(self.payload);
        with_checksum(bytes, 16, pseudo(self.from.0, self.to.0, 6))
    }
}

/// A UDP datagram, with its checksum.
pub(crate) fn udp(from: (Ipv4Addr, u16), to: (Ipv4Addr, u16), payload: &[u8]) -> Vec<u8> {
    let mut bytes = [from.1.to_be_bytes(), to.1.to_be_bytes()].concat();
    bytes.extend_from_slice(&((8 + payload.len()) as u16).to_be_bytes());
    bytes.extend_from_slice(&[0; 2]);
    bytes.extend_from_slice(payload);
    with_checksum(bytes, 6, pseudo(from.0, to.0, 17))
}

/// An ICMP message, with its checksum.
pub(crate) fn icmp(kind: u8, code: u8, rest: [u8; 4], payload: &[u8]) -> Vec<u8> {
    let bytes = [&[kind, code, 0, 0], &rest[..], payload].concat();
    let checksum = field(sum(&bytes));
    let mut bytes = bytes;
    bytes[2..4].copy_from_slice(&checksum);
    bytes
}

fn pseudo(from: Ipv4Addr, to: Ipv4Addr, protocol: u8) -> u32 {
    sum(&from.octets()) + sum(&to.octets()) + u32::from(protocol)
}

fn with_checksum(mut bytes: Vec<u8>, at: usize, pseudo: u32) -> Vec<u8> {
    let checksum = field(sum(&bytes) + pseudo + bytes.len() as u32);
    bytes[at..at + 2].copy_from_slice(&checksum);
    bytes
}
