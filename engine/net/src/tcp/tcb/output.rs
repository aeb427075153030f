//! The output of a connection: everything that it owes and that the windows allow, when the caller
//! asks for it.
//!
//! `emit` passes a segment to the card. A segment counts as sent only after `emit` has accepted it.
//! So if an output ends with `CardFull`, the next call continues it. Small segments are sent at
//! once (no Nagle). A segment that is small only because the peer's window is small waits. It is
//! sent when the window widens or the persist timer expires (RFC 9293 §3.8.6.2.1).

use core::num::NonZeroU16;

use machine::{Instant, Piece};

use super::Tcb;
use crate::tcp::alarm::millis;
use crate::tcp::ecn;
use crate::tcp::options::{Options, SackBlock, SackBlocks, Timestamps};
use crate::tcp::pools::Pools;
use crate::tcp::run::RunState;
use crate::tcp::segment::{CardFull, SegmentToSend, TcpFlags};
use crate::tcp::send_queue::Pieces;
use crate::tcp::sequence::SequenceNumber;
use crate::tcp::state::{Owed, State, TcpFeatures};
use crate::tcp::window::{WINDOW_ON_SYN, WINDOW_SHIFT};

/// The size limits of one output.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SendLimits {
    /// The most payload bytes in one output that the card segments. `None`: each output is one
    /// segment.
    pub segmentation_bytes: Option<u32>,
    /// The largest payload that we receive in one segment, as announced in our SYNs.
    pub local_mss: u16,
}

/// A range of queued bytes, perhaps with the FIN.
#[derive(Clone, Copy)]
pub(super) struct ByteRange {
    offset: u32,
    len: u32,
    fin: bool,
}

impl Tcb {
    /// Sends everything that may be sent now: data, acknowledgments, FIN, probes, resets. Sets the
    /// timer for the rest. The caller checks `deadline` and `ended` afterwards.
    ///
    /// Errors: `CardFull` from `emit`. The next call sends the rest, and sends nothing twice.
    pub fn output(
        &mut self,
        now: Instant,
        limits: SendLimits,
        pools: &Pools,
        emit: &mut impl FnMut(&SegmentToSend, &[Piece]) -> Result<(), CardFull>,
    ) -> Result<(), CardFull> {
        match self.state {
            State::Closed => return self.send_reset(now, emit),
            State::SynSent | State::SynReceived => {
                return self.send_syn(now, limits.local_mss, emit);
            }
            _ => {}
        }
        let result = self.send_segments(now, limits, pools, emit);
        if !matches!(self.state, State::Closed | State::TimeWait) {
            self.settle_retransmit_alarm(now);
        }
        result
    }

    fn send_segments(
        &mut self,
        now: Instant,
        limits: SendLimits,
        pools: &Pools,
        emit: &mut impl FnMut(&SegmentToSend, &[Piece]) -> Result<(), CardFull>,
    ) -> Result<(), CardFull> {
        if self.owes(Owed::ACK) && self.has_sack_news() {
            // SACK blocks are sent alone, so that the segments with data have room for a full MSS.
            self.send_empty(now, self.snd_max, pools, emit)?;
        }
        if self.owes(Owed::RETRANSMIT) {
            if let Some(stretch) = self.first_lost() {
                self.send_stretch(now, stretch, pools, emit)?;
            }
            self.forgive(Owed::RETRANSMIT);
        }
        if self.owes(Owed::TAIL_PROBE) {
            self.probe_tail(now, pools, emit)?;
        }
        self.restart_after_idleness(now);
        while self.has_unsent()
            && let Some(stretch) = self.next_stretch(limits)
        {
            self.send_stretch(now, stretch, pools, emit)?;
            self.forgive(Owed::PROBE);
        }
        if self.owes(Owed::PROBE) {
            if self.has_unsent() {
                let stretch = self.probe();
                self.send_stretch(now, stretch, pools, emit)?;
            }
            self.forgive(Owed::PROBE);
        }
        if self.owes(Owed::KEEPALIVE) {
            self.send_empty(now, self.snd_max - 1, pools, emit)?;
            self.forgive(Owed::KEEPALIVE);
        }
        if self.owes(Owed::ACK) {
            // A peer that has received everything ignores a lower number, because it is before the
            // window. So the segment has the highest number that was sent.
            self.send_empty(now, self.snd_max, pools, emit)?;
        }
        Ok(())
    }

    /// The number of bytes of new data that may be sent now.
    #[inline]
    pub(super) fn sendable(&self) -> u32 {
        let Some(queue) = self.send_queue.as_ref() else { return 0 };
        let outstanding = self.snd_max.since(self.snd_una);
        let unsent = queue.len().saturating_sub(outstanding);
        if unsent == 0 {
            return 0;
        }
        let mss = u32::from(self.mss);
        let room = self
            .snd_wnd
            .saturating_sub(outstanding)
            .min(self.congestion.window().saturating_sub(self.pipe()));
        if unsent <= room {
            return unsent;
        }
        if room >= mss {
            return room - room % mss;
        }
        if room > 0 && room >= self.snd_wnd_max.div_ceil(2) { room } else { 0 }
    }

    /// Whether our FIN or SYN is next to be sent, and the window has room for it.
    pub(super) fn may_send_control(&self) -> bool {
        match self.state {
            State::SynSent | State::SynReceived => self.snd_max == self.snd_una,
            _ => {
                let outstanding = self.snd_max.since(self.snd_una);
                self.fin_unacknowledged()
                    && outstanding == self.queued()
                    && outstanding < self.snd_wnd
            }
        }
    }

    /// Whether data or a FIN is unsent, or data is lost. The windows do not matter.
    pub(super) fn has_unsent(&self) -> bool {
        let end = self.queued() + u32::from(self.fin_unacknowledged());
        self.snd_max.since(self.snd_una) < end || self.lost() > 0
    }

    fn fin_unacknowledged(&self) -> bool {
        matches!(self.state, State::FinWait1 | State::Closing | State::LastAck)
    }

    /// The next range to send. Lost data is sent before new data.
    fn next_stretch(&self, limits: SendLimits) -> Option<ByteRange> {
        if let Some(lost) = self.next_lost() {
            return Some(lost);
        }
        let len = self.sendable();
        let offset = self.snd_max.since(self.snd_una);
        if len == 0 {
            return self.may_send_control().then_some(ByteRange { offset, len: 0, fin: true });
        }
        let mss = u32::from(self.mss);
        // Only one segment may report a reduced window. The card would copy the report to all.
        let most = limits
            .segmentation_bytes
            .filter(|_| !self.owes(Owed::REDUCED))
            .map_or(mss, |most| (most - most % mss).max(mss));
        let len = len.min(most);
        Some(self.with_fin(offset, len))
    }

    /// A range of new data. The FIN is sent with the last data, if the window has room for it.
    fn with_fin(&self, offset: u32, len: u32) -> ByteRange {
        let end = offset + len;
        let fin = self.fin_unacknowledged() && end == self.queued() && end < self.snd_wnd;
        ByteRange { offset, len, fin }
    }

    /// The first lost range, if the congestion window has room for it.
    #[inline]
    pub(super) fn next_lost(&self) -> Option<ByteRange> {
        if self.lost() == 0 {
            return None;
        }
        let room = self.congestion.window().saturating_sub(self.pipe());
        self.first_lost().filter(|stretch| stretch.len + u32::from(stretch.fin) <= room)
    }

    /// The first lost range, at most one segment and within the peer's window. At SND.MAX, new data
    /// fills up the segment. The range may be a lone FIN.
    fn first_lost(&self) -> Option<ByteRange> {
        let Some(queue) = &self.send_queue else {
            return self.fin_unacknowledged().then_some(ByteRange { offset: 0, len: 0, fin: true });
        };
        let lost = queue.flight.first_lost()?;
        let offset = lost.start.since(self.snd_una);
        let all = queue.len() + u32::from(self.fin_unacknowledged());
        let end = if lost.end == self.snd_max { all } else { lost.end.since(self.snd_una) }
            .min(self.snd_wnd);
        let len = end.min(queue.len()).saturating_sub(offset).min(u32::from(self.mss));
        let fin = offset + len == queue.len() && end > queue.len();
        (len > 0 || fin).then_some(ByteRange { offset, len, fin })
    }

    /// Sends new data if the peer accepts any, otherwise the last segment again (RFC 8985 §7.3).
    fn probe_tail(
        &mut self,
        now: Instant,
        pools: &Pools,
        emit: &mut impl FnMut(&SegmentToSend, &[Piece]) -> Result<(), CardFull>,
    ) -> Result<(), CardFull> {
        let (queued, mss) = (self.queued(), u32::from(self.mss));
        let outstanding = self.snd_max.since(self.snd_una);
        let unsent = queued
            .saturating_sub(outstanding)
            .min(mss)
            .min(self.snd_wnd.saturating_sub(outstanding));
        if unsent > 0 {
            self.send_stretch(now, self.with_fin(outstanding, unsent), pools, emit)?;
        } else if outstanding > 0 && outstanding <= self.snd_wnd {
            let offset = outstanding.min(queued).saturating_sub(mss);
            let stretch = ByteRange {
                offset,
                len: outstanding.min(queued) - offset,
                fin: outstanding > queued,
            };
            self.send_stretch(now, stretch, pools, emit)?;
            self.owe(Owed::TAIL_AGAIN);
        }
        self.tail = self.snd_max;
        self.owe(Owed::TAIL);
        self.forgive(Owed::TAIL_PROBE);
        Ok(())
    }

    /// A window probe: at most one segment that the window accepts, else one byte or the FIN.
    fn probe(&self) -> ByteRange {
        let queued = self.queued();
        let len = self.snd_wnd.clamp(1, u32::from(self.mss)).min(queued);
        ByteRange { offset: 0, len, fin: queued == 0 }
    }

    /// Sends one range and accounts for it.
    fn send_stretch(
        &mut self,
        now: Instant,
        stretch: ByteRange,
        pools: &Pools,
        emit: &mut impl FnMut(&SegmentToSend, &[Piece]) -> Result<(), CardFull>,
    ) -> Result<(), CardFull> {
        self.open_window(now, pools);
        let mut pieces = Pieces::new();
        let len = match &self.send_queue {
            Some(queue) if stretch.len > 0 => {
                queue.collect(stretch.offset, stretch.len, &mut pieces)
            }
            _ => 0,
        };
        let fin = stretch.fin && len == stretch.len;
        assert!(len > 0 || fin, "a stretch is of queued bytes, or of a FIN");
        let start = self.snd_una + stretch.offset;
        let mut flags = TcpFlags::ACK;
        if len > 0 && stretch.offset + len == self.queued() {
            flags = flags.with(TcpFlags::PSH);
        }
        if fin {
            flags = flags.with(TcpFlags::FIN);
        }
        let may_be_marked = len > 0 && self.may_be_marked(start);
        if may_be_marked && self.owes(Owed::REDUCED) {
            flags = flags.with(TcpFlags::CWR);
        }
        let segment = SegmentToSend {
            payload_bytes: len as usize,
            may_be_marked,
            segment_bytes: if len > u32::from(self.mss) { NonZeroU16::new(self.mss) } else { None },
            ..self.header(now, start, flags)
        };
        emit(&segment, &pieces)?;
        if flags.has(TcpFlags::CWR) {
            self.forgive(Owed::REDUCED);
        }
        self.sent(now, start, len + u32::from(fin));
        Ok(())
    }

    fn sent(&mut self, now: Instant, start: SequenceNumber, count: u32) {
        let end = start + count;
        let is_probe = self.owes(Owed::PROBE);
        if start == self.snd_una && start == self.snd_max && !is_probe {
            // Keep-alive probes from before this data do not count against it.
            self.attempts = 0;
        }
        // A probe beyond the window is sent again when the window opens. It is not in flight.
        let is_beyond_window = is_probe && end.since(self.snd_una) > self.snd_wnd;
        let state = if is_beyond_window { RunState::Lost } else { RunState::OnTheWay };
        if let Some(queue) = self.send_queue.as_deref_mut() {
            queue.flight.sent(now.0 as u32, start, end, state);
        }
        self.recovery_sent(now, count, start != self.snd_max);
        self.snd_max = self.snd_max.later(end);
        self.acknowledgment_sent();
    }

    fn send_empty(
        &mut self,
        now: Instant,
        sequence: SequenceNumber,
        pools: &Pools,
        emit: &mut impl FnMut(&SegmentToSend, &[Piece]) -> Result<(), CardFull>,
    ) -> Result<(), CardFull> {
        self.open_window(now, pools);
        let mut header = self.header(now, sequence, TcpFlags::ACK);
        if self.has_sack_news() {
            header.options.sack = self.sack_news();
        }
        emit(&header, &[])?;
        self.acknowledgment_sent();
        self.duplicate_bytes = 0;
        Ok(())
    }

    /// Whether a selective acknowledgment has something to report.
    #[inline]
    fn has_sack_news(&self) -> bool {
        let has_ranges = self.receive_queue.as_ref().is_some_and(|queue| queue.has_ranges());
        (has_ranges || self.duplicate_bytes > 0) && self.has_agreed(TcpFeatures::SACK)
    }

    /// The bytes that arrived twice, then the ranges beyond gaps, newest first (RFC 2018, 2883 §4).
    fn sack_news(&self) -> SackBlocks {
        let mut blocks = SackBlocks::default();
        if self.duplicate_bytes > 0 {
            let end = self.duplicate_at + u32::from(self.duplicate_bytes);
            blocks.push(SackBlock { start: self.duplicate_at, end });
        }
        if let Some(queue) = &self.receive_queue {
            queue.report_ranges(&mut blocks);
        }
        blocks
    }

    /// Opens the receive window further, if there is room. Called only before a segment is sent,
    /// because a segment tells the peer the new window.
    fn open_window(&mut self, now: Instant, pools: &Pools) {
        if self.may_receive() {
            let kept = self.kept();
            self.receive.fit_path(now, kept, self.round_trip.smoothed());
            let limit = self.window_limit(pools);
            self.receive.offer(kept, limit, u32::from(self.mss));
        }
    }

    #[inline]
    fn header(&self, now: Instant, sequence: SequenceNumber, flags: TcpFlags) -> SegmentToSend {
        let flags = if self.owes(Owed::ECHO) { flags.with(TcpFlags::ECE) } else { flags };
        SegmentToSend {
            sequence,
            acknowledgment: self.receive.nxt,
            flags,
            window: self.receive.on_wire(self.shift()),
            options: Options { timestamps: self.stamps(now), ..Options::default() },
            ..SegmentToSend::default()
        }
    }

    /// The timestamps of the next segment, if they were agreed on.
    #[inline]
    fn stamps(&self, now: Instant) -> Option<Timestamps> {
        self.has_agreed(TcpFeatures::TIMESTAMPS).then(|| self.timestamps.stamps(now))
    }

    /// Resets the peer. A peer that has received all data accepts only a reset after the last byte
    /// sent (RFC 9293 §3.10.7.4). If the sent data fills the peer's window, a peer that lacks some
    /// data ignores this reset. For that peer, a second reset is sent within the window.
    fn send_reset(
        &mut self,
        now: Instant,
        emit: &mut impl FnMut(&SegmentToSend, &[Piece]) -> Result<(), CardFull>,
    ) -> Result<(), CardFull> {
        if self.owes(Owed::RESET) {
            let last_in_window = self.snd_una + (self.snd_wnd.max(1) - 1);
            for sequence in [self.snd_max, last_in_window] {
                let header = self.header(now, sequence, TcpFlags::RST.with(TcpFlags::ACK));
                emit(&SegmentToSend { window: 0, ..header }, &[])?;
                if !self.snd_max.is_after(last_in_window) {
                    break;
                }
            }
        }
        self.owed = Owed::NONE;
        Ok(())
    }

    fn send_syn(
        &mut self,
        now: Instant,
        local_mss: u16,
        emit: &mut impl FnMut(&SegmentToSend, &[Piece]) -> Result<(), CardFull>,
    ) -> Result<(), CardFull> {
        if self.owes(Owed::REFUSAL) {
            let reset = SegmentToSend {
                sequence: self.snd_wl1,
                flags: TcpFlags::RST,
                ..SegmentToSend::default()
            };
            emit(&reset, &[])?;
            self.forgive(Owed::REFUSAL);
        }
        if self.snd_max == self.snd_una || self.owes(Owed::RETRANSMIT) {
            emit(&self.syn(now, local_mss), &[])?;
            if self.snd_max == self.snd_una {
                // The peer has not sent anything yet. So the wait for its answer begins now.
                self.heard_at = millis(now);
            }
            self.snd_max = self.snd_una + 1;
            self.forgive(Owed::RETRANSMIT);
            self.arm_retransmit(now);
        } else if self.owes(Owed::ACK) {
            emit(&self.header(now, self.snd_max, TcpFlags::ACK), &[])?;
        }
        self.forgive(Owed::ACK);
        Ok(())
    }

    fn syn(&self, now: Instant, local_mss: u16) -> SegmentToSend {
        let answers = self.state == State::SynReceived;
        SegmentToSend {
            sequence: self.snd_una,
            acknowledgment: if answers { self.receive.nxt } else { SequenceNumber(0) },
            flags: ecn::on_syn(self.state, self.features, self.attempts).with(if answers {
                TcpFlags::SYN.with(TcpFlags::ACK)
            } else {
                TcpFlags::SYN
            }),
            window: WINDOW_ON_SYN,
            options: Options {
                mss: Some(local_mss),
                window_scale: self.has_agreed(TcpFeatures::SCALING).then_some(WINDOW_SHIFT),
                timestamps: self.stamps(now),
                sack_permitted: self.has_agreed(TcpFeatures::SACK),
                sack: SackBlocks::default(),
            },
            ..SegmentToSend::default()
        }
    }

    /// Asserts the invariants between events. For tests and simulators; costs a few dozen
    /// instructions.
    pub fn assert_invariants(&self) {
        let end = self.snd_una + self.queued() + 1;
        assert!(!self.snd_max.is_before(self.snd_una), "snd_una <= snd_max");
        assert!(
            self.state == State::Closed || !self.snd_max.is_after(end),
            "no more is sent than is queued, and a FIN"
        );
        assert!(
            !self.receive.edge.is_before(self.receive.nxt),
            "data arrives only within the window"
        );
        assert!(
            !self.receive.nxt.is_before(self.receive.reported),
            "no more is acknowledged than has arrived"
        );
        assert!(
            self.send_queue.as_ref().is_none_or(|queue| queue.len() > 0),
            "an empty send queue is given back"
        );
        if let Some(queue) = &self.send_queue {
            queue.flight.assert_invariants(self.snd_una, self.snd_max);
            queue.recovery.assert_invariants(self.snd_una == self.snd_max);
        }
        assert!(
            self.congestion.window() >= u32::from(self.mss),
            "the congestion window never closes"
        );
        if let Some(queue) = &self.receive_queue {
            assert!(!queue.is_empty(), "an empty receive queue is given back");
            queue.assert_invariants();
        }
    }

    /// Whether data that begins at `start` is sent as ECN-capable.
    #[inline]
    fn may_be_marked(&self, start: SequenceNumber) -> bool {
        self.has_agreed(TcpFeatures::ECN_DATA)
            && start == self.snd_max
            && !self.owes(Owed::PROBE.with(Owed::TAIL_PROBE))
    }
}
