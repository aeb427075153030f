//! The context of an HTTP session: the parts of its core, and the state that it shares with other
//! sessions.

use accounts::Directory;
use accounts::logins::{self, LoginAttempt, Logins};
use budget::MemoryBudget;
use compute::Compute;
use connections::{Caller, Connections};
use machine::{ConsoleLines, Turn};
use sasl::Credentials;
use shards::ShardedStore;

use super::shared::Web;

/// The parts of a core that HTTP sessions use.
pub struct WebContext<'c> {
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
    /// Password hashes and signatures in progress.
    pub compute: &'c mut Compute,
    /// Lines for the operator.
    pub console: &'c mut ConsoleLines,
    /// The memory that clients make this core keep.
    pub memory: &'c mut MemoryBudget,
}

impl WebContext<'_> {
    /// The login service, with the parts of the core that it uses.
    pub(super) fn logins(&mut self) -> (&mut Logins, logins::LoginContext<'_>) {
        let WebContext { turn, connections, store, directory, logins, compute, .. } = self;
        (logins, logins::LoginContext { turn: *turn, connections, store, directory, compute })
    }
}

/// The connection of a client, with the context of its session.
pub struct HttpCall<'c> {
    /// The connection and its client.
    pub caller: Caller,
    /// The state that web sessions share.
    pub web: &'c mut Web,
    /// The parts of this core.
    pub cx: WebContext<'c>,
}

impl HttpCall<'_> {
    /// The host name to which a client is redirected for TLS: `host` if our certificate has this
    /// name, and otherwise our own host name. So a client is never redirected to another server.
    pub(super) fn name_over_tls<'a>(&'a self, host: &'a str) -> &'a str {
        if self.cx.connections.tls().has_certificate_for(host) { host } else { &self.web.hostname }
    }

    /// Begins a login with the client's credentials. A later turn decides the login.
    pub(super) fn log_in(&mut self, credentials: Credentials<'_>) -> LoginAttempt {
        let (logins, mut cx) = self.cx.logins();
        logins.begin(credentials, self.caller, &mut cx)
    }
}
