//! The receive path: from a frame to its payload. Each layer checks its header once, and each
//! refused packet is counted.

use core::net::SocketAddr;

use machine::{Checksum, Frame, Instant};

use super::Net;
use crate::arp::ArpOutcome;
use crate::cores::{LinkNews, Route};
use crate::counters::Counter;
use crate::dhcp::LeaseChange;
use crate::ethernet::{self, ETHERNET_BYTES, TYPE_ARP, TYPE_IPV4, TYPE_IPV6};
use crate::event::{DatagramPlace, Event, Events};
use crate::icmp::IcmpError;
use crate::icmpv6::{self, Icmpv6Outcome};
use crate::interface::Addressee;
use crate::ip::{Ip, Local};
use crate::ipv4::{self, PROTOCOL_ICMP, PROTOCOL_TCP, PROTOCOL_UDP};
use crate::ipv6::extensions::{Fragment, Problem, Walked, walk};
use crate::ipv6::{self, IPV6_BYTES, PROTOCOL_ICMPV6};
use crate::reassembly::{DatagramKey, FragmentHeader, FragmentResult};
use crate::received::InPacket;
use crate::udp;

/// The offset of the next-header field in the IPv6 header.
const NEXT_HEADER_AT: usize = 6;
/// The offset of the payload-length field in the IPv6 header.
const LENGTH_AT: usize = 4;

impl Net {
    /// Handles a received frame. Adds its events to `events`, which must be empty. The bytes of
    /// [`Event::Data`] are in the frame. After the events, the caller passes the frame to
    /// [`Net::frame_handled`].
    pub fn frame_arrived(&mut self, now: Instant, frame: &mut Frame, events: &mut Events) -> Route {
        self.link.counters.count(Counter::FramesIn);
        self.link.counters.add(Counter::BytesIn, frame.bytes().len() as u64);
        if self.other_cores.is_some() {
            return self.frame_arrived_multicore(now, frame, events);
        }
        self.process_frame(now, frame.bytes(), frame.checksum() == Checksum::Verified, events);
        Route::Here
    }

    /// Processes a frame on this core. `verified`: the card has verified the transport checksum.
    /// The function is inlined into both callers, so that a machine with one core pays for no call.
    #[inline(always)]
    pub(super) fn process_frame(
        &mut self,
        now: Instant,
        bytes: &[u8],
        verified: bool,
        events: &mut Events,
    ) {
        if let Some(buffer) = self.reassembled.take() {
            self.reassembly.put_back(buffer);
        }
        let Some((header, rest)) = ethernet::EthernetHeader::parse(bytes) else {
            self.link.counters.count(Counter::DroppedMalformed);
            return;
        };
        if header.destination != self.link.interface.hardware
            && !ethernet::is_group(header.destination)
        {
            self.link.counters.count(Counter::DroppedNotOurs);
            return;
        }
        match header.kind {
            TYPE_IPV4 => self.ipv4_arrived(now, header, rest, verified, events),
            TYPE_IPV6 => self.ipv6_arrived(now, header, rest, verified, events),
            TYPE_ARP => self.arp_arrived(now, rest),
            _ => self.link.counters.count(Counter::DroppedUnknownProtocol),
        }
        if self.has_changed() {
            self.report_addresses(events);
        }
    }

    fn arp_arrived(&mut self, now: Instant, bytes: &[u8]) {
        match self.link.arp_arrived(now, bytes) {
            ArpOutcome::Nothing => {}
            ArpOutcome::Neighbour { address, hardware } => {
                self.pass_on_link_news(LinkNews::Neighbour { address, hardware });
            }
            ArpOutcome::Conflict => {
                if self
                    .dhcp
                    .as_mut()
                    .is_some_and(|dhcp| dhcp.conflict_seen(now) == LeaseChange::Refused)
                {
                    self.change_address(now, None);
                }
            }
        }
    }

    #[inline(always)]
    fn ipv4_arrived(
        &mut self,
        now: Instant,
        ethernet: ethernet::EthernetHeader,
        packet: &[u8],
        verified: bool,
        events: &mut Events,
    ) {
        let ip = match ipv4::Ipv4Header::parse(packet) {
            Ok(ip) => ip,
            Err(ipv4::Ipv4Error::Malformed) => {
                self.link.counters.count(Counter::DroppedMalformed);
                return;
            }
            Err(ipv4::Ipv4Error::Checksum) => {
                self.link.counters.count(Counter::DroppedChecksum);
                return;
            }
        };
        if !ipv4::is_possible_source(ip.source)
            || self.link.interface.addressee(ip.source) != Addressee::Others
        {
            self.link.counters.count(Counter::DroppedBadSource);
            return;
        }
        let addressee = self.link.interface.addressee(ip.destination);
        // While we have no address, DHCP servers send to the address that they are about to assign
        // to us.
        let for_dhcp = self.link.interface.address.is_none()
            && self.dhcp.is_some()
            && ip.protocol == PROTOCOL_UDP;
        if addressee == Addressee::Others && !for_dhcp {
            self.link.counters.count(Counter::DroppedBadDestination);
            return;
        }
        let payload = ip.payload(packet);
        let received = InPacket {
            ethernet,
            source: ip.source.into(),
            destination: ip.destination.into(),
            local: Local::IPV4,
            addressee,
            hop_limit: 0,
            is_marked: ip.is_marked,
            protocol: ip.protocol,
            named_at: 0,
            packet: packet.get(..usize::from(ip.total_bytes)).unwrap_or(packet),
            begins_datagram: ip.fragment_offset == 0,
            payload,
            verified,
        };
        if ip.is_fragment() {
            let key = DatagramKey {
                source: received.source,
                destination: received.destination,
                identification: ip.identification.into(),
                protocol: ip.protocol,
            };
            let (offset, more_fragments) = (ip.fragment_offset, ip.more_fragments);
            let part = FragmentHeader { key, offset, more_fragments, begins_with: ip.protocol };
            let fragment = received;
            self.fragment_arrived(now, &part, &fragment, events);
        } else {
            let payload_at = ETHERNET_BYTES + usize::from(ip.header_bytes);
            self.transport_arrived(
                now,
                &received,
                DatagramPlace::Frame(payload_at..payload_at + payload.len()),
                events,
            );
        }
    }

    fn fragment_arrived(
        &mut self,
        now: Instant,
        part: &FragmentHeader,
        received: &InPacket<'_>,
        events: &mut Events,
    ) {
        self.link.counters.count(Counter::FragmentsIn);
        let index = match self.reassembly.fragment_arrived(now, part, received.payload) {
            FragmentResult::Waiting => return,
            FragmentResult::Failed => {
                self.link.counters.count(Counter::ReassemblyFailed);
                return;
            }
            FragmentResult::Whole(index) => index,
        };
        let Some(whole) = self.reassembly.take(index) else {
            unreachable!("the datagram has just been completed")
        };
        self.link.counters.count(Counter::Reassembled);
        let Some(payload) = whole.buffer.get(..whole.length) else {
            unreachable!("the length is at most the buffer's")
        };
        // The card has verified the checksum of one fragment, but not of the whole datagram.
        let received =
            InPacket { payload, verified: false, protocol: whole.begins_with, ..*received };
        if received.source.is_ipv4() {
            self.transport_arrived(
                now,
                &received,
                DatagramPlace::Reassembled(0..whole.length),
                events,
            );
        } else {
            self.reassembled_ipv6_arrived(now, &received, events);
        }
        self.reassembled = Some(whole.buffer);
    }

    /// Inlined, so that the parsed fields of a segment stay in registers. For other protocols
    /// `received` is copied: a value with references to it would not stay in registers.
    #[inline(always)]
    fn transport_arrived(
        &mut self,
        now: Instant,
        received: &InPacket<'_>,
        place: DatagramPlace,
        events: &mut Events,
    ) {
        if received.protocol == PROTOCOL_TCP {
            return self.tcp.arrived(
                now,
                received,
                place,
                &mut self.link,
                &mut self.other_cores,
                events,
            );
        }
        let received = *received;
        self.other_transport_arrived(now, &received, place, events);
    }

    /// Handles every protocol but TCP.
    fn other_transport_arrived(
        &mut self,
        now: Instant,
        received: &InPacket<'_>,
        place: DatagramPlace,
        events: &mut Events,
    ) {
        match received.protocol {
            PROTOCOL_UDP => self.udp_arrived(now, received, place, events),
            PROTOCOL_ICMP if received.source.is_ipv4() => {
                if let Some(report) = self.icmp.arrived(&mut self.link, now, received) {
                    self.icmp_report_arrived(now, &report, events);
                }
            }
            PROTOCOL_ICMPV6 if !received.source.is_ipv4() => {
                match self.icmpv6.arrived(&mut self.link, now, received) {
                    Icmpv6Outcome::Nothing => {}
                    Icmpv6Outcome::Neighbour { address, claim } => {
                        self.pass_on_link_news(LinkNews::Ipv6Neighbour { address, claim });
                    }
                    Icmpv6Outcome::TransportError(report) => {
                        self.icmp_report_arrived(now, &report, events)
                    }
                }
            }
            _ => self.send_error(now, received, IcmpError::ProtocolUnreachable),
        }
    }

    /// Sends an ICMP error to the sender of a packet, if the rules allow one.
    fn send_error(&mut self, now: Instant, received: &InPacket<'_>, what: IcmpError) {
        if received.source.is_ipv4() {
            self.icmp.send_error(&mut self.link, now, received, what);
        } else {
            self.icmpv6.send_error(&mut self.link, now, received, what.into());
        }
    }

    fn udp_arrived(
        &mut self,
        now: Instant,
        received: &InPacket<'_>,
        place: DatagramPlace,
        events: &mut Events,
    ) {
        let datagram = match udp::parse(received) {
            Ok(datagram) => datagram,
            Err(udp::UdpError::Malformed) => {
                self.link.counters.count(Counter::DroppedMalformed);
                return;
            }
            Err(udp::UdpError::Checksum) => {
                self.link.counters.count(Counter::DroppedChecksum);
                return;
            }
        };
        let port = datagram.destination_port;
        if self.is_dhcp_port(port)
            && received.source.is_ipv4()
            && datagram.source_port == crate::dhcp::SERVER_PORT
        {
            self.link.counters.count(Counter::DatagramsIn);
            self.dhcp_arrived(now, datagram.payload);
        } else if self.ports.is_bound(port) && received.addressee != Addressee::Others {
            self.link.counters.count(Counter::DatagramsIn);
            let peer = SocketAddr::new(received.source.into(), datagram.source_port);
            let bytes = place.part(udp::UDP_BYTES, datagram.payload.len());
            let pushed = events.push(Event::Datagram { port, peer, bytes });
            assert!(pushed.is_ok(), "a frame finds the events empty");
        } else {
            self.link.counters.count(Counter::DroppedNoListener);
            self.send_error(now, received, IcmpError::PortUnreachable);
        }
    }

    fn dhcp_arrived(&mut self, now: Instant, message: &[u8]) {
        let Some(dhcp) = &mut *self.dhcp else {
            unreachable!("only a DHCP client has the DHCP port")
        };
        match dhcp.message_arrived(now, message) {
            LeaseChange::Nothing => {}
            LeaseChange::Leased => {
                let address = dhcp.lease().map(|lease| lease.address);
                self.change_address(now, address);
            }
            LeaseChange::Refused => self.change_address(now, None),
        }
    }

    fn ipv6_arrived(
        &mut self,
        now: Instant,
        ethernet: ethernet::EthernetHeader,
        packet: &[u8],
        verified: bool,
        events: &mut Events,
    ) {
        if !self.link.ndp.is_enabled() {
            self.link.counters.count(Counter::DroppedUnknownProtocol);
            return;
        }
        let header = ipv6::Ipv6Header::parse(packet);
        let Some((ip, packet)) = header.and_then(|ip| Some((ip, ip.cut(packet)?))) else {
            self.link.counters.count(Counter::DroppedMalformed);
            return;
        };
        let is_ours = self.link.ndp.addressee(ip.source).0 == Addressee::Us;
        if ip.source.is_multicast() || !ipv6::is_possible(ip.source) || is_ours {
            self.link.counters.count(Counter::DroppedBadSource);
            return;
        }
        let (addressee, local) = self.link.ndp.addressee(ip.destination);
        if addressee == Addressee::Others {
            self.link.counters.count(Counter::DroppedBadDestination);
            return;
        }
        let received = InPacket {
            ethernet,
            source: ip.source.into(),
            destination: ip.destination.into(),
            local,
            addressee,
            hop_limit: ip.hop_limit,
            is_marked: ip.is_marked,
            protocol: ip.next_header,
            named_at: NEXT_HEADER_AT as u16,
            packet,
            begins_datagram: true,
            payload: &[],
            verified,
        };
        self.walked(
            now,
            walk(packet, ip.next_header, NEXT_HEADER_AT, IPV6_BYTES),
            &received,
            events,
        );
    }

    /// Handles a packet after the walk through its extension headers. The fields of `received` do
    /// not contain the results of the walk.
    #[inline]
    fn walked(
        &mut self,
        now: Instant,
        walked: Walked,
        received: &InPacket<'_>,
        events: &mut Events,
    ) {
        match walked {
            Walked::Payload { protocol, at, named_at } => {
                let payload = received.packet.get(at..).unwrap_or_default();
                let place =
                    DatagramPlace::Frame(ETHERNET_BYTES + at..ETHERNET_BYTES + at + payload.len());
                let received =
                    InPacket { protocol, named_at: named_at as u16, payload, ..*received };
                self.ipv6_transport_arrived(now, &received, place, events);
            }
            Walked::Fragment(fragment) => {
                self.ipv6_fragment_arrived(now, &fragment, received, events)
            }
            Walked::Refused(problem) => {
                self.link.counters.count(Counter::DroppedMalformed);
                self.icmpv6.send_error(
                    &mut self.link,
                    now,
                    received,
                    icmpv6::Icmpv6Error::Problem(problem),
                );
            }
            Walked::Dropped | Walked::Truncated => {
                self.link.counters.count(Counter::DroppedMalformed)
            }
        }
    }

    #[inline(never)]
    fn ipv6_transport_arrived(
        &mut self,
        now: Instant,
        received: &InPacket<'_>,
        place: DatagramPlace,
        events: &mut Events,
    ) {
        // The unspecified source address is only valid for duplicate address detection.
        if received.source == Ip::UNSPECIFIED && received.protocol != PROTOCOL_ICMPV6 {
            self.link.counters.count(Counter::DroppedBadSource);
            return;
        }
        self.transport_arrived(now, received, place, events);
    }

    fn ipv6_fragment_arrived(
        &mut self,
        now: Instant,
        fragment: &Fragment,
        received: &InPacket<'_>,
        events: &mut Events,
    ) {
        let payload = received.packet.get(fragment.at..).unwrap_or_default();
        let problem = if fragment.more && !payload.len().is_multiple_of(8) {
            Some(Problem::new(Problem::FIELD, LENGTH_AT))
        } else if usize::from(fragment.offset) + payload.len() > usize::from(u16::MAX) {
            Some(Problem::new(Problem::FIELD, fragment.header_at + 2))
        } else if fragment.offset == 0
            && walk(payload, fragment.next_header, 0, 0) == Walked::Truncated
        {
            // The first fragment must contain all headers, because middleboxes must see them (RFC
            // 7112).
            Some(Problem::new(Problem::INCOMPLETE, 0))
        } else {
            None
        };
        let received = InPacket { payload, begins_datagram: fragment.offset == 0, ..*received };
        if let Some(problem) = problem {
            self.link.counters.count(Counter::FragmentsIn);
            self.link.counters.count(Counter::ReassemblyFailed);
            self.icmpv6.send_error(
                &mut self.link,
                now,
                &received,
                icmpv6::Icmpv6Error::Problem(problem),
            );
            return;
        }
        let key = DatagramKey {
            source: received.source,
            destination: received.destination,
            identification: fragment.identification,
            protocol: 0,
        };
        let part = FragmentHeader {
            key,
            offset: fragment.offset,
            more_fragments: fragment.more,
            begins_with: fragment.next_header,
        };
        self.fragment_arrived(now, &part, &received, events);
    }

    /// Handles a reassembled packet. Its `payload` begins after the Fragment header, and its
    /// `protocol` is the kind of the first header there.
    fn reassembled_ipv6_arrived(
        &mut self,
        now: Instant,
        received: &InPacket<'_>,
        events: &mut Events,
    ) {
        match walk(received.payload, received.protocol, 0, 0) {
            Walked::Payload { protocol, at, .. } => {
                let payload = received.payload.get(at..).unwrap_or_default();
                // The original packet no longer exists, so an ICMP error cannot quote it.
                let whole = InPacket { protocol, payload, begins_datagram: false, ..*received };
                self.ipv6_transport_arrived(
                    now,
                    &whole,
                    DatagramPlace::Reassembled(at..at + payload.len()),
                    events,
                );
            }
            // A reassembled packet must not contain another fragment.
            _ => self.link.counters.count(Counter::DroppedMalformed),
        }
    }
}
