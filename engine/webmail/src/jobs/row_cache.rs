//! A cache of rendered list rows. The rows of a list that is opened again are copied from the
//! cache, without reads from the disk.
//!
//! Invariants:
//! - A row depends only on its [`RowFacts`] and on the summary of its message, and a message never
//!   changes. So two rows with equal facts are equal.
//! - The cache has at most [`CACHED_ROWS_MAX`] rows of at most [`ROW_BYTES_MAX`] bytes. Each row
//!   has one possible place, and replaces the row in that place.
//! - A row of a message that could not be read is not cached.

#[cfg(test)]
mod tests;

use alloc::vec::Vec;

use store::{AccountId, MailboxId, MessageInfo};

use crate::list::RenderedRow;
use crate::moments::LocalClock;

use super::row_totals::RowTotals;

/// The number of rows in a core's cache, enough for about a hundred inboxes.
const CACHED_ROWS_MAX: usize = 1 << PLACE_BITS;
const PLACE_BITS: u32 = 11;

/// The longest row that is cached, in bytes.
const ROW_BYTES_MAX: usize = 2_048;

/// The facts that determine a row, in addition to the summary of its message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct RowFacts {
    account: AccountId,
    mailbox: MailboxId,
    info: MessageInfo,
    totals: RowTotals,
    /// The current day, since lists show the time instead of the date for today's messages.
    today: u64,
    /// The name of the reader's time zone.
    zone: &'static str,
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
        clock: &LocalClock,
    ) -> RowFacts {
        RowFacts { account, mailbox, info, totals, today: clock.today(), zone: clock.zone.name() }
    }

    /// The place of the row. Multiplicative hashing spreads consecutive GUIDs widely (Knuth, The
    /// Art of Computer Programming, section 6.4).
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
