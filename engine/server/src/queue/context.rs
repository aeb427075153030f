//! What outgoing mail works with: lower parts for the time of a call, and settings of its own.

use alloc::string::String;

use accounts::Directory;
use accounts::Logins;
use compute::Compute;
use configuration::{Relay, Way};
use connections::Connections;
use machine::ConsoleLines;
use machine::Turn;
use net::Net;
use resolver::{Names, Ourselves};
use shards::Archive;
use signing::Signer;

/// The parts of a core that outgoing mail works with.
pub(crate) struct Context<'a> {
    pub(crate) turn: Turn,
    pub(crate) connections: &'a mut Connections,
    pub(crate) store: &'a mut Archive,
    pub(crate) directory: &'a Directory,
    pub(crate) names: &'a mut Names,
    pub(crate) compute: &'a mut Compute,
    pub(crate) signer: &'a Signer,
    pub(crate) logins: &'a mut Logins,
    pub(crate) console: &'a mut ConsoleLines,
}

/// What the configuration says of outgoing mail.
pub(crate) struct Config {
    hostname: String,
    relay: Relay,
}

impl Config {
    pub(crate) fn new(hostname: String, relay: Relay) -> Config {
        Config { hostname, relay }
    }

    /// The name by which we present ourselves.
    pub(super) fn hostname(&self) -> &str {
        &self.hostname
    }

    /// How the mail of a domain leaves.
    pub(super) fn way_to(&self, domain: &str) -> &Way {
        self.relay.way_to(domain)
    }

    /// What we are, and what we can reach.
    pub(super) fn ourselves(&self, net: &Net) -> Ourselves {
        Ourselves::of(&self.hostname, net, &self.relay.private_networks)
    }
}
