//! A question to the owner of something.

use alloc::boxed::Box;

use store::AccountId;

use crate::maildrop::Maildrop;
use crate::owned::Owned;

/// A question to the owner of its subject.
pub trait Question: Sized {
    /// The owner's reply.
    type Reply;

    /// What it is about.
    fn subject(&self) -> Subject;

    /// What the owner does, and replies.
    fn answer(self, owned: &mut Owned) -> Self::Reply;

    /// Nothing waits for the reply any more: what of it goes home.
    fn unwanted(_reply: Self::Reply) -> Option<GiveBack> {
        None
    }
}

/// What a question is about. It has one owner among the cores.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Subject {
    /// An account.
    Account(AccountId),
    /// A network or domain elsewhere, by a keyed hash.
    Elsewhere(u64),
}

/// What a reply holds that its owner has to have back.
pub enum GiveBack {
    /// A maildrop, to be unlocked.
    Maildrop(Box<Maildrop>),
}
