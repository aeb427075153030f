//! The questions about a destination of mail: whether one more connection may be made there, and
//! what came of one. With leave comes what is known of the domain's policy.
//!
//! The owner may reply later, and tells cores with connections by itself how many they may keep.
//! So what it tells ([`CallTold`]) is a message of its own, and a reply at once is the same.

use alloc::boxed::Box;
use alloc::sync::Arc;

use machine::{CoreId, Instant};
use relay::destinations::{Ended, Leave, Told};
use relay::policies::{Fetched, KnownPolicy};
use tasks::{Continuation, FrameId};

use crate::ask::{Question, Subject};
use crate::facts::Facts;
use crate::owned::Owned;
use crate::point::Point;

/// May this core make one more connection to a destination?
pub struct MayCall {
    /// By [`crate::Facts::destination`].
    pub(crate) destination: u64,
    /// The core that asks.
    pub(crate) core: CoreId,
    /// What waits there for the reply.
    pub(crate) at: Continuation,
    pub(crate) now: Instant,
}

/// What the owner of a destination tells.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CallTold {
    /// What waits at this point for leave to make a connection to this destination has it, or hears
    /// that the destination is down.
    Leave(Continuation, u64, Leave, DomainPolicy),
    /// The core may keep so many connections to this destination for further messages.
    Keeps(u64, u16),
}

/// What is known of the policy of a destination's domain.
pub type DomainPolicy = Option<Arc<KnownPolicy>>;

impl Facts {
    /// What a core is to be told next.
    pub(crate) fn next_told(&mut self) -> Option<(CoreId, CallTold)> {
        Some(match self.destinations.next_told()? {
            Told::Leave(core, destination, at, leave) => (core, self.leave(at, destination, leave)),
            Told::Keeps(core, destination, keeps) => (core, CallTold::Keeps(destination, keeps)),
        })
    }

    fn leave(&self, at: Continuation, destination: u64, leave: Leave) -> CallTold {
        CallTold::Leave(at, destination, leave, self.policies.of(destination))
    }
}

impl Question for MayCall {
    /// `None`: the owner tells it later.
    type Reply = Option<CallTold>;

    fn subject(&self) -> Subject {
        Subject::Elsewhere(self.destination)
    }

    fn answer(self, owned: &mut Owned) -> Option<CallTold> {
        let MayCall { destination, core, at, now } = self;
        let leave = owned.facts.destinations.ask(destination, core, at, now)?;
        Some(owned.facts.leave(at, destination, leave))
    }
}

/// What a core has found out about a destination.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CallEvent {
    /// Messages get through there by a connection that goes on.
    Reached,
    /// A connection that was granted is over, or was not made. `random`: any number.
    Ended {
        /// How it has ended.
        how: Ended,
        /// When.
        now: Instant,
        /// Any number.
        random: u64,
    },
    /// This came of a fetch of its policy.
    Fetched(Box<Fetched>),
    /// It is to be tried although it was down.
    ToBeTried,
}

/// This was found out about a destination.
pub struct CallNews {
    pub(crate) destination: u64,
    pub(crate) core: CoreId,
    pub(crate) event: CallEvent,
}

impl CallNews {
    /// Nothing waits for the reply.
    pub(crate) const NOWHERE: Continuation =
        Continuation { frame: FrameId::new(0, 0), entry: Point::Noted.entry() };
}

impl Question for CallNews {
    type Reply = ();

    fn subject(&self) -> Subject {
        Subject::Elsewhere(self.destination)
    }

    fn answer(self, owned: &mut Owned) {
        let CallNews { destination, core, event } = self;
        let Facts { destinations, policies, .. } = &mut owned.facts;
        match event {
            CallEvent::Reached => destinations.reached(destination),
            CallEvent::Ended { how, now, random } => {
                destinations.ended(destination, core, how, now, random)
            }
            CallEvent::Fetched(fetched) => policies.learn(destination, &fetched),
            CallEvent::ToBeTried => destinations.call_again(destination),
        }
    }
}
