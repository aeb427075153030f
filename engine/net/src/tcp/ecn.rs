//! Explicit congestion notification (RFC 3168): routers mark what they would else drop, and the receiver says so until
//! the sender has slowed down.
//!
//! - Asked for in our SYN, unless it has to be repeated (a broken box on the way may have dropped it because of that:
//!   §6.1.1.1); agreed to whenever the peer asks.
//! - Only new text says that it may be marked: no acknowledgment, no repetition, no probe (§6.1.4 to §6.1.6).
//! - A mark is echoed in every segment until the peer says that it has reduced its window.
//! - An echo lowers the window like a loss, once for all that was on the way (§6.1.2).

use super::recovery::Phase;
use super::segment::{Flags, SegmentRepr};
use super::sequence::SequenceNumber;
use super::state::{Agreed, Owed, State};
use super::tcb::Tcb;

impl Tcb {
    /// What a SYN, or a SYN-ACK, agrees to. A SYN-ACK that sets both bits only mirrors ours.
    pub(super) fn ecn_agreed(&self, syn: &SegmentRepr<'_>) -> Agreed {
        let both = Flags::ECE.with(Flags::CWR);
        let agrees = if syn.flags.has(Flags::ACK) {
            syn.flags.has(Flags::ECE) && !syn.flags.has(Flags::CWR) && self.has_agreed(Agreed::ECN)
        } else {
            syn.flags.has(both)
        };
        // Once we have asked without it, our text says nothing though we listen (§6.1.1).
        Agreed::ECN.given(agrees).and(Agreed::ECN_TEXT.given(agrees && self.attempts == 0))
    }

    /// What our SYN or SYN-ACK says.
    pub(super) fn ecn_on_syn(&self) -> Flags {
        match self.state {
            State::SynSent if self.attempts == 0 => Flags::ECE.with(Flags::CWR),
            State::SynReceived if self.has_agreed(Agreed::ECN) => Flags::ECE,
            _ => Flags::NONE,
        }
    }

    /// An acceptable segment has arrived: notes whether it was marked, and whether the peer has heard of the last mark.
    #[inline]
    pub(super) fn note_congestion(&mut self, segment: &SegmentRepr<'_>) {
        if !self.has_agreed(Agreed::ECN) {
            return;
        }
        if segment.flags.has(Flags::CWR) {
            self.forgive(Owed::ECHO);
        }
        if segment.congestion_experienced && !segment.payload.is_empty() {
            self.owe(Owed::ECHO.with(Owed::ACK));
        }
    }

    /// Lowers the window if the peer's acknowledgment echoes a mark that was not heeded yet, and says whether it did. `flight`
    /// was on the way before it.
    pub(super) fn heeds_echo(&mut self, segment: &SegmentRepr<'_>, flight: u32) -> bool {
        let is_news = self.phase() == Phase::Open && self.snd_una.is_after(self.recover);
        let heeds = segment.flags.has(Flags::ECE) && self.has_agreed(Agreed::ECN) && is_news;
        if heeds {
            self.reduce_window(flight);
        }
        heeds
    }

    /// Whether text that begins at `start` may say that routers can mark it.
    #[inline]
    pub(super) fn may_be_marked(&self, start: SequenceNumber) -> bool {
        self.has_agreed(Agreed::ECN_TEXT) && start == self.snd_max && !self.owes(Owed::PROBE.with(Owed::TAIL_PROBE))
    }
}
