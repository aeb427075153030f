//! What an acknowledgment does: bytes are done with, windows open, losses come to light (RFC 9293 §3.10.7.4 fifth step).

use machine::Instant;

use super::actions::{Actions, CloseReason};
use super::handshake::MSS_DEFAULT;
use super::pools::Pools;
use super::recovery::{Duplicate, Progress};
use super::segment::SegmentRepr;
use super::sequence::SequenceNumber;
use super::tcb::{Agreed, Owed, State, Tcb};
use super::timers::Alarm;
use super::timestamps::TIMESTAMP_BYTES;

/// The acknowledgment lies outside of what it could be (RFC 5961 §5.2): the rest of the segment is not to be trusted.
pub(super) struct Unacceptable;

impl Tcb {
    pub(super) fn acknowledgment_arrived(
        &mut self,
        now: Instant,
        segment: &SegmentRepr<'_>,
        pools: &mut Pools,
        actions: &mut Actions,
    ) -> Result<(), Unacceptable> {
        let acknowledgment = segment.acknowledgment;
        let ahead = acknowledgment.since(self.snd_una);
        let outstanding = self.snd_max.since(self.snd_una);
        if ahead > outstanding {
            let behind = self.snd_una.since(acknowledgment);
            return if behind <= self.snd_wnd_max { Ok(()) } else { Err(Unacceptable) };
        }
        if outstanding == 0 || self.owes(Owed::PERSIST) {
            // The peer lives, and answers; that is all a probe asks.
            self.attempts = 0;
        }
        if ahead > 0 {
            self.progress(now, segment, pools, actions);
        } else if self.is_duplicate(segment, outstanding) {
            self.duplicate(outstanding);
        }
        if self.state != State::Closed {
            self.update_window(segment);
        }
        Ok(())
    }

    /// Bytes, and our FIN perhaps, are acknowledged for the first time.
    fn progress(&mut self, now: Instant, segment: &SegmentRepr<'_>, pools: &mut Pools, actions: &mut Actions) {
        let acknowledgment = segment.acknowledgment;
        let count = acknowledgment.since(self.snd_una);
        let flight = self.snd_max.since(self.snd_una);
        let queued = self.queued();
        let fin_acknowledged = count > queued;
        if let Some(queue) = self.send_queue.as_mut() {
            queue.acknowledge(count.min(queued), &mut pools.blocks);
        }
        self.settle_send_queue(pools);
        self.snd_una = acknowledgment;
        self.snd_nxt = self.snd_nxt.later(acknowledgment);
        self.attempts = 0;
        if self.round_trip.acknowledged(now, acknowledgment) || self.learn_round_trip_from_echo(now, segment) {
            self.backoff = 0;
        }
        let progress = self.recovery.acknowledged(acknowledgment);
        self.adjust_congestion(progress, count, flight);
        self.timers.retransmit = Alarm::NONE;
        if fin_acknowledged {
            self.fin_acknowledged(now, pools, actions);
        }
        if matches!(self.state, State::Closed | State::TimeWait) {
            return;
        }
        self.settle_retransmit_alarm(now);
        if self.owes(Owed::ROOM) {
            self.offer_room(now, pools, actions);
        }
    }

    /// What was sent again tells nothing certain (Karn), unless an echo says which copy arrived (RFC 7323 §4.1).
    fn learn_round_trip_from_echo(&mut self, now: Instant, segment: &SegmentRepr<'_>) -> bool {
        let Some(stamps) = segment.options.timestamps else { return false };
        if self.round_trip.is_timing() || !self.has_agreed(Agreed::TIMESTAMPS) {
            return false;
        }
        let span = self.timestamps.since(now, stamps.echo);
        if let Some(span) = span {
            self.round_trip.learn(span);
        }
        span.is_some()
    }

    /// The network says that a segment which began at `sequence` was too long for some link, and that `mss` bytes of payload would
    /// have fitted (RFC 1191). Believed only of what is on the way, and never below [`MSS_DEFAULT`]: anybody can write such
    /// a message (RFC 5927 §7.2). What is on the way is sent again in smaller segments; no congestion is inferred.
    pub fn path_narrowed(&mut self, sequence: SequenceNumber, mss: u16) {
        let is_on_the_way = sequence.since(self.snd_una) < self.snd_max.since(self.snd_una);
        let timestamps = if self.has_agreed(Agreed::TIMESTAMPS) { TIMESTAMP_BYTES } else { 0 };
        let mss = mss.max(MSS_DEFAULT) - timestamps;
        if is_on_the_way && mss < self.mss && self.snd_una != self.snd_max && self.is_synchronized() {
            self.mss = mss;
            self.snd_nxt = self.snd_una;
            self.round_trip.retransmitted();
        }
    }

    fn adjust_congestion(&mut self, progress: Progress, count: u32, flight_before: u32) {
        let mss = u32::from(self.mss);
        match progress {
            Progress::Good => self.congestion.acknowledged(count, flight_before, mss),
            Progress::Partial => {
                self.congestion.partial_in_recovery(count, mss);
                self.round_trip.retransmitted();
                self.owe(Owed::RETRANSMIT);
            }
            Progress::Recovered => {
                self.forgive(Owed::RETRANSMIT);
                self.congestion.recovered(self.snd_max.since(self.snd_una), mss);
            }
        }
    }

    fn fin_acknowledged(&mut self, now: Instant, pools: &mut Pools, actions: &mut Actions) {
        match self.state {
            State::FinWait1 => {
                self.state = State::FinWait2;
                self.arm_idle(now);
            }
            State::Closing => self.enter_time_wait(actions),
            State::LastAck => self.finish(CloseReason::Normal, pools, actions),
            _ => {}
        }
    }

    /// RFC 5681 §2. An empty segment that changes nothing while something is on the way.
    fn is_duplicate(&self, segment: &SegmentRepr<'_>, outstanding: u32) -> bool {
        outstanding > 0
            && segment.sequence_len() == 0
            && u32::from(segment.window) << self.peer_shift == self.snd_wnd
            && !self.owes(Owed::PERSIST)
    }

    fn duplicate(&mut self, outstanding: u32) {
        let mss = u32::from(self.mss);
        match self.recovery.duplicate_arrived(self.snd_una, self.snd_max) {
            Duplicate::MayBeLoss | Duplicate::Echo => {}
            Duplicate::Loss => {
                self.congestion.loss_found(outstanding, mss);
                self.round_trip.retransmitted();
                self.owe(Owed::RETRANSMIT);
            }
            Duplicate::Left => self.congestion.duplicate_in_recovery(mss),
        }
    }

    /// Takes the window of a segment that is not older than the one it was last taken from.
    fn update_window(&mut self, segment: &SegmentRepr<'_>) {
        if segment.sequence.is_before(self.snd_wl1) {
            return;
        }
        let before = self.snd_wnd;
        self.snd_wnd = u32::from(segment.window) << self.peer_shift;
        self.snd_wnd_max = self.snd_wnd_max.max(self.snd_wnd);
        self.snd_wl1 = segment.sequence;
        if self.snd_wnd > before && self.owes(Owed::PERSIST) {
            // What was not answered were probes: it says nothing about the path.
            self.backoff = 0;
        }
    }
}
