//! The question whether a message may come in, or is deferred until it comes again.

use machine::Instant;
use mail::Triplet;

use crate::ask::{Question, Subject};
use crate::owned::Owned;

/// May this message come in? If not, it may when it comes again.
pub struct MayCome {
    triplet: Triplet,
    now: Instant,
}

/// Whether it may.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Greylisted {
    /// Its origin is known from now on.
    Known(Triplet),
    /// It is to come again.
    Deferred(Triplet),
}

impl Greylisted {
    /// The message.
    pub fn triplet(self) -> Triplet {
        match self {
            Greylisted::Known(triplet) | Greylisted::Deferred(triplet) => triplet,
        }
    }
}

impl MayCome {
    /// At this time.
    pub fn new(triplet: Triplet, now: Instant) -> MayCome {
        MayCome { triplet, now }
    }
}

impl Question for MayCome {
    type Reply = Greylisted;

    fn subject(&self) -> Subject {
        Subject::Elsewhere(self.triplet.origin())
    }

    fn answer(self, owned: &mut Owned) -> Greylisted {
        let MayCome { triplet, now } = self;
        match owned.facts.may_come(triplet, now) {
            true => Greylisted::Known(triplet),
            false => Greylisted::Deferred(triplet),
        }
    }
}
