//! What this core knows of hosts elsewhere.
//!
//! Each fact has one owner in the machine: the core that a keyed hash of the network or domain
//! names ([`Subject::Elsewhere`]). It is asked there, so it holds for all cores.
//!
//! [`Subject::Elsewhere`]: crate::Subject::Elsewhere

use core::hash::Hasher;

use machine::Instant;
use mail::{Greylist, Origin, Triplet};
use relay::destinations::{Destinations, Limits};
use relay::policies::Policies;
use siphasher::sip::SipHasher13;
use tasks::Continuation;

/// Connections of the machine to a destination of mail.
pub const CONNECTIONS_MAX: u16 = 4;

/// Destinations of which a core knows something, and connections to each.
const DESTINATIONS: Limits = Limits { destinations: 4096, connections: CONNECTIONS_MAX };

/// What a core knows of those hosts elsewhere that are its own to know.
pub struct Facts {
    /// Which senders are known, and which messages were deferred; if any are.
    greylist: Option<Greylist>,
    /// Where mail goes.
    pub(crate) destinations: Destinations<Continuation>,
    /// What domains say of the hosts that take their mail.
    pub(crate) policies: Policies,
    key: [u8; 16],
}

impl Facts {
    /// Nothing is known. `key`: random, and the same on all cores.
    pub fn new(greylist: Option<Greylist>, key: [u8; 16]) -> Facts {
        Facts {
            greylist,
            destinations: Destinations::new(DESTINATIONS),
            policies: Policies::default(),
            key,
        }
    }

    /// How the owners of destinations of mail know one of them. `name`: a domain in lower case, or
    /// a smarthost.
    pub fn destination(&self, name: &str) -> u64 {
        let mut hasher = SipHasher13::new_with_key(&self.key);
        hasher.write(name.as_bytes());
        hasher.finish()
    }

    /// Connections to destinations that cores have, or may make, by leave of this one.
    pub fn connections(&self) -> usize {
        self.destinations.connections()
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
