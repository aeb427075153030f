//! What waits for a group to be durable, and what for a flush before its record may be gathered.

use crate::layout::Page;
use crate::types::{AccountId, Filed, MailboxId};
use tasks::{Continuation, FrameId};

/// Who waits for the group that a record travels in.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Pending {
    Delivery(FrameId),
    Account(Continuation, AccountId),
    Change(Continuation),
    Mailbox(Continuation, MailboxId),
    Filed(Continuation, Filed),
    Move(FrameId),
    /// Pages of a torn message that opening dropped.
    Drop(Page, u32),
}

/// Who waits for a flush before its record may be gathered.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Awaiting {
    Delivery(FrameId),
    Move(FrameId),
}
