//! IPv6 headers (RFC 8200): parses received headers, writes ours, and classifies addresses.
//! - A header that contradicts its frame is refused here. So the layers above can trust a parsed
//!   header.
//! - [`extensions`] walks the extension headers, with bounds.
//! - Packets that we send are never fragmented, and carry no extension header except the one that
//!   MLD requires.

pub(crate) mod extensions;

use core::net::Ipv6Addr;

use smoltcp::wire::{Ipv6Packet, Ipv6Repr};

/// Bytes in the header.
pub(crate) const IPV6_BYTES: usize = 40;
/// The minimum MTU of every link (RFC 8200 §5).
pub(crate) const MTU_MIN: u16 = 1280;
/// The hop limit of our packets, unless a router advertises another value.
pub(crate) const HOP_LIMIT: u8 = 64;
/// The protocol number of ICMPv6.
pub(crate) const PROTOCOL_ICMPV6: u8 = 58;

/// All nodes on the link (RFC 4291 §2.7.1).
pub(crate) const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
/// All routers on the link.
pub(crate) const ALL_ROUTERS: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 2);
/// The length of the network prefix in addresses that hosts form for themselves (RFC 4291 §2.5.1).
pub(crate) const NETWORK_BITS: u8 = 64;

/// The fields of a received header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ipv6Header {
    pub(crate) source: Ipv6Addr,
    pub(crate) destination: Ipv6Addr,
    /// Whether both ECN bits are set: congestion experienced.
    pub(crate) is_marked: bool,
    pub(crate) next_header: u8,
    pub(crate) hop_limit: u8,
    pub(crate) payload_bytes: u16,
}

impl Ipv6Header {
    /// Reads the header that `packet` starts with. `None` when it is too short or not of version 6.
    /// The payload may be truncated: [`Ipv6Header::cut`] checks that.
    #[inline]
    pub(crate) fn parse(packet: &[u8]) -> Option<Ipv6Header> {
        let (fixed, addresses) = packet.first_chunk::<IPV6_BYTES>()?.split_first_chunk::<8>()?;
        let [version, service, _, _, high, low, next_header, hop_limit] = *fixed;
        let (source, destination) = addresses.split_first_chunk::<16>()?;
        (version >> 4 == 6).then_some(Ipv6Header {
            source: Ipv6Addr::from_octets(*source),
            destination: Ipv6Addr::from_octets(*destination.first_chunk()?),
            is_marked: (service >> 4) & 3 == 3,
            next_header,
            hop_limit,
            payload_bytes: u16::from_be_bytes([high, low]),
        })
    }

    /// The packet without its padding. `None` when it is truncated.
    #[inline]
    pub(crate) fn cut<'a>(&self, packet: &'a [u8]) -> Option<&'a [u8]> {
        packet.get(..IPV6_BYTES + usize::from(self.payload_bytes))
    }
}

/// The header of a packet that we send, with `payload_bytes` bytes of `protocol`.
pub(crate) fn header(
    source: Ipv6Addr,
    destination: Ipv6Addr,
    protocol: u8,
    hop_limit: u8,
    payload_bytes: usize,
) -> [u8; IPV6_BYTES] {
    let mut bytes = [0; IPV6_BYTES];
    let payload_len = payload_bytes.min(usize::from(u16::MAX));
    let repr = Ipv6Repr {
        src_addr: source,
        dst_addr: destination,
        next_header: protocol.into(),
        payload_len,
        hop_limit,
    };
    repr.emit(&mut Ipv6Packet::new_unchecked(&mut bytes));
    bytes
}

/// Whether a packet may have this source or destination. Loopback addresses and IPv4-mapped
/// addresses are excluded (RFC 4291 §2.5.3). Our code would take a mapped address for IPv4.
#[inline]
pub(crate) fn is_possible(address: Ipv6Addr) -> bool {
    !address.is_loopback() && address.to_ipv4_mapped().is_none()
}

/// Whether the address names one host: it is not the address of a group, and not unspecified.
pub(crate) fn is_unicast(address: Ipv6Addr) -> bool {
    !address.is_multicast() && !address.is_unspecified()
}

/// Whether the address is link-local (RFC 4291 §2.5.6).
pub(crate) fn is_link_local(address: Ipv6Addr) -> bool {
    let [first, ..] = address.segments();
    first & 0xffc0 == 0xfe80
}

/// The solicited-node group of the address (RFC 4291 §2.7.1).
pub(crate) fn solicited_node(address: Ipv6Addr) -> Ipv6Addr {
    let [.., a, b, c] = address.octets();
    Ipv6Addr::from_octets([0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, a, b, c])
}

/// Whether the first `bits` bits of both addresses are the same.
pub(crate) fn shares_prefix(one: Ipv6Addr, other: Ipv6Addr, bits: u8) -> bool {
    common_bits(one, other) >= u32::from(bits)
}

/// The number of leading bits that two addresses share.
pub(crate) fn common_bits(one: Ipv6Addr, other: Ipv6Addr) -> u32 {
    (one.to_bits() ^ other.to_bits()).leading_zeros()
}

#[cfg(test)]
mod tests;
