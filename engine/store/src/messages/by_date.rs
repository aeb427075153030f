//! The messages of a mailbox in the order of their dates.
//!
//! A message that is moved gets the highest UID, and keeps its date. So UIDs do not order a mailbox
//! into which messages were moved. An index by date would take memory for every message. Instead,
//! the mailbox counts its inversions: pairs of neighbours by UID in which the first has the later
//! date. Nearly all mailboxes have none. Then the order of UIDs is that of dates, and a walk begins
//! at the right block. Otherwise a request for some messages looks once at each entry of 40 bytes,
//! and keeps the best.
//!
//! Messages of the same second are in the order of their UIDs if the mailbox has no inversions.
//! Otherwise they are in the order of their GUID numbers, which a move does not change.

use crate::messages::{MessageEntry, Messages};
use crate::types::DatePlace;
use alloc::vec;
use alloc::vec::Vec;

impl MessageEntry {
    pub(crate) fn date_place(&self) -> DatePlace {
        DatePlace { date: self.date, guid: self.guid(), uid: self.uid }
    }
}

/// Some messages of a mailbox, in the order of their dates or in the opposite order.
pub(crate) enum ByDate<'a, I> {
    /// The mailbox has no inversions, and the walk follows its UIDs.
    Walked(I),
    Found(vec::IntoIter<&'a MessageEntry>),
}

impl<'a, I: Iterator<Item = &'a MessageEntry>> Iterator for ByDate<'a, I> {
    type Item = &'a MessageEntry;

    fn next(&mut self) -> Option<&'a MessageEntry> {
        match self {
            ByDate::Walked(walk) => walk.next(),
            ByDate::Found(found) => found.next(),
        }
    }
}

/// The order of a mailbox without inversions.
fn by_uid(entry: &MessageEntry) -> (u32, u32) {
    entry.date_place().by_uid()
}

/// The number of inversions of two neighbours.
pub(super) fn inversions(one: Option<&MessageEntry>, other: Option<&MessageEntry>) -> u32 {
    let Some((one, other)) = one.zip(other) else { return 0 };
    u32::from(one.date > other.date)
}

impl Messages {
    /// Whether the order of UIDs is that of dates.
    pub(crate) fn are_in_order(&self) -> bool {
        self.inversions == 0
    }

    /// At most `most` messages that are older than `place`, or the newest ones, the newest first.
    pub(crate) fn older(
        &self,
        place: Option<DatePlace>,
        most: usize,
    ) -> impl Iterator<Item = &MessageEntry> {
        if !self.are_in_order() {
            let is_older = |entry: &MessageEntry| place.is_none_or(|at| entry.date_place() < at);
            let mut found =
                self.best(most, is_older, |entry| core::cmp::Reverse(entry.date_place()));
            found.sort_unstable_by_key(|entry| core::cmp::Reverse(entry.date_place()));
            return ByDate::Found(found.into_iter());
        }
        let is_older =
            move |entry: &MessageEntry| place.is_none_or(|at| by_uid(entry) < at.by_uid());
        let end = self.blocks.partition_point(|block| block.first().is_some_and(is_older));
        let blocks = self.blocks.get(..end).unwrap_or_default();
        let entries = blocks.iter().rev().flat_map(|block| block.iter().rev());
        ByDate::Walked(entries.skip_while(move |entry| !is_older(entry)).take(most))
    }

    /// At most `most` messages that are newer than `place`, the oldest first.
    pub(crate) fn newer(
        &self,
        place: DatePlace,
        most: usize,
    ) -> impl Iterator<Item = &MessageEntry> {
        if !self.are_in_order() {
            let is_newer = |entry: &MessageEntry| entry.date_place() > place;
            let mut found = self.best(most, is_newer, MessageEntry::date_place);
            found.sort_unstable_by_key(|entry| entry.date_place());
            return ByDate::Found(found.into_iter());
        }
        let is_newer = move |entry: &MessageEntry| by_uid(entry) > place.by_uid();
        let start = self.blocks.partition_point(|block| block.last().is_some_and(|e| !is_newer(e)));
        let blocks = self.blocks.get(start..).unwrap_or_default();
        let entries = blocks.iter().flatten();
        ByDate::Walked(entries.skip_while(move |entry| !is_newer(entry)).take(most))
    }

    /// The number of messages that are older than `place`.
    pub(crate) fn count_older(&self, place: DatePlace) -> u32 {
        if !self.are_in_order() {
            return self.iter().filter(|entry| entry.date_place() < place).count() as u32;
        }
        let is_older = |entry: &MessageEntry| by_uid(entry) < place.by_uid();
        let at = self.blocks.partition_point(|block| block.last().is_some_and(is_older));
        let (before, rest) = self.blocks.split_at(at);
        let within = rest.first().map_or(0, |block| block.partition_point(is_older)) as u32;
        let entries =
            |blocks: &[Vec<MessageEntry>]| blocks.iter().map(Vec::len).sum::<usize>() as u32;
        // The blocks of the shorter side are counted.
        within
            + if before.len() < rest.len() { entries(before) } else { self.len() - entries(rest) }
    }

    /// The `most` wanted entries with the lowest keys, in no particular order. At most twice as
    /// many are kept at a time.
    fn best<K: Ord>(
        &self,
        most: usize,
        is_wanted: impl Fn(&MessageEntry) -> bool,
        key: impl Fn(&MessageEntry) -> K,
    ) -> Vec<&MessageEntry> {
        let mut found: Vec<&MessageEntry> = Vec::new();
        let cut = |found: &mut Vec<&MessageEntry>| {
            if found.len() > most {
                found.select_nth_unstable_by_key(most, |entry| key(entry));
                found.truncate(most);
            }
        };
        let mut worst: Option<K> = None;
        for entry in self.iter().rev().filter(|entry| is_wanted(entry)) {
            if worst.as_ref().is_some_and(|worst| key(entry) >= *worst) {
                continue;
            }
            found.push(entry);
            if found.len() >= 2 * most.max(1) {
                cut(&mut found);
                worst = found.iter().map(|entry| key(entry)).max();
            }
        }
        cut(&mut found);
        found
    }
}
