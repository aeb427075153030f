//! The receive path of TCP: finds the connection of a segment. Also handles segments without a
//! connection.

use machine::Instant;
use sometimes::sometimes;

use super::arrival::{Arrival, is_intact, parse};
use super::{Tcp, TcpConnection};
use crate::cores::{MulticoreState, SegmentMatch};
use crate::counters::{Counter, Counters};
use crate::event::{ConnectionId, DatagramPlace, Event, Events};
use crate::flow::{FlowTarget, SynSender};
use crate::icmp::{IcmpReport, TransportError};
use crate::interface::Addressee;
use crate::link::Link;
use crate::received::InPacket;
use crate::tcp::{
    Actions, CloseReason, HalfOpenId, HalfOpenVerdict, SegmentRepr, SegmentToSend, SequenceNumber,
    TcpFlags, TimeWaitId, TimeWaitVerdict, reset_for,
};
use crate::template::SegmentHeaders;

/// The state outside of [`Tcp`] that a segment may change: the link, the state for work with the
/// other cores, and the events.
pub(super) struct ArrivalContext<'a> {
    pub(super) link: &'a mut Link,
    pub(super) other_cores: &'a mut Option<MulticoreState>,
    pub(super) events: &'a mut Events,
}

impl Tcp {
    /// Handles a received TCP segment. The function is inlined into its caller. So only the slow
    /// path writes the parsed segment to memory.
    #[inline(always)]
    pub(crate) fn arrived(
        &mut self,
        now: Instant,
        received: &InPacket<'_>,
        place: DatagramPlace,
        link: &mut Link,
        other_cores: &mut Option<MulticoreState>,
        events: &mut Events,
    ) {
        // TCP connects two hosts. So a segment to a group is neither accepted nor answered (RFC
        // 9293 §3.10).
        if received.addressee != Addressee::Us
            || crate::ethernet::is_group(received.ethernet.destination)
        {
            link.counters.count(Counter::DroppedBadDestination);
            return;
        }
        let Some(Arrival { caller, segment, place }) = parse(received, &place) else {
            link.counters.count(Counter::DroppedMalformed);
            return;
        };
        if !received.verified && !is_intact(received.source, received.destination, received.payload)
        {
            link.counters.count(Counter::DroppedChecksum);
            return;
        }
        link.counters.count(Counter::SegmentsIn);
        match self.flows.find(&caller.flow) {
            Some(FlowTarget::Connection(index))
                if other_cores.is_none() || self.is_meant_for(index, &segment) =>
            {
                self.hand_over(now, index, &caller, &segment, &place, link, events);
            }
            entry => {
                let received = *received;
                let arrival = Arrival { caller, segment, place };
                self.other_arrived(
                    now,
                    entry,
                    &arrival,
                    &received,
                    &mut ArrivalContext { link, other_cores, events },
                );
            }
        }
    }

    /// Handles a segment that the fast path does not hand to a connection.
    fn other_arrived(
        &mut self,
        now: Instant,
        entry: Option<FlowTarget>,
        arrival: &Arrival<'_>,
        received: &InPacket<'_>,
        context: &mut ArrivalContext<'_>,
    ) {
        match entry {
            entry
                if context.other_cores.is_some()
                    && self.forward_stray(now, entry, arrival, received, context) => {}
            Some(FlowTarget::Connection(index)) => {
                self.connected_arrived(now, index, arrival, context)
            }
            Some(FlowTarget::HalfOpen(index)) => {
                self.half_open_arrived(now, HalfOpenId(index), arrival, context)
            }
            Some(FlowTarget::TimeWait(index)) => {
                self.time_wait_arrived(now, TimeWaitId(index), arrival, context)
            }
            None if arrival.segment.flags.has(TcpFlags::SYN) => {
                self.unmatched_syn_arrived(now, arrival, None, context)
            }
            None => self.stray_arrived(now, arrival, context),
        }
    }

    /// Whether a segment may be for the connection at `index`. Only called on a machine with
    /// several cores.
    #[inline(always)]
    fn is_meant_for(&self, index: u32, segment: &SegmentRepr<'_>) -> bool {
        let found = self.connections.id_at(index as usize).and_then(|id| self.connections.get(id));
        found.is_none_or(|found| found.tcb.may_be_meant(segment))
    }

    /// Sends a segment round the other cores, unless it fits `entry`, the entry of its flow on this
    /// core. Returns whether the segment was sent.
    #[cold]
    fn forward_stray(
        &mut self,
        now: Instant,
        entry: Option<FlowTarget>,
        arrival: &Arrival<'_>,
        received: &InPacket<'_>,
        context: &mut ArrivalContext<'_>,
    ) -> bool {
        let Some(other_cores) = &*context.other_cores else { return false };
        if other_cores.all_have_looked() {
            sometimes!(StrayUnknown);
            return false;
        }
        match self.fit(now, entry, arrival, context) {
            SegmentMatch::Exact => false,
            fit => context.other_cores.as_mut().is_some_and(|other_cores| {
                other_cores.send_round(fit, &arrival.place, received, &mut context.link.counters)
            }),
        }
    }

    fn fit(
        &mut self,
        now: Instant,
        entry: Option<FlowTarget>,
        arrival: &Arrival<'_>,
        context: &mut ArrivalContext<'_>,
    ) -> SegmentMatch {
        let Arrival { caller, segment, .. } = arrival;
        let fits = match entry {
            _ if segment.flags.opens() => return SegmentMatch::Exact,
            // The fast path has already found that the segment does not fit this connection.
            Some(FlowTarget::Connection(_)) => false,
            None if self.cookie_completed(now, arrival, context.link).is_some() => {
                return SegmentMatch::Exact;
            }
            None => return SegmentMatch::None,
            Some(FlowTarget::HalfOpen(index))
                if self.half_open.is_reset_by(HalfOpenId(index), caller, segment) =>
            {
                // The reset may be for this handshake, or for a connection on another core. So it
                // ends this handshake, and goes round the other cores too.
                self.half_open.remove(HalfOpenId(index), caller);
                self.handshake_removed(&caller.flow, context.other_cores);
                return SegmentMatch::None;
            }
            Some(FlowTarget::HalfOpen(index)) => {
                self.half_open.is_completed_by(HalfOpenId(index), caller, segment)
            }
            Some(FlowTarget::TimeWait(index)) => {
                self.time_wait.is_ended_by(TimeWaitId(index), &caller.flow, segment)
            }
        };
        if fits { SegmentMatch::Exact } else { SegmentMatch::FlowOnly }
    }

    pub(super) fn connected_arrived(
        &mut self,
        now: Instant,
        index: u32,
        arrival: &Arrival<'_>,
        context: &mut ArrivalContext<'_>,
    ) {
        let Arrival { caller, segment, place } = arrival;
        self.hand_over(now, index, caller, segment, place, context.link, context.events);
    }

    /// Hands a segment to its connection.
    #[inline(always)]
    #[expect(clippy::too_many_arguments, reason = "the parts of an arrival stay in registers")]
    fn hand_over(
        &mut self,
        now: Instant,
        index: u32,
        caller: &SynSender,
        segment: &SegmentRepr<'_>,
        place: &DatagramPlace,
        link: &mut Link,
        events: &mut Events,
    ) {
        let Some(id) = self.connections.id_at(index as usize) else {
            unreachable!("a flow without its connection")
        };
        let Some(found) = self.connections.get_mut(id) else {
            unreachable!("the slot is occupied")
        };
        if !found.template.is_of(&caller.flow) {
            return;
        }
        let connection = ConnectionId(id);
        let actions = found.tcb.segment_arrived(now, segment, &mut self.pools);
        if found.template.peer() != caller.came_from {
            self.peer_hardware_changed(now, connection, link);
        }
        self.act(now, connection, &actions, Some((segment, place)), &mut link.counters, events);
    }

    /// Reports the effects of a segment, an ICMP error or a deadline on a connection, as events for
    /// the user of the network stack. Puts the connection into the queue of touched connections if
    /// data has arrived or the connection is not at rest.
    #[inline(always)]
    fn act(
        &mut self,
        now: Instant,
        connection: ConnectionId,
        actions: &Actions,
        arrived: Option<(&SegmentRepr<'_>, &DatagramPlace)>,
        counters: &mut Counters,
        events: &mut Events,
    ) {
        let mut tell = |event| {
            let pushed = events.push(event);
            assert!(pushed.is_ok(), "the list has room for the events of one segment or deadline");
        };
        if actions.connected {
            tell(Event::Connected { connection });
        }
        let mut buffered = actions.buffered;
        if !actions.data.is_empty()
            && let Some((segment, place)) = arrived
        {
            let data = place.part(actions.data.start, actions.data.len());
            match data {
                DatagramPlace::Frame(bytes) => tell(Event::Data { connection, bytes }),
                // Events can refer only to bytes of the frame. Reassembled bytes are buffered, as
                // if the user had not consumed them.
                DatagramPlace::Reassembled(_) => {
                    let (Some(bytes), Some(found)) = (
                        segment.payload.get(actions.data.clone()),
                        self.connections.get_mut(connection.0),
                    ) else {
                        unreachable!("a connection has just taken these bytes of the segment")
                    };
                    found.tcb.keep(bytes, &mut self.pools);
                    buffered = true;
                }
            }
        }
        if buffered {
            tell(Event::Buffered { connection });
        }
        if actions.send_room {
            tell(Event::SendRoom { connection });
        }
        if actions.peer_closed {
            tell(Event::PeerClosed { connection });
        }
        if let Some(reason) = actions.closed {
            counters.add(Counter::ResetsIn, u64::from(reason == CloseReason::Reset));
            let Some(found) = self.connections.get_mut(connection.0) else {
                unreachable!("the connection has just acted")
            };
            found.user_is_done = true;
            tell(Event::Closed { connection, reason });
        }
        // The user of the stack usually answers data. Segments without data are nearly always
        // acknowledgments, after which the connection often has nothing to do.
        let is_at_rest = |found: &TcpConnection| found.tcb.is_at_rest(now, found.armed_for);
        if !actions.data.is_empty() || !self.connections.get(connection.0).is_some_and(is_at_rest) {
            self.touch(connection);
        }
    }

    /// Handles the expiry of a connection's entry in the delay queue. The deadline of the TCB may
    /// have moved to a later time since the entry was made. The function is not inlined, because
    /// most turns have no deadline and should not pay for it.
    #[inline(never)]
    pub(super) fn connection_due(
        &mut self,
        now: Instant,
        connection: ConnectionId,
        counters: &mut Counters,
        events: &mut Events,
    ) {
        let Some(found) = self.connections.get_mut(connection.0) else {
            unreachable!("a connection that is over has no deadline")
        };
        found.armed_for = Instant::NEVER;
        let actions = found.tcb.deadline_expired(now, &mut self.pools);
        self.act(now, connection, &actions, None, counters, events);
    }

    fn half_open_arrived(
        &mut self,
        now: Instant,
        id: HalfOpenId,
        arrival: &Arrival<'_>,
        context: &mut ArrivalContext<'_>,
    ) {
        match self.half_open.segment_arrived(now, id, &arrival.caller, &arrival.segment) {
            HalfOpenVerdict::Nothing => {}
            HalfOpenVerdict::Respond(reply) => answer(context.link, now, &arrival.caller, &reply),
            HalfOpenVerdict::Removed => {
                self.handshake_removed(&arrival.caller.flow, context.other_cores)
            }
            HalfOpenVerdict::Completed(handshake) => {
                self.accept(now, Some(id), &handshake, arrival, context)
            }
        }
    }

    fn time_wait_arrived(
        &mut self,
        now: Instant,
        id: TimeWaitId,
        arrival: &Arrival<'_>,
        context: &mut ArrivalContext<'_>,
    ) {
        match self.time_wait.segment_arrived(now, id, &arrival.caller.flow, &arrival.segment) {
            TimeWaitVerdict::Nothing => {}
            TimeWaitVerdict::Respond(reply) => answer(context.link, now, &arrival.caller, &reply),
            TimeWaitVerdict::NewConnection { snd_nxt } => {
                self.flows.remove(&arrival.caller.flow);
                self.unmatched_syn_arrived(now, arrival, Some(snd_nxt), context);
            }
        }
    }

    /// Handles a segment that is not a SYN and has no connection. The segment completes a handshake
    /// by cookie, or is ignored or refused.
    fn stray_arrived(
        &mut self,
        now: Instant,
        arrival: &Arrival<'_>,
        context: &mut ArrivalContext<'_>,
    ) {
        match self.cookie_completed(now, arrival, context.link) {
            Some(handshake) => {
                context.link.counters.count(Counter::CookiesIn);
                self.accept(now, None, &handshake, arrival, context);
            }
            // A listener ignores segments without SYN or ACK, but refuses unexpected
            // acknowledgments (RFC 9293 §3.10.7.2).
            None if !arrival.segment.flags.has(TcpFlags::ACK)
                && self.service_of(arrival.caller.flow.local_port).is_some() => {}
            None => self.refuse(now, &arrival.caller, &arrival.segment, context.link),
        }
    }

    pub(super) fn refuse(
        &mut self,
        now: Instant,
        caller: &SynSender,
        segment: &SegmentRepr<'_>,
        link: &mut Link,
    ) {
        link.counters.count(Counter::RefusedClosed);
        if let Some(reset) = reset_for(segment).filter(|_| self.resets.allows(now)) {
            answer(link, now, caller, &reset);
        }
    }

    /// Handles a segment that came from another hardware address than the address that the
    /// connection sends to. The neighbour cache decides which of them is right.
    fn peer_hardware_changed(&mut self, now: Instant, connection: ConnectionId, link: &mut Link) {
        let Some(found) = self.connections.get_mut(connection.0) else {
            unreachable!("the connection has just received a segment")
        };
        if let Some(hardware) = link.hardware_for(now, found.template.flow().peer) {
            found.template.set_peer(hardware);
        }
    }

    /// Handles an ICMP error about a segment that allegedly came from this machine. Returns false
    /// if the flow of the segment is unknown.
    ///
    /// The report is only a hint: it never closes an established connection. Retransmission finds
    /// out whether the report is true (RFC 5927 §4). The report counts only if the reported segment
    /// is in flight. Then it lowers the path MTU, or ends an attempt to connect.
    pub(crate) fn icmp_report_arrived(
        &mut self,
        now: Instant,
        report: &IcmpReport,
        counters: &mut Counters,
        events: &mut Events,
    ) -> bool {
        let Some(entry) = self.flows.find(&report.flow) else { return false };
        counters.count(Counter::IcmpErrorsIn);
        let FlowTarget::Connection(index) = entry else { return true };
        let Some(id) = self.connections.id_at(index as usize) else {
            unreachable!("a flow without its connection")
        };
        let Some(found) =
            self.connections.get_mut(id).filter(|found| found.template.flow() == report.flow)
        else {
            return true;
        };
        let sequence = SequenceNumber(report.sequence);
        match report.error {
            TransportError::TooBig { mss } => {
                found.tcb.path_narrowed(sequence, mss);
                self.touch(ConnectionId(id));
            }
            TransportError::Refused => {
                let actions = found.tcb.connect_refused_by_path(sequence, &mut self.pools);
                self.act(now, ConnectionId(id), &actions, None, counters, events);
            }
            TransportError::Unreachable => {}
        }
        true
    }
}

/// Queues a segment that belongs to no connection.
pub(super) fn answer(link: &mut Link, now: Instant, caller: &SynSender, segment: &SegmentToSend) {
    let Some(template) = link.template_for(now, caller) else {
        link.counters.count(Counter::DroppedNoRoute);
        return;
    };
    let mut head = SegmentHeaders::NONE;
    let head = template.head(&mut head, segment, &[], machine::Offloads::default());
    let Some(room) = link.outbox.reserve(head.bytes().len()) else {
        link.counters.count(Counter::DroppedOut);
        return;
    };
    room.copy_from_slice(head.bytes());
    link.counters.count(Counter::SegmentsOut);
    link.counters.add(Counter::ResetsOut, u64::from(segment.flags.has(TcpFlags::RST)));
}
