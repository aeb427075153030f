//! What an acknowledgment does: bytes are done with, windows open, losses come to light (RFC 9293 §3.10.7.4 fifth step).

use machine::Instant;

use super::actions::{Actions, CloseReason};
use super::alarm::{Alarm, Awaited};
use super::pools::Pools;
use super::segment::{Flags, SegmentRepr};
use super::state::{Owed, State};
use super::tcb::Tcb;

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
        if outstanding == 0 || self.awaited == Awaited::Window {
            // The peer lives, and answers; that is all a probe asks.
            self.attempts = 0;
        }
        if !segment.options.sack.is_empty()
            && let Some(queue) = self.send_queue.as_deref_mut()
        {
            queue.flight.lengthen(&mut pools.blocks);
        }
        if ahead > 0 {
            self.progress(now, segment, pools, actions);
        } else if outstanding > 0 {
            let duplicate = self.is_duplicate(segment);
            if duplicate || !segment.options.sack.is_empty() || segment.flags.has(Flags::ECE) {
                self.flight_acknowledged(now, segment, 0, duplicate);
            }
        }
        if self.state != State::Closed {
            self.update_window(segment);
        }
        Ok(())
    }

    /// Bytes, and our FIN perhaps, are acknowledged for the first time.
    fn progress(&mut self, now: Instant, segment: &SegmentRepr<'_>, pools: &mut Pools, actions: &mut Actions) {
        let count = segment.acknowledgment.since(self.snd_una);
        let queued = self.queued();
        let fin_acknowledged = count > queued;
        self.snd_una = segment.acknowledgment;
        self.attempts = 0;
        self.timers.retransmit = Alarm::NONE;
        self.flight_acknowledged(now, segment, count, false);
        if let Some(queue) = self.send_queue.as_mut() {
            queue.acknowledge(count.min(queued), &mut pools.blocks);
        }
        self.settle_send_queue(pools);
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
    fn is_duplicate(&self, segment: &SegmentRepr<'_>) -> bool {
        segment.sequence_len() == 0
            && u32::from(segment.window) << self.peer_shift == self.snd_wnd
            && self.awaited != Awaited::Window
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
        if self.snd_wnd > before && self.awaited == Awaited::Window {
            // What was not answered were probes: it says nothing about the path.
            self.backoff = 0;
        }
    }
}
