//! The question to the owner whether an account may send one more message.

use alloc::string::String;
use alloc::vec::Vec;

use machine::UnixTime;
use store::AccountId;

use crate::allowances::{Daily, SendingDecision};
use crate::ask::{OwnerQuery, Subject};
use crate::owned::Owned;

const DAY_SECONDS: u64 = 24 * 60 * 60;

/// The question whether this account may send one more message. If it may, the message is counted.
pub struct MaySend {
    account: AccountId,
    /// Days since 1970.
    day: u32,
    daily: Daily,
    /// The external recipients.
    people: Vec<String>,
}

/// The answer to [`MaySend`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Permitted {
    /// The account.
    pub account: AccountId,
    /// The owner's decision.
    pub verdict: SendingDecision,
}

impl MaySend {
    /// A message at this time, to these external recipients.
    pub fn new(account: AccountId, now: UnixTime, daily: Daily, people: Vec<String>) -> MaySend {
        MaySend { account, day: (now.seconds() / DAY_SECONDS) as u32, daily, people }
    }
}

impl OwnerQuery for MaySend {
    type Reply = Permitted;

    fn subject(&self) -> Subject {
        Subject::Account(self.account)
    }

    fn answer(self, owned: &mut Owned) -> Permitted {
        let MaySend { account, day, daily, people } = self;
        let verdict = owned.allowances.may_send(account, (day, daily), &people, &mut owned.store);
        Permitted { account, verdict }
    }
}
