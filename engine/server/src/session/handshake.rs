//! A TLS handshake in progress.

use machine::{Instant, Micros};

use super::waits_for::WaitsFor;

/// How long a handshake may take, without the time in which the client's TCP has not acknowledged
/// all of our bytes.
const HANDSHAKE_PATIENCE: Micros = Micros::from_secs(10);

/// How often a handshake is looked at while the client's TCP acknowledges nothing.
pub(crate) const LOOK: Micros = Micros::from_secs(1);

/// A TLS handshake in progress.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TlsHandshake {
    pub(crate) stage: Stage,
    /// The time that was not counted so far.
    pub(crate) unacknowledged: Micros,
    pub(crate) looked_at: Instant,
    /// The deadline. It moves while the handshake waits for its turn, and while bytes are
    /// unacknowledged.
    pub(crate) ends_at: Instant,
    pub(crate) queued_at: Instant,
}

/// What a handshake waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stage {
    /// The client.
    Bytes,
    /// Its turn.
    Queued,
    /// Buffer space for its next message.
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
