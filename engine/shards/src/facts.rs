//! The facts about external hosts that this core owns.
//!
//! Each fact has one owner among the cores: a keyed hash of the network or domain selects the core
//! ([`Subject::ExternalHost`]). Other cores ask the owner, so its answer holds for all cores.
//!
//! [`Subject::ExternalHost`]: crate::Subject::ExternalHost

use core::hash::Hasher;

use machine::Instant;
use mail::{Greylist, SenderOrigin, Triplet};
use relay::destinations::{Destinations, Limits};
use relay::policies::Policies;
use siphasher::sip::SipHasher13;
use tasks::Continuation;

/// The most connections of the machine to a destination of mail.
pub const CONNECTIONS_MAX: u16 = 4;

/// The most destinations that a core knows, and connections to each.
const DESTINATIONS: Limits = Limits { destinations: 4096, connections: CONNECTIONS_MAX };

/// The facts about external hosts that this core owns.
pub struct Facts {
    /// The known senders and the deferred messages, if greylisting is on.
    greylist: Option<Greylist>,
    /// The destinations of outgoing mail.
    pub(crate) destinations: Destinations<Continuation>,
    /// The policies of destination domains.
    pub(crate) policies: Policies,
    /// The latest time at which a core has asked about a destination.
    pub(crate) latest: Instant,
    key: [u8; 16],
}

impl Facts {
    /// Empty facts. `key`: random, and the same on all cores.
    pub fn new(greylist: Option<Greylist>, key: [u8; 16]) -> Facts {
        Facts {
            greylist,
            destinations: Destinations::new(DESTINATIONS),
            policies: Policies::default(),
            latest: Instant::START,
            key,
        }
    }

    /// The hash that identifies a destination. `name`: a domain in lower case, or a smarthost.
    pub fn destination(&self, name: &str) -> u64 {
        let mut hasher = SipHasher13::new_with_key(&self.key);
        hasher.write(name.as_bytes());
        hasher.finish()
    }

    /// The number of connections that this core has permitted and that have not ended.
    pub fn connections(&self) -> usize {
        self.destinations.connections()
    }

    /// Whether messages of unknown origin are deferred.
    pub fn is_greylisting(&self) -> bool {
        self.greylist.is_some()
    }

    /// The triplet of a message for the greylists of all cores, if greylisting is on.
    pub fn triplet(
        &self,
        origin: SenderOrigin<'_>,
        sender: &str,
        recipient: &str,
    ) -> Option<Triplet> {
        Some(self.greylist.as_ref()?.triplet(origin, sender, recipient))
    }

    pub(crate) fn is_greylist_passed(&mut self, triplet: Triplet, now: Instant) -> bool {
        self.greylist.as_mut().is_none_or(|list| list.passes(triplet, now))
    }
}
