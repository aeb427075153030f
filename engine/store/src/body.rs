//! A part of a message body that was read.

use crate::types::{AccountId, MailboxId, Uid};
use alloc::boxed::Box;
use core::fmt;
use core::ops::Range;

/// A verified part of a body, in a buffer that belongs to the store. Return it with
/// [`crate::Store::give_back`].
pub struct Body {
    account: AccountId,
    mailbox: MailboxId,
    uid: Uid,
    buffer: Box<[u8]>,
    range: Range<usize>,
}

impl Body {
    /// A part of a message: the octets in `range` of `buffer`.
    pub(crate) fn new(
        (account, mailbox, uid): (AccountId, MailboxId, Uid),
        buffer: Box<[u8]>,
        range: Range<usize>,
    ) -> Body {
        assert!(range.end <= buffer.len(), "octets outside of their buffer");
        // A record may contradict the chunk of the message, so `range` may start after its own end.
        // This must not panic.
        Body { account, mailbox, uid, buffer, range: range.start.min(range.end)..range.end }
    }

    pub(crate) fn into_buffer(self) -> Box<[u8]> {
        self.buffer
    }

    /// The account that owns the message.
    pub fn account(&self) -> AccountId {
        self.account
    }

    /// The mailbox of the message at the time of the request.
    pub fn mailbox(&self) -> MailboxId {
        self.mailbox
    }

    /// The UID of the message.
    pub fn uid(&self) -> Uid {
        self.uid
    }

    /// Octets from the requested offset on, at most 32,256. They are empty only if the body is
    /// empty. They may end in the middle of a line. A reader that needs more contiguous octets
    /// gathers them with [`crate::PartialMessage`].
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
