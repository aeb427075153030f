//! The values of a connection's state: what it owes, its TCP features, and how it ended.

use super::time_wait::TimeWait;

/// The states of RFC 9293 §3.3.2 that a TCB can be in. LISTEN and the passive SYN-RECEIVED have no
/// TCB.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    SynSent,
    /// Only if both ends opened the connection at the same time.
    SynReceived,
    Established,
    FinWait1,
    FinWait2,
    CloseWait,
    Closing,
    LastAck,
    TimeWait,
    Closed,
}

/// The segments that the connection must send, and the events that it waits for, as a set of bits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Owed(u16);

impl Owed {
    pub(super) const NONE: Owed = Owed(0);
    /// An acknowledgment, now.
    pub(super) const ACK: Owed = Owed(1);
    /// A reset, after which nothing more is sent.
    pub(super) const RESET: Owed = Owed(2);
    /// A retransmission of the first lost bytes, or of a lone SYN or FIN. The congestion window
    /// does not limit it.
    pub(super) const RETRANSMIT: Owed = Owed(4);
    /// A probe when the peer's window is closed or too small.
    pub(super) const PROBE: Owed = Owed(8);
    /// A keep-alive probe.
    pub(super) const KEEPALIVE: Owed = Owed(16);
    /// A tail loss probe, now.
    pub(super) const TAIL_PROBE: Owed = Owed(32);
    /// A notification to the session when there is room again: the session has found too little
    /// room.
    pub(super) const ROOM: Owed = Owed(64);
    /// A reset for a wrong answer to our SYN. `snd_wl1` has the number of the reset. The connection
    /// continues.
    pub(super) const REFUSAL: Owed = Owed(128);

    /// A tail loss probe is in flight. `tail` is the number after its last byte.
    pub(super) const TAIL: Owed = Owed(256);
    /// The tail loss probe in flight was a retransmission of the last segment, not new data.
    pub(super) const TAIL_AGAIN: Owed = Owed(512);

    /// The echo of a congestion mark, with every segment.
    pub(super) const ECHO: Owed = Owed(1024);
    /// The report that our window was reduced, with the next new data.
    pub(super) const REDUCED: Owed = Owed(2048);

    /// All bits that make `output` send something regardless of the windows.
    pub(super) const URGENT: Owed = Owed(1 | 2 | 4 | 8 | 16 | 32 | 128);

    pub(super) const fn with(self, other: Owed) -> Owed {
        Owed(self.0 | other.0)
    }

    pub(super) fn without(self, other: Owed) -> Owed {
        Owed(self.0 & !other.0)
    }

    /// Whether any of `these` is owed.
    pub(super) fn has(self, these: Owed) -> bool {
        self.0 & these.0 != 0
    }
}

/// The features that both ends support, or that we propose before the handshake is complete. A set
/// of bits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct TcpFeatures(u8);

impl TcpFeatures {
    pub(super) const NOTHING: TcpFeatures = TcpFeatures(0);
    pub(super) const TIMESTAMPS: TcpFeatures = TcpFeatures(1);
    /// Windows are scaled: each end announces a shift for its own windows.
    pub(super) const SCALING: TcpFeatures = TcpFeatures(2);
    /// Selective acknowledgments.
    pub(super) const SACK: TcpFeatures = TcpFeatures(4);

    /// Congestion marks of routers are echoed to the sender of the marked data, which reduces its
    /// window.
    pub(super) const ECN: TcpFeatures = TcpFeatures(8);
    /// Our data is sent as ECN-capable.
    pub(super) const ECN_DATA: TcpFeatures = TcpFeatures(16);

    /// All features that we propose.
    pub(super) const PROPOSED: TcpFeatures = TcpFeatures(1 | 2 | 4 | 8);

    #[inline]
    pub(super) fn has(self, on: TcpFeatures) -> bool {
        self.0 & on.0 != 0
    }

    pub(super) fn and(self, other: TcpFeatures) -> TcpFeatures {
        TcpFeatures(self.0 | other.0)
    }

    /// These features if `condition` holds, otherwise none.
    pub(super) fn given(self, condition: bool) -> TcpFeatures {
        if condition { self } else { TcpFeatures::NOTHING }
    }
}

/// How a connection ended. Nothing is left to be sent for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CloseOutcome {
    /// Nothing needs to be stored.
    Gone,
    /// An entry for the [`super::TimeWaitTable`].
    TimeWait(TimeWait),
}
