//! Strays: segments for which there is no connection on this core, or none that they fit.
//!
//! A connection may be on another core than its segments come to: the card changed its mind about where they go, or the
//! connection is one that we opened. Such a segment goes round the cores, and whoever knows it keeps it. A SYN that may open a
//! connection does not go round: it would cost every newcomer the way. So a SYN that is repeated on another queue is taken
//! for a newcomer there, and for a while a flow may lead to two handshakes, or to one and to a connection that is over
//! elsewhere. Therefore such an entry keeps only what fits it exactly, and lets everything else go round:
//! - A handshake keeps what completes it. The other one, whose SYN-ACK the peer did not take, is given up in its time.
//! - TIME-WAIT keeps the peer's last FIN.
//! - A connection keeps what lies in its windows or a little before. The peer may have forgotten it, started anew, and called again by
//!   another queue.
//! - A cookie is good on the core that gave it.
//!
//! What nobody keeps is answered as if there were one core: by the first that has an entry for it, or else where it began.

use alloc::boxed::Box;
use alloc::vec;

use machine::{Checksum, Frame};

use super::Fellows;
use super::message::{Kind, Onward};
use crate::counters::Counters;
use crate::ethernet::{self, ETHERNET_BYTES, TYPE_IPV4, TYPE_IPV6};
use crate::event::Place;
use crate::ipv4;
use crate::ipv6;
use crate::received::Received;

/// How well a segment fits what a core has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fit {
    /// It is for us.
    Exactly,
    /// We know its flow, but there may be somebody whom it fits better.
    Somehow,
    NotAtAll,
}

impl Fellows {
    /// Lets a segment go on to the next core. False: it is answered here.
    pub(crate) fn send_round(
        &mut self,
        fit: Fit,
        place: &Place,
        received: &Received<'_>,
        counters: &mut Counters,
    ) -> bool {
        let (own, hops) = (self.cores.own, self.hops + 1);
        let answerer = self.answerer.or((fit == Fit::Somehow).then_some(own));
        // From the last one it goes to who answers, which may be this one.
        let core = answerer.filter(|_| hops == self.cores.count).unwrap_or(self.cores.next());
        if core == own {
            return false;
        }
        let onward = Onward { core, kind: Kind::Stray, hops, answerer, verified: true, syn: None };
        match place {
            Place::Frame(_) => self.onward = Some(onward),
            Place::Reassembled(_) => {
                // Its fragments met here: it goes on in one piece. If there is no room for it, that is counted.
                let _ = self.pass_on(whole_frame(received), None, onward, counters);
            }
        }
        true
    }
}

/// The frame in which a packet would have come that came in fragments.
fn whole_frame(received: &Received<'_>) -> Frame {
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
    write(&mut bytes, 0, &ethernet::Header { kind, ..received.ethernet }.bytes());
    write(&mut bytes, ETHERNET_BYTES + ip_bytes, payload);
    let end = ETHERNET_BYTES + ip_bytes + payload.len();
    Frame::new(Box::from(bytes), 0..end, Checksum::Verified)
}

fn write(bytes: &mut [u8], at: usize, what: &[u8]) {
    let Some(place) = bytes.get_mut(at..at + what.len()) else {
        unreachable!("a frame that is shorter than its parts")
    };
    place.copy_from_slice(what);
}
