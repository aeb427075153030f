//! The parts of a core that SMTP sessions use.

use accounts::Directory;
use accounts::logins::{self, Logins};
use compute::Compute;
use connections::{Caller, Connections};
use machine::ConsoleLines;
use machine::Turn;
use resolver::Names;
use shards::Archive;
use signing::Signer;
use smtp::{ForwardPath, RecipientRefusal};
use store::AccountId;

use super::strangers::is_judged;

/// The parts of a core that SMTP sessions use.
pub(crate) struct Context<'c> {
    pub(crate) turn: Turn,
    pub(crate) connections: &'c mut Connections,
    pub(crate) store: &'c mut Archive,
    pub(crate) directory: &'c Directory,
    pub(crate) logins: &'c mut Logins,
    pub(crate) signer: &'c mut Signer,
    pub(crate) names: &'c mut Names,
    pub(crate) compute: &'c mut Compute,
    pub(crate) console: &'c mut ConsoleLines,
}

impl Context<'_> {
    /// Whether the rules for strangers apply to the client.
    pub(super) fn is_judged(&self, caller: Caller) -> bool {
        is_judged(caller, self.connections.net(), self.logins.access())
    }

    /// The account that mail for `path` is delivered to.
    pub(super) fn recipient(&self, path: &ForwardPath<'_>) -> Result<AccountId, RecipientRefusal> {
        self.directory.recipient(self.store, |address| self.connections.net().has_address(address), path)
    }

    /// What logs clients in, and the parts that it uses.
    pub(super) fn logins(&mut self) -> (&mut Logins, logins::Context<'_>) {
        let Context { turn, connections, store, directory, compute, logins, .. } = self;
        (logins, logins::Context { turn: *turn, connections, store, directory, compute })
    }

    /// The parts by which a filter is asked.
    pub(super) fn for_filter(&mut self) -> filter::Context<'_> {
        filter::Context { turn: self.turn, connections: self.connections, names: self.names }
    }
}
