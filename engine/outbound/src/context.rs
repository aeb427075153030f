//! The context of outgoing mail: the parts of a core, borrowed for one call, and the configuration.

use alloc::string::String;

use accounts::{Directory, Logins};
use compute::Compute;
use configuration::{Relay, Way};
use connections::Connections;
use machine::{ConsoleLines, Turn};
use net::Net;
use resolver::{NameLookups, Ourselves};
use shards::ShardedStore;
use signing::Signer;

/// The parts of a core that outgoing mail works with.
pub struct OutboundContext<'a> {
    /// The clocks of this turn.
    pub turn: Turn,
    /// All connections of this core.
    pub connections: &'a mut Connections,
    /// The stores of all cores, used as one store.
    pub store: &'a mut ShardedStore,
    /// Addresses and their accounts.
    pub directory: &'a Directory,
    /// The lookups at name servers.
    pub names: &'a mut NameLookups,
    /// Password hashes and signatures under way.
    pub compute: &'a mut Compute,
    /// Signs messages of our domains.
    pub signer: &'a Signer,
    /// The state of logins.
    pub logins: &'a mut Logins,
    /// The console lines for the operator.
    pub console: &'a mut ConsoleLines,
}

/// The configuration of outgoing mail.
pub struct Config {
    hostname: String,
    relay: Relay,
}

impl Config {
    /// `hostname`: the name by which we present ourselves.
    pub fn new(hostname: String, relay: Relay) -> Config {
        Config { hostname, relay }
    }

    /// The name by which we present ourselves.
    pub(super) fn hostname(&self) -> &str {
        &self.hostname
    }

    /// The way by which the mail of a domain is sent: direct, or by a smarthost.
    pub(super) fn way_to(&self, domain: &str) -> &Way {
        self.relay.way_to(domain)
    }

    /// Our own name, and the networks that we can reach.
    pub(super) fn ourselves(&self, net: &Net) -> Ourselves {
        Ourselves::of(&self.hostname, net, &self.relay.private_networks)
    }
}
