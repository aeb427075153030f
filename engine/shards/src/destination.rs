//! Questions and reports to the owner of a destination of outgoing mail. A question asks whether
//! one more connection to the destination is allowed. A permission comes with the known policy of
//! the domain. A report tells of an event, such as the end of a connection.
//!
//! The owner of the destination may answer later. The owner also tells other cores how many
//! connections they may keep for reuse. So the messages of owners have their own type,
//! [`DestinationNotice`]. An immediate answer has the same type.

use alloc::boxed::Box;
use alloc::sync::Arc;

use machine::{CoreId, Instant};
use relay::destinations::{ConnectionOutcome, DestinationMessage, Leave};
use relay::policies::{Fetched, KnownPolicy};
use tasks::{Continuation, FrameId};

use crate::ask::{OwnerQuery, Subject};
use crate::facts::Facts;
use crate::owned::Owned;
use crate::point::ShardWaitPoint;

/// The question whether this core may make one more connection to a destination.
pub struct MayConnect {
    /// The hash from [`crate::Facts::destination`].
    pub(crate) destination: u64,
    /// The core that asks.
    pub(crate) core: CoreId,
    /// The continuation that waits on that core for the reply.
    pub(crate) at: Continuation,
    pub(crate) now: Instant,
}

/// A message from the owner of a destination.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DestinationNotice {
    /// The answer to a continuation that has asked for a connection to this destination: the
    /// connection is allowed, or the destination is down.
    Leave(Continuation, u64, Leave, DomainPolicy),
    /// The core may keep this many connections to this destination for further messages.
    Keeps(u64, u16),
}

/// The known policy of a destination's domain.
pub type DomainPolicy = Option<Arc<KnownPolicy>>;

impl Facts {
    /// The next notice, and the core that it is for.
    pub(crate) fn next_notice(&mut self) -> Option<(CoreId, DestinationNotice)> {
        Some(match self.destinations.next_message()? {
            DestinationMessage::Leave(core, destination, at, leave) => {
                (core, self.leave(at, destination, leave))
            }
            DestinationMessage::Keeps(core, destination, keeps) => {
                (core, DestinationNotice::Keeps(destination, keeps))
            }
        })
    }

    fn leave(&mut self, at: Continuation, destination: u64, leave: Leave) -> DestinationNotice {
        let policy = match leave {
            Leave::Granted(_) => self.policies.used(destination, self.latest),
            Leave::NotFor(_) => None,
        };
        DestinationNotice::Leave(at, destination, leave, policy)
    }
}

impl OwnerQuery for MayConnect {
    /// `None`: the owner sends the answer later.
    type Reply = Option<DestinationNotice>;

    fn subject(&self) -> Subject {
        Subject::ExternalHost(self.destination)
    }

    fn answer(self, owned: &mut Owned) -> Option<DestinationNotice> {
        let MayConnect { destination, core, at, now } = self;
        owned.facts.latest = owned.facts.latest.max(now);
        let leave = owned.facts.destinations.ask(destination, core, at, now)?;
        Some(owned.facts.leave(at, destination, leave))
    }
}

/// An event that a core reports about a destination.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DestinationEvent {
    /// A message was delivered on a connection that stays open.
    Reached,
    /// A permitted connection has ended, or was not made.
    Ended {
        /// The outcome of the connection.
        how: ConnectionOutcome,
        /// The time of the end.
        now: Instant,
        /// A random number.
        random: u64,
    },
    /// The policy of the destination's domain was fetched, with this result.
    Fetched(Box<Fetched>),
    /// The destination must be tried again, although it was reported as down.
    ToBeTried,
}

/// Reports an event at a destination.
pub struct DestinationReport {
    pub(crate) destination: u64,
    pub(crate) core: CoreId,
    pub(crate) event: DestinationEvent,
}

impl DestinationReport {
    /// The continuation for a reply for which no frame waits.
    pub(crate) const NOWHERE: Continuation =
        Continuation { frame: FrameId::new(0, 0), entry: ShardWaitPoint::Noted.entry() };
}

impl OwnerQuery for DestinationReport {
    type Reply = ();

    fn subject(&self) -> Subject {
        Subject::ExternalHost(self.destination)
    }

    fn answer(self, owned: &mut Owned) {
        let DestinationReport { destination, core, event } = self;
        let Facts { destinations, policies, .. } = &mut owned.facts;
        match event {
            DestinationEvent::Reached => destinations.reached(destination),
            DestinationEvent::Ended { how, now, random } => {
                destinations.ended(destination, core, how, now, random)
            }
            DestinationEvent::Fetched(fetched) => policies.learn(destination, &fetched),
            DestinationEvent::ToBeTried => destinations.call_again(destination),
        }
    }
}
