//! Ethernet II framing: parses and writes the header.

use core::net::Ipv6Addr;

use machine::Ethernet;

/// Bytes in an Ethernet header.
pub(crate) const ETHERNET_BYTES: usize = 14;
/// The EtherType of IPv4.
pub(crate) const TYPE_IPV4: u16 = 0x0800;
/// The EtherType of ARP.
pub(crate) const TYPE_ARP: u16 = 0x0806;
/// The EtherType of IPv6.
pub(crate) const TYPE_IPV6: u16 = 0x86dd;
/// The broadcast address.
pub(crate) const BROADCAST: Ethernet = Ethernet([0xff; 6]);

/// The fields of a frame's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EthernetHeader {
    pub(crate) destination: Ethernet,
    pub(crate) source: Ethernet,
    pub(crate) kind: u16,
}

impl EthernetHeader {
    /// The header of `frame`, and the bytes after it. `None` if the frame is too short.
    #[inline]
    pub(crate) fn parse(frame: &[u8]) -> Option<(EthernetHeader, &[u8])> {
        let (header, rest) = frame.split_first_chunk::<ETHERNET_BYTES>()?;
        let (destination, others) = header.split_first_chunk()?;
        let (source, kind) = others.split_first_chunk()?;
        let kind = u16::from_be_bytes(*kind.first_chunk()?);
        Some((
            EthernetHeader { destination: Ethernet(*destination), source: Ethernet(*source), kind },
            rest,
        ))
    }

    #[inline]
    pub(crate) fn bytes(&self) -> [u8; ETHERNET_BYTES] {
        let mut bytes = [0; ETHERNET_BYTES];
        bytes[..6].copy_from_slice(&self.destination.0);
        bytes[6..12].copy_from_slice(&self.source.0);
        bytes[12..].copy_from_slice(&self.kind.to_be_bytes());
        bytes
    }
}

/// The hardware address of an IPv6 multicast group (RFC 2464 §7).
pub(crate) fn of_group(group: Ipv6Addr) -> Ethernet {
    let [.., a, b, c, d] = group.octets();
    Ethernet([0x33, 0x33, a, b, c, d])
}

/// Whether the address names one card: it is not the address of a group, and not all zeros.
pub(crate) fn is_unicast(address: Ethernet) -> bool {
    !is_group(address) && address.0 != [0; 6]
}

/// Whether the address names many cards: broadcast or multicast.
#[inline]
pub(crate) fn is_group(address: Ethernet) -> bool {
    let [first, ..] = address.0;
    first & 1 != 0
}
