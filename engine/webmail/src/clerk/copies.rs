//! Letters to oneself: each is there twice, as it came and in Sent, and counts once in the row of its conversation.
//!
//! Which two may be one letter the index tells, by their sizes and times; whether they are, what both say of themselves. Only for that they are read, so lists without such letters
//! cost nothing more.
//!
//! Invariant: at most [`PAIRS_MAX`] pairs are read for a page. What lies beyond, or came late, counts twice.

use alloc::vec::Vec;

use store::{AccountId, Body, MessageInfo, SENT, Store};

use crate::context::JobContext;
use crate::step::Progress;

use super::rows::{self, Found};
use super::together::counted;

/// Pairs that are read for a page.
const PAIRS_MAX: usize = 50;

/// Messages of a conversation among which copies are looked for: the newest of each mailbox come last.
const LOOKED_AT_MAX: usize = 50;

/// By so much what came is shorter at most: the names of those who get blind copies are only in Sent.
const BLIND_OCTETS_MAX: u32 = 1024;

/// So much later it came at most.
const LATER_SECONDS_MAX: u64 = 600;

/// What may be copies of one letter, for the rows of a page.
#[derive(Debug, Default)]
pub(super) struct Copies {
    /// By pairs: what is in Sent, and what came.
    halves: Vec<Found>,
    /// Which row each pair is of.
    rows: Vec<usize>,
}

impl Copies {
    /// What may be copies among the messages that these rows stand for.
    pub(super) fn among(rows: &[Found], account: AccountId, store: &Store) -> Copies {
        let mut copies = Copies::default();
        for (row, found) in rows.iter().enumerate().filter(|(_, found)| found.together.messages > 1)
        {
            copies.look_at(row, found, account, store);
        }
        copies
    }

    fn look_at(&mut self, row: usize, of: &Found, account: AccountId, store: &Store) {
        let counted = counted(store, account, of.mailbox, of.info.conversation);
        let (sent, came): (Vec<_>, Vec<_>) =
            counted.take(LOOKED_AT_MAX).partition(|(mailbox, _)| *mailbox == SENT);
        if sent.is_empty() {
            return;
        }
        let known = |all: Vec<_>| {
            let found =
                |(id, uid)| Some(Found::of(store, account, id, store.message(account, id, uid)?));
            all.into_iter().filter_map(found)
        };
        let mut came: Vec<Found> = known(came).collect();
        for sent in known(sent) {
            let at = came.iter().position(|came| may_be_one(&sent.info, &came.info));
            if let Some(at) = at.filter(|_| self.rows.len() < PAIRS_MAX) {
                self.rows.push(row);
                self.halves.extend([sent, came.swap_remove(at)]);
            }
        }
    }

    /// Asks for what they say of themselves.
    pub(super) fn ask(
        &mut self,
        account: AccountId,
        under_way: &mut usize,
        cx: &mut JobContext<'_, '_>,
    ) -> Progress {
        rows::ask(&mut self.halves, account, under_way, cx)
    }

    pub(super) fn body_arrived(&mut self, body: &Body) {
        rows::body_arrived(&mut self.halves, body);
    }

    /// All is known: what is one letter counts once.
    pub(super) fn count_once(&self, rows: &mut [Found]) {
        let (pairs, _) = self.halves.as_chunks::<2>();
        for (at, [sent, came]) in self.rows.iter().zip(pairs) {
            if let Some(row) =
                rows.get_mut(*at).filter(|_| rows::are_one_letter(sent.summary(), came.summary()))
            {
                row.together.messages -= 1;
            }
        }
    }
}

/// Whether what came may be what was sent: both are signed by the same, and the rest is as long but for who got blind copies.
fn may_be_one(sent: &MessageInfo, came: &MessageInfo) -> bool {
    let is_shorter_by = sent.octets.checked_sub(came.octets);
    let is_later_by = came.internal_date.seconds().checked_sub(sent.internal_date.seconds());
    sent.head == came.head
        && is_shorter_by.is_some_and(|octets| octets <= BLIND_OCTETS_MAX)
        && is_later_by.is_some_and(|seconds| seconds <= LATER_SECONDS_MAX)
}
