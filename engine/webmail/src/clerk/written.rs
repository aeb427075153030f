//! A cache of rendered list rows. A list that is opened again is copied from it, and nothing is
//! read.
//!
//! Invariants:
//! - A row is determined by its [`Facts`] and its message's summary, and a message never changes.
//!   So equal facts mean an equal row.
//! - There are at most [`WRITTEN_MAX`] rows of at most [`ROW_BYTES_MAX`] bytes. Each row has one
//!   possible place and replaces the row there.
//! - A row of a message that could not be read is not cached.

#[cfg(test)]
mod tests;

use alloc::vec::Vec;

use machine::UnixTime;
use store::{AccountId, MailboxId, MessageInfo};

use crate::list::WrittenRow;
use crate::moments::day;

use super::together::Together;

/// Rows in a core's cache: enough for about a hundred inboxes.
const WRITTEN_MAX: usize = 1 << PLACE_BITS;
const PLACE_BITS: u32 = 11;

/// A longer row is not cached.
const ROW_BYTES_MAX: usize = 2_048;

/// The facts that determine a row, beside its message's summary.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Facts {
    account: AccountId,
    mailbox: MailboxId,
    info: MessageInfo,
    together: Together,
    /// The present day: lists show the time of today's messages.
    today: u64,
}

/// The cached rows of a core.
#[derive(Debug)]
pub struct WrittenRows(Vec<Option<(Facts, WrittenRow)>>);

impl Facts {
    pub(super) fn of(
        account: AccountId,
        mailbox: MailboxId,
        info: MessageInfo,
        together: Together,
        now: UnixTime,
    ) -> Facts {
        Facts { account, mailbox, info, together, today: day(now) }
    }

    /// Multiplicative hashing spreads consecutive GUIDs widely (Knuth, The Art of Computer
    /// Programming, section 6.4).
    fn place(&self) -> usize {
        const GOLDEN_RATIO: u64 = 0x9E37_79B9_7F4A_7C15;
        ((self.info.guid.0 as u64).wrapping_mul(GOLDEN_RATIO) >> (u64::BITS - PLACE_BITS)) as usize
    }
}

impl WrittenRows {
    /// An empty cache.
    pub fn new() -> WrittenRows {
        let mut places = Vec::new();
        places.resize_with(WRITTEN_MAX, || None);
        WrittenRows(places)
    }

    pub(super) fn find(&self, facts: &Facts) -> Option<&WrittenRow> {
        let (of, row) = self.0.get(facts.place())?.as_ref()?;
        (of == facts).then_some(row)
    }

    pub(super) fn keep(&mut self, facts: Facts, row: &WrittenRow) {
        if let Some(place) = self.0.get_mut(facts.place()).filter(|_| row.bytes() <= ROW_BYTES_MAX)
        {
            *place = Some((facts, row.clone()));
        }
    }
}

impl Default for WrittenRows {
    fn default() -> WrittenRows {
        WrittenRows::new()
    }
}
