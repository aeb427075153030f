//! The fast path for sending: the headers are built once for each connection, and completed for
//! each segment.
//!
//! The template holds the fields that are the same in all segments of a connection. These are both
//! Ethernet addresses, most of the IP header, and the ports. It also holds the sums of these
//! fields, for the checksums. A segment costs a copy of the template, six stores and two foldings.
//!
//! The TCP header is at the same offset for IPv4 and IPv6: the frame of an IPv4 connection begins
//! 20 bytes later in the template.

use core::net::{Ipv4Addr, Ipv6Addr};

use machine::{ChecksumOffload, Ethernet, Offloads, OutgoingFrame, Piece};

use crate::checksum::Sum;
use crate::ethernet::{self, ETHERNET_BYTES, TYPE_IPV4, TYPE_IPV6};
use crate::flow::Flow;
use crate::ip::{Ip, Local};
use crate::ipv4::{self, IPV4_BYTES, PROTOCOL_TCP};
use crate::ipv6::{self, IPV6_BYTES};
use crate::tcp::{OPTIONS_BYTES_MAX, SegmentToSend};

/// The ECN bits of a data segment that routers may mark: ECT(0) (RFC 3168 §5).
const ECT_0: u8 = 2;

/// Bytes in a TCP header without options.
pub(crate) const TCP_BYTES: usize = 20;
/// The offset of the TCP header in a template.
const TCP_AT: usize = ETHERNET_BYTES + IPV6_BYTES;
/// The offset of an IPv4 frame in a template.
const IPV4_FRAME_AT: usize = IPV6_BYTES - IPV4_BYTES;
/// Bytes in a template.
const TEMPLATE_BYTES: usize = TCP_AT + TCP_BYTES;
/// The most bytes of headers before the payload of our segments.
pub(crate) const HEAD_BYTES_MAX: usize = TEMPLATE_BYTES + OPTIONS_BYTES_MAX;
const _: () = assert!(HEAD_BYTES_MAX <= machine::HEAD_BYTES_MAX);

/// The offset of the checksum in the TCP header.
const CHECKSUM_AT: u16 = 16;

/// The headers of one connection.
#[derive(Clone, Debug)]
pub(crate) struct Template {
    /// The sum of the IPv4 header without its length.
    ip_sum: Sum,
    /// The sum of the pseudo header without the length.
    tcp_sum: Sum,
    local: Local,
    bytes: [u8; TEMPLATE_BYTES],
}

/// The buffer for the headers of one segment. [`Template::head`] writes the headers in place;
/// before that the buffer is empty.
pub(crate) struct SegmentHeaders {
    bytes: [u8; HEAD_BYTES_MAX],
    start: usize,
    end: usize,
}

impl Template {
    /// Builds the headers of a connection. `address`: our address that `flow` refers to.
    /// `hop_limit`: the hop limit over IPv6.
    pub(crate) fn new(
        own: Ethernet,
        peer: Ethernet,
        address: Ip,
        flow: &Flow,
        hop_limit: u8,
    ) -> Template {
        let mut bytes = [0; TEMPLATE_BYTES];
        let is_ipv4 = flow.local.is_ipv4();
        let kind = if is_ipv4 { TYPE_IPV4 } else { TYPE_IPV6 };
        let ethernet = ethernet::EthernetHeader { destination: peer, source: own, kind }.bytes();
        let mut ip_sum = Sum::default();
        if let (true, Some(from), Some(to)) = (is_ipv4, address.to_v4(), flow.peer.to_v4()) {
            bytes[20..34].copy_from_slice(&ethernet);
            bytes[34..54].copy_from_slice(&ipv4::header(from, to, PROTOCOL_TCP, 0));
            bytes[36..38].fill(0);
            bytes[44..46].fill(0);
            ip_sum = Sum::of(&bytes[34..54]);
        } else {
            let header =
                ipv6::header(address.to_v6(), flow.peer.to_v6(), PROTOCOL_TCP, hop_limit, 0);
            bytes[..14].copy_from_slice(&ethernet);
            bytes[14..54].copy_from_slice(&header);
        }
        bytes[54..56].copy_from_slice(&flow.local_port.to_be_bytes());
        bytes[56..58].copy_from_slice(&flow.peer_port.to_be_bytes());
        let tcp_sum = Sum::pseudo_header(address, flow.peer, PROTOCOL_TCP, 0);
        Template { ip_sum, tcp_sum, local: flow.local, bytes }
    }

    #[inline]
    pub(crate) fn peer(&self) -> Ethernet {
        let place = if self.local.is_ipv4() { &self.bytes[20..26] } else { &self.bytes[..6] };
        let Some(octets) = place.first_chunk() else {
            unreachable!("an address that is cut short")
        };
        Ethernet(*octets)
    }

    pub(crate) fn set_peer(&mut self, peer: Ethernet) {
        let place =
            if self.local.is_ipv4() { &mut self.bytes[20..26] } else { &mut self.bytes[..6] };
        place.copy_from_slice(&peer.0);
    }

    /// The flow of the connection.
    pub(crate) fn flow(&self) -> Flow {
        Flow {
            peer: self.address(&self.bytes[50..54], &self.bytes[38..54]),
            local: self.local,
            peer_port: u16::from_be_bytes([self.bytes[56], self.bytes[57]]),
            local_port: u16::from_be_bytes([self.bytes[54], self.bytes[55]]),
        }
    }

    /// Whether the template belongs to `flow`.
    #[inline(always)]
    pub(crate) fn is_of(&self, flow: &Flow) -> bool {
        // For IPv4, the peer's address and the ports are adjacent.
        let [.., p0, p1, p2, p3] = flow.peer.words()[1].to_ne_bytes();
        let ([l0, l1], [r0, r1]) = (flow.local_port.to_be_bytes(), flow.peer_port.to_be_bytes());
        let is_so =
            self.bytes[50..58] == [p0, p1, p2, p3, l0, l1, r0, r1] && self.local == flow.local;
        is_so && (self.local.is_ipv4() || self.flow() == *flow)
    }

    /// Our address.
    pub(crate) fn source(&self) -> Ip {
        self.address(&self.bytes[46..50], &self.bytes[22..38])
    }

    pub(crate) fn local(&self) -> Local {
        self.local
    }

    /// Writes the headers of a segment with the payload of `pieces` into `head`. The card computes
    /// the checksum if it can.
    #[inline]
    pub(crate) fn head<'a>(
        &self,
        head: &'a mut SegmentHeaders,
        segment: &SegmentToSend,
        pieces: &[Piece],
        offloads: Offloads,
    ) -> &'a SegmentHeaders {
        let options = segment.options.len().min(OPTIONS_BYTES_MAX);
        (head.start, head.end) = (self.start(), TEMPLATE_BYTES + options);
        let bytes = &mut head.bytes;
        bytes[..TEMPLATE_BYTES].copy_from_slice(&self.bytes);
        if options > 0 {
            segment.options.emit(&mut bytes[TEMPLATE_BYTES..]);
        }
        let tcp_bytes = (TCP_BYTES + options + segment.payload_bytes) as u16;
        let ecn = if segment.may_be_marked { ECT_0 } else { 0 };
        if self.local.is_ipv4() {
            let ip_bytes = tcp_bytes + IPV4_BYTES as u16;
            bytes[36..38].copy_from_slice(&ip_bytes.to_be_bytes());
            bytes[35] = ecn;
            bytes[44..46]
                .copy_from_slice(&self.ip_sum.and_word(ip_bytes).and_word(u16::from(ecn)).field());
        } else {
            bytes[15] |= ecn << 4;
            bytes[18..20].copy_from_slice(&tcp_bytes.to_be_bytes());
        }
        bytes[58..62].copy_from_slice(&segment.sequence.0.to_be_bytes());
        bytes[62..66].copy_from_slice(&segment.acknowledgment.0.to_be_bytes());
        bytes[66] = ((TCP_BYTES + options) << 2) as u8;
        bytes[67] = segment.flags.0;
        bytes[68..70].copy_from_slice(&segment.window.to_be_bytes());
        let sum = self.tcp_sum.and_word(tcp_bytes);
        let header = bytes.get(TCP_AT..TEMPLATE_BYTES + options);
        let Some(header) = header else { unreachable!("more options than there is room for") };
        let field = if offloads.checksum {
            sum.offload_field()
        } else {
            and_pieces(sum.and(header), pieces).field()
        };
        bytes[70..72].copy_from_slice(&field);
        head
    }

    #[inline]
    fn start(&self) -> usize {
        if self.local.is_ipv4() { IPV4_FRAME_AT } else { 0 }
    }

    fn address(&self, ipv4: &[u8], ipv6: &[u8]) -> Ip {
        let (Some(ipv4), Some(ipv6)) = (ipv4.first_chunk(), ipv6.first_chunk()) else {
            unreachable!("an address that is cut short")
        };
        if self.local.is_ipv4() {
            Ip::v4(Ipv4Addr::from_octets(*ipv4))
        } else {
            Ip::v6(Ipv6Addr::from_octets(*ipv6))
        }
    }
}

impl SegmentHeaders {
    pub(crate) const NONE: SegmentHeaders =
        SegmentHeaders { bytes: [0; HEAD_BYTES_MAX], start: 0, end: 0 };

    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        let Some(bytes) = self.bytes.get(self.start..self.end) else {
            unreachable!("headers that end beyond their buffer")
        };
        bytes
    }

    /// The frame of these headers and `pieces`.
    #[inline]
    pub(crate) fn outgoing<'a>(
        &'a self,
        segment: &SegmentToSend,
        pieces: &'a [Piece],
        offloads: Offloads,
    ) -> OutgoingFrame<'a> {
        let sums = ChecksumOffload { start: (TCP_AT - self.start) as u16, offset: CHECKSUM_AT };
        OutgoingFrame {
            head: self.bytes(),
            payload: pieces,
            checksum: offloads.checksum.then_some(sums),
            segment_bytes: segment.segment_bytes,
        }
    }
}

/// Adds the bytes of all pieces, which may have odd lengths.
fn and_pieces(sum: Sum, pieces: &[Piece]) -> Sum {
    let mut odd = false;
    pieces.iter().fold(sum, |sum, piece| {
        let part = Sum::of(piece.bytes());
        let sum = if odd { sum.and_sum_at_odd(part) } else { sum.and_sum(part) };
        odd ^= piece.len() % 2 == 1;
        sum
    })
}
