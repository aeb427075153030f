//! Whether the message of a transaction is deferred until it comes again (`greylist`).

use mail::Triplet;
use shards::Greylisted;

/// What is known of whether the message of a transaction is deferred.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Deferral {
    #[default]
    NotAsked,
    Asked(Triplet),
    /// This one is.
    Deferred(Triplet),
    /// Its origin is known, so it is not, for no recipient.
    None,
}

impl Deferral {
    /// The owner has replied. Says whether that was asked.
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
