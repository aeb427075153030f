//! The question for the usage of an account, asked before a recipient is accepted.

use store::{AccountId, Usage};

use crate::ask::{OwnerQuery, Subject};
use crate::owned::Owned;

/// The question for the usage of this account.
pub struct UsageOf(pub AccountId);

/// The answer to [`UsageOf`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Used {
    /// The account.
    pub account: AccountId,
    /// The usage of the account.
    pub usage: Usage,
}

impl OwnerQuery for UsageOf {
    type Reply = Used;

    fn subject(&self) -> Subject {
        Subject::Account(self.0)
    }

    fn answer(self, owned: &mut Owned) -> Used {
        Used { account: self.0, usage: owned.store.usage(self.0) }
    }
}
