//! Whether a segment is one of this connection's: asked where several cores may each have one between the same two ports.
//!
//! A peer that has started anew without a word may call again from the same port by another queue of the card's. Then one core has the
//! connection that the peer has forgotten, and another the new one. What tells their segments apart is where their numbers are.

use super::segment::{Flags, SegmentRepr};
use super::state::State;
use super::tcb::Tcb;
use super::window::RECEIVE_WINDOW_MAX;

impl Tcb {
    /// Whether the peer of this connection may have sent the segment, now or a while ago: its number lies in our window or a window
    /// before it, and what it acknowledges is what we have sent, or a window before (RFC 5961 §5.2). What neither can be is for
    /// another connection, or forged.
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
        is_near && (!segment.flags.has(Flags::ACK) || acknowledged <= ever_acknowledged)
    }
}
