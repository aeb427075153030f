//! Finds messages that users sent to themselves. Such a message exists twice, in Sent and in the
//! mailbox where it arrived. It counts once in the row of its conversation.
//!
//! Sizes and times in the index show which two messages may be copies. The job reads and compares
//! only such pairs, so a list without possible copies costs no reads.
//!
//! Invariant: at most [`PAIRS_MAX`] pairs are read for a page. The messages of all other pairs
//! count twice. Copies that arrived more than [`LATER_SECONDS_MAX`] after sending also count twice.

use alloc::vec::Vec;

use store::{AccountId, Body, MessageInfo, SENT, Store};

use crate::context::JobContext;
use crate::step::JobProgress;

use super::row_totals::counted;
use super::rows::{self, FoundMessage};

/// The maximum number of pairs that are read for a page.
const PAIRS_MAX: usize = 50;

/// The maximum number of messages of a conversation that are examined. In each mailbox the newest
/// are examined last.
const LOOKED_AT_MAX: usize = 50;

/// The maximum number of octets by which the received copy may be shorter than the copy in Sent.
/// Only the copy in Sent has `Bcc`.
const BLIND_OCTETS_MAX: u32 = 1024;

/// The maximum number of seconds between sending and arrival.
const LATER_SECONDS_MAX: u64 = 600;

/// Possible copies among the rows of a page.
#[derive(Debug, Default)]
pub(super) struct Copies {
    /// The messages of all pairs, one pair after another: the message in Sent, and the received
    /// message.
    halves: Vec<FoundMessage>,
    /// The index of the row of each pair.
    rows: Vec<usize>,
}

impl Copies {
    /// Finds the possible copies among the messages of these rows.
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

    /// Asks the store for the summaries of the pairs.
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

    /// Corrects the counts of the rows, so that copies count once. The caller has read all
    /// summaries.
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

/// Whether a received message may be the copy of a sent message. The heads of both must have the
/// same size. The rest of both may differ only by a `Bcc` field.
fn may_be_copies(sent: &MessageInfo, came: &MessageInfo) -> bool {
    let is_shorter_by = sent.octets.checked_sub(came.octets);
    let is_later_by = came.internal_date.seconds().checked_sub(sent.internal_date.seconds());
    sent.head == came.head
        && is_shorter_by.is_some_and(|octets| octets <= BLIND_OCTETS_MAX)
        && is_later_by.is_some_and(|seconds| seconds <= LATER_SECONDS_MAX)
}
