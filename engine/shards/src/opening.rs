//! The question that opens a maildrop.

use alloc::boxed::Box;

use store::AccountId;

use crate::ask::{GiveBack, Question, Subject};
use crate::maildrop::{Maildrop, NotOpened};
use crate::owned::Owned;

/// The inbox of an account is to be opened and locked.
pub struct OpenMaildrop(pub AccountId);

/// It is, or another session has it, or too much is open already.
pub type Opened = Result<Box<Maildrop>, NotOpened>;

impl Question for OpenMaildrop {
    type Reply = Opened;

    fn subject(&self) -> Subject {
        Subject::Account(self.0)
    }

    fn answer(self, owned: &mut Owned) -> Opened {
        owned.maildrops.open(&owned.store, self.0)
    }

    fn unwanted(opened: Opened) -> Option<GiveBack> {
        opened.ok().map(GiveBack::Maildrop)
    }
}
