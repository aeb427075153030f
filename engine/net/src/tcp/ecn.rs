//! Explicit congestion notification (RFC 3168). A router marks a packet instead of dropping it. The
//! receiver echoes the mark until the sender has reduced its window.
//! - Our first SYN proposes ECN. A retransmitted SYN does not, because a broken middlebox may drop
//!   SYNs that propose ECN (§6.1.1.1). A peer's proposal is always accepted.
//! - Only new data is sent as ECN-capable: no acknowledgments, retransmissions or probes (§6.1.4 to
//!   §6.1.6).
//! - Every segment echoes a mark until the peer reports that it has reduced its window.
//! - An echo lowers the window like a loss, once for all data in flight (§6.1.2).

use super::segment::{SegmentRepr, TcpFlags};
use super::state::{State, TcpFeatures};

/// The ECN features that a SYN or SYN-ACK agrees to. A SYN-ACK that sets both bits only mirrors our
/// SYN, and does not agree. `proposed`: the features that we proposed. `attempts`: how often our
/// SYN was retransmitted.
pub(super) fn agreed(syn: &SegmentRepr<'_>, proposed: TcpFeatures, attempts: u8) -> TcpFeatures {
    let both = TcpFlags::ECE.with(TcpFlags::CWR);
    let agrees = if syn.flags.has(TcpFlags::ACK) {
        syn.flags.has(TcpFlags::ECE)
            && !syn.flags.has(TcpFlags::CWR)
            && proposed.has(TcpFeatures::ECN)
    } else {
        syn.flags.has(both)
    };
    // If our SYN was retransmitted without ECN, our data is not ECN-capable. But we still echo
    // marks (§6.1.1).
    TcpFeatures::ECN.given(agrees).and(TcpFeatures::ECN_DATA.given(agrees && attempts == 0))
}

/// The ECN flags of our SYN or SYN-ACK.
pub(super) fn on_syn(state: State, features: TcpFeatures, attempts: u8) -> TcpFlags {
    match state {
        State::SynSent if attempts == 0 => TcpFlags::ECE.with(TcpFlags::CWR),
        State::SynReceived if features.has(TcpFeatures::ECN) => TcpFlags::ECE,
        _ => TcpFlags::NONE,
    }
}
