//! The question that opens a maildrop.

use alloc::boxed::Box;

use store::AccountId;

use crate::ask::{GiveBack, OwnerQuery, Subject};
use crate::maildrop::{MaildropSnapshot, NotOpened};
use crate::owned::Owned;

/// Opens and locks the inbox of an account.
pub struct OpenMaildrop(pub AccountId);

/// The maildrop, or the reason why it is not opened.
pub type Opened = Result<Box<MaildropSnapshot>, NotOpened>;

impl OwnerQuery for OpenMaildrop {
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
