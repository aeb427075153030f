//! One connection: its state, and how it opens and closes. Other files have the rest: `session` the
//! operations of the session, `arrival` and `loss` the handling of segments, `output` the sending,
//! and `timers` the deadlines.
//!
//! Invariants (see [`Tcb::assert_invariants`]):
//! - `snd_una <= snd_max <= snd_una + queued + 1`. SND.NXT is always `snd_max`, because the flight
//!   in the send queue records what must be retransmitted.
//! - The send queue's first byte has the number `snd_una`, from the end of the handshake until our
//!   FIN is acknowledged.
//! - Without queued bytes there is no send queue. Without kept bytes there is no receive queue.
//! - A connection with the `state` `Closed` or `TimeWait` owes at most one last segment.

mod arrival;
mod loss;
mod output;
mod session;
mod timers;

pub use arrival::CHALLENGE_INTERVAL;
pub use output::SendLimits;

use alloc::boxed::Box;

use machine::{Instant, Micros};

use super::actions::{Actions, CloseReason};
use super::alarm::{Alarm, AlarmReason, Timers, USER_TIMEOUT, millis};
use super::congestion::Congestion;
use super::ecn;
use super::handshake::{InitialNumbers, MSS_DEFAULT, TcpHandshake, mss_agreed};
use super::path;
use super::pools::Pools;
use super::receive_queue::ReceiveQueue;
use super::round_trip::RoundTrip;
use super::run::RunState;
use super::segment::{SegmentRepr, TcpFlags};
use super::send_queue::SendQueue;
use super::sequence::SequenceNumber;
use super::state::{CloseOutcome, Owed, State, TcpFeatures};
use super::time_wait::TimeWait;
use super::timestamps::{TIMESTAMP_BYTES, TimestampClock};
use super::window::{RECEIVE_WINDOW_MAX, ReceiveWindow, WINDOW_SHIFT};

/// One connection.
pub struct Tcb {
    send_queue: Option<Box<SendQueue>>,
    receive_queue: Option<Box<ReceiveQueue>>,
    snd_una: SequenceNumber,
    /// The number after the highest number that was ever sent: SND.MAX.
    snd_max: SequenceNumber,
    /// The peer's window in bytes, and the largest window that the peer ever offered.
    snd_wnd: u32,
    snd_wnd_max: u32,
    /// The number of the segment that last updated the window. SND.WL2 is not stored: it is never
    /// later than SND.UNA, and only an acknowledgment of SND.UNA or later updates the window.
    snd_wl1: SequenceNumber,
    receive: ReceiveWindow,
    /// Bytes that arrived twice and must be reported: the number of the first byte, and their
    /// count.
    duplicate_at: SequenceNumber,
    duplicate_bytes: u16,
    round_trip: RoundTrip,
    congestion: Congestion,
    /// The value of `snd_max` when the congestion window was last lowered.
    recover: SequenceNumber,
    /// The number after the last byte of the tail loss probe.
    tail: SequenceNumber,
    timers: Timers,
    /// The event that the retransmit alarm waits for.
    awaited: AlarmReason,
    timestamps: TimestampClock,
    /// When the peer was last heard from, in milliseconds modulo 2^32.
    heard_at: u32,
    /// When the last challenge acknowledgment was sent, in milliseconds modulo a minute; zero if
    /// none was.
    challenged_at: u16,
    owed: Owed,
    features: TcpFeatures,
    /// The largest payload of one segment to the peer, without the timestamps. Until the peer's SYN
    /// arrives, it is the largest payload of one segment to us.
    mss: u16,
    state: State,
    /// The shift of the peer's windows.
    peer_shift: u8,
    /// How often the timeout was doubled. The next valid sample resets this number (Karn).
    backoff: u8,
    /// Consecutive timeouts or probes without an answer.
    attempts: u8,
    /// How long timeouts or probes may stay without an answer in total.
    user_timeout_secs: u16,
}

const _: () = assert!(size_of::<Tcb>() <= 128, "an idle connection costs 128 bytes here");

impl Tcb {
    /// Creates a connection after a handshake in a [`super::HalfOpenTable`]. The caller then passes
    /// it the segment that completed the handshake.
    pub fn accepted(now: Instant, handshake: &TcpHandshake) -> Tcb {
        let syn_lost = handshake.round_trip.is_none();
        let beginning = InitialNumbers { iss: handshake.iss, timestamp_offset: 0 };
        let mut tcb = Tcb::new(now, beginning, handshake.mss, State::Established);
        tcb.features = TcpFeatures::TIMESTAMPS
            .given(handshake.timestamps.is_some())
            .and(TcpFeatures::SCALING.given(handshake.peer_window_shift.is_some()))
            .and(TcpFeatures::SACK.given(handshake.sack_permitted))
            .and(TcpFeatures::ECN.and(TcpFeatures::ECN_DATA).given(handshake.ecn));
        tcb.timestamps = handshake.timestamps.unwrap_or(tcb.timestamps);
        tcb.snd_una = handshake.iss + 1;
        tcb.snd_max = tcb.snd_una;
        tcb.snd_wl1 = handshake.irs;
        tcb.receive = ReceiveWindow::after_syn(now, handshake.irs);
        tcb.peer_shift = handshake.peer_window_shift.unwrap_or(0);
        tcb.round_trip = RoundTrip::after_handshake(handshake.round_trip);
        tcb.congestion = Congestion::new(u32::from(handshake.mss), syn_lost);
        tcb.arm_idle(now);
        tcb
    }

    /// Creates a connection that we open. The next `output` sends the SYN. `local_mss`: the largest
    /// payload that we receive in one segment, in bytes. `beginning`: from
    /// [`super::InitialSequences::next`].
    pub fn connect(now: Instant, beginning: InitialNumbers, local_mss: u16) -> Tcb {
        Tcb::new(now, beginning, local_mss, State::SynSent)
    }

    fn new(now: Instant, beginning: InitialNumbers, mss: u16, state: State) -> Tcb {
        let iss = beginning.iss;
        Tcb {
            send_queue: None,
            receive_queue: None,
            snd_una: iss,
            snd_max: iss,
            snd_wnd: 0,
            snd_wnd_max: 0,
            snd_wl1: SequenceNumber(0),
            receive: ReceiveWindow::after_syn(now, SequenceNumber(0)),
            duplicate_at: SequenceNumber(0),
            duplicate_bytes: 0,
            round_trip: RoundTrip::unknown(),
            congestion: Congestion::new(u32::from(mss), false),
            recover: iss,
            tail: iss,
            timers: Timers::NONE,
            awaited: AlarmReason::Acknowledgment,
            timestamps: TimestampClock { offset: beginning.timestamp_offset, recent: 0 },
            heard_at: millis(now),
            challenged_at: 0,
            owed: Owed::NONE,
            features: TcpFeatures::PROPOSED,
            mss,
            state,
            peer_shift: 0,
            backoff: 0,
            attempts: 0,
            user_timeout_secs: (USER_TIMEOUT.0 / 1_000_000) as u16,
        }
    }

    /// Handles a segment of this connection with a valid checksum.
    #[inline(always)]
    pub fn segment_arrived(
        &mut self,
        now: Instant,
        segment: &SegmentRepr<'_>,
        pools: &mut Pools,
    ) -> Actions {
        let mut actions = Actions::default();
        self.arrive(now, segment, pools, &mut actions);
        actions
    }

    /// Adopts the numbers and options of the peer's SYN.
    fn learn_syn(&mut self, now: Instant, segment: &SegmentRepr<'_>) {
        self.receive = ReceiveWindow::after_syn(now, segment.sequence);
        self.peer_shift = segment.options.window_scale.unwrap_or(0);
        self.mss = mss_agreed(self.mss, segment.options.mss);
        let ecn = ecn::agreed(segment, self.features, self.attempts);
        self.features = ecn
            .and(TcpFeatures::TIMESTAMPS.given(segment.options.timestamps.is_some()))
            .and(TcpFeatures::SCALING.given(segment.options.window_scale.is_some()))
            .and(TcpFeatures::SACK.given(segment.options.sack_permitted));
        if let Some(stamps) = segment.options.timestamps {
            self.timestamps.recent = stamps.value;
            self.mss -= TIMESTAMP_BYTES;
        }
        self.snd_wnd = u32::from(segment.window);
        self.snd_wnd_max = self.snd_wnd;
        self.snd_wl1 = segment.sequence;
        self.forgive(Owed::REFUSAL);
        self.congestion = Congestion::new(u32::from(self.mss), self.attempts > 0);
    }

    /// Establishes the connection after our SYN was acknowledged.
    fn syn_acknowledged(&mut self, now: Instant, segment: &SegmentRepr<'_>, actions: &mut Actions) {
        self.snd_una = segment.acknowledgment;
        self.snd_max = self.snd_una;
        self.forgive(Owed::RETRANSMIT);
        let sample = (self.attempts == 0).then(|| Micros(self.silent_for(now).0 + 500));
        self.round_trip = RoundTrip::after_handshake(sample);
        self.attempts = 0;
        self.backoff = 0;
        self.state = State::Established;
        self.timers.retransmit = Alarm::NONE;
        self.heard_at = millis(now);
        self.owe(Owed::ACK);
        self.arm_idle(now);
        actions.connected = true;
    }

    /// When [`Tcb::deadline_expired`] must be called; any other call may change it.
    pub fn deadline(&self, now: Instant) -> Option<Instant> {
        self.timers.next(now)
    }

    /// Handles the deadlines that have expired, if any.
    pub fn deadline_expired(&mut self, now: Instant, pools: &mut Pools) -> Actions {
        let mut actions = Actions::default();
        self.expire(now, pools, &mut actions);
        actions
    }

    /// Whether `output` must be called. Something can be sent now, or something waits that may not
    /// be sent yet and has no timer.
    pub fn wants_output(&self) -> bool {
        self.has_output_now() || (self.has_unsent() && !self.timers.retransmit.is_set())
    }

    /// Whether the peer has acknowledged everything, including our FIN.
    pub fn has_delivered_all(&self) -> bool {
        matches!(self.state, State::FinWait2 | State::TimeWait | State::Closed)
    }

    /// Whether the connection needs no call before `called_at`. The caller will call it at that
    /// time in any case. The answer may be false although no call is needed. Then [`Tcb::output`]
    /// finds nothing to do.
    #[inline]
    pub fn is_at_rest(&self, now: Instant, called_at: Instant) -> bool {
        matches!(self.state, State::Established | State::CloseWait | State::FinWait2)
            && !self.owes(Owed::URGENT)
            && !self.has_unsent()
            && self.deadline(now).is_none_or(|deadline| deadline >= called_at)
    }

    /// Whether there is something to send now.
    fn has_output_now(&self) -> bool {
        self.owes(Owed::URGENT)
            || self.sendable() > 0
            || self.may_send_control()
            || self.next_lost().is_some()
    }

    /// Sends the queued bytes, then a FIN. Receiving continues until the peer closes too; bytes
    /// that the session has not consumed by then are dropped.
    pub fn close(&mut self, pools: &mut Pools) {
        match self.state {
            State::Established => self.state = State::FinWait1,
            State::CloseWait => self.state = State::LastAck,
            State::SynSent | State::SynReceived => self.abort(pools),
            _ => return,
        }
        self.forgive(Owed::ROOM);
    }

    /// Resets the connection and drops the queued bytes. The next `output` sends the RST. No
    /// `closed` action follows.
    pub fn abort(&mut self, pools: &mut Pools) {
        let peer_knows_of_us =
            !matches!(self.state, State::SynSent | State::TimeWait | State::Closed);
        if self.state != State::Closed {
            self.enter_closed(pools);
        }
        if peer_knows_of_us {
            self.owe(Owed::RESET);
        }
    }

    /// Closes the connection: sends nothing more, and tells the session the reason.
    fn finish(&mut self, reason: CloseReason, pools: &mut Pools, actions: &mut Actions) {
        self.enter_closed(pools);
        actions.closed = Some(reason);
    }

    fn enter_closed(&mut self, pools: &mut Pools) {
        self.state = State::Closed;
        self.owed = Owed::NONE;
        self.timers = Timers::NONE;
        self.release(pools);
    }

    /// Enters TIME-WAIT: our FIN was acknowledged, and the peer's FIN has arrived.
    fn enter_time_wait(&mut self, actions: &mut Actions) {
        self.state = State::TimeWait;
        self.timers = Timers::NONE;
        actions.closed = Some(CloseReason::Normal);
    }

    /// How the connection ended. `None` while it is open or has a last segment to send.
    pub fn ended(&self) -> Option<CloseOutcome> {
        match self.state {
            _ if self.owes(Owed::URGENT) => None,
            State::Closed => Some(CloseOutcome::Gone),
            State::TimeWait => Some(CloseOutcome::TimeWait(TimeWait {
                snd_nxt: self.snd_max,
                rcv_nxt: self.receive.nxt,
                window: self.receive.on_wire(self.shift()),
                timestamps: self.has_agreed(TcpFeatures::TIMESTAMPS).then_some(self.timestamps),
            })),
            _ => None,
        }
    }

    /// Gives all borrowed buffers back to the pools. Call it before dropping the connection.
    pub fn release(&mut self, pools: &mut Pools) {
        if let Some(queue) = self.send_queue.take() {
            pools.take_back_send_queue(queue);
        }
        if let Some(queue) = self.receive_queue.take() {
            pools.take_back_receive_queue(queue);
        }
    }

    /// Gives the send queue back to its pool if it is empty.
    fn settle_send_queue(&mut self, pools: &mut Pools) {
        if let Some(queue) = self.send_queue.take_if(|queue| queue.len() == 0) {
            pools.take_back_send_queue(queue);
        }
    }

    /// Gives the receive queue back to its pool if it is empty.
    fn settle_receive_queue(&mut self, pools: &mut Pools) {
        if let Some(queue) = self.receive_queue.take_if(|queue| queue.is_empty()) {
            pools.take_back_receive_queue(queue);
        }
    }

    /// Bytes queued and not acknowledged.
    #[inline]
    fn queued(&self) -> u32 {
        self.send_queue.as_ref().map_or(0, |queue| queue.len())
    }

    /// Bytes that arrived in order and were not consumed yet.
    #[inline]
    fn kept(&self) -> u32 {
        self.receive_queue.as_ref().map_or(0, |queue| queue.readable())
    }

    /// Whether both ends know each other's sequence numbers.
    fn is_synchronized(&self) -> bool {
        !matches!(self.state, State::SynSent | State::SynReceived | State::Closed)
    }

    /// Whether the peer's FIN has not arrived yet.
    fn may_receive(&self) -> bool {
        matches!(self.state, State::Established | State::FinWait1 | State::FinWait2)
    }

    fn owe(&mut self, what: Owed) {
        self.owed = self.owed.with(what);
    }

    fn forgive(&mut self, what: Owed) {
        self.owed = self.owed.without(what);
    }

    fn owes(&self, any: Owed) -> bool {
        self.owed.has(any)
    }

    /// The shift of our windows on the wire.
    #[inline]
    fn shift(&self) -> u8 {
        if self.has_agreed(TcpFeatures::SCALING) { WINDOW_SHIFT } else { 0 }
    }

    /// Whether both ends have agreed on the feature.
    #[inline]
    fn has_agreed(&self, on: TcpFeatures) -> bool {
        self.features.has(on)
    }

    /// Records that an acknowledgment was sent. Each segment carries one.
    fn acknowledgment_sent(&mut self) {
        self.forgive(Owed::ACK);
        self.timers.acknowledge = Alarm::NONE;
        self.receive.reported = self.receive.nxt;
    }

    /// Whether the peer of this connection may have sent the segment, now or a while ago. The
    /// sequence number must be in our window, or at most one window before it. The acknowledgment
    /// must be at most SND.MAX, and at most one window before SND.UNA (RFC 5961 §5.2). Any other
    /// segment is for another connection, or is forged.
    // A peer that has restarted may connect again from the same port, through another queue of the
    // card. Then one core has the connection that the peer has forgotten, and another core has the
    // new connection. The sequence numbers distinguish their segments.
    #[inline]
    pub(crate) fn may_be_meant(&self, segment: &SegmentRepr<'_>) -> bool {
        if matches!(self.state, State::Closed | State::SynSent) || segment.flags.opens() {
            return true;
        }
        let ahead = segment.sequence.since(self.receive.nxt);
        let behind = self.receive.nxt.since(segment.sequence);
        let is_near = ahead <= self.receive.open() || behind <= RECEIVE_WINDOW_MAX;
        let acknowledged = self.snd_max.since(segment.acknowledgment);
        let ever_acknowledged = self.snd_max.since(self.snd_una) + self.snd_wnd_max;
        is_near && (!segment.flags.has(TcpFlags::ACK) || acknowledged <= ever_acknowledged)
    }

    /// Handles a router's report that the segment at `sequence` was too long for a link (RFC 1191).
    /// A payload of `mss` bytes would have fitted. The report counts only if the segment is in
    /// flight, and never lowers the MSS below [`MSS_DEFAULT`]. Data in flight is sent again in
    /// smaller segments, but does not count as lost by congestion.
    pub fn path_narrowed(&mut self, sequence: SequenceNumber, mss: u16) {
        let is_on_the_way = sequence.since(self.snd_una) < self.snd_max.since(self.snd_una);
        if is_on_the_way
            && self.is_synchronized()
            && self.shorten(mss)
            && let Some(queue) = self.send_queue.as_deref_mut()
        {
            queue.flight.judge(|_| RunState::Lost);
        }
    }

    /// Tries smaller segments after several timeouts in a row (`path`), because the segments may be
    /// too long for the path. Even a segment that is not full may be too long.
    fn suspect_path(&mut self) {
        if let Some(mss) = path::size_to_try(self.attempts)
            && self.queued() > u32::from(mss)
        {
            self.shorten(mss);
        }
    }

    /// Lowers the MSS to `mss`, but not below [`MSS_DEFAULT`]. An MSS that is already lower stays.
    /// Returns whether the MSS has changed.
    fn shorten(&mut self, mss: u16) -> bool {
        let timestamps = if self.has_agreed(TcpFeatures::TIMESTAMPS) { TIMESTAMP_BYTES } else { 0 };
        let mss = mss.max(MSS_DEFAULT) - timestamps;
        let is_shorter = mss < self.mss;
        self.mss = self.mss.min(mss);
        is_shorter
    }

    /// Handles a router's report that the segment at `sequence` is refused for good. If this
    /// segment is our SYN, the attempt to connect ends.
    pub fn connect_refused_by_path(
        &mut self,
        sequence: SequenceNumber,
        pools: &mut Pools,
    ) -> Actions {
        let mut actions = Actions::default();
        if self.state == State::SynSent && sequence == self.snd_una && self.snd_max != self.snd_una
        {
            self.finish(CloseReason::Refused, pools, &mut actions);
        }
        actions
    }
}

/// Accessors for tests.
#[cfg(test)]
impl Tcb {
    pub(super) fn congestion(&self) -> Congestion {
        self.congestion
    }

    pub(super) fn snd_una(&self) -> SequenceNumber {
        self.snd_una
    }

    pub(super) fn snd_max(&self) -> SequenceNumber {
        self.snd_max
    }

    pub(super) fn mss(&self) -> u16 {
        self.mss
    }

    pub(super) fn round_trip(&self) -> RoundTrip {
        self.round_trip
    }

    pub(super) fn receive(&self) -> ReceiveWindow {
        self.receive
    }

    pub(super) fn state(&self) -> State {
        self.state
    }
}
