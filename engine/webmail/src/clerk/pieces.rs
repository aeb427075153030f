//! A message that goes by in pieces, of which nothing is kept here: one is asked for at a time, so that what is sent goes out while the message is read.

use store::{AccountId, Refusal};

use crate::Key;
use crate::context::JobContext;
use crate::step::Progress;

/// A message that is being read.
#[derive(Debug)]
pub(super) struct Pieces {
    pub(super) key: Key,
    /// The message's octets, once the index was looked at.
    pub(super) octets: Option<u32>,
    /// Why there is no more of it.
    pub(super) refused: Option<Refusal>,
}

impl Pieces {
    pub(super) fn of(key: Key) -> Pieces {
        Pieces { key, octets: None, refused: None }
    }

    /// The message's octets, if a piece of it may be asked for now.
    pub(super) fn octets(
        &mut self,
        account: AccountId,
        under_way: usize,
        cx: &JobContext<'_, '_>,
    ) -> Option<u32> {
        if self.refused.is_some() || under_way > 0 {
            return None;
        }
        let (mailbox, uid) = self.key.in_store();
        self.octets = self
            .octets
            .or_else(|| cx.store().message(account, mailbox, uid).map(|info| info.octets));
        if self.octets.is_none() {
            self.refused = Some(Refusal::NoSuchMessage);
        }
        self.octets
    }

    /// Asks for the piece that begins at `offset`.
    pub(super) fn ask(
        &mut self,
        offset: u32,
        account: AccountId,
        under_way: &mut usize,
        cx: &mut JobContext<'_, '_>,
    ) -> Progress {
        let ((mailbox, uid), continuation) = (self.key.in_store(), cx.continuation());
        match cx.store_mut().read(account, mailbox, uid, offset, continuation) {
            Ok(()) => *under_way += 1,
            Err(Refusal::Busy) => return Progress::Yield,
            Err(refusal) => self.refused = Some(refusal),
        }
        Progress::Waiting
    }
}
