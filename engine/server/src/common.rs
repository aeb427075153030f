//! What all sessions of a core share: the network, the store, the clocks of this turn, and who is who.

use alloc::string::String;

use budget::MemoryBudget;
use channel::Links;
use compute::Compute;
use configuration::Relay;
use connections::Connections;
use machine::Turn;
use resolver::Names;
use resolver::Ourselves;
use signing::Signer;
use webmail::WrittenRows;

use crate::archive::Archive;
use crate::clerks::Clerks;
use crate::console::ConsoleLines;
use crate::directory::Directory;
use crate::identifier::Identifiers;
use crate::links::Message;
use crate::logins::Logins;
use crate::queue::Queue;

/// What all sessions share.
pub(crate) struct Common {
    pub(crate) turn: Turn,
    pub(crate) connections: Connections,
    /// To and from all other cores.
    pub(crate) links: Links<Message>,
    pub(crate) store: Archive,
    /// Who works on the webmail of this core's accounts.
    pub(crate) clerks: Clerks,
    /// What is to leave from their outboxes.
    pub(crate) queue: Queue,
    /// By which hosts it does.
    pub(crate) relay: Relay,
    /// Rows that their lists had.
    pub(crate) rows: WrittenRows,
    pub(crate) hostname: String,
    pub(crate) directory: Directory,
    pub(crate) identifiers: Identifiers,
    pub(crate) console: ConsoleLines,
    pub(crate) logins: Logins,
    /// Password hashes and signatures under way.
    pub(crate) compute: Compute,
    /// What is asked of name servers.
    pub(crate) names: Names,
    /// With what letters of our own users are signed.
    pub(crate) signer: Signer,
    /// What clients make this core keep.
    pub(crate) memory: MemoryBudget,
}

impl Common {
    /// What we are, and what we can reach.
    pub(crate) fn ourselves(&self) -> Ourselves {
        Ourselves::of(&self.hostname, self.connections.net(), &self.relay.private_networks)
    }
}
