//! Counters of how TLS handshakes end, for the operator.

use core::fmt;
use core::iter::Sum;

use tls::{Failure, FailureCategory, NegotiatedParameters};

/// The outcomes of the handshakes of a core since its start. A client that never sent a byte counts
/// only if it was refused for lack of space.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Handshakes {
    /// Completed handshakes.
    pub established: u64,
    /// Handshakes that were completed with a session ticket. They also count in `established`.
    pub resumed: u64,
    /// Handshakes that were refused: too many handshakes or connections, or the machine was about
    /// to stop.
    pub turned_away: u64,
    /// Handshakes that took too long, or made no progress while there were many.
    pub late: u64,
    /// Handshakes of two sides that shared no version, algorithm or protocol.
    pub no_common_ground: u64,
    /// Handshakes in which the client's bytes were not TLS, or were changed on the way.
    pub broken: u64,
    /// Handshakes in which the client rejected us or disconnected.
    pub given_up: u64,
}

impl Handshakes {
    /// A handshake was completed.
    pub fn was_established(&mut self, agreed: &NegotiatedParameters) {
        self.established += 1;
        self.resumed += u64::from(agreed.is_resumed);
    }

    /// A handshake has failed.
    pub fn has_failed(&mut self, failure: &Failure) {
        let count = match failure.reason() {
            FailureCategory::NoCommonGround => &mut self.no_common_ground,
            FailureCategory::Broken => &mut self.broken,
            FailureCategory::PeerGaveUp => &mut self.given_up,
        };
        *count += 1;
    }

    /// The number of failed handshakes.
    pub fn failed(&self) -> u64 {
        self.turned_away + self.late + self.no_common_ground + self.broken + self.given_up
    }
}

impl Sum for Handshakes {
    fn sum<I: Iterator<Item = Handshakes>>(all: I) -> Handshakes {
        all.fold(Handshakes::default(), |one, other| Handshakes {
            established: one.established + other.established,
            resumed: one.resumed + other.resumed,
            turned_away: one.turned_away + other.turned_away,
            late: one.late + other.late,
            no_common_ground: one.no_common_ground + other.no_common_ground,
            broken: one.broken + other.broken,
            given_up: one.given_up + other.given_up,
        })
    }
}

impl fmt::Display for Handshakes {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Handshakes {
            established,
            resumed,
            turned_away,
            late,
            no_common_ground,
            broken,
            given_up,
        } = self;
        write!(
            out,
            "TLS: {established} handshakes, {resumed} resumed; {} failed: {turned_away} rejected for overload, {late} timed out, \
             {no_common_ground} without a common protocol, {broken} with errors, {given_up} cancelled by the client",
            self.failed()
        )
    }
}
