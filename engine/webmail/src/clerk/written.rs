//! Rows of lists as they were written last: who looks at a list again gets copies, and nothing of it is read.
//!
//! Invariants:
//! - A row follows from its [`Facts`] and from what its letter says of itself, and a letter never changes: where the facts are the same the row is.
//! - There are at most [`WRITTEN_MAX`] rows of at most [`ROW_BYTES_MAX`] bytes. Each has one place, which the next one takes that comes there.
//! - A row that could not be read is not kept.

#[cfg(test)]
mod tests;

use alloc::vec::Vec;

use machine::UnixTime;
use store::{AccountId, MailboxId, MessageInfo};

use crate::list::WrittenRow;
use crate::moments::day;

use super::together::Together;

/// Rows that a core keeps: those of some hundred inboxes.
const WRITTEN_MAX: usize = 1 << PLACE_BITS;
const PLACE_BITS: u32 = 11;

/// A longer one is written each time.
const ROW_BYTES_MAX: usize = 2_048;

/// What a row depends on, beside what its letter says of itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Facts {
    account: AccountId,
    mailbox: MailboxId,
    info: MessageInfo,
    together: Together,
    /// Of today a list tells the hour.
    today: u64,
}

/// The rows that a core has written last.
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

    /// Letters that came one after the other lie far from each other (Knuth, The Art of Computer Programming, section 6.4).
    fn place(&self) -> usize {
        const GOLDEN_RATIO: u64 = 0x9E37_79B9_7F4A_7C15;
        ((self.info.guid.0 as u64).wrapping_mul(GOLDEN_RATIO) >> (u64::BITS - PLACE_BITS)) as usize
    }
}

impl WrittenRows {
    /// None yet.
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
