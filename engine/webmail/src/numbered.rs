//! Request handlers with a number: the handlers of open replies, and the handlers of messages that
//! are being uploaded. Both transfer pieces, so a core never holds more than one piece of a large
//! file in memory.
//!
//! Between two pieces a handler stays in its frame and is idle. With the number, the core of the
//! connection asks the handler for more of the reply, or sends it the next piece of the upload.
//!
//! Invariants:
//! - A core has a maximum number of handlers of each kind, and an account may use only a part of
//!   it. So slow clients of one account do not block others.
//! - An event for the number of an ended handler is dropped.

use alloc::collections::{BTreeMap, VecDeque};

use http::{Reply, Status};
use store::AccountId;
use tasks::FrameId;

use crate::jobs::UploadPiece;

/// The maximum number of open replies with a handler on a core, and of one account. The open
/// replies of `listeners` have no handler, and do not count.
const REPLIES_MAX: usize = 32;
const REPLIES_OF_ACCOUNT_MAX: usize = 8;

/// The maximum number of message uploads to a core, and of one account. All clients without a
/// session count as one account.
const MESSAGES_MAX: usize = 16;
const MESSAGES_OF_ACCOUNT_MAX: usize = 4;

/// The maximum number of handlers with a number.
pub(crate) const NUMBERED_MAX: usize = REPLIES_MAX + MESSAGES_MAX;

/// The event that the client wants more of a reply.
pub(crate) struct MoreWanted;

/// The handlers of one kind. Each continues when an event `T` has arrived for its number.
pub(crate) struct Numbered<T> {
    handlers_max: usize,
    of_account_max: usize,
    handlers: BTreeMap<u64, (AccountId, FrameId)>,
    /// Events that the handlers have not received yet.
    arrived: VecDeque<(u64, T)>,
}

impl Numbered<MoreWanted> {
    /// The table for open replies.
    pub(crate) fn replies() -> Numbered<MoreWanted> {
        Numbered::new(REPLIES_MAX, REPLIES_OF_ACCOUNT_MAX)
    }
}

impl Numbered<UploadPiece> {
    /// The table for uploads of messages.
    pub(crate) fn messages() -> Numbered<UploadPiece> {
        Numbered::new(MESSAGES_MAX, MESSAGES_OF_ACCOUNT_MAX)
    }
}

impl<T> Numbered<T> {
    fn new(handlers_max: usize, of_account_max: usize) -> Numbered<T> {
        Numbered {
            handlers_max,
            of_account_max,
            handlers: BTreeMap::new(),
            arrived: VecDeque::new(),
        }
    }

    /// Whether this account may have one more handler.
    pub(crate) fn may_begin(&self, account: AccountId) -> bool {
        let of_account = self.handlers.values().filter(|(known, _)| *known == account).count();
        self.handlers.len() < self.handlers_max && of_account < self.of_account_max
    }

    /// Adds a handler with this number.
    pub(crate) fn begin(&mut self, number: u64, account: AccountId, handler: FrameId) {
        assert!(self.may_begin(account), "a transfer begins only while there is room");
        self.handlers.insert(number, (account, handler));
    }

    /// Queues an event for the handler with this number.
    pub(crate) fn arrived(&mut self, number: u64, what: T) {
        self.arrived.push_back((number, what));
    }

    /// The next event, and the handler that continues with it.
    pub(crate) fn next(&mut self) -> Option<(FrameId, T)> {
        loop {
            let (number, what) = self.arrived.pop_front()?;
            if let Some((_, handler)) = self.handlers.get(&number) {
                return Some((*handler, what));
            }
        }
    }

    /// Whether an event is queued.
    pub(crate) fn has_arrived(&self) -> bool {
        !self.arrived.is_empty()
    }

    /// Removes the handler with this number, and returns it if it was in the table.
    pub(crate) fn end(&mut self, number: u64) -> Option<FrameId> {
        self.handlers.remove(&number).map(|(_, handler)| handler)
    }

    /// The number of handlers.
    pub(crate) fn count(&self) -> usize {
        self.handlers.len()
    }
}

/// The number of a reply or message that is transferred in pieces.
pub(crate) fn numbered(number: Option<u64>) -> u64 {
    let Some(number) = number else { unreachable!("a handler that transfers pieces has a number") };
    number
}

/// The reply when there are too many downloads.
pub(crate) fn too_many_replies() -> Reply {
    let words =
        "Too many downloads are in progress. Go back, and try again when one has finished.\n";
    Reply::text(Status::ServiceUnavailable, words.into())
}

/// The reply when there are too many uploads.
pub(crate) fn too_many_messages() -> Reply {
    let words = "Too many messages are being uploaded. Go back, and try again in a moment.\n";
    Reply::text(Status::ServiceUnavailable, words.into())
}
