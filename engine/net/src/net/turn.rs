//! The network's part in two phases of a turn. In the deadlines phase, the network handles
//! everything that is due. In the out phase, it passes all pending output to the card.

use core::net::{Ipv4Addr, SocketAddr};

use machine::{Instant, Machine};
use tasks::Budget;

use super::Net;
use crate::counters::Counter;
use crate::dhcp::{CLIENT_PORT, Dhcp, DhcpAction, SERVER_PORT};
use crate::event::Events;
use crate::tcp::CardFull;
use crate::udp;

/// The amount of pending output that the out phase has passed to the card.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OutputProgress {
    /// All output that may be sent now.
    All,
    /// A part, because the budget is spent. The next turn continues.
    More,
    /// A part, because the card's ring is full. The next turn tries again, and free space in the
    /// ring wakes a sleeping machine.
    CardFull,
}

impl Net {
    /// Handles expired deadlines, within `budget` (connections) and the room in `events`. The other
    /// deadlines stay due, and [`Net::next_deadline`] includes them.
    pub fn deadlines_expired(&mut self, now: Instant, events: &mut Events, budget: &mut Budget) {
        if self.timers_are_due(now) {
            self.link.counters.add(Counter::ReassemblyFailed, self.reassembly.expire(now));
            self.tcp.forget(now, &mut self.other_cores);
            self.report_addresses(events);
        }
        self.tcp.end_stranded(now, &self.link, &mut self.other_cores, events);
        self.tcp.deadlines_expired(now, &mut self.link.counters, events, budget);
    }

    /// When to call [`Net::deadlines_expired`] and [`Net::output`] if no frame arrives before. The
    /// time is never too late, and sometimes earlier than needed.
    pub fn next_deadline(&self) -> Option<Instant> {
        let timers_at = if self.has_changed() { self.next_timer() } else { self.timers_at };
        let next = self.tcp.next_deadline().min(timers_at);
        (next != Instant::NEVER).then_some(next)
    }

    /// Whether a deadline of the parts with timers has passed, or may have changed.
    #[inline]
    pub(super) fn timers_are_due(&self, now: Instant) -> bool {
        self.has_changed() || self.timers_at <= now
    }

    /// Caches the earliest deadline of the parts with timers, after all of them have run.
    #[inline]
    pub(super) fn cache_timers(&mut self) {
        if self.has_changed() {
            self.timers_at = self.next_timer();
            self.tcp.clear_change();
            self.reassembly.clear_change();
            self.dhcp.clear_change();
            self.link.neighbours.clear_change();
            self.link.ndp.clear_change();
        }
    }

    #[inline]
    pub(crate) fn has_changed(&self) -> bool {
        self.tcp.has_changed()
            | self.reassembly.has_changed()
            | self.dhcp.has_changed()
            | self.link.neighbours.has_changed()
            | self.link.ndp.has_changed()
    }

    pub(super) fn next_timer(&self) -> Instant {
        if self.address_changed || self.link.ndp.has_news() {
            return Instant::START;
        }
        Instant::NEVER
            .min(self.tcp.next_forgotten())
            .min(Instant::or_never(self.link.neighbours.next_deadline()))
            .min(self.link.ndp.next_deadline())
            .min(Instant::or_never(self.reassembly.next_deadline()))
            .min(self.dhcp.as_ref().map_or(Instant::NEVER, Dhcp::next_deadline))
    }

    /// Hands pending output to the card, within `budget` (connections and handshakes) and the space
    /// in the card's ring.
    pub fn output(
        &mut self,
        now: Instant,
        machine: &mut impl Machine,
        budget: &mut Budget,
    ) -> OutputProgress {
        let timers_are_due = self.timers_are_due(now);
        if timers_are_due {
            self.dhcp_output(now);
            self.link.send_arp_requests(now);
            self.link.ndp_output(now);
        }
        let result = match self.link.output(machine) {
            true if timers_are_due => self
                .tcp
                .handshakes_output(now, machine, &mut self.link, budget)
                .and_then(|()| self.connections_output(now, machine, budget)),
            true => self.connections_output(now, machine, budget),
            false => Err(CardFull),
        };
        self.cache_timers();
        match result {
            Ok(()) if !self.tcp.wants_output() => OutputProgress::All,
            Ok(()) => OutputProgress::More,
            // The output of handshakes reports a full card also when the budget is spent.
            Err(CardFull) if budget.is_spent() => OutputProgress::More,
            Err(CardFull) => {
                self.link.counters.count(Counter::CardFull);
                OutputProgress::CardFull
            }
        }
    }

    #[inline]
    fn connections_output(
        &mut self,
        now: Instant,
        machine: &mut impl Machine,
        budget: &mut Budget,
    ) -> Result<(), CardFull> {
        self.tcp.connections_output(now, machine, &mut self.link, &mut self.other_cores, budget)
    }

    fn dhcp_output(&mut self, now: Instant) {
        while let Some(step) = self.dhcp.as_mut().and_then(|dhcp| dhcp.next_step(now)) {
            let request = match step {
                DhcpAction::Send(request) => request,
                DhcpAction::GiveUpAddress => {
                    self.change_address(now, None);
                    continue;
                }
            };
            let source = SocketAddr::from((request.source, CLIENT_PORT));
            let to = SocketAddr::from((request.server.unwrap_or(Ipv4Addr::BROADCAST), SERVER_PORT));
            // If the message finds no room or route, the client sends it again after the wait for
            // an answer.
            let _ = udp::send(&mut self.link, now, source, to, request.len(), |bytes| {
                request.emit(bytes)
            });
        }
    }
}
