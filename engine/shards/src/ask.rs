//! The trait of questions to the core that owns the subject of the question.

use alloc::boxed::Box;

use store::AccountId;

use crate::maildrop::MaildropSnapshot;
use crate::owned::Owned;

/// A question to the owner of its subject.
pub trait OwnerQuery: Sized {
    /// The owner's reply.
    type Reply;

    /// The subject of the question.
    fn subject(&self) -> Subject;

    /// Computes the reply, on the owner.
    fn answer(self, owned: &mut Owned) -> Self::Reply;

    /// Handles a reply after its frame has ended. Returns the resource that must be given back, if
    /// any.
    fn unwanted(_reply: Self::Reply) -> Option<GiveBack> {
        None
    }
}

/// The subject of a question. Each subject has one owner among the cores.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Subject {
    /// An account.
    Account(AccountId),
    /// An external network or domain, by a keyed hash.
    ExternalHost(u64),
}

/// A resource in a reply that must be given back to the owner of the subject.
pub enum GiveBack {
    /// A maildrop, to be unlocked.
    Maildrop(Box<MaildropSnapshot>),
}
