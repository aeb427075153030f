//! What this core knows of hosts elsewhere.
//!
//! Each fact has one owner in the machine: the core that a keyed hash of the network or domain
//! names ([`Subject::Elsewhere`]). It is asked there, so it holds for all cores.
//!
//! [`Subject::Elsewhere`]: crate::Subject::Elsewhere

use machine::Instant;
use mail::{Greylist, Origin, Triplet};

/// What a core knows of those hosts elsewhere that are its own to know.
pub struct Facts {
    /// Which senders are known, and which messages were deferred; if any are.
    greylist: Option<Greylist>,
}

impl Facts {
    /// Nothing is known.
    pub fn new(greylist: Option<Greylist>) -> Facts {
        Facts { greylist }
    }

    /// Whether messages from origins that are not known are deferred.
    pub fn is_greylisting(&self) -> bool {
        self.greylist.is_some()
    }

    /// How the greylists of all cores know a message, if there are greylists.
    pub fn triplet(&self, origin: Origin<'_>, sender: &str, recipient: &str) -> Option<Triplet> {
        Some(self.greylist.as_ref()?.triplet(origin, sender, recipient))
    }

    pub(crate) fn may_come(&mut self, triplet: Triplet, now: Instant) -> bool {
        self.greylist.as_mut().is_none_or(|list| list.may_come(triplet, now))
    }
}
