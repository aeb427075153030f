//! Operations that wait for a group to be durable, or for a flush before their record may be
//! gathered.

use crate::layout::Page;
use crate::types::{AccountId, Filed, MailboxId};
use tasks::{Continuation, FrameId};

/// An operation that waits for the group with its record.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Pending {
    Delivery(FrameId),
    Account(Continuation, AccountId),
    Aliases(Continuation, AccountId),
    Change(Continuation),
    /// The account gets another password.
    Password(Continuation, AccountId),
    Mailbox(Continuation, MailboxId),
    Filed(Continuation, Filed),
    Move(FrameId),
    /// Pages of a torn message that opening removed.
    Drop(Page, u32),
}

impl Pending {
    /// Whether this account gets another password.
    pub(crate) fn is_password_of(self, account: AccountId) -> bool {
        matches!(self, Pending::Password(_, id) if id == account)
    }

    /// The continuation that is refused if the group fails. Deliveries and moves have none.
    pub(crate) fn continuation(self) -> Option<Continuation> {
        match self {
            Pending::Account(continuation, _)
            | Pending::Aliases(continuation, _)
            | Pending::Change(continuation)
            | Pending::Password(continuation, _)
            | Pending::Mailbox(continuation, _)
            | Pending::Filed(continuation, _) => Some(continuation),
            Pending::Delivery(_) | Pending::Move(_) | Pending::Drop(..) => None,
        }
    }
}

/// An operation that waits for a flush before its record may be gathered.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Awaiting {
    Delivery(FrameId),
    Move(FrameId),
}
