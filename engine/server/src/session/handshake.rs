//! A TLS handshake in progress.

use machine::{Instant, Micros};

use super::waits_for::WaitsFor;

/// The longest time for a handshake. The time in which the client's TCP has not acknowledged all of
/// our bytes does not count.
const HANDSHAKE_PATIENCE: Micros = Micros::from_secs(10);

/// The interval between two checks of a handshake's deadline.
pub(crate) const LOOK: Micros = Micros::from_secs(1);

/// A TLS handshake in progress.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TlsHandshake {
    pub(crate) stage: Stage,
    /// The time so far that does not count, because the client's TCP had not acknowledged all of
    /// our bytes.
    pub(crate) unacknowledged: Micros,
    pub(crate) looked_at: Instant,
    /// The deadline. It moves on while the handshake waits for its turn, and while bytes are
    /// unacknowledged.
    pub(crate) ends_at: Instant,
    pub(crate) queued_at: Instant,
}

/// The input or resource that a handshake waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stage {
    /// The next bytes of the client.
    Bytes,
    /// The turn of the handshake for a step.
    Queued,
    /// Buffer space for the next message of the handshake.
    Room,
}

impl TlsHandshake {
    /// A handshake of a client that has sent nothing yet.
    pub(crate) fn new(now: Instant) -> TlsHandshake {
        TlsHandshake {
            stage: Stage::Bytes,
            unacknowledged: Micros(0),
            looked_at: now,
            ends_at: now + HANDSHAKE_PATIENCE,
            queued_at: now,
        }
    }

    pub(crate) fn waits_for(&self) -> WaitsFor {
        match self.stage {
            Stage::Bytes => WaitsFor::Bytes,
            Stage::Queued => WaitsFor::Us,
            Stage::Room => WaitsFor::SendRoom,
        }
    }
}
