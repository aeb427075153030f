//! The values of a connection's state: what it owes, what was agreed on, how it ended.

use super::time_wait::TimeWait;

/// The states of RFC 9293 §3.3.2 that a TCB can be in. LISTEN and the passive SYN-RECEIVED have no TCB.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    SynSent,
    /// Only after a simultaneous open.
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

/// What the connection is about to do, or waits for; a set of bits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Owed(u16);

impl Owed {
    pub(super) const NONE: Owed = Owed(0);
    /// An acknowledgment, now.
    pub(super) const ACK: Owed = Owed(1);
    /// A reset, and then nothing more.
    pub(super) const RESET: Owed = Owed(2);
    /// The first of what is lost, or a SYN or FIN that stands alone, again, whatever the congestion window says.
    pub(super) const RETRANSMIT: Owed = Owed(4);
    /// A probe into a window that is closed, or too small.
    pub(super) const PROBE: Owed = Owed(8);
    /// A question whether the peer still lives.
    pub(super) const KEEPALIVE: Owed = Owed(16);
    /// A tail probe, now.
    pub(super) const TAIL_PROBE: Owed = Owed(32);
    /// A session was refused room, and is to be told when there is some.
    pub(super) const ROOM: Owed = Owed(64);
    /// A reset for what answered our SYN wrongly; its number is in `snd_wl1`. The connection goes on.
    pub(super) const REFUSAL: Owed = Owed(128);

    /// A tail probe is on the way, up to `tail`.
    pub(super) const TAIL: Owed = Owed(256);
    /// It was not new, but the last segment once more.
    pub(super) const TAIL_AGAIN: Owed = Owed(512);

    /// The echo of a mark, with every segment.
    pub(super) const ECHO: Owed = Owed(1024);
    /// Word that our window was reduced, with the next new text.
    pub(super) const REDUCED: Owed = Owed(2048);

    /// What makes `output` send something whatever the windows say.
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

/// What both ends have agreed on; before the handshake is over: what we propose. A set of bits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Agreed(u8);

impl Agreed {
    pub(super) const NOTHING: Agreed = Agreed(0);
    pub(super) const TIMESTAMPS: Agreed = Agreed(1);
    /// Windows are scaled, each by its receiver's shift.
    pub(super) const SCALING: Agreed = Agreed(2);
    /// Selective acknowledgments.
    pub(super) const SACK: Agreed = Agreed(4);

    /// Marks of congestion are echoed and heeded.
    pub(super) const ECN: Agreed = Agreed(8);
    /// Our text may be marked.
    pub(super) const ECN_TEXT: Agreed = Agreed(16);

    /// All that we propose.
    pub(super) const PROPOSED: Agreed = Agreed(1 | 2 | 4 | 8);

    #[inline]
    pub(super) fn has(self, on: Agreed) -> bool {
        self.0 & on.0 != 0
    }

    pub(super) fn and(self, other: Agreed) -> Agreed {
        Agreed(self.0 | other.0)
    }

    /// This, if `condition` holds.
    pub(super) fn given(self, condition: bool) -> Agreed {
        if condition { self } else { Agreed::NOTHING }
    }
}

/// How a connection ended, once nothing is left to be sent for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ended {
    /// Nothing is to be remembered.
    Gone,
    /// To be remembered in the [`super::TimeWaitTable`].
    TimeWait(TimeWait),
}
