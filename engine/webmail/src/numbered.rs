//! Request handlers that go on by a number: those of replies that have begun, and those to which a
//! message comes. Both go in pieces, so no core holds more of a large file than a piece.
//!
//! Between two pieces a handler stays in its place and does nothing. The core of the connection
//! tells it by the number that the client has taken what there was of the reply, or sends it the
//! next piece of the message.
//!
//! Invariants:
//! - Of each kind a core has a number of handlers at most, and an account a share of them. So slow
//!   clients of one account keep no other from reading and sending.
//! - What comes for a number that has ended is dropped.

use alloc::collections::{BTreeMap, VecDeque};

use http::{Reply, Status};
use store::AccountId;
use tasks::FrameId;

use crate::clerk::Piece;

/// Replies of a core that go out in pieces, and those of one account.
const REPLIES_MAX: usize = 32;
const REPLIES_OF_ACCOUNT_MAX: usize = 8;

/// Messages that come to a core in pieces, and those of one account. All clients without a session
/// count as one account.
const MESSAGES_MAX: usize = 16;
const MESSAGES_OF_ACCOUNT_MAX: usize = 4;

/// Handlers that go on by a number.
pub(crate) const NUMBERED_MAX: usize = REPLIES_MAX + MESSAGES_MAX;

/// The client has taken what there was of a reply, and wants more.
pub(crate) struct Wanted;

/// Handlers that go on by a number, when `T` has come for it.
pub(crate) struct Numbered<T> {
    handlers_max: usize,
    of_account_max: usize,
    handlers: BTreeMap<u64, (AccountId, FrameId)>,
    /// What has come, and was not given to the handlers.
    arrived: VecDeque<(u64, T)>,
}

impl Numbered<Wanted> {
    /// Replies.
    pub(crate) fn replies() -> Numbered<Wanted> {
        Numbered::new(REPLIES_MAX, REPLIES_OF_ACCOUNT_MAX)
    }
}

impl Numbered<Piece> {
    /// Messages.
    pub(crate) fn messages() -> Numbered<Piece> {
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

    /// A handler goes on by this number from now on.
    pub(crate) fn begin(&mut self, number: u64, account: AccountId, handler: FrameId) {
        assert!(self.may_begin(account), "one begins while there is room");
        self.handlers.insert(number, (account, handler));
    }

    /// This has come for a number.
    pub(crate) fn arrived(&mut self, number: u64, what: T) {
        self.arrived.push_back((number, what));
    }

    /// What has come next, and the handler that goes on with it.
    pub(crate) fn next(&mut self) -> Option<(FrameId, T)> {
        loop {
            let (number, what) = self.arrived.pop_front()?;
            if let Some((_, handler)) = self.handlers.get(&number) {
                return Some((*handler, what));
            }
        }
    }

    /// Whether something has come.
    pub(crate) fn has_arrived(&self) -> bool {
        !self.arrived.is_empty()
    }

    /// The number has ended: its handler, if it is one of these.
    pub(crate) fn end(&mut self, number: u64) -> Option<FrameId> {
        self.handlers.remove(&number).map(|(_, handler)| handler)
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.handlers.len()
    }
}

/// The reply to one download too many.
pub(crate) fn too_many_replies() -> Reply {
    let words = "Too much is being downloaded just now. Nothing is lost: go back, and try again when a download has ended.\n";
    Reply::text(Status::ServiceUnavailable, words.into())
}

/// The reply to one message too many.
pub(crate) fn too_many_messages() -> Reply {
    let words = "Too many messages are being sent just now. Nothing is lost: go back, and try again when one has gone.\n";
    Reply::text(Status::ServiceUnavailable, words.into())
}
