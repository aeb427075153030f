//! Reads a message one piece at a time, and keeps no octets. So a document can be sent while it is
//! read.

use core::ops::Range;

use store::{AccountId, Refusal};

use crate::MessageKey;
use crate::context::JobContext;
use crate::step::JobProgress;

/// A message that is being read.
#[derive(Debug)]
pub(super) struct Pieces {
    pub(super) key: MessageKey,
    /// The number of octets of the message, if the index was read already.
    pub(super) octets: Option<u32>,
    /// The reason why no more can be read.
    pub(super) refused: Option<Refusal>,
}

impl Pieces {
    pub(super) fn of(key: MessageKey) -> Pieces {
        Pieces { key, octets: None, refused: None }
    }

    /// The number of octets of the message, if the job may ask for a piece now.
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

    /// Asks the store for the piece at `offset`.
    pub(super) fn ask(
        &mut self,
        offset: u32,
        account: AccountId,
        under_way: &mut usize,
        cx: &mut JobContext<'_, '_>,
    ) -> JobProgress {
        let ((mailbox, uid), continuation) = (self.key.in_store(), cx.continuation());
        match cx.store_mut().read(account, mailbox, uid, offset, continuation) {
            Ok(()) => *under_way += 1,
            Err(Refusal::Busy) => return JobProgress::Yield,
            Err(refusal) => self.refused = Some(refusal),
        }
        JobProgress::Waiting
    }
}

/// The range as offsets of the store. A message never has more octets than fit into u32.
pub(super) fn in_store(place: &Range<u64>) -> Range<u32> {
    let [start, end] = [place.start, place.end].map(|at| u32::try_from(at).unwrap_or(u32::MAX));
    start..end
}
