//! The out phase: whatever the turn has left to be said is built and handed to the card, once, at its end.
//!
//! A connection stands among the touched ones at most once, so their queue cannot overflow. What finds the card full
//! stays where it is and is tried again in the next turn: nothing is lost, and nothing is sent twice.

use core::net::{Ipv4Addr, SocketAddr};

use machine::{Instant, Machine, Offloads, Piece, TransmitError};
use tasks::Budget;

use crate::connect;
use crate::counters::{Counter, Counters};
use crate::dhcp::{CLIENT_PORT, SERVER_PORT, Step};
use crate::event::ConnectionId;
use crate::net::Net;
use crate::tcp::{Ended, Flags, Full, SegmentToSend, SendLimits};
use crate::template::{Head, Template};
use crate::udp;

/// How far the out phase came.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Output {
    /// Everything that may be sent now is with the card.
    All,
    /// The budget is spent and there is more: the next turn goes on.
    More,
    /// The card has no room for more: the next turn tries again, and room wakes who sleeps until then.
    CardFull,
}

impl Net {
    /// Hands the card all that is to be sent, as far as `budget` (connections and handshakes) and the card's
    /// ring allow.
    pub fn output(&mut self, now: Instant, machine: &mut impl Machine, budget: &mut Budget) -> Output {
        let chores_are_due = self.chores_are_due(now);
        if chores_are_due {
            self.dhcp_output(now);
            self.link.ask_neighbours(now);
            self.link.ndp_output(now);
        }
        let result = match self.link.output(machine) {
            true if chores_are_due => self
                .handshakes_output(now, machine, budget)
                .and_then(|()| self.connections_output(now, machine, budget)),
            true => self.connections_output(now, machine, budget),
            false => Err(Full),
        };
        self.keep_chores();
        match result {
            Ok(()) if self.touched.is_empty() => Output::All,
            Ok(()) => Output::More,
            // Handshakes that find the budget spent say that the card is full.
            Err(Full) if budget.is_spent() => Output::More,
            Err(Full) => {
                self.link.counters.count(Counter::CardFull);
                Output::CardFull
            }
        }
    }

    fn connections_output(
        &mut self,
        now: Instant,
        machine: &mut impl Machine,
        budget: &mut Budget,
    ) -> Result<(), Full> {
        self.touched.begin_turn();
        while !budget.is_spent() {
            let Some(id) = self.touched.next_ready() else { break };
            budget.take();
            if let Err(full) = self.connection_output(now, ConnectionId(id), machine) {
                self.touched.resume(id);
                return Err(full);
            }
        }
        Ok(())
    }

    pub(crate) fn connection_output(
        &mut self,
        now: Instant,
        connection: ConnectionId,
        machine: &mut impl Machine,
    ) -> Result<(), Full> {
        let Some(found) = self.connections.get_mut(connection.0) else { return Ok(()) };
        if connect::is_unresolved(&found.template) {
            return self.unresolved_output(now, connection, machine);
        }
        let (template, sent_to) = (&found.template, &mut found.sent_to);
        let limits = if template.local().is_ipv4() {
            self.send_limits
        } else {
            SendLimits { local_mss: self.link.mss_ipv6(), ..self.send_limits_ipv6 }
        };
        let (counters, offloads) = (&mut self.link.counters, self.offloads);
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
            self.doubt_way(now, connection);
        }
        self.settle(now, connection);
        result
    }

    /// A connection has spoken: its timer is set, and if that was its last word it is buried.
    #[inline]
    pub(crate) fn settle(&mut self, now: Instant, connection: ConnectionId) {
        let Some(found) = self.connections.get_mut(connection.0) else { return };
        if let Some(deadline) = found.tcb.deadline(now).filter(|deadline| *deadline < found.armed_for) {
            found.armed_for = deadline;
            self.timers.set(connection.0, deadline);
        }
        match found.tcb.ended() {
            Some(Ended::Gone) => self.bury(now, connection, None),
            Some(Ended::TimeWait(time_wait)) => self.bury(now, connection, Some(time_wait)),
            None => {}
        }
    }

    /// Something had to be sent again: perhaps the neighbour is not where he was (RFC 1122 §3.3.1.4).
    fn doubt_way(&mut self, now: Instant, connection: ConnectionId) {
        let Some(found) = self.connections.get_mut(connection.0) else { return };
        if let Some(hardware) = self.link.doubt_way(now, found.template.flow().peer) {
            found.template.set_peer(hardware);
        }
    }

    fn handshakes_output(&mut self, now: Instant, machine: &mut impl Machine, budget: &mut Budget) -> Result<(), Full> {
        let (link, offloads) = (&mut self.link, self.offloads);
        self.half_open.output(now, |caller, segment| {
            if !budget.take() {
                return Err(Full);
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

    fn dhcp_output(&mut self, now: Instant) {
        while let Some(step) = self.dhcp.as_mut().and_then(|dhcp| dhcp.next_step(now)) {
            let request = match step {
                Step::Send(request) => request,
                Step::GiveUpAddress => {
                    self.change_address(now, None);
                    continue;
                }
            };
            let source = SocketAddr::from((request.source, CLIENT_PORT));
            let to = SocketAddr::from((request.server.unwrap_or(Ipv4Addr::BROADCAST), SERVER_PORT));
            // A message that finds no room or no route is asked for again when its wait is over.
            let _ = udp::send(&mut self.link, now, source, to, request.len(), |bytes| request.emit(bytes));
        }
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
) -> Result<(), Full> {
    let mut head = Head::NONE;
    let head = template.head(&mut head, segment, pieces, offloads);
    match machine.transmit(&head.outgoing(segment, pieces, offloads)) {
        Ok(()) => {
            counters.count(Counter::FramesOut);
            counters.add(Counter::BytesOut, (head.bytes().len() + segment.payload_bytes) as u64);
            counters.count(Counter::SegmentsOut);
            counters.add(Counter::ResetsOut, u64::from(segment.flags.has(Flags::RST)));
            Ok(())
        }
        Err(TransmitError::Full) => Err(Full),
        // It would be refused for ever: as good as lost on the way.
        Err(TransmitError::Malformed) => {
            counters.count(Counter::DroppedOut);
            Ok(())
        }
    }
}
