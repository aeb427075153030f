//! A received segment: it is parsed once, and its parts are passed on.

use crate::checksum::Sum;
use crate::event::DatagramPlace;
use crate::flow::{Flow, SynSender};
use crate::ip::Ip;
use crate::ipv4::PROTOCOL_TCP;
use crate::received::InPacket;
use crate::tcp::{Options, SegmentRepr, SequenceNumber, TcpFlags};
use crate::template::TCP_BYTES;

/// A parsed segment with its flow.
pub(super) struct Arrival<'a> {
    pub(super) caller: SynSender,
    pub(super) segment: SegmentRepr<'a>,
    /// The place of the segment's payload in its frame or in the reassembly buffer.
    pub(super) place: DatagramPlace,
}

/// Parses a segment: its flow and its fields. `place`: the place of the received transport packet.
#[inline(always)]
pub(super) fn parse<'a>(received: &InPacket<'a>, place: &DatagramPlace) -> Option<Arrival<'a>> {
    let bytes = received.payload;
    let [a, b, c, d, s0, s1, s2, s3, a0, a1, a2, a3, offset, flags, w0, w1, ..] =
        *bytes.first_chunk::<TCP_BYTES>()?;
    let header_bytes = usize::from(offset >> 4) * 4;
    let options = bytes.get(TCP_BYTES..header_bytes)?;
    let payload = bytes.get(header_bytes..)?;
    let flow = Flow {
        peer: received.source,
        local: received.local,
        peer_port: u16::from_be_bytes([a, b]),
        local_port: u16::from_be_bytes([c, d]),
    };
    let segment = SegmentRepr {
        sequence: SequenceNumber(u32::from_be_bytes([s0, s1, s2, s3])),
        acknowledgment: SequenceNumber(u32::from_be_bytes([a0, a1, a2, a3])),
        flags: TcpFlags(flags),
        window: u16::from_be_bytes([w0, w1]),
        congestion_experienced: received.is_marked,
        options: if options.is_empty() { Options::default() } else { Options::parse(options) },
        payload,
    };
    let caller = SynSender { flow, came_from: received.ethernet.source };
    Some(Arrival { caller, segment, place: place.part(header_bytes, payload.len()) })
}

#[inline]
pub(super) fn is_intact(source: Ip, destination: Ip, payload: &[u8]) -> bool {
    Sum::pseudo_header(source, destination, PROTOCOL_TCP, payload.len() as u16)
        .and(payload)
        .is_valid()
}
