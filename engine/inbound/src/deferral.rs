//! Whether the message of a transaction is greylisted: deferred until the client tries again
//! (`greylist`).

use mail::Triplet;
use shards::Greylisted;

/// Whether the message of a transaction is deferred, as far as known.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Deferral {
    #[default]
    NotAsked,
    Asked(Triplet),
    /// The message with this triplet is deferred.
    Deferred(Triplet),
    /// The origin is known, so no recipient is deferred.
    None,
}

impl Deferral {
    /// Takes the reply of the core that knows the origin. Returns whether the session waits for it.
    pub(super) fn learn(&mut self, known: Greylisted) -> bool {
        let is_asked = *self == Deferral::Asked(known.triplet());
        if is_asked {
            *self = Deferral::of(known);
        }
        is_asked
    }

    pub(super) fn of(known: Greylisted) -> Deferral {
        match known {
            Greylisted::Known(_) => Deferral::None,
            Greylisted::Deferred(triplet) => Deferral::Deferred(triplet),
        }
    }
}
