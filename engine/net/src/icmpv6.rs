//! ICMPv6 (RFC 4443): answers echo requests, sends errors, and reads received errors.
//! - No error is sent about an error, or to a source that is not a single host. None is sent about
//!   a packet to a group, except where §2.4 (e) requires one. All errors share one rate limit, and
//!   all echoes share another (§2.4 (f)).
//! - A received error is only a hint, exactly as in IPv4 ([`crate::icmp`]). A report of a path
//!   MTU below 1280 bytes is dropped (RFC 8201 §4).
//! - A ping to a group is answered only if it comes from this link. So no outsider can make many
//!   hosts answer to one victim.

use core::net::Ipv6Addr;

use machine::Instant;
use smoltcp::wire::Icmpv6Message;

use crate::checksum::Sum;
use crate::counters::Counter;
use crate::ethernet;
use crate::flow::Flow;
use crate::icmp::{self, IcmpReport, TransportError};
use crate::interface::Addressee;
use crate::ip::Ip;
use crate::ipv4::PROTOCOL_TCP;
use crate::ipv6::extensions::{self, Problem};
use crate::ipv6::{self, IPV6_BYTES, MTU_MIN, PROTOCOL_ICMPV6};
use crate::link::{HEADERS_IPV6, Link, Packet};
use crate::ndp::AdvertisedNeighbour;
use crate::rate::RateLimit;
use crate::received::InPacket;

/// Bytes in the header of an error.
const ERROR_BYTES: usize = 8;
/// The most bytes of a packet that an error quotes, so that the error fits the minimum MTU (§2.4
/// (c)).
const QUOTE_BYTES_MAX: usize = MTU_MIN as usize - IPV6_BYTES - ERROR_BYTES;
/// The lowest type that is not an error.
const ECHO_REQUEST: u8 = 128;
const ECHO_REPLY: u8 = 129;
const REDIRECT: u8 = 137;

/// The errors that we send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Icmpv6Error {
    PortUnreachable,
    /// A protocol that is not supported.
    Protocol,
    Problem(Problem),
}

impl From<icmp::IcmpError> for Icmpv6Error {
    fn from(error: icmp::IcmpError) -> Icmpv6Error {
        match error {
            icmp::IcmpError::PortUnreachable => Icmpv6Error::PortUnreachable,
            icmp::IcmpError::ProtocolUnreachable => Icmpv6Error::Protocol,
        }
    }
}

/// The effect of an ICMPv6 message outside of the link's own state.
pub(crate) enum Icmpv6Outcome {
    Nothing,
    /// A neighbour has advertised its hardware address.
    Neighbour {
        address: Ipv6Addr,
        claim: AdvertisedNeighbour,
    },
    /// An error about a segment of ours.
    TransportError(IcmpReport),
}

pub(crate) struct Icmpv6 {
    errors: RateLimit,
    echoes: RateLimit,
}

impl Icmpv6 {
    pub(crate) fn new() -> Icmpv6 {
        Icmpv6 { errors: RateLimit::new(100, 20), echoes: RateLimit::new(1_000, 100) }
    }

    /// Handles an ICMPv6 message to us, or to a group of ours.
    pub(crate) fn arrived(
        &mut self,
        link: &mut Link,
        now: Instant,
        received: &InPacket<'_>,
    ) -> Icmpv6Outcome {
        let length = received.payload.len() as u16;
        let sum =
            Sum::pseudo_header(received.source, received.destination, PROTOCOL_ICMPV6, length);
        if !sum.and(received.payload).is_valid() {
            link.counters.count(Counter::DroppedChecksum);
            return Icmpv6Outcome::Nothing;
        }
        let Some(&[kind, code, _, _, a, b, c, d]) = received.payload.first_chunk::<ERROR_BYTES>()
        else {
            link.counters.count(Counter::DroppedMalformed);
            return Icmpv6Outcome::Nothing;
        };
        let error = match Icmpv6Message::from(kind) {
            Icmpv6Message::PktTooBig => {
                let mtu = u16::try_from(u32::from_be_bytes([a, b, c, d])).unwrap_or(u16::MAX);
                if mtu < MTU_MIN {
                    return Icmpv6Outcome::Nothing;
                }
                TransportError::TooBig { mss: mtu - HEADERS_IPV6 }
            }
            Icmpv6Message::DstUnreachable if code == 4 => TransportError::Refused,
            Icmpv6Message::DstUnreachable
            | Icmpv6Message::TimeExceeded
            | Icmpv6Message::ParamProblem => TransportError::Unreachable,
            Icmpv6Message::EchoRequest if code == 0 => {
                self.answer_echo(link, now, received);
                return Icmpv6Outcome::Nothing;
            }
            Icmpv6Message::MldQuery => {
                link.listener_query_arrived(now, received);
                return Icmpv6Outcome::Nothing;
            }
            message if message.is_ndisc() => {
                let claimed = link.ndp_arrived(now, received);
                return claimed.map_or(Icmpv6Outcome::Nothing, |(address, claim)| {
                    Icmpv6Outcome::Neighbour { address, claim }
                });
            }
            _ => return Icmpv6Outcome::Nothing,
        };
        report(link, received, error).map_or(Icmpv6Outcome::Nothing, Icmpv6Outcome::TransportError)
    }

    /// Sends an ICMPv6 error to the sender of a packet, if the rules allow one.
    pub(crate) fn send_error(
        &mut self,
        link: &mut Link,
        now: Instant,
        received: &InPacket<'_>,
        what: Icmpv6Error,
    ) {
        let is_for_group = received.addressee != Addressee::Us
            || ethernet::is_group(received.ethernet.destination);
        let concerns_groups =
            matches!(what, Icmpv6Error::Problem(Problem { concerns_groups: true, .. }));
        let may = (!is_for_group || concerns_groups)
            && received.begins_datagram
            && ipv6::is_unicast(received.source.to_v6())
            && !is_about_error(received.packet);
        if !may {
            return;
        }
        if !self.errors.allows(now) {
            link.counters.count(Counter::IcmpLimited);
            return;
        }
        let (kind, code, pointer) = match what {
            Icmpv6Error::PortUnreachable => (1, 4, 0),
            Icmpv6Error::Protocol => (4, Problem::NEXT_HEADER, u32::from(received.named_at)),
            Icmpv6Error::Problem(Problem { code, pointer, .. }) => (4, code, pointer),
        };
        let quoted = received.packet.get(..QUOTE_BYTES_MAX).unwrap_or(received.packet);
        let sent = answer(link, now, received, ERROR_BYTES + quoted.len(), |bytes| {
            let Some((header, rest)) = bytes.split_first_chunk_mut::<ERROR_BYTES>() else {
                unreachable!("the reserved buffer is too short")
            };
            let [a, b, c, d] = pointer.to_be_bytes();
            *header = [kind, code, 0, 0, a, b, c, d];
            rest.copy_from_slice(quoted);
        });
        link.counters.add(Counter::IcmpErrorsOut, u64::from(sent));
    }

    fn answer_echo(&mut self, link: &mut Link, now: Instant, received: &InPacket<'_>) {
        let is_near = ipv6::is_link_local(received.source.to_v6());
        if received.source == Ip::UNSPECIFIED || received.addressee != Addressee::Us && !is_near {
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
            *header = [ECHO_REPLY, 0, 0, 0];
        });
        link.counters.add(Counter::EchoesAnswered, u64::from(sent));
    }
}

/// The report of a received error, if it quotes a TCP segment that we sent.
fn report(link: &mut Link, received: &InPacket<'_>, error: TransportError) -> Option<IcmpReport> {
    let quoted = received.payload.get(ERROR_BYTES..)?;
    let Some(ip) = ipv6::Ipv6Header::parse(quoted) else {
        link.counters.count(Counter::DroppedMalformed);
        return None;
    };
    let (Addressee::Us, local) = link.ndp.addressee(ip.source) else { return None };
    let [a, b, c, d, e, f, g, h] = *quoted.get(IPV6_BYTES..)?.first_chunk()?;
    // Our segments have no extension headers.
    if ip.next_header != PROTOCOL_TCP {
        return None;
    }
    let (local_port, peer_port) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
    let flow = Flow { peer: ip.destination.into(), local, peer_port, local_port };
    Some(IcmpReport { flow, sequence: u32::from_be_bytes([e, f, g, h]), error })
}

/// Answers a received packet with an ICMPv6 message. Returns false if the message could not be
/// sent.
fn answer(
    link: &mut Link,
    now: Instant,
    received: &InPacket<'_>,
    payload_bytes: usize,
    write: impl FnOnce(&mut [u8]),
) -> bool {
    let source = match received.addressee {
        Addressee::Us => Some(received.destination),
        _ => link.source_for(now, received.source).map(|(_, own)| own),
    };
    let hardware = link.hardware_to_answer(now, received.source, received.ethernet.source);
    let (Some(source), Some(hardware)) = (source, hardware) else {
        link.counters.count(Counter::DroppedNoRoute);
        return false;
    };
    let packet = Packet::new(source, received.source, PROTOCOL_ICMPV6, payload_bytes).by(hardware);
    let sent = link.send(now, &packet, |bytes| {
        write(bytes);
        seal(source, received.source, bytes);
    });
    sent.is_ok()
}

/// Writes the checksum of an ICMPv6 message. The checksum field must be zero before.
pub(crate) fn seal(source: Ip, destination: Ip, message: &mut [u8]) {
    let sum = Sum::pseudo_header(source, destination, PROTOCOL_ICMPV6, message.len() as u16);
    let field = sum.and(message).field();
    let Some([_, _, high, low]) = message.first_chunk_mut() else {
        unreachable!("a message without its header")
    };
    [*high, *low] = field;
}

/// Whether a packet carries an ICMPv6 error or a redirect. An error about either could be answered
/// with further errors for ever.
fn is_about_error(packet: &[u8]) -> bool {
    let Some(ip) = ipv6::Ipv6Header::parse(packet) else { return true };
    let (protocol, at) = extensions::upper(packet, ip.next_header, IPV6_BYTES);
    let kind = packet.get(at).copied().unwrap_or(0);
    protocol == PROTOCOL_ICMPV6 && (kind < ECHO_REQUEST || kind == REDIRECT)
}
