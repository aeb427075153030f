//! Received segments: RFC 9293 §3.10.7.3 and §3.10.7.4 in their order (sequence number, RST, SYN,
//! ACK, data, FIN), with RFC 5961 against forged segments.

use machine::{Instant, Micros};

use super::Tcb;
use crate::tcp::actions::{Actions, CloseReason};
use crate::tcp::alarm::{ACKNOWLEDGE_DELAY, Alarm, AlarmReason, millis};
use crate::tcp::pools::Pools;
use crate::tcp::segment::{SegmentRepr, TcpFlags};
use crate::tcp::sequence::SequenceNumber;
use crate::tcp::state::{Owed, State, TcpFeatures};
use crate::tcp::timestamps::TIMESTAMP_VALID;

/// The shortest time between two challenge acknowledgments of a connection (RFC 5961 §7). A limit
/// shared by all connections would tell an attacker about other connections.
pub const CHALLENGE_INTERVAL: Micros = Micros::from_millis(500);

impl Tcb {
    #[inline(always)]
    pub(super) fn arrive(
        &mut self,
        now: Instant,
        segment: &SegmentRepr<'_>,
        pools: &mut Pools,
        actions: &mut Actions,
    ) {
        match self.state {
            State::Closed => {}
            State::SynSent => self.syn_sent_arrive(now, segment, pools, actions),
            State::SynReceived if self.is_repeated_syn_ack(segment) => {
                let rest = segment.behind_syn(self.peer_shift);
                self.synchronized_arrive(now, &rest, pools, actions);
            }
            _ => self.synchronized_arrive(now, segment, pools, actions),
        }
    }

    /// Whether the segment repeats the SYN that we have received, now with an acknowledgment of our
    /// SYN. Both ends opened the connection at the same time. A reset is no repetition: its
    /// sequence number is checked as it is.
    fn is_repeated_syn_ack(&self, segment: &SegmentRepr<'_>) -> bool {
        segment.flags.has(TcpFlags::SYN.with(TcpFlags::ACK))
            && !segment.flags.has(TcpFlags::RST)
            && segment.sequence + 1 == self.receive.nxt
    }

    fn syn_sent_arrive(
        &mut self,
        now: Instant,
        segment: &SegmentRepr<'_>,
        pools: &mut Pools,
        actions: &mut Actions,
    ) {
        let acknowledges = segment.flags.has(TcpFlags::ACK);
        if acknowledges
            && (segment.acknowledgment != self.snd_una + 1 || self.snd_max == self.snd_una)
        {
            if !segment.flags.has(TcpFlags::RST) {
                self.snd_wl1 = segment.acknowledgment;
                self.owe(Owed::REFUSAL);
            }
            return;
        }
        if segment.flags.has(TcpFlags::RST) {
            if acknowledges {
                self.finish(CloseReason::Refused, pools, actions);
            }
            return;
        }
        if !segment.flags.has(TcpFlags::SYN) {
            return;
        }
        self.learn_syn(now, segment);
        let rest = segment.behind_syn(self.peer_shift);
        if acknowledges {
            self.syn_acknowledged(now, segment, actions);
            if rest.sequence_len() > 0 {
                self.data_arrived(now, &rest, pools, actions);
            }
        } else {
            self.state = State::SynReceived;
            self.owe(Owed::RETRANSMIT);
            self.keep_early_bytes(rest.payload, pools);
        }
    }

    fn synchronized_arrive(
        &mut self,
        now: Instant,
        segment: &SegmentRepr<'_>,
        pools: &mut Pools,
        actions: &mut Actions,
    ) {
        if segment.flags.has(TcpFlags::RST) {
            return self.reset_arrived(now, segment, pools, actions);
        }
        if segment.flags.has(TcpFlags::SYN) {
            return self.challenge(now);
        }
        if self.has_agreed(TcpFeatures::TIMESTAMPS) && segment.options.timestamps.is_none() {
            // The segment is forged, or a middlebox has damaged it (RFC 7323 §3.2).
            return;
        }
        let is_too_old = self.is_too_old(now, segment);
        let is_new = !is_too_old && self.is_acceptable(segment);
        if !is_new {
            self.answer_unacceptable(now, segment);
            if is_too_old || !self.repeats_the_last(segment) {
                return;
            }
        }
        if !segment.flags.has(TcpFlags::ACK) {
            return;
        }
        if is_new {
            self.note_congestion(segment);
        }
        self.restart_after_idleness(now);
        if self.state == State::SynReceived {
            if segment.acknowledgment != self.snd_una + 1 {
                return self.challenge(now);
            }
            self.syn_acknowledged(now, segment, actions);
            self.forgive(Owed::ACK);
            self.take_early_bytes(pools, actions);
        }
        if segment.payload.len() >= usize::from(self.mss)
            && self.silent_for(now) > self.round_trip.timeout()
        {
            // The peer may repeat a lost flight, which leaves no gap. It needs prompt answers.
            self.receive.be_prompt();
        }
        self.heard_at = millis(now);
        if self.acknowledgment_arrived(now, segment, pools, actions).is_err() {
            return self.challenge(now);
        }
        self.learn_timestamp(segment);
        if is_new && segment.sequence_len() > 0 {
            self.data_arrived(now, segment, pools, actions);
        }
    }

    /// Answers an unacceptable segment. If it has bytes, our acknowledgment of them was lost, so
    /// each copy is answered. An empty segment gets only a challenge, at a limited rate. Otherwise
    /// two confused ends would answer each other for ever.
    fn answer_unacceptable(&mut self, now: Instant, segment: &SegmentRepr<'_>) {
        if segment.sequence_len() > 0 {
            self.note_duplicate(segment.sequence, segment.payload.len());
            self.receive.be_prompt();
            self.owe(Owed::ACK)
        } else {
            self.challenge(now)
        }
    }

    /// Whether the segment repeats the peer's last segment. Then its acknowledgment is used (RFC
    /// 9293 §3.10.7.4). In CLOSING the peer's bare acknowledgment of our FIN may be lost. After
    /// that, only a repeated FIN can acknowledge ours.
    fn repeats_the_last(&self, segment: &SegmentRepr<'_>) -> bool {
        let len = segment.sequence_len();
        len > 0 && segment.sequence + len == self.receive.nxt
    }

    /// PAWS: whether the segment is older than a segment that has arrived (RFC 7323 §5.3 R1).
    #[inline]
    fn is_too_old(&self, now: Instant, segment: &SegmentRepr<'_>) -> bool {
        segment.options.timestamps.is_some_and(|stamps| {
            self.has_agreed(TcpFeatures::TIMESTAMPS)
                && self.timestamps.has_seen_later_than(stamps.value)
                && self.silent_for(now) < TIMESTAMP_VALID
        })
    }

    /// Stores the peer's timestamp (RFC 7323 §5.3 R3). The segment and its acknowledgment must be
    /// acceptable. Otherwise an attacker that hits the wide window could make all later segments of
    /// the peer look old.
    #[inline]
    fn learn_timestamp(&mut self, segment: &SegmentRepr<'_>) {
        if let Some(stamps) = segment.options.timestamps
            && !segment.sequence.is_after(self.receive.reported)
        {
            self.timestamps.recent = stamps.value;
        }
    }

    /// The first step of RFC 9293 §3.10.7.4. Two more cases are accepted, so that the
    /// acknowledgment in the segment is used. The first is an empty segment at the window's right
    /// edge. The second is a window probe: bytes at RCV.NXT while the window is closed.
    fn is_acceptable(&self, segment: &SegmentRepr<'_>) -> bool {
        let len = segment.sequence_len();
        let ahead = segment.sequence.since(self.receive.nxt);
        let open = self.receive.open();
        if ahead < open || ahead == 0 || (len == 0 && ahead == open) {
            return true;
        }
        let behind = self.receive.nxt.since(segment.sequence);
        behind < len
    }

    /// Handles a reset. A reset at exactly RCV.NXT ends the connection. A reset elsewhere in the
    /// window gets a challenge acknowledgment (RFC 5961 §3.2).
    fn reset_arrived(
        &mut self,
        now: Instant,
        segment: &SegmentRepr<'_>,
        pools: &mut Pools,
        actions: &mut Actions,
    ) {
        if segment.sequence == self.receive.nxt {
            if self.state == State::TimeWait {
                return;
            }
            let refused = self.state == State::SynReceived;
            self.finish(
                if refused { CloseReason::Refused } else { CloseReason::Reset },
                pools,
                actions,
            );
        } else if segment.sequence.since(self.receive.nxt) < self.receive.open() {
            self.challenge(now);
        }
    }

    /// Sends a challenge acknowledgment, at most once in [`CHALLENGE_INTERVAL`].
    fn challenge(&mut self, now: Instant) {
        let now = millis(now) as u16;
        let since = Micros::from_millis(u64::from(now.wrapping_sub(self.challenged_at)));
        if self.challenged_at == 0 || since >= CHALLENGE_INTERVAL {
            self.challenged_at = now.max(1);
            self.owe(Owed::ACK);
        }
    }

    /// Handles the payload and the FIN of an acceptable segment.
    fn data_arrived(
        &mut self,
        now: Instant,
        segment: &SegmentRepr<'_>,
        pools: &mut Pools,
        actions: &mut Actions,
    ) {
        if !self.may_receive() {
            // The peer has already sent its FIN, so this segment has been answered before.
            self.owe(Owed::ACK);
            return;
        }
        let nxt = self.receive.nxt;
        let behind =
            if segment.sequence.is_before(nxt) { nxt.since(segment.sequence) as usize } else { 0 };
        let start = segment.sequence.later(nxt);
        let len = segment.payload.len();
        let room = self.receive.edge.since(start) as usize;
        let end = len.min(behind.saturating_add(room));
        let fresh = segment.payload.get(behind.min(end)..end);
        let Some(fresh) = fresh else { unreachable!("the part ends within the segment") };
        let fin = segment.flags.has(TcpFlags::FIN) && end == len;
        self.note_duplicate(segment.sequence, len);
        if start != nxt {
            self.out_of_order_arrived(start, fresh, fin, pools);
            self.receive.be_prompt();
            self.owe(Owed::ACK);
            return;
        }
        if fresh.len() + behind < len {
            self.owe(Owed::ACK);
        }
        self.in_order_arrived(now, behind, fresh, pools, actions);
        let fin_is_next = self.receive_queue.as_ref().is_some_and(|queue| queue.fin_is_next());
        if fin_is_next || (fin && self.receive.nxt == segment.sequence + len as u32) {
            self.fin_arrived(now, pools, actions);
        }
        self.settle_receive_queue(pools);
    }

    /// Notes which of the `count` bytes from `start` on have arrived before. The next
    /// acknowledgment reports these duplicates (RFC 2883 §4).
    fn note_duplicate(&mut self, start: SequenceNumber, count: usize) {
        let nxt = self.receive.nxt;
        let end = start + count as u32;
        let (start, end) = match &self.receive_queue {
            _ if start.is_before(nxt) => (start, end.earlier(nxt)),
            Some(queue) => queue.overlap(start, end),
            None => return,
        };
        let count = end.since(start);
        if self.has_agreed(TcpFeatures::SACK) && count > 0 {
            self.duplicate_at = start;
            self.duplicate_bytes = u16::try_from(count).unwrap_or(u16::MAX);
        }
    }

    /// Accepts bytes at RCV.NXT. If nothing is buffered, they go directly to the session.
    fn in_order_arrived(
        &mut self,
        now: Instant,
        behind: usize,
        fresh: &[u8],
        pools: &mut Pools,
        actions: &mut Actions,
    ) {
        match self.receive_queue.as_mut() {
            Some(queue) => {
                let had_gaps = queue.has_gaps();
                let taken = queue.append(fresh, &mut pools.blocks);
                actions.buffered |= taken > 0;
                self.receive.nxt = queue.tail();
                if had_gaps || taken < fresh.len() {
                    self.owe(Owed::ACK);
                }
            }
            None if pools.can_keep(fresh.len()) => {
                actions.data = behind..behind + fresh.len();
                self.receive.nxt = self.receive.nxt + fresh.len() as u32;
            }
            // No buffer is free. The peer sends these bytes again.
            None => {}
        }
        self.schedule_acknowledgment(now);
    }

    /// Schedules the acknowledgment of received data. Every second full segment is acknowledged at
    /// once, and others after a delay (RFC 9293 §3.8.6.3). While the peer repairs a loss, every
    /// segment is acknowledged at once. RFC 5681 §4.2 asks for this when a segment fills a gap.
    fn schedule_acknowledgment(&mut self, now: Instant) {
        let unreported = self.receive.nxt.since(self.receive.reported);
        if unreported >= 2 * u32::from(self.mss) || self.receive.takes_prompt() {
            self.owe(Owed::ACK);
        } else if unreported > 0 && !self.timers.acknowledge.is_set() {
            self.timers.acknowledge = Alarm::after(now, ACKNOWLEDGE_DELAY);
        }
    }

    /// Buffers bytes beyond a gap if the pools have many free buffers. Otherwise the bytes are
    /// dropped, and the peer sends them again.
    fn out_of_order_arrived(
        &mut self,
        start: SequenceNumber,
        fresh: &[u8],
        fin: bool,
        pools: &mut Pools,
    ) {
        if self.receive_queue.is_none() {
            self.receive_queue = pools.lend_receive_queue_for_gaps();
            let nxt = self.receive.nxt;
            if let Some(queue) = self.receive_queue.as_mut() {
                queue.begin(nxt);
            }
        }
        if let Some(queue) = self.receive_queue.as_mut() {
            if pools.may_fill_gaps() {
                queue.insert(start, fresh, &mut pools.blocks);
            }
            if fin {
                queue.fin_arrived(start + fresh.len() as u32);
            }
        }
        self.settle_receive_queue(pools);
    }

    /// Handles the peer's FIN, which is in order.
    fn fin_arrived(&mut self, now: Instant, pools: &mut Pools, actions: &mut Actions) {
        self.receive.nxt = self.receive.nxt + 1;
        self.receive.edge = self.receive.edge.later(self.receive.nxt);
        if let Some(queue) = self.receive_queue.as_mut() {
            queue.end(&mut pools.blocks);
        }
        self.owe(Owed::ACK);
        actions.peer_closed = true;
        match self.state {
            State::Established => self.state = State::CloseWait,
            State::FinWait1 => self.state = State::Closing,
            _ => self.enter_time_wait(actions),
        }
        if self.state == State::CloseWait {
            self.arm_idle(now);
        }
    }

    /// Notes whether a router has marked an acceptable segment, and whether the peer reports that
    /// it has received our echo of a mark.
    #[inline]
    fn note_congestion(&mut self, segment: &SegmentRepr<'_>) {
        if !self.has_agreed(TcpFeatures::ECN) {
            return;
        }
        if segment.flags.has(TcpFlags::CWR) {
            self.forgive(Owed::ECHO);
        }
        if segment.congestion_experienced && !segment.payload.is_empty() {
            self.owe(Owed::ECHO.with(Owed::ACK));
        }
    }

    fn acknowledgment_arrived(
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
        if outstanding == 0 || self.awaited == AlarmReason::Window {
            // An acknowledgment shows that the peer is alive. A probe asks only this.
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
            if duplicate || !segment.options.sack.is_empty() || segment.flags.has(TcpFlags::ECE) {
                self.flight_acknowledged(now, segment, 0, duplicate);
            }
        }
        if self.state != State::Closed {
            self.update_window(segment);
        }
        Ok(())
    }

    /// Handles bytes, and perhaps our FIN, that are acknowledged for the first time.
    fn progress(
        &mut self,
        now: Instant,
        segment: &SegmentRepr<'_>,
        pools: &mut Pools,
        actions: &mut Actions,
    ) {
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

    /// Whether the segment is a duplicate acknowledgment: no data, no new window (RFC 5681 §2).
    fn is_duplicate(&self, segment: &SegmentRepr<'_>) -> bool {
        segment.sequence_len() == 0
            && u32::from(segment.window) << self.peer_shift == self.snd_wnd
            && self.awaited != AlarmReason::Window
    }

    /// Updates the send window, unless a later segment has already updated it.
    fn update_window(&mut self, segment: &SegmentRepr<'_>) {
        if segment.sequence.is_before(self.snd_wl1) {
            return;
        }
        let before = self.snd_wnd;
        self.snd_wnd = u32::from(segment.window) << self.peer_shift;
        self.snd_wnd_max = self.snd_wnd_max.max(self.snd_wnd);
        self.snd_wl1 = segment.sequence;
        if self.snd_wnd > before && self.awaited == AlarmReason::Window {
            // Only window probes were unanswered. They do not show how fast the path is.
            self.backoff = 0;
        }
    }
}

/// The acknowledgment is outside the valid range (RFC 5961 §5.2). So the rest of the segment is not
/// trusted.
struct Unacceptable;
