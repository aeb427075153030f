//! How much an account has: asked of its owner before a recipient is accepted.

use store::{AccountId, Usage};

use crate::ask::{Question, Subject};
use crate::owned::Owned;

/// How much does this account have?
pub struct UsageOf(pub AccountId);

/// It has so much.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Used {
    /// The account.
    pub account: AccountId,
    /// What it has.
    pub usage: Usage,
}

impl Question for UsageOf {
    type Reply = Used;

    fn subject(&self) -> Subject {
        Subject::Account(self.0)
    }

    fn answer(self, owned: &mut Owned) -> Used {
        Used { account: self.0, usage: owned.store.usage(self.0) }
    }
}
