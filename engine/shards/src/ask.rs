//! A question to the owner of an account.

use alloc::boxed::Box;

use store::AccountId;

use crate::maildrop::Maildrop;
use crate::owned::Owned;

/// A question to the owner of an account.
pub trait Question: Sized {
    /// The owner's reply.
    type Reply;

    /// The account.
    fn account(&self) -> AccountId;

    /// What the owner does, and replies.
    fn answer(self, owned: &mut Owned) -> Self::Reply;

    /// Nothing waits for the reply any more: what of it goes home.
    fn unwanted(_reply: Self::Reply) -> Option<GiveBack> {
        None
    }
}

/// What a reply holds that its owner has to have back.
pub enum GiveBack {
    /// A maildrop, to be unlocked.
    Maildrop(Box<Maildrop>),
}
