//! The receive window: the bytes that have arrived in order, the bytes that the peer may still
//! send, and the window that we last announced.
//!
//! The right edge only moves right, so data within an announced window is always accepted (RFC 9293
//! §3.8.6.2.1). It moves by at least one segment, so that the peer does not send small segments
//! (§3.8.6.2.2). With scaling, the segment can express only multiples of 64, so the announced
//! window is rounded down. We accept data up to the unrounded edge (RFC 7323 §2.4).
//!
//! The width of the window adapts to the path. If the session consumes a quarter of a window within
//! half a round trip, at least half of the window is in flight. Then the next window is twice as
//! wide. So the window grows faster than the data in flight of a peer that doubles its rate each
//! round trip. It settles between two and four times the bytes in flight. Bytes that a session
//! leaves unread do not widen the window.

use machine::Instant;

use super::alarm::millis;
use super::sequence::SequenceNumber;

/// The bytes that every connection may have in flight to us or unread, if there are enough blocks.
pub const RECEIVE_WINDOW: u32 = 256 * 1024;

/// The most bytes that one connection may have in flight to us or unread, even on the longest path.
pub const RECEIVE_WINDOW_MAX: u32 = (u16::MAX as u32) << WINDOW_SHIFT;

/// The window of a connection when few blocks are free. It allows slow progress.
pub(super) const RECEIVE_WINDOW_SCARCE: u32 = 8 * 1024;

/// The window in a SYN, in bytes. It is never scaled, whatever is agreed on (RFC 7323 §2.2).
pub const WINDOW_ON_SYN: u16 = u16::MAX;

/// The shift of our windows when the peer scales too.
pub const WINDOW_SHIFT: u8 = 6;

/// The most times that the window may double.
const DOUBLINGS_MAX: u8 = 4;

const _: () = assert!(
    RECEIVE_WINDOW << DOUBLINGS_MAX >= RECEIVE_WINDOW_MAX && RECEIVE_WINDOW < RECEIVE_WINDOW_MAX
);

/// The number of segments that are acknowledged one by one after a sign that the peer repairs a
/// loss.
const PROMPT_SEGMENTS: u8 = 16;

/// The assumed round trip when none was measured, in microseconds.
const ROUND_TRIP_ASSUMED: u32 = 100_000;

/// The variables of the receive side.
#[derive(Clone, Copy)]
pub(super) struct ReceiveWindow {
    /// The next number expected: RCV.NXT.
    pub(super) nxt: SequenceNumber,
    /// The first number beyond the announced window: RCV.NXT + RCV.WND.
    pub(super) edge: SequenceNumber,
    /// RCV.NXT as our last segment reported it.
    pub(super) reported: SequenceNumber,
    /// The start of the count of consumed bytes: the time, in milliseconds modulo 2^16, and the
    /// number of the first byte.
    counted_at: u16,
    counted_from: SequenceNumber,
    /// How often the window has doubled.
    doublings: u8,
    /// The number of segments that are still to be acknowledged individually.
    prompt: u8,
}

impl ReceiveWindow {
    /// The window after a handshake in which the peer's SYN had the number `irs`.
    pub(super) fn after_syn(now: Instant, irs: SequenceNumber) -> ReceiveWindow {
        let nxt = irs + 1;
        let edge = nxt + u32::from(WINDOW_ON_SYN);
        ReceiveWindow {
            nxt,
            edge,
            reported: nxt,
            counted_at: millis(now) as u16,
            counted_from: nxt,
            doublings: 0,
            prompt: 0,
        }
    }

    /// The width that the window may have, if there are enough blocks.
    #[inline]
    pub(super) fn limit(&self) -> u32 {
        (RECEIVE_WINDOW << self.doublings).min(RECEIVE_WINDOW_MAX)
    }

    /// Widens the window if the session consumes so much in a round trip that half of the window
    /// must be in flight. `kept`: bytes not yet consumed. `round_trip`: in microseconds, zero if
    /// unknown.
    #[inline]
    pub(super) fn fit_path(&mut self, now: Instant, kept: u32, round_trip: u32) {
        let taken = self.nxt - kept;
        if taken.since(self.counted_from) >= self.limit() / 4 {
            self.quarter_taken(now, taken, round_trip);
        }
    }

    fn quarter_taken(&mut self, now: Instant, taken: SequenceNumber, round_trip: u32) {
        let clock = millis(now) as u16;
        let span = u32::from(clock.wrapping_sub(self.counted_at)) * 1000;
        let round_trip = if round_trip == 0 { ROUND_TRIP_ASSUMED } else { round_trip };
        if span <= round_trip / 2 {
            self.doublings = (self.doublings + 1).min(DOUBLINGS_MAX);
        }
        (self.counted_at, self.counted_from) = (clock, taken);
    }

    /// Acknowledges the next segments one by one. The peer repairs a loss, perhaps with a small
    /// window, and waits for each acknowledgment.
    pub(super) fn be_prompt(&mut self) {
        self.prompt = PROMPT_SEGMENTS;
    }

    /// Counts a segment, and returns whether it must be acknowledged at once.
    #[inline]
    pub(super) fn takes_prompt(&mut self) -> bool {
        let is_prompt = self.prompt > 0;
        self.prompt = self.prompt.saturating_sub(1);
        is_prompt
    }

    /// The number of bytes that the peer may send beyond RCV.NXT.
    #[inline]
    pub(super) fn open(&self) -> u32 {
        self.edge.since(self.nxt)
    }

    /// The window as a segment states it, shifted right by `shift`.
    #[inline]
    pub(super) fn on_wire(&self, shift: u8) -> u16 {
        u16::try_from(self.open() >> shift).unwrap_or(u16::MAX)
    }

    /// How far the edge could move right, with `kept` bytes unread and `limit` bytes for this
    /// connection.
    #[inline]
    fn gain(&self, kept: u32, limit: u32) -> u32 {
        let offer = limit.saturating_sub(kept);
        offer.saturating_sub(self.open())
    }

    /// Moves the edge right, if the gain is large enough.
    #[inline]
    pub(super) fn offer(&mut self, kept: u32, limit: u32, mss: u32) {
        let gain = self.gain(kept, limit);
        if gain >= mss.min(limit / 2) {
            self.edge = self.edge + gain;
        }
    }

    /// Whether the peer must be told at once that the window has opened. The peer may wait for
    /// this.
    pub(super) fn should_announce(&self, kept: u32, limit: u32, mss: u32) -> bool {
        let gain = self.gain(kept, limit);
        gain >= limit / 2 || (self.open() < limit / 4 && gain >= mss.min(limit / 4) * 2)
    }
}
