//! The way up of IPv6: from a packet, over its extension headers and perhaps with other parts of it, to what it carries.

use machine::Instant;

use crate::counters::Counter;
use crate::ethernet::{self, ETHERNET_BYTES};
use crate::event::{Events, Place};
use crate::icmpv6::Complaint;
use crate::interface::Meant;
use crate::ip::Ip;
use crate::ipv6::extensions::{Fragment, Problem, Walked, walk};
use crate::ipv6::{self, IPV6_BYTES, PROTOCOL_ICMPV6};
use crate::net::Net;
use crate::reassembly::{Key, Part};
use crate::received::Received;

/// Where the IPv6 header names what follows it.
const NEXT_HEADER_AT: usize = 6;
/// Where it says how long that is.
const LENGTH_AT: usize = 4;

impl Net {
    pub(crate) fn ipv6_arrived(
        &mut self,
        now: Instant,
        ethernet: ethernet::Header,
        packet: &[u8],
        verified: bool,
        events: &mut Events,
    ) {
        if !self.link.ndp.is_spoken() {
            self.link.counters.count(Counter::DroppedUnknownProtocol);
            return;
        }
        let header = ipv6::Header::parse(packet);
        let Some((ip, packet)) = header.and_then(|ip| Some((ip, ip.cut(packet)?))) else {
            self.link.counters.count(Counter::DroppedMalformed);
            return;
        };
        let is_ours = self.link.ndp.meant(ip.source).0 == Meant::Us;
        if ip.source.is_multicast() || !ipv6::is_possible(ip.source) || is_ours {
            self.link.counters.count(Counter::DroppedBadSource);
            return;
        }
        let (meant, local) = self.link.ndp.meant(ip.destination);
        if meant == Meant::Others {
            self.link.counters.count(Counter::DroppedBadDestination);
            return;
        }
        let received = Received {
            ethernet,
            source: ip.source.into(),
            destination: ip.destination.into(),
            local,
            meant,
            hop_limit: ip.hop_limit,
            is_marked: ip.is_marked,
            protocol: ip.next_header,
            named_at: NEXT_HEADER_AT as u16,
            packet,
            begins_datagram: true,
            payload: &[],
            verified,
        };
        self.walked(now, walk(packet, ip.next_header, NEXT_HEADER_AT, IPV6_BYTES), &received, events);
    }

    /// The headers of a packet have been walked over; `received` lacks what was found there.
    #[inline]
    fn walked(&mut self, now: Instant, walked: Walked, received: &Received<'_>, events: &mut Events) {
        match walked {
            Walked::Payload { protocol, at, named_at } => {
                let payload = received.packet.get(at..).unwrap_or_default();
                let place = Place::Frame(ETHERNET_BYTES + at..ETHERNET_BYTES + at + payload.len());
                let received = Received { protocol, named_at: named_at as u16, payload, ..*received };
                self.ipv6_transport_arrived(now, &received, place, events);
            }
            Walked::Fragment(fragment) => self.ipv6_fragment_arrived(now, &fragment, received, events),
            Walked::Refused(problem) => {
                self.link.counters.count(Counter::DroppedMalformed);
                self.icmpv6.complain(&mut self.link, now, received, Complaint::Problem(problem));
            }
            Walked::Dropped | Walked::Truncated => self.link.counters.count(Counter::DroppedMalformed),
        }
    }

    #[inline(never)]
    fn ipv6_transport_arrived(&mut self, now: Instant, received: &Received<'_>, place: Place, events: &mut Events) {
        // Nobody speaks as nobody, except to find out who he may be.
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
        received: &Received<'_>,
        events: &mut Events,
    ) {
        let payload = received.packet.get(fragment.at..).unwrap_or_default();
        let problem = if fragment.more && !payload.len().is_multiple_of(8) {
            Some(Problem::new(Problem::FIELD, LENGTH_AT))
        } else if usize::from(fragment.offset) + payload.len() > usize::from(u16::MAX) {
            Some(Problem::new(Problem::FIELD, fragment.header_at + 2))
        } else if fragment.offset == 0 && walk(payload, fragment.next_header, 0, 0) == Walked::Truncated {
            // All headers stand in the first one, so that those who look on see what it is (RFC 7112).
            Some(Problem::new(Problem::INCOMPLETE, 0))
        } else {
            None
        };
        let received = Received { payload, begins_datagram: fragment.offset == 0, ..*received };
        if let Some(problem) = problem {
            self.link.counters.count(Counter::FragmentsIn);
            self.link.counters.count(Counter::ReassemblyFailed);
            self.icmpv6.complain(&mut self.link, now, &received, Complaint::Problem(problem));
            return;
        }
        let key = Key {
            source: received.source,
            destination: received.destination,
            identification: fragment.identification,
            protocol: 0,
        };
        let part =
            Part { key, offset: fragment.offset, more_fragments: fragment.more, begins_with: fragment.next_header };
        self.fragment_arrived(now, &part, &received, events);
    }

    /// All parts of a packet are there: `payload` is what follows the fragment headers, and `protocol` its first header.
    pub(crate) fn reassembled_ipv6_arrived(&mut self, now: Instant, received: &Received<'_>, events: &mut Events) {
        match walk(received.payload, received.protocol, 0, 0) {
            Walked::Payload { protocol, at, .. } => {
                let payload = received.payload.get(at..).unwrap_or_default();
                // The packet itself is not there any more, so it cannot be quoted.
                let whole = Received { protocol, payload, begins_datagram: false, ..*received };
                self.ipv6_transport_arrived(now, &whole, Place::Reassembled(at..at + payload.len()), events);
            }
            // Fragments of fragments have no use.
            _ => self.link.counters.count(Counter::DroppedMalformed),
        }
    }
}
