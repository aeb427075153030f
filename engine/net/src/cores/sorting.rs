//! Finds the core that processes a frame, from as few bytes of the frame as possible. Nothing is
//! counted or refused here. The chosen core parses the frame as if its own card had received it.

use crate::ethernet::{self, TYPE_ARP, TYPE_IPV4, TYPE_IPV6};
use crate::flow::Flow;
use crate::interface::Addressee;
use crate::ip::{Ip, Local};
use crate::ipv4::{self, PROTOCOL_TCP};
use crate::ipv6;
use crate::link::Link;
use crate::tcp::TcpFlags;
use crate::template::TCP_BYTES;

/// The core that a frame is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum FrameClass {
    /// A TCP segment, for the core of its connection. `opens`: the segment is a SYN, which may open
    /// a connection.
    Segment { flow: Flow, opens: bool },
    /// The first core: the frame concerns the whole machine.
    Other,
    /// No particular core: the frame is dropped when it is processed.
    Nothing,
}

pub(super) fn classify(frame: &[u8], link: &Link) -> FrameClass {
    let Some((header, packet)) = ethernet::EthernetHeader::parse(frame) else {
        return FrameClass::Nothing;
    };
    if header.destination != link.interface.hardware && !ethernet::is_group(header.destination) {
        return FrameClass::Nothing;
    }
    match header.kind {
        TYPE_IPV4 => classify_ipv4(packet, link),
        TYPE_IPV6 => classify_ipv6(packet, link),
        TYPE_ARP => FrameClass::Other,
        _ => FrameClass::Nothing,
    }
}

fn classify_ipv4(packet: &[u8], link: &Link) -> FrameClass {
    let Ok(ip) = ipv4::Ipv4Header::parse(packet) else { return FrameClass::Nothing };
    // The fragments of a datagram must be reassembled on one core.
    if ip.protocol != PROTOCOL_TCP || ip.is_fragment() {
        return FrameClass::Other;
    }
    match link.interface.addressee(ip.destination) {
        Addressee::Us => classify_tcp(ip.payload(packet), ip.source.into(), Local::IPV4),
        _ => FrameClass::Nothing,
    }
}

fn classify_ipv6(packet: &[u8], link: &Link) -> FrameClass {
    let Some(ip) = ipv6::Ipv6Header::parse(packet) else { return FrameClass::Nothing };
    // Extension headers are rare, and the first core walks them.
    if ip.next_header != PROTOCOL_TCP {
        return FrameClass::Other;
    }
    match link.ndp.addressee(ip.destination) {
        (Addressee::Us, local) => classify_tcp(
            packet.get(ipv6::IPV6_BYTES..).unwrap_or_default(),
            ip.source.into(),
            local,
        ),
        _ => FrameClass::Nothing,
    }
}

fn classify_tcp(segment: &[u8], peer: Ip, local: Local) -> FrameClass {
    let Some(&[a, b, c, d, .., flags, _, _, _, _, _, _]) = segment.first_chunk::<TCP_BYTES>()
    else {
        return FrameClass::Nothing;
    };
    let flow = Flow {
        peer,
        local,
        peer_port: u16::from_be_bytes([a, b]),
        local_port: u16::from_be_bytes([c, d]),
    };
    FrameClass::Segment { flow, opens: TcpFlags(flags).opens() }
}
