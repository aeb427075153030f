//! IPv4 headers (RFC 791): parses received headers and writes ours.
//! - A header that contradicts itself or its frame is refused here. So the layers above can trust a
//!   parsed header.
//! - Options are skipped, source routes too (RFC 7126): we are a host and forward nothing.
//! - Packets that we send are never fragmented. They have the flag DF, so they need no
//!   identification (RFC 6864 §4.1).

use core::net::Ipv4Addr;

use smoltcp::wire::Ipv4Packet;

use crate::checksum::Sum;

/// Bytes in a header without options, the only kind that we write.
pub(crate) const IPV4_BYTES: usize = 20;
/// The protocol number of ICMP.
pub(crate) const PROTOCOL_ICMP: u8 = 1;
/// The protocol number of TCP.
pub(crate) const PROTOCOL_TCP: u8 = 6;
/// The protocol number of UDP.
pub(crate) const PROTOCOL_UDP: u8 = 17;
/// The TTL of our packets. RFC 1340 recommends 64, and this is common practice.
pub(crate) const TIME_TO_LIVE: u8 = 64;

const MORE_FRAGMENTS: u16 = 0x2000;
const OFFSET_MASK: u16 = 0x1fff;

/// The fields of a received header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ipv4Header {
    pub(crate) source: Ipv4Addr,
    pub(crate) destination: Ipv4Addr,
    /// Whether both ECN bits are set: congestion experienced.
    pub(crate) is_marked: bool,
    pub(crate) protocol: u8,
    pub(crate) identification: u16,
    /// The offset of the payload in its datagram, in bytes.
    pub(crate) fragment_offset: u16,
    pub(crate) more_fragments: bool,
    pub(crate) header_bytes: u16,
    pub(crate) total_bytes: u16,
}

/// Why a packet is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ipv4Error {
    /// Too short, too long for its frame, or not version 4.
    Malformed,
    /// The header's checksum is wrong.
    Checksum,
}

impl Ipv4Header {
    /// Reads and checks the header that `packet` starts with. The packet may be followed by
    /// padding.
    #[inline]
    pub(crate) fn parse(packet: &[u8]) -> Result<Ipv4Header, Ipv4Error> {
        let fixed = packet.first_chunk::<IPV4_BYTES>().ok_or(Ipv4Error::Malformed)?;
        let header = Ipv4Header::read(fixed)?;
        if packet.len() < usize::from(header.total_bytes) {
            return Err(Ipv4Error::Malformed);
        }
        // Nearly all headers have no options. So the sum over 20 bytes, a length known at compile
        // time, is fast.
        let mut sum = Sum::of(fixed);
        if usize::from(header.header_bytes) > IPV4_BYTES {
            let options = packet
                .get(IPV4_BYTES..usize::from(header.header_bytes))
                .ok_or(Ipv4Error::Malformed)?;
            sum = sum.and(options);
        }
        if sum.is_valid() { Ok(header) } else { Err(Ipv4Error::Checksum) }
    }

    /// Reads the header of a packet that an ICMP error quotes. The payload is truncated. Routers
    /// may have changed fields without updating the checksum, because RFC 1812 §4.3.2.3 does not
    /// require them to undo their changes.
    pub(crate) fn parse_quoted(packet: &[u8]) -> Result<Ipv4Header, Ipv4Error> {
        let fixed = packet.first_chunk::<IPV4_BYTES>().ok_or(Ipv4Error::Malformed)?;
        let header = Ipv4Header::read(fixed)?;
        if usize::from(header.header_bytes) > packet.len() {
            Err(Ipv4Error::Malformed)
        } else {
            Ok(header)
        }
    }

    #[inline]
    fn read(bytes: &[u8; IPV4_BYTES]) -> Result<Ipv4Header, Ipv4Error> {
        let [
            version_and_length,
            service,
            t0,
            t1,
            i0,
            i1,
            f0,
            f1,
            _,
            protocol,
            _,
            _,
            s0,
            s1,
            s2,
            s3,
            d0,
            d1,
            d2,
            d3,
        ] = *bytes;
        let header_bytes = u16::from(version_and_length & 0x0f) * 4;
        let total_bytes = u16::from_be_bytes([t0, t1]);
        let flags = u16::from_be_bytes([f0, f1]);
        if version_and_length >> 4 != 4
            || header_bytes < IPV4_BYTES as u16
            || header_bytes > total_bytes
        {
            return Err(Ipv4Error::Malformed);
        }
        Ok(Ipv4Header {
            source: Ipv4Addr::new(s0, s1, s2, s3),
            destination: Ipv4Addr::new(d0, d1, d2, d3),
            is_marked: service & 3 == 3,
            protocol,
            identification: u16::from_be_bytes([i0, i1]),
            fragment_offset: (flags & OFFSET_MASK) * 8,
            more_fragments: flags & MORE_FRAGMENTS != 0,
            header_bytes,
            total_bytes,
        })
    }

    /// Whether the packet is a fragment of a datagram.
    #[inline]
    pub(crate) fn is_fragment(&self) -> bool {
        self.more_fragments || self.fragment_offset != 0
    }

    /// The payload of `packet`. This header must have been read from the same packet.
    #[inline]
    pub(crate) fn payload<'a>(&self, packet: &'a [u8]) -> &'a [u8] {
        packet
            .get(usize::from(self.header_bytes)..usize::from(self.total_bytes))
            .unwrap_or_default()
    }
}

/// The header of a packet that we send, with `payload_bytes` bytes of `protocol`.
pub(crate) fn header(
    source: Ipv4Addr,
    destination: Ipv4Addr,
    protocol: u8,
    payload_bytes: usize,
) -> [u8; IPV4_BYTES] {
    let total = u16::try_from(IPV4_BYTES + payload_bytes).unwrap_or(u16::MAX);
    let mut bytes = [0; IPV4_BYTES];
    let mut view = Ipv4Packet::new_unchecked(&mut bytes);
    view.set_version(4);
    view.set_header_len(IPV4_BYTES as u8);
    view.set_total_len(total);
    view.set_dont_frag(true);
    view.set_hop_limit(TIME_TO_LIVE);
    view.set_next_header(protocol.into());
    view.set_src_addr(source);
    view.set_dst_addr(destination);
    let sum = Sum::of(view.as_ref()).field();
    view.set_checksum(u16::from_be_bytes(sum));
    bytes
}

/// Whether a packet may come from this address: it names one host, and is not a loopback address
/// (RFC 1122 §3.2.1.3).
#[inline]
pub(crate) fn is_possible_source(address: Ipv4Addr) -> bool {
    // 0/8 is "this network" and 127/8 is loopback. 224/3 is multicast, reserved and broadcast.
    let [first, ..] = address.octets();
    first != 0 && first != 127 && first < 224
}
