//! Strays. A stray is a segment of a flow that has no entry on this core, or a segment that does
//! not fit the entry of its flow.
//!
//! The segments of a connection may arrive at a core that is not the owner of the connection. The
//! cause is that the card has changed its distribution, or that we opened the connection. Such a
//! segment goes round the cores, and the core that knows its connection keeps it.
//!
//! A SYN that may open a connection does not go round, because that would delay every new
//! connection. So a repeated SYN that reaches another queue seems new to the core of that queue.
//! For a while a flow may then have two handshakes, or a handshake and a closed connection on
//! another core. Therefore the entries of a flow keep only segments that fit exactly, and let all
//! others go round:
//! - A handshake keeps a segment that completes it. If the peer has accepted the SYN-ACK of the
//!   other handshake, this handshake gets no such segment and expires.
//! - A TIME-WAIT entry keeps the peer's last FIN.
//! - A connection keeps segments within its windows or slightly before. The peer may have restarted
//!   and opened a new connection through another queue.
//! - A cookie (the state of a handshake, in our sequence number) is valid only on the core that
//!   sent it.
//!
//! Exactly one core answers a segment that no core keeps. This is the first core on the segment's
//! way that has an entry for the flow. If no core has an entry, it is the core with the card that
//! received the segment.

use alloc::boxed::Box;
use alloc::vec;

use machine::{Checksum, Frame};

use super::MulticoreState;
use super::message::{Onward, PassReason};
use crate::counters::Counters;
use crate::ethernet::{self, ETHERNET_BYTES, TYPE_IPV4, TYPE_IPV6};
use crate::event::DatagramPlace;
use crate::ipv4;
use crate::ipv6;
use crate::received::InPacket;

/// How well a segment fits the state of a core.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SegmentMatch {
    /// The segment is for this core.
    Exact,
    /// This core has an entry for the flow, but the segment may belong to another core.
    FlowOnly,
    None,
}

impl MulticoreState {
    /// Passes a segment on to the next core. Returns false if this core must answer it.
    pub(crate) fn send_round(
        &mut self,
        fit: SegmentMatch,
        place: &DatagramPlace,
        received: &InPacket<'_>,
        counters: &mut Counters,
    ) -> bool {
        let (own, hops) = (self.cores.own, self.hops + 1);
        let answerer = self.answerer.or((fit == SegmentMatch::FlowOnly).then_some(own));
        // The last core of the round passes the segment to the answering core, or answers it
        // itself.
        let core = answerer.filter(|_| hops == self.cores.count).unwrap_or(self.cores.next());
        if core == own {
            return false;
        }
        let onward =
            Onward { core, kind: PassReason::Stray, hops, answerer, verified: true, syn: None };
        match place {
            DatagramPlace::Frame(_) => self.onward = Some(onward),
            DatagramPlace::Reassembled(_) => {
                // The fragments were reassembled on this core, so the packet is passed on as one
                // frame. If there is no room, `pass_on` counts the loss.
                let _ = self.pass_on(whole_frame(received), None, onward, counters);
            }
        }
        true
    }
}

/// The frame that would have carried a packet if no router had fragmented it.
fn whole_frame(received: &InPacket<'_>) -> Frame {
    let payload = received.payload;
    let mut bytes = vec![0; ETHERNET_BYTES + ipv6::IPV6_BYTES + payload.len()];
    let (ip_bytes, kind) = match (received.source.to_v4(), received.destination.to_v4()) {
        (Some(source), Some(destination)) => {
            let header = ipv4::header(source, destination, ipv4::PROTOCOL_TCP, payload.len());
            write(&mut bytes, ETHERNET_BYTES, &header);
            (header.len(), TYPE_IPV4)
        }
        _ => {
            let (source, destination) = (received.source.to_v6(), received.destination.to_v6());
            let header = ipv6::header(
                source,
                destination,
                ipv4::PROTOCOL_TCP,
                received.hop_limit,
                payload.len(),
            );
            write(&mut bytes, ETHERNET_BYTES, &header);
            (header.len(), TYPE_IPV6)
        }
    };
    write(&mut bytes, 0, &ethernet::EthernetHeader { kind, ..received.ethernet }.bytes());
    write(&mut bytes, ETHERNET_BYTES + ip_bytes, payload);
    let end = ETHERNET_BYTES + ip_bytes + payload.len();
    Frame::new(Box::from(bytes), 0..end, Checksum::Verified)
}

fn write(bytes: &mut [u8], at: usize, what: &[u8]) {
    let Some(place) = bytes.get_mut(at..at + what.len()) else {
        unreachable!("the frame is as long as its parts")
    };
    place.copy_from_slice(what);
}
