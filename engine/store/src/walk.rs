//! The position of a checkpoint's walk over a shard's index. Section 7 of `docs/format.md`.
//!
//! Invariant: the journal, from the root of an unfinished checkpoint on, has the state of
//! everything that the walk has passed, and all later changes. So a later life can continue the
//! walk.

use crate::index::Index;
use crate::superblock::Root;
use crate::types::AccountId;

/// The next position of the walk. The numbers are account ids, mailbox numbers and UIDs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum WalkCursor {
    Shard,
    /// The first account with at least this id.
    Account(AccountId),
    /// The first mailbox of the account with at least this number.
    Mailbox(AccountId, u32),
    /// The mailbox's messages from this UID on.
    Messages(AccountId, u32, u32),
    End,
}

impl WalkCursor {
    /// Whether the account of this position exists in `index`. It may not exist, because a position
    /// on the disk may be wrong.
    pub(crate) fn is_in(self, index: &Index) -> bool {
        match self {
            WalkCursor::Mailbox(account, _) | WalkCursor::Messages(account, ..) => {
                index.account(account).is_some()
            }
            WalkCursor::Shard | WalkCursor::Account(_) | WalkCursor::End => true,
        }
    }

    /// The position after the messages up to this UID.
    pub(crate) fn after(account: AccountId, mailbox: u32, last: u32) -> WalkCursor {
        match last.checked_add(1) {
            Some(next) => WalkCursor::Messages(account, mailbox, next),
            None => WalkCursor::after_mailbox(account, mailbox),
        }
    }

    pub(crate) fn after_mailbox(account: AccountId, mailbox: u32) -> WalkCursor {
        match mailbox.checked_add(1) {
            Some(next) => WalkCursor::Mailbox(account, next),
            None => WalkCursor::after_account(account),
        }
    }

    pub(crate) fn after_account(account: AccountId) -> WalkCursor {
        match account.0.checked_add(1) {
            Some(next) => WalkCursor::Account(AccountId(next)),
            None => WalkCursor::End,
        }
    }
}

/// A checkpoint that a power cut or a failed write has interrupted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UnfinishedCheckpoint {
    /// The root of the journal once the checkpoint is complete.
    pub(crate) root: Root,
    /// The position that the walk has reached. The state of everything after this position is
    /// missing.
    pub(crate) cursor: WalkCursor,
    /// The number of blocks of the journal before that root.
    pub(crate) blocks_before: u32,
}
