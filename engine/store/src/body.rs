//! A part of a message that was read.

use crate::types::{AccountId, MailboxId, Uid};
use alloc::boxed::Box;
use core::fmt;
use core::ops::Range;

/// A verified part of a body, in a buffer of the store's: give it back with
/// [`crate::Store::give_back`].
pub struct Body {
    account: AccountId,
    mailbox: MailboxId,
    uid: Uid,
    buffer: Box<[u8]>,
    range: Range<usize>,
}

impl Body {
    /// The octets of this message that lie in `range` of the buffer.
    pub(crate) fn new(
        (account, mailbox, uid): (AccountId, MailboxId, Uid),
        buffer: Box<[u8]>,
        range: Range<usize>,
    ) -> Body {
        assert!(range.end <= buffer.len(), "octets outside of their buffer");
        // A record may say of a message what its chunk contradicts. That is no reason to stop.
        Body { account, mailbox, uid, buffer, range: range.start.min(range.end)..range.end }
    }

    pub(crate) fn into_buffer(self) -> Box<[u8]> {
        self.buffer
    }

    /// Whose it is.
    pub fn account(&self) -> AccountId {
        self.account
    }

    /// In which mailbox the message was when it was asked for.
    pub fn mailbox(&self) -> MailboxId {
        self.mailbox
    }

    /// Of which message it is.
    pub fn uid(&self) -> Uid {
        self.uid
    }

    /// Octets from the offset that was asked for on; at most 32,256, and none of an empty body
    /// only. Where they end means nothing: a reader that needs more at once gathers it with
    /// [`crate::Beginning`].
    pub fn bytes(&self) -> &[u8] {
        let Some(octets) = self.buffer.get(self.range.clone()) else {
            unreachable!("octets outside of their buffer")
        };
        octets
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Body of {} octets", self.bytes().len())
    }
}
