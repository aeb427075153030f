//! The parts of a core that SMTP sessions use.

use accounts::Directory;
use accounts::logins::{self, Logins};
use compute::Compute;
use connections::{Caller, Connections};
use machine::{ConsoleLines, Turn};
use resolver::NameLookups;
use shards::ShardedStore;
use signing::Signer;
use smtp::{RecipientRefusal, SmtpPath};
use store::AccountId;

use super::external_clients::inbound_policy_applies;

/// The parts of a core that SMTP sessions use.
pub struct SmtpContext<'c> {
    /// The clocks of this turn.
    pub turn: Turn,
    /// All connections of this core.
    pub connections: &'c mut Connections,
    /// The stores of all cores, as one.
    pub store: &'c mut ShardedStore,
    /// Addresses and their accounts.
    pub directory: &'c Directory,
    /// The state of logins.
    pub logins: &'c mut Logins,
    /// Signs messages of our domains.
    pub signer: &'c mut Signer,
    /// The questions to name servers.
    pub names: &'c mut NameLookups,
    /// Password hashes and signatures under way.
    pub compute: &'c mut Compute,
    /// Lines for the operator.
    pub console: &'c mut ConsoleLines,
}

impl SmtpContext<'_> {
    /// Whether the rules for external mail apply to the client.
    pub(super) fn inbound_policy_applies(&self, caller: Caller) -> bool {
        inbound_policy_applies(caller, self.connections.net(), self.logins.access())
    }

    /// The account that mail for `path` is delivered to.
    pub(super) fn recipient(&self, path: &SmtpPath<'_>) -> Result<AccountId, RecipientRefusal> {
        self.directory.recipient(
            self.store,
            |address| self.connections.net().has_address(address),
            path,
        )
    }

    /// The login service, and the parts that it uses.
    pub(super) fn logins(&mut self) -> (&mut Logins, logins::LoginContext<'_>) {
        let SmtpContext { turn, connections, store, directory, compute, logins, .. } = self;
        (logins, logins::LoginContext { turn: *turn, connections, store, directory, compute })
    }

    /// The parts for a question to the filter.
    pub(super) fn for_filter(&mut self) -> filter::FilterContext<'_> {
        filter::FilterContext { turn: self.turn, connections: self.connections, names: self.names }
    }
}
