//! Loss recovery: finds lost data from acknowledgments, and decides what to retransmit and when.
//!
//! The same recovery serves every peer. The flight (the list of the data in flight) records which
//! data has arrived. A detector marks the data that is lost. A loss lowers the congestion window
//! once. Proportional rate reduction then limits the rate until everything is acknowledged that was
//! in flight when the loss was found. The detector depends on the peer:
//! - With selective acknowledgments, the detector is RACK, which judges by time (RFC 8985). A tail
//!   loss probe makes the peer answer when only the last segments are lost.
//! - Without such acknowledgments, three duplicate acknowledgments mean that the first segment is
//!   lost. Each partial acknowledgment means that the next segment is lost (RFC 6582). A duplicate
//!   also means that one segment has arrived, but not which one (RFC 6937 §3).
//! - For every peer, the expiry of the retransmission timer marks all old data as lost.
//!
//! Limited transmit (RFC 3042) needs no extra code: data that has arrived is not in flight, so the
//! window has room for new data.
//!
//! A loss may be spurious: the data was only late. A timestamp echo may show that the first copy
//! arrived (RFC 3522), or the data arrives before anything was retransmitted. Then the lowering of
//! the window is undone.
//!
//! `recover` is the number after the last byte that had been sent when the last loss was found.
//! Until this number is acknowledged, further losses belong to the same flight, and do not lower
//! the window again.

use machine::{Instant, Micros};

use super::Tcb;
use crate::tcp::congestion::{Growth, Reduction};
use crate::tcp::options::SackBlock;
use crate::tcp::recovery::{RecoveryPhase, Undo};
use crate::tcp::run::{Run, RunState};
use crate::tcp::segment::{SegmentRepr, TcpFlags};
use crate::tcp::send_queue::SendQueue;
use crate::tcp::sequence::SequenceNumber;
use crate::tcp::slow_start::WindowGrowth;
use crate::tcp::state::{Owed, TcpFeatures};

/// The number of duplicate acknowledgments that mean a loss (RFC 5681 §3.2). If this many segments
/// have arrived beyond a gap, RACK does not wait for reordered segments.
const DUPLICATES: u8 = 3;

/// The effects of one acknowledgment on the flight.
#[derive(Default)]
struct AcknowledgmentEffects {
    /// Bytes that have newly arrived.
    arrived: u32,
    /// The most recently sent run among these bytes.
    newest: Option<Run>,
    /// Whether some of these bytes are beyond all bytes that had arrived before.
    is_in_order: bool,
    /// A range that the peer has received twice.
    duplicate: Option<SackBlock>,
}

impl Tcb {
    /// The estimated number of bytes in the network: in flight, and neither arrived nor lost.
    #[inline]
    pub(in crate::tcp) fn pipe(&self) -> u32 {
        let outstanding = self.snd_max.since(self.snd_una);
        let gone = self.send_queue.as_ref().map_or(0, |queue| {
            queue.flight.arrived() + queue.flight.lost() + queue.recovery.assumed
        });
        outstanding.saturating_sub(gone)
    }

    /// Bytes that must be retransmitted.
    #[inline]
    pub(super) fn lost(&self) -> u32 {
        self.send_queue.as_ref().map_or(0, |queue| queue.flight.lost())
    }

    pub(in crate::tcp) fn phase(&self) -> RecoveryPhase {
        self.send_queue.as_ref().map_or(RecoveryPhase::Open, |queue| queue.recovery.phase)
    }

    /// Handles an acceptable acknowledgment that has moved SND.UNA by `ahead`, or is a duplicate.
    /// An acknowledgment of only our FIN has no effect, because it says nothing about data.
    pub(super) fn flight_acknowledged(
        &mut self,
        now: Instant,
        segment: &SegmentRepr<'_>,
        ahead: u32,
        duplicate: bool,
    ) {
        if self.all_arrived_at_once(now, segment, ahead) {
            return;
        }
        let pipe = self.pipe() + ahead;
        let was_repairing = self.phase() == RecoveryPhase::Repairing;
        let Some(effects) = self.apply_acknowledgment(now, segment, ahead, duplicate) else {
            return;
        };
        if ahead > 0 || effects.newest.is_some() {
            self.measure(now, segment, &effects);
        }
        self.tail_acknowledged(&effects, duplicate);
        self.undo_if_spurious(now, segment, ahead);
        self.end_if_recovered(ahead);
        if let Some(block) = effects.duplicate
            && let Some(queue) = self.send_queue.as_deref_mut()
            && block.end.is_after(self.snd_una - self.snd_wnd_max)
        {
            queue.recovery.rack.duplicate_reported(self.snd_una, self.snd_max);
        }
        self.find_losses(now, ahead);
        let reacted = self.reacts_to_echo(segment, pipe);
        let mss = u32::from(self.mss);
        if self.phase() == RecoveryPhase::Repairing {
            let pipe = self.pipe();
            if let Some(queue) = self.send_queue.as_deref_mut() {
                self.congestion.reduce(&mut queue.recovery.reduction, effects.arrived, pipe, mss);
            }
        } else if !was_repairing && !reacted {
            self.grow(now, ahead, pipe, &effects);
        }
    }

    /// Grows the window after data has arrived outside of recovery. `flight`: bytes in flight
    /// before the acknowledgment.
    fn grow(&mut self, now: Instant, ahead: u32, flight: u32, effects: &AcknowledgmentEffects) {
        let (mss, round_trip) = (u32::from(self.mss), self.round_trip.smoothed());
        let selective = self.has_agreed(TcpFeatures::SACK);
        let Some(SendQueue { recovery, slow_start, epoch, .. }) = self.send_queue.as_deref_mut()
        else {
            return;
        };
        let pace = if !self.congestion.is_in_first_slow_start()
            || !self.congestion.is_held_back_by_window(flight)
        {
            WindowGrowth::Fast
        } else if effects.is_in_order {
            let sample = effects
                .newest
                .filter(|run| !run.ambiguous)
                .map(|run| (now.0 as u32).wrapping_sub(run.sent_at));
            slow_start.arrived(now.0 as u32, recovery.rack.highest(), self.snd_max, sample)
        } else {
            slow_start.arrived_late(now.0 as u32)
        };
        // If the network reorders, bytes beyond a gap count on arrival. Otherwise only acknowledged
        // bytes count: duplicates must not grow the window (RFC 5681 §3.2).
        let bytes =
            if selective && recovery.rack.has_reordered() { effects.arrived } else { ahead };
        if bytes > 0 {
            let growth = Growth { now, bytes, flight, mss, round_trip, pace };
            self.congestion.acknowledged(&growth, epoch);
        }
    }

    /// The fast path: an acknowledgment of everything in flight, when all of it was sent once and
    /// together, and no loss is known. Nothing is left that could be lost or reordered, so only the
    /// round trip is measured. Returns false if the acknowledgment is not of this kind.
    #[inline]
    fn all_arrived_at_once(&mut self, now: Instant, segment: &SegmentRepr<'_>, ahead: u32) -> bool {
        let is_plain = segment.options.sack.is_empty() && !segment.flags.has(TcpFlags::ECE);
        if self.snd_una != self.snd_max || self.owes(Owed::TAIL) || !is_plain {
            return false;
        }
        let Some(SendQueue { flight, recovery, epoch, .. }) = self.send_queue.as_deref_mut() else {
            return false;
        };
        if recovery.phase != RecoveryPhase::Open || recovery.duplicates > 0 {
            return false;
        }
        let Some(sent_at) = flight.take_single_run() else { return false };
        recovery.assumed = 0;
        self.backoff = 0;
        self.recover = self.recover.later(self.snd_una - 1);
        if recovery.timed_until.is_none_or(|until| self.snd_max.is_after(until)) {
            recovery.timed_until = Some(self.snd_max);
            self.round_trip.learn(Micros(u64::from((now.0 as u32).wrapping_sub(sent_at))));
        }
        let (mss, round_trip) = (u32::from(self.mss), self.round_trip.smoothed());
        let growth =
            Growth { now, bytes: ahead, flight: ahead, mss, round_trip, pace: WindowGrowth::Fast };
        self.congestion.acknowledged(&growth, epoch);
        true
    }

    /// Applies an acknowledgment to the flight.
    #[inline]
    fn apply_acknowledgment(
        &mut self,
        now: Instant,
        segment: &SegmentRepr<'_>,
        ahead: u32,
        duplicate: bool,
    ) -> Option<AcknowledgmentEffects> {
        let (una, max, mss) = (self.snd_una, self.snd_max, u32::from(self.mss));
        let selective = self.has_agreed(TcpFeatures::SACK);
        let (clock, smoothed) = (now.0 as u32, self.round_trip.smoothed());
        let SendQueue { flight, recovery, .. } = self.send_queue.as_deref_mut()?;
        let rack = &mut recovery.rack;
        let highest = rack.highest();
        let mut effects = AcknowledgmentEffects::default();
        let mut newest: Option<Run> = None;
        let mut each = |run: &Run| {
            rack.arrived(clock, run, smoothed);
            let is_newer =
                newest.is_none_or(|newest| (run.sent_at.wrapping_sub(newest.sent_at) as i32) >= 0);
            newest = if is_newer { Some(*run) } else { newest };
        };
        effects.arrived = flight.acknowledge(una, &mut each);
        if selective {
            let mut blocks = segment.options.sack;
            if let [first, rest @ ..] = blocks.as_slice()
                && is_duplicate(first, una, rest.first())
            {
                effects.duplicate = blocks.take_first();
            }
            // The blocks arrive with the newest first. In this order the runs would seem reordered.
            blocks.sort_by_distance_from(una);
            for block in blocks.as_slice() {
                if !block.start.is_before(una)
                    && block.start.is_before(block.end)
                    && !block.end.is_after(max)
                {
                    effects.arrived += flight.acknowledge_block(*block, &mut each);
                }
            }
        } else if ahead > 0 {
            effects.arrived = ahead.saturating_sub(recovery.assumed);
            let left = recovery.assumed.saturating_sub(ahead.saturating_sub(mss));
            recovery.assumed = if una == max { 0 } else { left };
            recovery.duplicates = 0;
        } else if duplicate && recovery.phase != RecoveryPhase::TimedOut {
            effects.arrived = mss;
            recovery.assumed = recovery.assumed.saturating_add(mss).min(max.since(una));
            recovery.duplicates = recovery.duplicates.saturating_add(1);
        }
        effects.newest = newest;
        effects.is_in_order = recovery.rack.highest() != highest;
        Some(effects)
    }

    /// Takes one round trip sample for each round trip. The sample is measured with our own clock
    /// if the bytes were sent once, otherwise with the echo of our timestamp.
    fn measure(
        &mut self,
        now: Instant,
        segment: &SegmentRepr<'_>,
        effects: &AcknowledgmentEffects,
    ) {
        let max = self.snd_max;
        let Some(recovery) = self.send_queue.as_deref_mut().map(|queue| &mut queue.recovery) else {
            return;
        };
        let Some(run) = effects.newest else { return };
        let span = if !run.ambiguous {
            Some(Micros(u64::from((now.0 as u32).wrapping_sub(run.sent_at))))
        } else if self.features.has(TcpFeatures::TIMESTAMPS) {
            segment.options.timestamps.and_then(|stamps| self.timestamps.since(now, stamps.echo))
        } else {
            None
        };
        let is_due = recovery.timed_until.is_none_or(|until| run.end.is_after(until));
        if let Some(span) = span {
            self.backoff = 0;
            if is_due {
                recovery.timed_until = Some(max);
                self.round_trip.learn(span);
            }
        }
    }

    /// Marks losses after data has arrived or time has passed.
    pub(super) fn find_losses(&mut self, now: Instant, ahead: u32) {
        let before = self.lost();
        if self.has_agreed(TcpFeatures::SACK) {
            if let Some(wait) = self.judge_by_time(now) {
                self.wait_for_reordered(now, wait);
            }
        } else {
            self.judge_by_duplicates(ahead);
        }
        if self.lost() > before && self.phase() == RecoveryPhase::Open {
            let undo = Undo { congestion: self.congestion, stamp: None };
            self.reduce_window(self.snd_max.since(self.snd_una));
            self.owe(Owed::RETRANSMIT);
            if let Some(queue) = self.send_queue.as_deref_mut() {
                queue.recovery.undo = Some(undo);
            }
        }
    }

    /// Marks losses by RFC 8985 §6.2 step 5. Returns the wait until more data counts as lost.
    fn judge_by_time(&mut self, now: Instant) -> Option<Micros> {
        let (mss, smoothed) = (u32::from(self.mss), self.round_trip.smoothed());
        let SendQueue { flight, recovery, .. } = self.send_queue.as_deref_mut()?;
        if flight.arrived() == 0 && recovery.phase == RecoveryPhase::Open {
            return None;
        }
        let is_sure = recovery.phase != RecoveryPhase::Open
            || flight.arrived() >= u32::from(DUPLICATES) * mss;
        let window = recovery.rack.window(is_sure, smoothed);
        let mut wait = None;
        flight.judge(|run| match recovery.rack.time_left(now.0 as u32, run, window) {
            Some(Micros(0)) => RunState::Lost,
            left => {
                wait = wait.max(left);
                RunState::OnTheWay
            }
        });
        wait
    }

    /// Marks losses by RFC 6582 §3.2. Ignores duplicates that a timeout's retransmissions cause.
    fn judge_by_duplicates(&mut self, ahead: u32) {
        let (una, recover, mss) = (self.snd_una, self.recover, u32::from(self.mss));
        let Some(SendQueue { flight, recovery, .. }) = self.send_queue.as_deref_mut() else {
            return;
        };
        let is_first =
            recovery.phase == RecoveryPhase::Open && ahead == 0 && recovery.duplicates > 0;
        if is_first && !una.is_after(recover) {
            (recovery.duplicates, recovery.assumed) = (0, 0);
        } else if is_first && recovery.duplicates == DUPLICATES {
            flight.lose_first(mss);
        } else if recovery.phase == RecoveryPhase::Repairing && ahead > 0 {
            flight.lose_first(mss);
            self.owe(Owed::RETRANSMIT);
        }
    }

    /// Makes the next new data report our reduced window to the peer (RFC 3168 §6.1.2).
    fn report_reduced_window(&mut self) {
        if self.has_agreed(TcpFeatures::ECN_DATA) {
            self.owe(Owed::REDUCED);
        }
    }

    /// Lowers the window because of congestion. The lowering covers all data in flight now.
    /// `flight`: the bytes of the window that were in use.
    fn reduce_window(&mut self, flight: u32) {
        let (outstanding, mss) = (self.snd_max.since(self.snd_una), u32::from(self.mss));
        self.congestion.lower(flight, mss);
        self.recover = self.snd_max;
        self.report_reduced_window();
        let Some(SendQueue { recovery, epoch, .. }) = self.send_queue.as_deref_mut() else {
            return;
        };
        epoch.end();
        if outstanding == 0 {
            self.congestion.recovered(flight, mss);
            return;
        }
        recovery.phase = RecoveryPhase::Repairing;
        recovery.reduction = Reduction { flight: outstanding, ..Reduction::default() };
        recovery.undo = None;
    }

    fn end_if_recovered(&mut self, ahead: u32) {
        let pipe = self.pipe();
        let (una, recover, mss) = (self.snd_una, self.recover, u32::from(self.mss));
        let Some(recovery) = self.send_queue.as_deref_mut().map(|queue| &mut queue.recovery) else {
            return;
        };
        if ahead == 0 {
            return;
        }
        if recovery.phase == RecoveryPhase::Open {
            // Keeps `recover` from falling so far behind that its comparison would wrap.
            self.recover = recover.later(una - 1);
        } else if !una.is_before(recover) {
            if recovery.phase == RecoveryPhase::Repairing {
                self.congestion.recovered(pipe + recovery.assumed, mss);
            }
            (recovery.phase, recovery.undo, recovery.assumed) = (RecoveryPhase::Open, None, 0);
            recovery.rack.recovered();
            self.forgive(Owed::RETRANSMIT);
        }
    }

    /// Undoes a loss that was only a delay. The sign is an acknowledgment that echoes a time before
    /// the first retransmission (Eifel, RFC 3522), or that arrives before any retransmission.
    fn undo_if_spurious(&mut self, now: Instant, segment: &SegmentRepr<'_>, ahead: u32) {
        let stamps =
            segment.options.timestamps.filter(|_| self.has_agreed(TcpFeatures::TIMESTAMPS));
        let Some(SendQueue { flight, recovery, .. }) = self.send_queue.as_deref_mut() else {
            return;
        };
        let Some(Undo { congestion, stamp }) = recovery.undo.filter(|_| ahead > 0) else { return };
        let was_late = match stamp {
            None => flight.lost() == 0,
            Some(stamp) => stamps.is_some_and(|stamps| {
                let is_ours = self.timestamps.since(now, stamps.echo).is_some();
                is_ours && (stamps.echo.wrapping_sub(stamp) as i32) < 0
            }),
        };
        if was_late && recovery.phase != RecoveryPhase::Open {
            flight.unmark_lost();
            recovery.rack.overtaken();
            (recovery.phase, recovery.undo) = (RecoveryPhase::Open, None);
            self.congestion = congestion;
            self.backoff = 0;
            self.forgive(Owed::RETRANSMIT);
        }
    }

    /// Handles the expiry of the retransmission timer. The first run in flight and all old runs
    /// count as lost (RFC 8985 §6.3). Without selective acknowledgments, all data counts as lost.
    pub(super) fn time_out(&mut self, now: Instant) {
        let (outstanding, mss) = (self.snd_max.since(self.snd_una), u32::from(self.mss));
        let undo = Undo { congestion: self.congestion, stamp: None };
        let (selective, smoothed) =
            (self.has_agreed(TcpFeatures::SACK), self.round_trip.smoothed());
        self.congestion.timed_out(outstanding, mss, self.attempts == 1);
        self.recover = self.snd_max;
        self.report_reduced_window();
        self.owe(Owed::RETRANSMIT);
        self.forgive(Owed::TAIL.with(Owed::TAIL_AGAIN));
        let Some(SendQueue { flight, recovery, epoch, .. }) = self.send_queue.as_deref_mut() else {
            return;
        };
        if flight.is_reneged() {
            flight.forget_arrived();
        }
        epoch.end();
        let window = recovery.rack.window(false, smoothed);
        let patience = recovery.rack.round_trip().0.max(u64::from(smoothed)) + window.0;
        let mut is_first = true;
        flight.judge(|run| {
            let age = u64::from((now.0 as u32).wrapping_sub(run.sent_at));
            let is_lost = core::mem::take(&mut is_first) || !selective || age >= patience;
            if is_lost { RunState::Lost } else { RunState::OnTheWay }
        });
        (recovery.phase, recovery.duplicates, recovery.assumed) = (RecoveryPhase::TimedOut, 0, 0);
        recovery.undo = recovery.undo.or(Some(undo));
    }

    /// Counts sent bytes against the reduced rate. `is_again`: the bytes were retransmitted.
    #[inline]
    pub(super) fn recovery_sent(&mut self, now: Instant, count: u32, is_again: bool) {
        let stamp = self.timestamps.stamps(now).value;
        let Some(recovery) = self.send_queue.as_deref_mut().map(|queue| &mut queue.recovery) else {
            return;
        };
        if recovery.phase == RecoveryPhase::Open {
            return;
        }
        recovery.reduction.sent = recovery.reduction.sent.saturating_add(count);
        if let Some(undo) = recovery.undo.as_mut().filter(|undo| is_again && undo.stamp.is_none()) {
            undo.stamp = Some(stamp);
        }
    }

    /// Handles an acknowledgment of the tail loss probe in flight (RFC 8985 §7.4.2). A probe may
    /// repeat data. If more than the probe is acknowledged, and no duplicate is reported, the
    /// original of this data was lost. The probe has repaired this loss, but the loss still lowers
    /// the window.
    fn tail_acknowledged(&mut self, effects: &AcknowledgmentEffects, duplicate: bool) {
        if !self.owes(Owed::TAIL) || self.snd_una.is_before(self.tail) {
            return;
        }
        let was_lost = self.owes(Owed::TAIL_AGAIN)
            && self.snd_una.is_after(self.tail)
            && effects.duplicate.is_none();
        let is_settled =
            !self.owes(Owed::TAIL_AGAIN) || effects.duplicate.is_some() || duplicate || was_lost;
        if is_settled {
            self.forgive(Owed::TAIL.with(Owed::TAIL_AGAIN));
        }
        if was_lost && self.phase() == RecoveryPhase::Open {
            self.reduce_window(self.snd_max.since(self.snd_una));
        }
    }

    /// Whether a tail loss probe may be sent, now or later (RFC 8985 §7.2).
    pub(super) fn may_probe_tail(&self) -> bool {
        let Some(queue) = &self.send_queue else { return false };
        self.has_agreed(TcpFeatures::SACK)
            && !self.owes(Owed::TAIL)
            && queue.recovery.phase == RecoveryPhase::Open
            && queue.flight.arrived() == 0
            && queue.flight.lost() == 0
            && self.backoff == 0
            && self.round_trip.smoothed() > 0
    }

    /// Lowers the window if the acknowledgment echoes a new congestion mark. Returns whether the
    /// window was lowered. `flight`: bytes in flight before the acknowledgment.
    fn reacts_to_echo(&mut self, segment: &SegmentRepr<'_>, flight: u32) -> bool {
        let is_news = self.phase() == RecoveryPhase::Open && self.snd_una.is_after(self.recover);
        let reacts =
            segment.flags.has(TcpFlags::ECE) && self.has_agreed(TcpFeatures::ECN) && is_news;
        if reacts {
            self.reduce_window(flight);
        }
        reacts
    }
}

/// Whether the first SACK block reports a duplicate: the block is already acknowledged, or is
/// within the second block (RFC 2883 §4).
fn is_duplicate(first: &SackBlock, una: SequenceNumber, second: Option<&SackBlock>) -> bool {
    let is_within = second.is_some_and(|second| {
        !first.start.is_before(second.start) && !first.end.is_after(second.end)
    });
    first.start.is_before(first.end) && (!first.end.is_after(una) || is_within)
}
