//! The fast path out: headers made once per connection and patched for each segment.
//!
//! What never changes between two segments of a connection (both Ethernet addresses, most of IPv4, the ports) lies
//! ready in 54 bytes, and so do the parts of both checksums that it makes up. A segment costs a copy of them, six
//! stores and two foldings.

use core::net::Ipv4Addr;

use machine::{ChecksumOffload, Ethernet, Offloads, Outgoing, Piece};

use crate::checksum::Sum;
use crate::ethernet::{self, ETHERNET_BYTES, TYPE_IPV4};
use crate::flow::Flow;
use crate::ipv4::{self, IPV4_BYTES, PROTOCOL_TCP};
use crate::tcp::{OPTIONS_BYTES_MAX, SegmentToSend};

/// Bytes in a TCP header without options.
pub(crate) const TCP_BYTES: usize = 20;
/// Bytes in a template.
const TEMPLATE_BYTES: usize = ETHERNET_BYTES + IPV4_BYTES + TCP_BYTES;
/// The most bytes of headers in front of a segment of ours.
pub(crate) const HEAD_BYTES_MAX: usize = TEMPLATE_BYTES + OPTIONS_BYTES_MAX;

/// Where the card sums a segment, and where it puts the sum.
const OFFLOAD: ChecksumOffload = ChecksumOffload { start: (ETHERNET_BYTES + IPV4_BYTES) as u16, offset: 16 };

/// The headers of one connection.
#[derive(Clone, Debug)]
pub(crate) struct Template {
    bytes: [u8; TEMPLATE_BYTES],
    /// The IPv4 header without its length.
    ip_sum: Sum,
    /// The pseudo header without the length.
    tcp_sum: Sum,
}

/// The headers of one segment, ready to be sent.
pub(crate) struct Head {
    bytes: [u8; HEAD_BYTES_MAX],
    length: usize,
}

impl Template {
    pub(crate) fn new(own: Ethernet, peer: Ethernet, address: Ipv4Addr, flow: &Flow) -> Template {
        let mut bytes = [0; TEMPLATE_BYTES];
        let header = ethernet::Header { destination: peer, source: own, kind: TYPE_IPV4 };
        bytes[..14].copy_from_slice(&header.bytes());
        bytes[14..34].copy_from_slice(&ipv4::header(address, flow.peer, PROTOCOL_TCP, 0));
        bytes[16..18].fill(0);
        bytes[24..26].fill(0);
        bytes[34..36].copy_from_slice(&flow.local_port.to_be_bytes());
        bytes[36..38].copy_from_slice(&flow.peer_port.to_be_bytes());
        Template {
            ip_sum: Sum::of(&bytes[14..34]),
            tcp_sum: Sum::pseudo_header(address, flow.peer, PROTOCOL_TCP, 0),
            bytes,
        }
    }

    #[inline]
    pub(crate) fn peer(&self) -> Ethernet {
        let [a, b, c, d, e, f, ..] = self.bytes;
        Ethernet([a, b, c, d, e, f])
    }

    /// The address of ours that it was made for.
    pub(crate) fn source(&self) -> Ipv4Addr {
        Ipv4Addr::new(self.bytes[26], self.bytes[27], self.bytes[28], self.bytes[29])
    }

    pub(crate) fn set_peer(&mut self, peer: Ethernet) {
        self.bytes[..6].copy_from_slice(&peer.0);
    }

    /// The headers of a segment with the payload of `pieces`. The checksum is left to the card if it can do it.
    #[inline]
    pub(crate) fn head(&self, segment: &SegmentToSend, pieces: &[Piece], offloads: Offloads) -> Head {
        let mut bytes = [0; HEAD_BYTES_MAX];
        bytes[..TEMPLATE_BYTES].copy_from_slice(&self.bytes);
        let options = segment.options.len().min(OPTIONS_BYTES_MAX);
        if options > 0 {
            segment.options.emit(&mut bytes[TEMPLATE_BYTES..]);
        }
        let tcp_bytes = (TCP_BYTES + options + segment.payload_bytes) as u16;
        let ip_bytes = tcp_bytes + IPV4_BYTES as u16;
        bytes[16..18].copy_from_slice(&ip_bytes.to_be_bytes());
        bytes[24..26].copy_from_slice(&self.ip_sum.and_word(ip_bytes).field());
        bytes[38..42].copy_from_slice(&segment.sequence.0.to_be_bytes());
        bytes[42..46].copy_from_slice(&segment.acknowledgment.0.to_be_bytes());
        bytes[46] = ((TCP_BYTES + options) << 2) as u8;
        bytes[47] = segment.flags.0;
        bytes[48..50].copy_from_slice(&segment.window.to_be_bytes());
        let sum = self.tcp_sum.and_word(tcp_bytes);
        let field =
            if offloads.checksum { sum.offload_field() } else { and_pieces(sum.and(&bytes[34..]), pieces).field() };
        bytes[50..52].copy_from_slice(&field);
        Head { bytes, length: TEMPLATE_BYTES + options }
    }
}

impl Head {
    pub(crate) fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }

    /// The frame that these headers start.
    pub(crate) fn outgoing<'a>(
        &'a self,
        segment: &SegmentToSend,
        pieces: &'a [Piece],
        offloads: Offloads,
    ) -> Outgoing<'a> {
        Outgoing {
            head: self.bytes(),
            payload: pieces,
            checksum: offloads.checksum.then_some(OFFLOAD),
            segment_bytes: segment.segment_bytes,
        }
    }
}

/// Adds the bytes of all pieces, which may be of odd lengths.
fn and_pieces(sum: Sum, pieces: &[Piece]) -> Sum {
    let mut odd = false;
    pieces.iter().fold(sum, |sum, piece| {
        let part = Sum::of(piece.bytes());
        let sum = if odd { sum.and_sum_at_odd(part) } else { sum.and_sum(part) };
        odd ^= piece.len() % 2 == 1;
        sum
    })
}
