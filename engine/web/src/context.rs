//! What a session of HTTP acts on: the parts of its core, and what it shares with other sessions.

use accounts::Directory;
use accounts::logins::{self, Attempt, Logins};
use budget::MemoryBudget;
use compute::Compute;
use connections::{Caller, Connections};
use machine::{ConsoleLines, Turn};
use sasl::Credentials;
use shards::Archive;

use super::shared::Web;

/// The parts of a core that HTTP sessions use.
pub struct Context<'c> {
    /// The clocks of this turn.
    pub turn: Turn,
    /// All connections of this core.
    pub connections: &'c mut Connections,
    /// The stores of all cores, as one.
    pub store: &'c mut Archive,
    /// Addresses and their accounts.
    pub directory: &'c Directory,
    /// What is known of logins.
    pub logins: &'c mut Logins,
    /// Password hashes and signatures under way.
    pub compute: &'c mut Compute,
    /// Lines for the operator.
    pub console: &'c mut ConsoleLines,
    /// What clients make this core keep.
    pub memory: &'c mut MemoryBudget,
}

impl Context<'_> {
    /// What logs clients in, and the parts that it uses.
    pub(super) fn logins(&mut self) -> (&mut Logins, logins::Context<'_>) {
        let Context { turn, connections, store, directory, logins, compute, .. } = self;
        (logins, logins::Context { turn: *turn, connections, store, directory, compute })
    }
}

/// A client's connection, with what its session acts on.
pub struct HttpCall<'c> {
    /// The connection, and the client at its other end.
    pub caller: Caller,
    /// What web sessions share.
    pub web: &'c mut Web,
    /// The parts of this core.
    pub cx: Context<'c>,
}

impl HttpCall<'_> {
    /// The name under which a client that asks for `host` finds us over TLS, and no other server.
    pub(super) fn name_over_tls<'a>(&'a self, host: &'a str) -> &'a str {
        if self.cx.connections.tls().is_named(host) { host } else { &self.web.hostname }
    }

    /// The client has said who it is. What comes of that is decided in a later turn.
    pub(super) fn log_in(&mut self, credentials: Credentials<'_>) -> Attempt {
        let (logins, mut cx) = self.cx.logins();
        logins.begin(credentials, self.caller, &mut cx)
    }
}
