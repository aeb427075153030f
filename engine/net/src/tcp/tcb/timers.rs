//! The timers of a connection: three alarms, the earliest of which is its one deadline.
//! - `retransmit`: serves one of four timers at a time ([`AlarmReason`]). While data is in flight,
//!   it is the retransmission timer of RFC 6298. Two shorter timers may precede that timer (RFC
//!   8985): for the tail loss probe, and for segments that may only be reordered. While unsent data
//!   waits for the peer's window, it is the persist timer (RFC 9293 §3.8.6.1).
//! - `acknowledge`: the delayed acknowledgment (RFC 9293 §3.8.6.3).
//! - `idle`: keep-alive (RFC 9293 §3.8.4), the wait for the peer's FIN, and the next check for room
//!   in the pools. A received segment does not move this alarm. When it expires, `heard_at` shows
//!   how long the peer has really been silent.

use machine::{Instant, Micros};

use super::Tcb;
use crate::tcp::actions::{Actions, CloseReason};
use crate::tcp::alarm::{
    Alarm, AlarmReason, FIN_WAIT, KEEPALIVE_IDLE, KEEPALIVE_INTERVAL, KEEPALIVE_PROBES, ROOM_RETRY,
    SYN_ATTEMPTS_MAX, USER_TIMEOUT_MAX, millis,
};
use crate::tcp::pools::Pools;
use crate::tcp::round_trip::RTO_MARGIN_MIN;
use crate::tcp::state::{Owed, State};

impl Tcb {
    pub(super) fn expire(&mut self, now: Instant, pools: &mut Pools, actions: &mut Actions) {
        if self.timers.acknowledge.is_due(now) {
            self.owe(Owed::ACK);
            self.timers.acknowledge = Alarm::NONE;
        }
        if self.timers.retransmit.is_due(now) {
            self.timers.retransmit = Alarm::NONE;
            self.retransmit_expired(now, pools, actions);
        }
        if self.state != State::Closed && self.timers.idle.is_due(now) {
            self.timers.idle = Alarm::NONE;
            self.idle_expired(now, pools, actions);
        }
    }

    /// Handles the expiry of the retransmit alarm. Nothing is sent here: `output` sends what is
    /// owed, and sets the alarm again.
    fn retransmit_expired(&mut self, now: Instant, pools: &mut Pools, actions: &mut Actions) {
        match self.awaited {
            AlarmReason::Reordered => {
                self.find_losses(now, 0);
                self.settle_retransmit_alarm(now);
            }
            AlarmReason::TailAcknowledgment => self.tail_unacknowledged(now),
            AlarmReason::Acknowledgment | AlarmReason::Window => {
                self.unanswered(now, pools, actions)
            }
        }
    }

    fn unanswered(&mut self, now: Instant, pools: &mut Pools, actions: &mut Actions) {
        self.attempts = self.attempts.saturating_add(1);
        self.backoff = self.backoff.saturating_add(1);
        let is_opening = matches!(self.state, State::SynSent | State::SynReceived);
        if self.unanswered_for() >= self.user_timeout()
            || (is_opening && self.attempts > SYN_ATTEMPTS_MAX)
        {
            self.finish(CloseReason::TimedOut, pools, actions);
            return;
        }
        match self.awaited {
            AlarmReason::Window => self.owe(Owed::PROBE),
            _ => {
                self.suspect_path();
                self.time_out(now);
            }
        }
    }

    /// The total length of the timeouts since the last answer. The first timeout of the persist
    /// timer does not count, because no probe was sent before it.
    fn unanswered_for(&self) -> Micros {
        if self.attempts == 0 {
            return Micros(0);
        }
        let count = self.attempts.saturating_sub(u8::from(self.awaited == AlarmReason::Window));
        let timeouts =
            (1..=count).map(|ago| self.round_trip.timeout_after(self.backoff.saturating_sub(ago)));
        Micros(timeouts.map(|timeout| timeout.0).sum())
    }

    fn user_timeout(&self) -> Micros {
        Micros::from_secs(u64::from(self.user_timeout_secs))
    }

    /// Closes the connection when the peer has acknowledged nothing for `span`. The span is from
    /// one second to [`USER_TIMEOUT_MAX`], rounded up to whole seconds (as in RFC 5482 §3.1). It is
    /// checked at each timeout or probe. A SYN is retransmitted at most [`SYN_ATTEMPTS_MAX`] times,
    /// however long the span is.
    pub fn set_user_timeout(&mut self, span: Micros) {
        let span = Micros(span.0.min(USER_TIMEOUT_MAX.0));
        self.user_timeout_secs =
            u16::try_from(span.0.div_ceil(1_000_000)).unwrap_or(u16::MAX).max(1);
    }

    /// Handles the expiry of the tail loss probe's timer. Sends a probe, unless the last data was
    /// sent too recently.
    fn tail_unacknowledged(&mut self, now: Instant) {
        let sent_at = self.send_queue.as_ref().and_then(|queue| queue.flight.last_sent_at());
        let age = sent_at.map_or(0, |sent_at| (now.0 as u32).wrapping_sub(sent_at));
        let left = self.tail_patience().saturating_sub(u64::from(age));
        if self.may_probe_tail() && left > 0 {
            self.timers.retransmit = Alarm::after(now, Micros(left));
        } else if self.may_probe_tail() {
            self.owe(Owed::TAIL_PROBE);
        } else {
            self.arm_retransmit(now);
        }
    }

    /// The wait before a tail loss probe: two round trips and a margin for clocks, in microseconds
    /// (RFC 8985 §7.2).
    fn tail_patience(&self) -> u64 {
        2 * u64::from(self.round_trip.smoothed()) + 2000
    }

    /// Sets the alarm to check again for losses after `wait`.
    pub(super) fn wait_for_reordered(&mut self, now: Instant, wait: Micros) {
        self.awaited = AlarmReason::Reordered;
        self.timers.retransmit = Alarm::after(now, wait);
    }

    fn idle_expired(&mut self, now: Instant, pools: &mut Pools, actions: &mut Actions) {
        if self.owes(Owed::ROOM) {
            self.offer_room(now, pools, actions);
        }
        match self.state {
            State::FinWait2 if self.silent_for(now) >= FIN_WAIT => {
                self.finish(CloseReason::TimedOut, pools, actions)
            }
            State::FinWait2 => self.arm_idle(now),
            _ if self.silent_for(now) < KEEPALIVE_IDLE || self.snd_max != self.snd_una => {
                self.arm_idle(now)
            }
            _ if self.timers.retransmit.is_set() => self.arm_idle(now),
            _ if self.attempts >= KEEPALIVE_PROBES => {
                self.finish(CloseReason::TimedOut, pools, actions)
            }
            _ => {
                self.attempts += 1;
                self.owe(Owed::KEEPALIVE);
                self.timers.idle = Alarm::after(now, KEEPALIVE_INTERVAL);
            }
        }
    }

    /// The time since the last segment of the peer, in whole milliseconds.
    pub(super) fn silent_for(&self, now: Instant) -> Micros {
        Micros::from_millis(u64::from(millis(now).wrapping_sub(self.heard_at)))
    }

    /// Sets the idle alarm to the time when the peer's silence requires an action, or sooner if the
    /// session waits for room.
    pub(super) fn arm_idle(&mut self, now: Instant) {
        let limit = if self.state == State::FinWait2 { FIN_WAIT } else { KEEPALIVE_IDLE };
        let silence_left = match limit.0.saturating_sub(self.silent_for(now).0) {
            // Another timer is active: the retransmission or the persist timer.
            0 => KEEPALIVE_INTERVAL,
            left => Micros(left.max(1000)),
        };
        let span = if self.owes(Owed::ROOM) { ROOM_RETRY } else { silence_left };
        self.timers.idle = Alarm::after(now, span);
    }

    /// Sets or cancels the retransmit alarm, as the data in flight and the unsent data require.
    pub(super) fn settle_retransmit_alarm(&mut self, now: Instant) {
        if self.snd_max.since(self.snd_una) > self.lost() {
            if !self.timers.retransmit.is_set() || self.awaited == AlarmReason::Window {
                self.arm_for_flight(now);
            }
        } else if self.has_unsent() {
            if !self.timers.retransmit.is_set() || self.awaited != AlarmReason::Window {
                self.arm(now, AlarmReason::Window);
            }
        } else {
            self.awaited = AlarmReason::Acknowledgment;
            self.timers.retransmit = Alarm::NONE;
        }
    }

    /// Sets the timer of the tail loss probe, if the probe would be sent before the timeout.
    /// Otherwise sets the retransmission timer. With a single segment in flight, the probe must
    /// allow for a delayed acknowledgment, so the timeout is never later.
    fn arm_for_flight(&mut self, now: Instant) {
        let patience = Micros(self.tail_patience());
        let is_single = self.snd_max.since(self.snd_una) <= u32::from(self.mss);
        if is_single || patience >= self.round_trip.timeout() || !self.may_probe_tail() {
            return self.arm_retransmit(now);
        }
        self.awaited = AlarmReason::TailAcknowledgment;
        self.timers.retransmit = Alarm::after(now, patience);
    }

    pub(super) fn arm_retransmit(&mut self, now: Instant) {
        self.arm(now, AlarmReason::Acknowledgment);
    }

    fn arm(&mut self, now: Instant, awaited: AlarmReason) {
        self.awaited = awaited;
        let left = self.user_timeout().0.saturating_sub(self.unanswered_for().0);
        let timeout = self.round_trip.timeout_after(self.backoff);
        self.timers.retransmit = Alarm::after(now, Micros(timeout.0.min(left)));
    }

    /// Lowers the window after a pause longer than the timeout, so that at most the initial window
    /// is sent at once (RFC 5681 §4.1).
    #[inline]
    pub(super) fn restart_after_idleness(&mut self, now: Instant) {
        let silence = self.silent_for(now);
        // The silence is nearly always shorter than this margin, and every timeout is longer.
        if self.snd_max == self.snd_una
            && silence >= RTO_MARGIN_MIN
            && silence > self.round_trip.timeout()
        {
            self.congestion.idled(u32::from(self.mss));
        }
    }
}
