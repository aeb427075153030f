//! The deadlines phase: everything in the network that waits for time and not for a frame.

use machine::Instant;
use tasks::Budget;

use crate::counters::Counter;
use crate::dhcp::Dhcp;
use crate::event::{ConnectionId, EVENTS_AT_ONCE, EVENTS_MAX, Event, Events};
use crate::net::Net;
use crate::tcp::CloseReason;

/// Handshakes given up, and connections forgotten, in one turn. Each costs no more than a frame that arrives, and a
/// turn that brings more new ones than this takes its time anyway.
const FORGOTTEN_AT_ONCE: usize = 64;

impl Net {
    /// Does what is due, as far as `budget` (connections) and the room in `events` allow. What is left is still due:
    /// [`Net::next_deadline`] says so.
    pub fn deadlines_expired(&mut self, now: Instant, events: &mut Events, budget: &mut Budget) {
        if self.chores_are_due(now) {
            self.forget(now);
            self.tell_address(events);
        }
        self.end_stranded(now, events);
        while has_room(events) && !budget.is_spent() {
            let Some(frame) = self.timers.next_due(now) else { break };
            budget.take();
            self.connection_due(now, ConnectionId(frame), events);
        }
    }

    /// Forgets what is too old.
    fn forget(&mut self, now: Instant) {
        self.link.counters.add(Counter::ReassemblyFailed, self.reassembly.expire(now));
        for _ in 0..FORGOTTEN_AT_ONCE {
            let Some(caller) = self.half_open.give_up(now) else { break };
            self.handshake_gone(&caller.flow);
        }
        for _ in 0..FORGOTTEN_AT_ONCE {
            let Some(flow) = self.time_wait.expired(now) else { break };
            self.flows.remove(&flow);
        }
    }

    /// When there is next something to do without a frame: call [`Net::deadlines_expired`] and [`Net::output`] then.
    /// Never later than needed, sometimes earlier.
    pub fn next_deadline(&self) -> Option<Instant> {
        let chores_at = if self.is_stirred() { self.next_chore() } else { self.chores_at };
        let stranded_at = if self.ending_from.is_some() { Instant::START } else { Instant::NEVER };
        let next = Instant::or_never(self.timers.next_deadline()).min(chores_at).min(stranded_at);
        (next != Instant::NEVER).then_some(next)
    }

    /// Whether one of the parts that wait for time has something to do, or something new to wait for.
    #[inline]
    pub(crate) fn chores_are_due(&self, now: Instant) -> bool {
        self.is_stirred() || self.chores_at <= now
    }

    /// All of them have been looked after: their earliest deadline is kept.
    #[inline]
    pub(crate) fn keep_chores(&mut self) {
        if self.is_stirred() {
            self.chores_at = self.next_chore();
            self.half_open.rest();
            self.time_wait.rest();
            self.reassembly.rest();
            self.dhcp.rest();
            self.link.neighbours.rest();
            self.link.ndp.rest();
        }
    }

    #[inline]
    pub(crate) fn is_stirred(&self) -> bool {
        self.half_open.is_stirred()
            | self.time_wait.is_stirred()
            | self.reassembly.is_stirred()
            | self.dhcp.is_stirred()
            | self.link.neighbours.is_stirred()
            | self.link.ndp.is_stirred()
    }

    pub(crate) fn next_chore(&self) -> Instant {
        if self.address_news || self.link.ndp.has_news() {
            return Instant::START;
        }
        Instant::NEVER
            .min(Instant::or_never(self.half_open.next_deadline()))
            .min(Instant::or_never(self.time_wait.next_deadline()))
            .min(Instant::or_never(self.link.neighbours.next_deadline()))
            .min(self.link.ndp.next_deadline())
            .min(Instant::or_never(self.reassembly.next_deadline()))
            .min(self.dhcp.as_ref().map_or(Instant::NEVER, Dhcp::next_deadline))
    }

    /// Ends the connections of an address that is not ours any more. Their peers cannot be told.
    fn end_stranded(&mut self, now: Instant, events: &mut Events) {
        while has_room(events) {
            let Some(index) = self.ending_from else { return };
            if index >= self.connections.capacity() {
                self.ending_from = None;
                return;
            }
            self.ending_from = Some(index + 1);
            let Some(frame) = self.connections.id_at(index) else { continue };
            let connection = ConnectionId(frame);
            let Some(found) = self.connections.get(frame) else { continue };
            let (user_is_done, is_stranded) =
                (found.user_is_done, self.link.own_address(found.template.local()) != Some(found.template.source()));
            if is_stranded {
                self.bury(now, connection, None);
            }
            if is_stranded && !user_is_done {
                let _ = events.push(Event::Closed { connection, reason: CloseReason::Aborted });
            }
        }
    }
}

fn has_room(events: &Events) -> bool {
    events.len() + EVENTS_AT_ONCE <= EVENTS_MAX
}
