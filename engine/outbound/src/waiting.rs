//! The order of waiting entries. Entries that wait for a time are ordered by that time. If entries
//! of several accounts wait for the same event (the end of an attempt at their destination), the
//! accounts take turns.
//!
//! Invariants:
//! - Each account has its turn after one entry of the previous account, however many entries the
//!   other accounts have.

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;

use machine::Instant;
use store::{AccountId, Uid};

/// The place of an entry: the account, and the message in its outbox.
pub(super) type Place = (AccountId, Uid);

/// Entries that wait for a time.
#[derive(Default)]
pub(super) struct WaitingEntries {
    /// The entries by account, then by time.
    entries: BTreeMap<AccountId, BTreeSet<(Instant, Uid)>>,
    /// The first entry of each account.
    first: BTreeSet<(Instant, AccountId)>,
}

impl WaitingEntries {
    pub(super) fn insert(&mut self, at: Instant, (account, uid): Place) {
        self.change(account, |entries| entries.insert((at, uid)));
    }

    pub(super) fn remove(&mut self, at: Instant, (account, uid): Place) {
        self.change(account, |entries| entries.remove(&(at, uid)));
    }

    /// The first entry of an account for which `may_be` holds.
    pub(super) fn next(&self, may_be: impl Fn(AccountId) -> bool) -> Option<(Instant, Place)> {
        let (at, account) = self.first.iter().copied().find(|(_, account)| may_be(*account))?;
        let (_, uid) = self.entries.get(&account)?.first()?;
        Some((at, (account, *uid)))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.first.is_empty()
    }

    /// Changes the entries of an account by `act`, and keeps `first` up to date.
    fn change(
        &mut self,
        account: AccountId,
        act: impl FnOnce(&mut BTreeSet<(Instant, Uid)>) -> bool,
    ) {
        let entries = self.entries.entry(account).or_default();
        let before = entries.first().map(|(at, _)| (*at, account));
        act(entries);
        let after = entries.first().map(|(at, _)| (*at, account));
        if after.is_none() {
            self.entries.remove(&account);
        }
        if before != after {
            if let Some(before) = before {
                self.first.remove(&before);
            }
            self.first.extend(after);
        }
    }
}

/// Entries that wait for the same event. The accounts take turns; within an account, the oldest
/// goes first.
#[derive(Default)]
pub(super) struct Turns(VecDeque<(AccountId, VecDeque<Uid>)>);

impl Turns {
    pub(super) fn push(&mut self, (account, uid): Place) {
        match self.0.iter_mut().find(|(own, _)| *own == account) {
            Some((_, uids)) => uids.push_back(uid),
            None => self.0.push_back((account, VecDeque::from([uid]))),
        }
    }

    /// The next entry of an account for which `may_be` holds.
    pub(super) fn next(&mut self, may_be: impl Fn(AccountId) -> bool) -> Option<Place> {
        let next = self.0.iter().position(|(account, _)| may_be(*account))?;
        let (account, mut uids) = self.0.remove(next)?;
        let uid = uids.pop_front()?;
        if !uids.is_empty() {
            self.0.push_back((account, uids));
        }
        Some((account, uid))
    }

    /// Takes the next entry of each account.
    pub(super) fn one_of_each(&mut self) -> Vec<Place> {
        let firsts =
            self.0.iter_mut().filter_map(|(account, uids)| Some((*account, uids.pop_front()?)));
        let firsts = firsts.collect();
        self.0.retain(|(_, uids)| !uids.is_empty());
        firsts
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
