//! ICMP (RFC 792): answers echo requests, sends errors, and reads received errors.
//! - No error is sent about an error, about a packet to a group, or about a fragment other than the
//!   first. No error is sent to a source that is not a single host (RFC 1122 §3.2.2). The rates of
//!   errors and of echoes are limited (RFC 1812 §4.3.2.8).
//! - A received error is only a hint. It must quote a segment of ours that is in flight, and even
//!   then it closes no established connection (RFC 5927 §4.1, §6.1). Redirects and source quenches
//!   are ignored (RFC 6633).

use machine::Instant;
use smoltcp::wire::{Icmpv4Message, Icmpv4Packet};

use crate::checksum::Sum;
use crate::counters::Counter;
use crate::ethernet;
use crate::flow::Flow;
use crate::interface::Addressee;
use crate::ip::Local;
use crate::ipv4::{self, PROTOCOL_ICMP, PROTOCOL_TCP};
use crate::link::{Link, Packet};
use crate::rate::RateLimit;
use crate::received::InPacket;
use crate::template::TCP_BYTES;

/// Bytes in the header of an error.
const ERROR_BYTES: usize = 8;
/// The most bytes of a packet that an error quotes, so that the whole error fits 576 bytes (RFC
/// 1812 §4.3.2.3).
const QUOTE_BYTES_MAX: usize = 576 - ipv4::IPV4_BYTES - ERROR_BYTES;
const ECHO_REQUEST: u8 = 8;

/// The errors that we send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IcmpError {
    ProtocolUnreachable,
    PortUnreachable,
}

impl IcmpError {
    fn kind_and_code(self) -> [u8; 2] {
        match self {
            IcmpError::ProtocolUnreachable => [3, 2],
            IcmpError::PortUnreachable => [3, 3],
        }
    }
}

/// The content of an ICMP error about a segment of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IcmpReport {
    /// The flow of the quoted segment.
    pub(crate) flow: Flow,
    /// The sequence number of the first byte of the quoted segment.
    pub(crate) sequence: u32,
    pub(crate) error: TransportError,
}

/// The kinds of errors that concern TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TransportError {
    /// The host cannot be reached at present, or a router prohibits packets to it.
    Unreachable,
    /// The host exists but does not accept such packets, because it has no such protocol or port
    /// (RFC 1122 §4.2.3.9).
    Refused,
    /// The packet was too large for the path. `mss`: the payload in bytes that would have fitted;
    /// zero if the router does not tell.
    TooBig { mss: u16 },
}

pub(crate) struct Icmp {
    errors: RateLimit,
    echoes: RateLimit,
}

impl Icmp {
    pub(crate) fn new() -> Icmp {
        Icmp { errors: RateLimit::new(100, 20), echoes: RateLimit::new(1_000, 100) }
    }

    /// Handles an ICMP message to us. Returns the report of an error about a segment of ours.
    pub(crate) fn arrived(
        &mut self,
        link: &mut Link,
        now: Instant,
        received: &InPacket<'_>,
    ) -> Option<IcmpReport> {
        if !Sum::of(received.payload).is_valid() {
            link.counters.count(Counter::DroppedChecksum);
            return None;
        }
        let Ok(message) = Icmpv4Packet::new_checked(received.payload) else {
            link.counters.count(Counter::DroppedMalformed);
            return None;
        };
        let code = message.msg_code();
        match message.msg_type() {
            Icmpv4Message::EchoRequest if code == 0 => self.answer_echo(link, now, received),
            Icmpv4Message::DstUnreachable if code == 4 => {
                let [_, _, _, _, _, _, high, low] = *received.payload.first_chunk()?;
                // A router older than RFC 1191 does not report an MTU. Then the MSS is zero here,
                // which stands for the minimum.
                let mss = u16::from_be_bytes([high, low])
                    .saturating_sub((ipv4::IPV4_BYTES + TCP_BYTES) as u16);
                return report(link, received, TransportError::TooBig { mss });
            }
            Icmpv4Message::DstUnreachable if code == 2 || code == 3 => {
                return report(link, received, TransportError::Refused);
            }
            Icmpv4Message::DstUnreachable
            | Icmpv4Message::TimeExceeded
            | Icmpv4Message::ParamProblem => {
                return report(link, received, TransportError::Unreachable);
            }
            _ => {}
        }
        None
    }

    /// Sends an ICMP error to the sender of a packet, if the rules allow one.
    pub(crate) fn send_error(
        &mut self,
        link: &mut Link,
        now: Instant,
        received: &InPacket<'_>,
        what: IcmpError,
    ) {
        let Some(source) = received.source.to_v4() else { return };
        let about_error = received.protocol == PROTOCOL_ICMP
            && !received.payload.first().is_some_and(|kind| *kind == ECHO_REQUEST || *kind == 0);
        let may = received.addressee == Addressee::Us
            && !ethernet::is_group(received.ethernet.destination)
            && received.begins_datagram
            && ipv4::is_possible_source(source)
            && link.interface.addressee(source) == Addressee::Others
            && !about_error;
        if !may {
            return;
        }
        if !self.errors.allows(now) {
            link.counters.count(Counter::IcmpLimited);
            return;
        }
        let quoted = received.packet.get(..QUOTE_BYTES_MAX).unwrap_or(received.packet);
        let sent = answer(link, now, received, ERROR_BYTES + quoted.len(), |bytes| {
            let Some((header, rest)) = bytes.split_first_chunk_mut::<ERROR_BYTES>() else {
                unreachable!("the reserved buffer is too short")
            };
            let [kind, code] = what.kind_and_code();
            *header = [kind, code, 0, 0, 0, 0, 0, 0];
            rest.copy_from_slice(quoted);
        });
        link.counters.add(Counter::IcmpErrorsOut, u64::from(sent));
    }

    fn answer_echo(&mut self, link: &mut Link, now: Instant, received: &InPacket<'_>) {
        // A broadcast ping is not answered (RFC 1122 §3.2.2.6). Otherwise an attacker could make
        // many hosts answer to one victim.
        if received.addressee != Addressee::Us || ethernet::is_group(received.ethernet.destination)
        {
            return;
        }
        if !self.echoes.allows(now) {
            link.counters.count(Counter::IcmpLimited);
            return;
        }
        let sent = answer(link, now, received, received.payload.len(), |bytes| {
            bytes.copy_from_slice(received.payload);
            let Some(header) = bytes.first_chunk_mut::<4>() else {
                unreachable!("an echo request without a header")
            };
            *header = [0; 4];
        });
        link.counters.add(Counter::EchoesAnswered, u64::from(sent));
    }
}

/// Answers a received packet with an ICMP message. Returns false if the message could not be sent.
fn answer(
    link: &mut Link,
    now: Instant,
    received: &InPacket<'_>,
    payload_bytes: usize,
    write: impl FnOnce(&mut [u8]),
) -> bool {
    let Some(hardware) = link.hardware_to_answer(now, received.source, received.ethernet.source)
    else {
        link.counters.count(Counter::DroppedNoRoute);
        return false;
    };
    let packet = Packet::new(received.destination, received.source, PROTOCOL_ICMP, payload_bytes)
        .by(hardware);
    let write = |bytes: &mut [u8]| {
        write(bytes);
        let field = Sum::of(bytes).field();
        let Some([_, _, high, low]) = bytes.first_chunk_mut() else {
            unreachable!("a message without its header")
        };
        [*high, *low] = field;
    };
    link.send(now, &packet, write).is_ok()
}

/// The report of a received error, if it quotes a TCP segment that we sent.
fn report(link: &mut Link, received: &InPacket<'_>, error: TransportError) -> Option<IcmpReport> {
    let quoted = received.payload.get(ERROR_BYTES..)?;
    let Ok(ip) = ipv4::Ipv4Header::parse_quoted(quoted) else {
        link.counters.count(Counter::DroppedMalformed);
        return None;
    };
    if ip.protocol != PROTOCOL_TCP || ip.source != link.interface.own() || ip.fragment_offset != 0 {
        return None;
    }
    let [a, b, c, d, e, f, g, h] = *quoted.get(usize::from(ip.header_bytes)..)?.first_chunk()?;
    let flow = Flow {
        peer: ip.destination.into(),
        local: Local::IPV4,
        peer_port: u16::from_be_bytes([c, d]),
        local_port: u16::from_be_bytes([a, b]),
    };
    Some(IcmpReport { flow, sequence: u32::from_be_bytes([e, f, g, h]), error })
}
