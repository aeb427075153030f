//! The gates at which connections wait for slow computations. At each gate, one connection does one
//! step in a turn.
//!
//! Invariant: a frame waits at one gate at most.

use tasks::{FrameId, GateId, Gates, Passage};

/// Work for a connection that is done one step a turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TurnGate {
    /// A step of a TLS handshake.
    Handshake,
    /// The verification of a signature of a message.
    Verification,
}

impl TurnGate {
    const COUNT: usize = 2;

    const fn id(self) -> GateId {
        GateId(self as u32)
    }
}

/// All gates of a core.
pub(crate) struct TurnGates(Gates);

impl TurnGates {
    /// Bytes of memory for each connection.
    pub(crate) const SLOT_BYTES: usize = Gates::SLOT_BYTES;

    pub(crate) fn new(connections: usize) -> TurnGates {
        TurnGates(Gates::new(TurnGate::COUNT, connections))
    }

    pub(crate) fn enter(&mut self, gate: TurnGate, frame: FrameId) {
        let (Passage::Entered | Passage::Queued) = self.0.enter(gate.id(), frame);
    }

    #[inline]
    pub(crate) fn owner(&self, gate: TurnGate) -> Option<FrameId> {
        self.0.owner(gate.id())
    }

    pub(crate) fn leave(&mut self, gate: TurnGate, frame: FrameId) {
        if self.owner(gate) == Some(frame) {
            self.0.leave(gate.id(), frame);
        } else {
            self.0.abandon(frame);
        }
    }
}
