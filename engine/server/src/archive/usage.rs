//! How much an account has: asked of its owner before a recipient is accepted.

use store::{AccountId, Usage};

use super::Own;
use super::question::Question;

/// How much does this account have?
pub(crate) struct UsageOf(pub(crate) AccountId);

/// It has so much.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Used {
    pub(crate) account: AccountId,
    pub(crate) usage: Usage,
}

impl Question for UsageOf {
    type Reply = Used;

    fn account(&self) -> AccountId {
        self.0
    }

    fn answer(self, own: &mut Own) -> Used {
        Used { account: self.0, usage: own.store.usage(self.0) }
    }
}
