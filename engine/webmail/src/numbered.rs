//! Request handlers with a number: those of open replies, and those of messages that are being
//! uploaded. Both transfer pieces, so no core has more of a large file in memory than a piece.
//!
//! Between two pieces a handler stays in its frame and is idle. By the number, the core of the
//! connection tells it that the client wants more of the reply, or sends it the next piece of the
//! message.
//!
//! Invariants:
//! - A core has a limit of handlers of each kind, and an account a share of it. So slow clients of
//!   one account do not block others.
//! - A piece for a number that has ended is dropped.

use alloc::collections::{BTreeMap, VecDeque};

use http::{Reply, Status};
use store::AccountId;
use tasks::FrameId;

use crate::jobs::UploadPiece;

/// Open replies of a core, and those of one account.
const REPLIES_MAX: usize = 32;
const REPLIES_OF_ACCOUNT_MAX: usize = 8;

/// Uploads of messages to a core, and those of one account. All clients without a session count as
/// one account.
const MESSAGES_MAX: usize = 16;
const MESSAGES_OF_ACCOUNT_MAX: usize = 4;

/// The most handlers with a number.
pub(crate) const NUMBERED_MAX: usize = REPLIES_MAX + MESSAGES_MAX;

/// The client wants more of a reply.
pub(crate) struct MoreWanted;

/// Handlers with a number. Each goes on when a `T` has come for its number.
pub(crate) struct Numbered<T> {
    handlers_max: usize,
    of_account_max: usize,
    handlers: BTreeMap<u64, (AccountId, FrameId)>,
    /// Events that the handlers have not received yet.
    arrived: VecDeque<(u64, T)>,
}

impl Numbered<MoreWanted> {
    /// Open replies.
    pub(crate) fn replies() -> Numbered<MoreWanted> {
        Numbered::new(REPLIES_MAX, REPLIES_OF_ACCOUNT_MAX)
    }
}

impl Numbered<UploadPiece> {
    /// Uploads of messages.
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

    /// Whether this account may have one more.
    pub(crate) fn may_begin(&self, account: AccountId) -> bool {
        let of_account = self.handlers.values().filter(|(known, _)| *known == account).count();
        self.handlers.len() < self.handlers_max && of_account < self.of_account_max
    }

    /// The handler gets this number.
    pub(crate) fn begin(&mut self, number: u64, account: AccountId, handler: FrameId) {
        assert!(self.may_begin(account), "a transfer begins only while there is room");
        self.handlers.insert(number, (account, handler));
    }

    /// An event for a number.
    pub(crate) fn arrived(&mut self, number: u64, what: T) {
        self.arrived.push_back((number, what));
    }

    /// The next event, and the handler that goes on with it.
    pub(crate) fn next(&mut self) -> Option<(FrameId, T)> {
        loop {
            let (number, what) = self.arrived.pop_front()?;
            if let Some((_, handler)) = self.handlers.get(&number) {
                return Some((*handler, what));
            }
        }
    }

    /// Whether there is an event.
    pub(crate) fn has_arrived(&self) -> bool {
        !self.arrived.is_empty()
    }

    /// The number has ended. Returns its handler, if it is one of these.
    pub(crate) fn end(&mut self, number: u64) -> Option<FrameId> {
        self.handlers.remove(&number).map(|(_, handler)| handler)
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.handlers.len()
    }
}

/// The number of a reply or message that is transferred in pieces.
pub(crate) fn numbered(number: Option<u64>) -> u64 {
    let Some(number) = number else { unreachable!("a transfer in pieces has a number") };
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
