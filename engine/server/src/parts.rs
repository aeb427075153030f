//! The parts of a core that its services and sessions share.

use alloc::string::String;

use accounts::{Directory, Logins};
use budget::MemoryBudget;
use channel::CoreLinks;
use compute::Compute;
use connections::Connections;
use machine::{ConsoleLines, Micros, Turn};
use net::ConnectionId;
use shards::ShardedStore;
use signing::Signer;

use crate::links::Message;

/// The parts of a core. Each keeps its own invariants, and no invariant concerns two parts.
pub(crate) struct Parts {
    /// The clocks of this turn.
    pub(crate) turn: Turn,
    pub(crate) connections: Connections,
    /// The links to and from all other cores.
    pub(crate) links: CoreLinks<Message>,
    pub(crate) store: ShardedStore,
    pub(crate) hostname: String,
    pub(crate) directory: Directory,
    pub(crate) console: ConsoleLines,
    pub(crate) logins: Logins,
    /// Password hashes and signatures in progress.
    pub(crate) compute: Compute,
    /// Signs the messages of our users.
    pub(crate) signer: Signer,
    /// The memory that clients make this core keep.
    pub(crate) memory: MemoryBudget,
}

impl Parts {
    /// Sets the deadline of a connection, counted from this turn. `None`: no deadline.
    pub(crate) fn set_deadline(&mut self, connection: ConnectionId, after: Option<Micros>) {
        self.connections.set_deadline(self.turn.now, connection, after);
    }
}
