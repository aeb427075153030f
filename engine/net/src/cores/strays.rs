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

use machine::{Checksum, Frame, Instant};
use sometimes::sometimes;

use super::message::{Kind, Onward};
use crate::ethernet::{self, ETHERNET_BYTES, TYPE_IPV4, TYPE_IPV6};
use crate::event::Place;
use crate::flow::Entry;
use crate::ipv4;
use crate::ipv6;
use crate::net::Net;
use crate::received::Received;
use crate::segments::Arrival;
use crate::tcp::{HalfOpenId, SegmentRepr, TimeWaitId};

/// How well a segment fits what a core has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fit {
    /// It is for us.
    Exactly,
    /// We know its flow, but there may be somebody whom it fits better.
    Somehow,
    NotAtAll,
}

impl Net {
    /// Whether the connection at `index` may be the one that a segment is for; it is, where there is one core.
    #[inline(always)]
    pub(crate) fn is_meant_for(&self, index: u32, segment: &SegmentRepr<'_>) -> bool {
        if self.fellows.is_none() {
            return true;
        }
        let found = self.connections.id_at(index as usize).and_then(|id| self.connections.get(id));
        found.is_none_or(|found| found.tcb.may_be_meant(segment))
    }

    /// Lets a segment go round the other cores that does not fit what its flow leads to here, `entry`; whether it does. A connection that it is meant for was not
    /// found.
    #[cold]
    pub(crate) fn goes_round(
        &mut self,
        now: Instant,
        entry: Option<Entry>,
        arrival: &Arrival<'_>,
        received: &Received<'_>,
    ) -> bool {
        let Some(fellows) = &self.fellows else { return false };
        if fellows.all_have_looked() {
            sometimes!(StrayUnknown);
            return false;
        }
        match self.fit(now, entry, arrival) {
            Fit::Exactly => false,
            fit => self.send_round(fit, arrival, received),
        }
    }

    fn fit(&mut self, now: Instant, entry: Option<Entry>, arrival: &Arrival<'_>) -> Fit {
        let Arrival { caller, segment, .. } = arrival;
        let fits = match entry {
            _ if segment.flags.opens() => return Fit::Exactly,
            // It was looked at already.
            Some(Entry::Connection(_)) => false,
            None if self.cookie_completed(now, arrival).is_some() => return Fit::Exactly,
            None => return Fit::NotAtAll,
            Some(Entry::HalfOpen(index)) if self.half_open.is_reset_by(HalfOpenId(index), caller, segment) => {
                // It may be for this handshake or for what is elsewhere: it ends both.
                self.half_open.remove(HalfOpenId(index), caller);
                self.handshake_gone(&caller.flow);
                return Fit::NotAtAll;
            }
            Some(Entry::HalfOpen(index)) => self.half_open.is_completed_by(HalfOpenId(index), caller, segment),
            Some(Entry::TimeWait(index)) => self.time_wait.is_ended_by(TimeWaitId(index), &caller.flow, segment),
        };
        if fits { Fit::Exactly } else { Fit::Somehow }
    }

    fn send_round(&mut self, fit: Fit, arrival: &Arrival<'_>, received: &Received<'_>) -> bool {
        let Some(fellows) = &mut self.fellows else { return false };
        let (own, hops) = (fellows.cores.own, fellows.hops + 1);
        let answerer = fellows.answerer.or((fit == Fit::Somehow).then_some(own));
        // From the last one it goes to who answers, which may be this one.
        let core = answerer.filter(|_| hops == fellows.cores.count).unwrap_or(fellows.cores.next());
        if core == own {
            return false;
        }
        let onward = Onward { core, kind: Kind::Stray, hops, answerer, verified: true, syn: None };
        match arrival.place {
            Place::Frame(_) => fellows.onward = Some(onward),
            Place::Reassembled(_) => {
                // Its fragments met here: it goes on in one piece. If there is no room for it, that is counted.
                let _ = self.pass_on(whole_frame(received), None, onward);
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
            let header = ipv6::header(source, destination, ipv4::PROTOCOL_TCP, received.hop_limit, payload.len());
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
    if let Some(place) = bytes.get_mut(at..at + what.len()) {
        place.copy_from_slice(what);
    }
}
