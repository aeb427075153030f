//! The greylisting question: whether a message is accepted, or deferred until the client retries.

use machine::Instant;
use mail::Triplet;

use crate::ask::{OwnerQuery, Subject};
use crate::owned::Owned;

/// The question whether this message may be accepted. If it is deferred, a later retry is accepted.
pub struct GreylistQuery {
    triplet: Triplet,
    now: Instant,
}

/// The answer to a [`GreylistQuery`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Greylisted {
    /// The message is accepted: its origin is known from now on.
    Known(Triplet),
    /// The message is deferred: the client must retry.
    Deferred(Triplet),
}

impl Greylisted {
    /// The triplet of the message.
    pub fn triplet(self) -> Triplet {
        match self {
            Greylisted::Known(triplet) | Greylisted::Deferred(triplet) => triplet,
        }
    }
}

impl GreylistQuery {
    /// The question for a message that arrives at the time `now`.
    pub fn new(triplet: Triplet, now: Instant) -> GreylistQuery {
        GreylistQuery { triplet, now }
    }
}

impl OwnerQuery for GreylistQuery {
    type Reply = Greylisted;

    fn subject(&self) -> Subject {
        Subject::ExternalHost(self.triplet.origin())
    }

    fn answer(self, owned: &mut Owned) -> Greylisted {
        let GreylistQuery { triplet, now } = self;
        match owned.facts.is_greylist_passed(triplet, now) {
            true => Greylisted::Known(triplet),
            false => Greylisted::Deferred(triplet),
        }
    }
}
