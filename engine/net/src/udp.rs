//! UDP (RFC 768): a few bound ports, and datagrams in both directions. DHCP and DNS need only this.

use core::net::SocketAddr;

use heapless::Vec;
use machine::Instant;
use smoltcp::wire::UdpPacket;

use crate::checksum::Sum;
use crate::counters::Counter;
use crate::ip::Ip;
use crate::ipv4::PROTOCOL_UDP;
use crate::link::{Link, Packet, Unsent};
use crate::received::InPacket;

/// Bytes in a UDP header.
pub(crate) const UDP_BYTES: usize = 8;
/// The most bound ports: one for each pending DNS query, and some more.
pub(crate) const PORTS_MAX: usize = 144;

/// The bound ports.
#[derive(Default)]
pub(crate) struct Ports(Vec<u16, PORTS_MAX>);

impl Ports {
    /// Binds `port`. False: too many ports are bound.
    pub(crate) fn bind(&mut self, port: u16) -> bool {
        self.is_bound(port) || self.0.push(port).is_ok()
    }

    pub(crate) fn release(&mut self, port: u16) {
        self.0.retain(|bound| *bound != port);
    }

    pub(crate) fn is_bound(&self, port: u16) -> bool {
        self.0.contains(&port)
    }
}

/// A received datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Datagram<'a> {
    pub(crate) source_port: u16,
    pub(crate) destination_port: u16,
    pub(crate) payload: &'a [u8],
}

/// Why a datagram is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UdpError {
    Malformed,
    Checksum,
}

/// Parses and checks the datagram in an IP packet.
pub(crate) fn parse<'a>(received: &InPacket<'a>) -> Result<Datagram<'a>, UdpError> {
    let packet = UdpPacket::new_checked(received.payload).map_err(|_| UdpError::Malformed)?;
    // Port 0 is reserved, so it is no valid destination. As a source port it is valid and means "do
    // not answer". No client that expects an answer uses it.
    if packet.dst_port() == 0 {
        return Err(UdpError::Malformed);
    }
    let datagram = received.payload.get(..usize::from(packet.len())).ok_or(UdpError::Malformed)?;
    // A zero checksum means that the sender did not compute it. IPv6 does not allow that (RFC 8200
    // §8.1).
    let is_summed = packet.checksum() != 0 || !received.source.is_ipv4();
    let sum = Sum::pseudo_header(received.source, received.destination, PROTOCOL_UDP, packet.len())
        .and(datagram);
    if !received.verified && is_summed && (packet.checksum() == 0 || !sum.is_valid()) {
        return Err(UdpError::Checksum);
    }
    Ok(Datagram {
        source_port: packet.src_port(),
        destination_port: packet.dst_port(),
        payload: packet.payload(),
    })
}

/// Sends a datagram of `payload_bytes` from `source` to `destination`. `write` fills in the
/// payload.
pub(crate) fn send(
    link: &mut Link,
    now: Instant,
    source: SocketAddr,
    destination: SocketAddr,
    payload_bytes: usize,
    write: impl FnOnce(&mut [u8]),
) -> Result<(), Unsent> {
    let length = UDP_BYTES + payload_bytes;
    let (from, to) = (Ip::from(source.ip()), Ip::from(destination.ip()));
    let field = u16::try_from(length).map_err(|_| Unsent::TooLong)?;
    link.send(now, &Packet::new(from, to, PROTOCOL_UDP, length), |bytes| {
        let Some((header, payload)) = bytes.split_first_chunk_mut::<UDP_BYTES>() else {
            unreachable!("the reserved buffer is too short")
        };
        write(payload);
        let mut view = UdpPacket::new_unchecked(header.as_mut_slice());
        view.set_src_port(source.port());
        view.set_dst_port(destination.port());
        view.set_len(field);
        let sum = Sum::pseudo_header(from, to, PROTOCOL_UDP, field).and(bytes).field();
        // Zero would mean "no checksum"; its complement is the same number (RFC 768).
        let sum = if sum == [0, 0] { [0xff, 0xff] } else { sum };
        let Some([_, _, _, _, _, _, high, low]) = bytes.first_chunk_mut::<UDP_BYTES>() else {
            unreachable!("the reserved buffer is too short")
        };
        [*high, *low] = sum;
    })?;
    link.counters.count(Counter::DatagramsOut);
    Ok(())
}
