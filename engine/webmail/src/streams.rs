//! Streams: replies of clerks that go on as their readers take them, so that nobody holds more of a large thing than a piece.
//!
//! A clerk whose reply has begun stays at his place and does nothing until the core of the connection says that his reader has taken what there was. Then he reads on, and
//! what he has goes there as answers to visits do.
//!
//! Invariants:
//! - Of a core at most [`STREAMS_MAX`] are under way, of an account [`STREAMS_OF_ACCOUNT_MAX`]: who reads slowly keeps nobody else from reading.
//! - Of a stream one piece is on its way at a time.
//! - A stream ends with its reader's connection, and with the session by which it was asked for.

use alloc::collections::{BTreeMap, VecDeque};

use http::{Reply, Status};
use store::AccountId;
use tasks::FrameId;

/// Streams of a core.
pub(crate) const STREAMS_MAX: usize = 32;

/// Streams of one account.
const STREAMS_OF_ACCOUNT_MAX: usize = 8;

/// The clerks of a core whose replies have begun, by the numbers of these.
#[derive(Default)]
pub(crate) struct Streams {
    all: BTreeMap<u64, (AccountId, FrameId)>,
    /// Those whose readers want more.
    wanted: VecDeque<u64>,
}

impl Streams {
    /// A clerk's reply begins. Whether it may.
    pub(crate) fn begin(&mut self, number: u64, account: AccountId, clerk: FrameId) -> bool {
        let of_account = self.all.values().filter(|(known, _)| *known == account).count();
        let may_begin = self.all.len() < STREAMS_MAX && of_account < STREAMS_OF_ACCOUNT_MAX;
        if may_begin {
            self.all.insert(number, (account, clerk));
        }
        may_begin
    }

    /// The reader of the reply with this number wants more of it.
    pub(crate) fn wanted(&mut self, number: u64) {
        self.wanted.push_back(number);
    }

    /// The next clerk of whom more is wanted.
    pub(crate) fn next_wanted(&mut self) -> Option<FrameId> {
        loop {
            let number = self.wanted.pop_front()?;
            if let Some((_, clerk)) = self.all.get(&number) {
                return Some(*clerk);
            }
        }
    }

    /// The reply with this number is over, or nobody reads it any more: its clerk, if it is one of these.
    pub(crate) fn end(&mut self, number: u64) -> Option<FrameId> {
        self.all.remove(&number).map(|(_, clerk)| clerk)
    }

    pub(crate) fn count(&self) -> usize {
        self.all.len()
    }

    pub(crate) fn has_wanted(&self) -> bool {
        !self.wanted.is_empty()
    }
}

/// What is said to who wants one more.
pub(crate) fn too_many() -> Reply {
    let words =
        "Too much is being downloaded just now. Nothing is lost: go back, and try again when a download has ended.\n";
    Reply::text(Status::ServiceUnavailable, words.into())
}
