//! Finds messages that users sent to themselves. Each exists twice, in Sent and where it arrived,
//! and counts once in the row of its conversation.
//!
//! Sizes and times in the index tell which two messages may be copies. Only those are read and
//! compared, so lists without such messages cost no reads.
//!
//! Invariant: at most [`PAIRS_MAX`] pairs are read for a page. Further pairs, and copies that
//! arrived late, count twice.

use alloc::vec::Vec;

use store::{AccountId, Body, MessageInfo, SENT, Store};

use crate::context::JobContext;
use crate::step::JobProgress;

use super::row_totals::counted;
use super::rows::{self, FoundMessage};

/// The most pairs that are read for a page.
const PAIRS_MAX: usize = 50;

/// The most messages of a conversation that are examined. The newest of each mailbox come last.
const LOOKED_AT_MAX: usize = 50;

/// The most octets by which a received copy is shorter: only the copy in Sent has `Bcc`.
const BLIND_OCTETS_MAX: u32 = 1024;

/// The most seconds between sending and arrival.
const LATER_SECONDS_MAX: u64 = 600;

/// Possible copies among the rows of a page.
#[derive(Debug, Default)]
pub(super) struct Copies {
    /// In pairs: the message in Sent, and the received one.
    halves: Vec<FoundMessage>,
    /// The row of each pair.
    rows: Vec<usize>,
}

impl Copies {
    /// The possible copies among the messages of these rows.
    pub(super) fn among(rows: &[FoundMessage], account: AccountId, store: &Store) -> Copies {
        let mut copies = Copies::default();
        for (row, found) in rows.iter().enumerate().filter(|(_, found)| found.totals.messages > 1) {
            copies.look_at(row, found, account, store);
        }
        copies
    }

    fn look_at(&mut self, row: usize, of: &FoundMessage, account: AccountId, store: &Store) {
        let counted = counted(store, account, of.mailbox, of.info.conversation);
        let (sent, came): (Vec<_>, Vec<_>) =
            counted.take(LOOKED_AT_MAX).partition(|(mailbox, _)| *mailbox == SENT);
        if sent.is_empty() {
            return;
        }
        let known = |all: Vec<_>| {
            let found = |(id, uid)| {
                Some(FoundMessage::of(store, account, id, store.message(account, id, uid)?))
            };
            all.into_iter().filter_map(found)
        };
        let mut came: Vec<FoundMessage> = known(came).collect();
        for sent in known(sent) {
            let at = came.iter().position(|came| may_be_copies(&sent.info, &came.info));
            if let Some(at) = at.filter(|_| self.rows.len() < PAIRS_MAX) {
                self.rows.push(row);
                self.halves.extend([sent, came.swap_remove(at)]);
            }
        }
    }

    /// Reads the summaries of the pairs.
    pub(super) fn ask(
        &mut self,
        account: AccountId,
        under_way: &mut usize,
        cx: &mut JobContext<'_, '_>,
    ) -> JobProgress {
        rows::ask(&mut self.halves, account, under_way, cx)
    }

    pub(super) fn body_arrived(&mut self, body: &Body) {
        rows::body_arrived(&mut self.halves, body);
    }

    /// All summaries are known: copies count once.
    pub(super) fn count_once(&self, rows: &mut [FoundMessage]) {
        let (pairs, _) = self.halves.as_chunks::<2>();
        for (at, [sent, came]) in self.rows.iter().zip(pairs) {
            if let Some(row) =
                rows.get_mut(*at).filter(|_| rows::are_copies(sent.summary(), came.summary()))
            {
                row.totals.messages -= 1;
            }
        }
    }
}

/// Whether a received message may be the copy of a sent one: both have heads of the same size, and
/// the rest differs at most by a `Bcc` field.
fn may_be_copies(sent: &MessageInfo, came: &MessageInfo) -> bool {
    let is_shorter_by = sent.octets.checked_sub(came.octets);
    let is_later_by = came.internal_date.seconds().checked_sub(sent.internal_date.seconds());
    sent.head == came.head
        && is_shorter_by.is_some_and(|octets| octets <= BLIND_OCTETS_MAX)
        && is_later_by.is_some_and(|seconds| seconds <= LATER_SECONDS_MAX)
}
