//! The host of POP3 sessions, and the state that they share.

use alloc::vec::Vec;

use accounts::Directory;
use accounts::logins::{self, Logins};
use compute::Compute;
use connections::{Caller, Connections};
use machine::Turn;
use shards::ShardedStore;
use tasks::{Continuation, FrameId, Subsystem};

use super::state::{Orphan, State};

tasks::points! {
    /// The events of the store that a POP3 session waits for.
    pub enum Pop3WaitPoint of Subsystem::Pop3;
    /// The read of a part of a message has ended.
    Read,
    /// A removal has ended.
    Deleted,
    /// The core that owns the account has replied.
    Replied,
}

/// The state that the POP3 sessions of a core share.
#[derive(Default)]
pub struct Pop3 {
    /// Deletions that continue after their clients have disconnected.
    pub(super) orphans: Vec<Orphan>,
}

impl Pop3 {
    /// A removal of a disconnected session has ended. The last one unlocks the maildrop.
    pub fn orphan_ended(&mut self, frame: FrameId, store: &mut ShardedStore) {
        let Some(place) = self.orphans.iter().position(|orphan| orphan.frame == frame) else {
            return;
        };
        if self.orphans.get_mut(place).is_some_and(|orphan| orphan.outstanding.arrived()) {
            let orphan = self.orphans.swap_remove(place);
            store.close_maildrop(orphan.maildrop);
        }
    }
}

/// The parts of a core that POP3 sessions use.
pub struct Pop3Context<'c> {
    /// The clocks of this turn.
    pub turn: Turn,
    /// All connections of this core.
    pub connections: &'c mut Connections,
    /// The shards of all cores, as one store.
    pub store: &'c mut ShardedStore,
    /// The addresses of all accounts.
    pub directory: &'c Directory,
    /// The state of logins on this core.
    pub logins: &'c mut Logins,
    /// Password hashes and signatures that are being computed.
    pub compute: &'c mut Compute,
}

impl Pop3Context<'_> {
    /// The logins, and the context that their methods need.
    pub(super) fn logins(&mut self) -> (&mut Logins, logins::LoginContext<'_>) {
        let Pop3Context { turn, connections, store, directory, logins, compute } = self;
        (logins, logins::LoginContext { turn: *turn, connections, store, directory, compute })
    }
}

/// A client's connection, with the context of its session.
pub struct Pop3Call<'c> {
    /// The connection, and the client at its other end.
    pub caller: Caller,
    /// The state that POP3 sessions share.
    pub pop3: &'c mut Pop3,
    /// The parts of this core.
    pub cx: Pop3Context<'c>,
}

/// The host of a POP3 session: it implements the session's actions.
pub struct Pop3Host<'a, 'c> {
    pub(super) cx: &'a mut Pop3Context<'c>,
    pub(super) caller: Caller,
    pub(super) state: &'a mut State,
}

impl<'a, 'c> Pop3Host<'a, 'c> {
    #[inline]
    pub(super) fn of(call: &'a mut Pop3Call<'c>, state: &'a mut State) -> Pop3Host<'a, 'c> {
        Pop3Host { cx: &mut call.cx, caller: call.caller, state }
    }

    pub(super) fn continuation(&self, point: Pop3WaitPoint) -> Continuation {
        Continuation { frame: self.caller.connection.0, entry: point.entry() }
    }
}
