//! Outgoing mail in a turn of the engine: the parts that it works with, and what it is told.

use outbound::{Context, Outbound};
use store::{AccountId, Uid};

use crate::common::Common;
use crate::engine::Engine;

impl Engine {
    /// Lets outgoing mail act.
    #[inline(never)]
    pub(crate) fn let_outbound(&mut self, act: impl FnOnce(&mut Outbound, &mut Context<'_>)) {
        let Common { turn, connections, store, directory, names, compute, signer, logins, console, .. } =
            &mut self.common;
        let mut cx = Context { turn: *turn, connections, store, directory, names, compute, signer, logins, console };
        act(&mut self.services.outbound, &mut cx);
    }

    /// Entries of this core's outboxes that are shown to administrators: all that wait to leave.
    pub fn queue_entries(&self) -> usize {
        self.services.outbound.entries()
    }

    /// Whether the queue shows this entry of an outbox.
    pub fn is_in_queue(&self, account: AccountId, uid: Uid) -> bool {
        self.services.outbound.has(account, uid)
    }
}
