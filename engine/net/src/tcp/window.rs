//! The receive window: what has arrived in order, what the peer may still send, and what it was last told.
//!
//! The right edge only moves right, so what was promised is taken (RFC 9293 §3.8.6.2.1). It moves by at least a segment
//! at a time, so that the peer is never tempted to send a small one (§3.8.6.2.2). With scaling the wire can only say
//! multiples of eight, and what it says is rounded down; the promise kept is the unrounded one (RFC 7323 §2.4).

use super::sequence::SequenceNumber;

/// The most bytes that one connection may have on the way to us or kept unread.
pub const RECEIVE_WINDOW: u32 = 256 * 1024;

/// What a connection is offered however few blocks are free: enough for the peer to go on slowly.
pub(super) const RECEIVE_WINDOW_SCARCE: u32 = 8 * 1024;

/// The window that a SYN names: not scaled yet, whatever is agreed on (RFC 7323 §2.2). Bytes.
pub const WINDOW_ON_SYN: u16 = u16::MAX;

/// How far our windows are shifted when the peer scales too: the least that can say [`RECEIVE_WINDOW`].
pub const WINDOW_SHIFT: u8 = 3;

const _: () = assert!((u16::MAX as u32) << WINDOW_SHIFT >= RECEIVE_WINDOW);

/// The receive side's numbers.
#[derive(Clone, Copy)]
pub(super) struct ReceiveWindow {
    /// The next number expected: RCV.NXT.
    pub(super) nxt: SequenceNumber,
    /// The first number beyond what was promised: RCV.NXT + RCV.WND.
    pub(super) edge: SequenceNumber,
    /// RCV.NXT as our last segment told it.
    pub(super) told: SequenceNumber,
}

impl ReceiveWindow {
    /// The window after a handshake in which the peer's SYN had the number `irs`.
    pub(super) fn after_syn(irs: SequenceNumber) -> ReceiveWindow {
        let nxt = irs + 1;
        ReceiveWindow { nxt, edge: nxt + u32::from(WINDOW_ON_SYN), told: nxt }
    }

    /// How many bytes the peer may send beyond RCV.NXT.
    #[inline]
    pub(super) fn open(&self) -> u32 {
        self.edge.since(self.nxt)
    }

    /// The window as it goes on the wire, shifted to the right by `shift`.
    #[inline]
    pub(super) fn on_wire(&self, shift: u8) -> u16 {
        u16::try_from(self.open() >> shift).unwrap_or(u16::MAX)
    }

    /// How far the edge could move right, with `kept` bytes unread and `limit` bytes for this connection.
    #[inline]
    fn gain(&self, kept: u32, limit: u32) -> u32 {
        let offer = limit.saturating_sub(kept);
        offer.saturating_sub(self.open())
    }

    /// Moves the edge right, if by enough to be worth it.
    #[inline]
    pub(super) fn offer(&mut self, kept: u32, limit: u32, mss: u32) {
        let gain = self.gain(kept, limit);
        if gain >= mss.min(limit / 2) {
            self.edge = self.edge + gain;
        }
    }

    /// Whether the peer should be told at once that the window has opened: it may be waiting for that.
    pub(super) fn should_tell(&self, kept: u32, limit: u32, mss: u32) -> bool {
        let gain = self.gain(kept, limit);
        gain >= limit / 2 || (self.open() < limit / 4 && gain >= mss.min(limit / 4) * 2)
    }
}
