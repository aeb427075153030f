//! The greylisting question: whether a message is accepted, or deferred until the client retries.

use machine::Instant;
use mail::Triplet;

use crate::ask::{OwnerQuery, Subject};
use crate::owned::Owned;

/// May this message be accepted? If not, it may at a later retry.
pub struct MayCome {
    triplet: Triplet,
    now: Instant,
}

/// The answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Greylisted {
    /// It is accepted: its origin is known now.
    Known(Triplet),
    /// It is deferred: the client must retry.
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
    /// The question at this time.
    pub fn new(triplet: Triplet, now: Instant) -> MayCome {
        MayCome { triplet, now }
    }
}

impl OwnerQuery for MayCome {
    type Reply = Greylisted;

    fn subject(&self) -> Subject {
        Subject::ExternalHost(self.triplet.origin())
    }

    fn answer(self, owned: &mut Owned) -> Greylisted {
        let MayCome { triplet, now } = self;
        match owned.facts.may_come(triplet, now) {
            true => Greylisted::Known(triplet),
            false => Greylisted::Deferred(triplet),
        }
    }
}
