//! The context of an attempt: its entry, the queue, and the parts of the core.

use store::{MessageInfo, OUTBOX, OutboxEntry, Refusal};
use tasks::{Continuation, FrameId};

use super::context::OutboundContext;
use super::state::Queue;
use super::{OutboundWaitPoint, Place};

/// The queue and the parts of the core, lent to one attempt for one step.
pub(super) struct AttemptCx<'a, 'c> {
    pub(super) frame: FrameId,
    /// The place of the entry: the account, and the UID of the message in its outbox.
    pub(super) place: Place,
    pub(super) queue: &'a mut Queue,
    pub(super) parts: &'a mut OutboundContext<'c>,
}

impl AttemptCx<'_, '_> {
    pub(super) fn continuation(&self, point: OutboundWaitPoint) -> Continuation {
        Continuation { frame: self.frame, entry: point.entry() }
    }

    /// The message of the entry.
    ///
    /// Errors: `NoSuchMessage` if it was deleted.
    pub(super) fn info(&self) -> Result<MessageInfo, Refusal> {
        let (account, uid) = self.place;
        self.parts.store.own.store.message(account, OUTBOX, uid).ok_or(Refusal::NoSuchMessage)
    }

    /// The record of the entry. `None`: the entry was found by a rebuild, without its record.
    pub(super) fn record(&self) -> Option<OutboxEntry> {
        let (account, uid) = self.place;
        self.parts.store.own.store.outbox_entry(account, uid)
    }
}
