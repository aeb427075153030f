//! The out phase: at the end of each turn, builds the pending segments and passes them to the card.
//!
//! A connection is in the touched queue at most once, so the queue cannot overflow. If a connection
//! finds the card full, it stays in the queue, and the next turn tries again. So nothing is lost,
//! and nothing is sent twice.

use machine::{Instant, Machine, Offloads, Piece, TransmitError};
use tasks::Budget;

use super::{Tcp, connect};
use crate::cores::MulticoreState;
use crate::counters::{Counter, Counters};
use crate::event::ConnectionId;
use crate::link::Link;
use crate::tcp::{CardFull, CloseOutcome, SegmentToSend, SendLimits, TcpFlags};
use crate::template::{SegmentHeaders, Template};

impl Tcp {
    /// Produces the output of the touched connections.
    ///
    /// Errors: the card is full.
    pub(crate) fn connections_output(
        &mut self,
        now: Instant,
        machine: &mut impl Machine,
        link: &mut Link,
        other_cores: &mut Option<MulticoreState>,
        budget: &mut Budget,
    ) -> Result<(), CardFull> {
        self.touched.begin_turn();
        while !budget.is_spent() {
            let Some(id) = self.touched.next_ready() else { break };
            budget.take();
            if let Err(full) =
                self.connection_output(now, ConnectionId(id), machine, link, other_cores)
            {
                self.touched.resume(id);
                return Err(full);
            }
        }
        Ok(())
    }

    pub(super) fn connection_output(
        &mut self,
        now: Instant,
        connection: ConnectionId,
        machine: &mut impl Machine,
        link: &mut Link,
        other_cores: &mut Option<MulticoreState>,
    ) -> Result<(), CardFull> {
        // The connection may have been closed since it was touched.
        let Some(found) = self.connections.get_mut(connection.0) else { return Ok(()) };
        if connect::is_unresolved(&found.template) {
            return self.unresolved_output(now, connection, machine, link, other_cores);
        }
        let (template, sent_to) = (&found.template, &mut found.sent_to);
        let limits = if template.local().is_ipv4() {
            self.send_limits
        } else {
            SendLimits { local_mss: link.mss_ipv6(), ..self.send_limits_ipv6 }
        };
        let (counters, offloads) = (&mut link.counters, self.offloads);
        let mut again = false;
        let mut emit = |segment: &SegmentToSend, pieces: &[Piece]| {
            transmit(machine, template, segment, pieces, offloads, counters)?;
            let end = segment.sequence + segment.payload_bytes as u32;
            if segment.payload_bytes > 0 && segment.sequence.is_before(*sent_to) {
                counters.count(Counter::Retransmits);
                counters.add(Counter::BytesSentAgain, segment.payload_bytes as u64);
                again = true;
            }
            *sent_to = sent_to.later(end);
            Ok(())
        };
        let result = found.tcb.output(now, limits, &self.pools, &mut emit);
        if again {
            self.reconfirm_route(now, connection, link);
        }
        self.settle(now, connection, other_cores);
        result
    }

    /// Finishes the output of a connection: sets its timer, and removes the connection if it is
    /// closed.
    #[inline]
    pub(super) fn settle(
        &mut self,
        now: Instant,
        connection: ConnectionId,
        other_cores: &mut Option<MulticoreState>,
    ) {
        let Some(found) = self.connections.get_mut(connection.0) else {
            unreachable!("the connection has just sent its output")
        };
        if let Some(deadline) =
            found.tcb.deadline(now).filter(|deadline| *deadline < found.armed_for)
        {
            found.armed_for = deadline;
            self.timers.set(connection.0, deadline);
        }
        match found.tcb.ended() {
            Some(CloseOutcome::Gone) => self.remove_closed(now, connection, None, other_cores),
            Some(CloseOutcome::TimeWait(time_wait)) => {
                self.remove_closed(now, connection, Some(time_wait), other_cores)
            }
            None => {}
        }
    }

    /// Confirms the neighbour again after a retransmission, because its hardware address may have
    /// changed (RFC 1122 §3.3.1.4).
    fn reconfirm_route(&mut self, now: Instant, connection: ConnectionId, link: &mut Link) {
        let Some(found) = self.connections.get_mut(connection.0) else {
            unreachable!("the connection has just sent its output")
        };
        if let Some(hardware) = link.reconfirm_route(now, found.template.flow().peer) {
            found.template.set_peer(hardware);
        }
    }

    /// Sends the SYN-ACKs of handshakes in progress.
    ///
    /// Errors: the card is full, or the budget is spent.
    pub(crate) fn handshakes_output(
        &mut self,
        now: Instant,
        machine: &mut impl Machine,
        link: &mut Link,
        budget: &mut Budget,
    ) -> Result<(), CardFull> {
        let offloads = self.offloads;
        self.half_open.output(now, |caller, segment| {
            if !budget.take() {
                return Err(CardFull);
            }
            let Some(template) = link.template_for(now, caller) else {
                link.counters.count(Counter::DroppedNoRoute);
                return Ok(());
            };
            let mut segment = *segment;
            link.adapt_options(caller.flow.local, &mut segment.options);
            transmit(machine, &template, &segment, &[], offloads, &mut link.counters)
        })
    }
}

/// Hands one segment to the card.
#[inline]
fn transmit(
    machine: &mut impl Machine,
    template: &Template,
    segment: &SegmentToSend,
    pieces: &[Piece],
    offloads: Offloads,
    counters: &mut Counters,
) -> Result<(), CardFull> {
    let mut head = SegmentHeaders::NONE;
    let head = template.head(&mut head, segment, pieces, offloads);
    match machine.transmit(&head.outgoing(segment, pieces, offloads)) {
        Ok(()) => {
            counters.count(Counter::FramesOut);
            counters.add(Counter::BytesOut, (head.bytes().len() + segment.payload_bytes) as u64);
            counters.count(Counter::SegmentsOut);
            counters.add(Counter::ResetsOut, u64::from(segment.flags.has(TcpFlags::RST)));
            Ok(())
        }
        Err(TransmitError::Full) => Err(CardFull),
        // The card would refuse this frame at every attempt. So the segment counts as lost in the
        // network.
        Err(TransmitError::Malformed) => {
            counters.count(Counter::DroppedOut);
            Ok(())
        }
    }
}
