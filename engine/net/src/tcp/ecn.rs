//! Explicit congestion notification (RFC 3168): routers mark what they would else drop, and the receiver says so until
//! the sender has slowed down.
//!
//! - Asked for in our SYN, unless it has to be repeated (a broken box on the way may have dropped it because of that:
//!   §6.1.1.1); agreed to whenever the peer asks.
//! - Only new text says that it may be marked: no acknowledgment, no repetition, no probe (§6.1.4 to §6.1.6).
//! - A mark is echoed in every segment until the peer says that it has reduced its window.
//! - An echo lowers the window like a loss, once for all that was on the way (§6.1.2).

use super::segment::{Flags, SegmentRepr};
use super::state::{Agreed, State};

/// What a SYN, or a SYN-ACK, agrees to. A SYN-ACK that sets both bits only mirrors ours.
/// `proposed`: by us; `attempts`: how often our SYN was repeated.
pub(super) fn agreed(syn: &SegmentRepr<'_>, proposed: Agreed, attempts: u8) -> Agreed {
    let both = Flags::ECE.with(Flags::CWR);
    let agrees = if syn.flags.has(Flags::ACK) {
        syn.flags.has(Flags::ECE) && !syn.flags.has(Flags::CWR) && proposed.has(Agreed::ECN)
    } else {
        syn.flags.has(both)
    };
    // Once we have asked without it, our text says nothing though we listen (§6.1.1).
    Agreed::ECN.given(agrees).and(Agreed::ECN_TEXT.given(agrees && attempts == 0))
}

/// What our SYN or SYN-ACK says.
pub(super) fn on_syn(state: State, agreed: Agreed, attempts: u8) -> Flags {
    match state {
        State::SynSent if attempts == 0 => Flags::ECE.with(Flags::CWR),
        State::SynReceived if agreed.has(Agreed::ECN) => Flags::ECE,
        _ => Flags::NONE,
    }
}
