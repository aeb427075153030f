//! A cache of rendered list rows. A list that is opened again is copied from it, and nothing is
//! read.
//!
//! Invariants:
//! - A row is determined by its [`RowFacts`] and its message's summary, and a message never
//!   changes. So equal facts mean an equal row.
//! - There are at most [`CACHED_ROWS_MAX`] rows of at most [`ROW_BYTES_MAX`] bytes. Each row has
//!   one possible place and replaces the row there.
//! - A row of a message that could not be read is not cached.

#[cfg(test)]
mod tests;

use alloc::vec::Vec;

use machine::UnixTime;
use store::{AccountId, MailboxId, MessageInfo};

use crate::list::RenderedRow;
use crate::moments::day;

use super::row_totals::RowTotals;

/// Rows in a core's cache: enough for about a hundred inboxes.
const CACHED_ROWS_MAX: usize = 1 << PLACE_BITS;
const PLACE_BITS: u32 = 11;

/// A longer row is not cached.
const ROW_BYTES_MAX: usize = 2_048;

/// The facts that determine a row, beside its message's summary.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct RowFacts {
    account: AccountId,
    mailbox: MailboxId,
    info: MessageInfo,
    totals: RowTotals,
    /// The present day: lists show the time of today's messages.
    today: u64,
}

/// The cached rows of a core.
#[derive(Debug)]
pub struct RowCache(Vec<Option<(RowFacts, RenderedRow)>>);

impl RowFacts {
    pub(super) fn of(
        account: AccountId,
        mailbox: MailboxId,
        info: MessageInfo,
        totals: RowTotals,
        now: UnixTime,
    ) -> RowFacts {
        RowFacts { account, mailbox, info, totals, today: day(now) }
    }

    /// Multiplicative hashing spreads consecutive GUIDs widely (Knuth, The Art of Computer
    /// Programming, section 6.4).
    fn place(&self) -> usize {
        const GOLDEN_RATIO: u64 = 0x9E37_79B9_7F4A_7C15;
        ((self.info.guid.0 as u64).wrapping_mul(GOLDEN_RATIO) >> (u64::BITS - PLACE_BITS)) as usize
    }
}

impl RowCache {
    /// An empty cache.
    pub fn new() -> RowCache {
        let mut places = Vec::new();
        places.resize_with(CACHED_ROWS_MAX, || None);
        RowCache(places)
    }

    pub(super) fn find(&self, facts: &RowFacts) -> Option<&RenderedRow> {
        let (of, row) = self.0.get(facts.place())?.as_ref()?;
        (of == facts).then_some(row)
    }

    pub(super) fn keep(&mut self, facts: RowFacts, row: &RenderedRow) {
        if let Some(place) = self.0.get_mut(facts.place()).filter(|_| row.bytes() <= ROW_BYTES_MAX)
        {
            *place = Some((facts, row.clone()));
        }
    }
}

impl Default for RowCache {
    fn default() -> RowCache {
        RowCache::new()
    }
}
