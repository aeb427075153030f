//! The sharing of the places for delivery attempts among accounts. Each attempt takes one of a
//! core's [`ATTEMPTS_MAX`] places.
//!
//! An account may begin another attempt only if it has fewer attempts than the number of free
//! places. So an account with mail for many slow hosts delays only its own mail. A single account
//! gets half of the places.

use alloc::vec::Vec;

use store::AccountId;

/// The most delivery attempts of a core at a time.
pub(super) const ATTEMPTS_MAX: usize = 32;

/// The places that are taken.
#[derive(Default)]
pub(super) struct Shares {
    /// The account of each attempt.
    taken: Vec<AccountId>,
    /// The account of the attempt that is acting. The attempt may be about to end, so it does not
    /// count among the attempts of its account.
    acting: Option<AccountId>,
}

impl Shares {
    /// The number of taken places.
    pub(super) fn taken(&self) -> usize {
        self.taken.len()
    }

    /// Whether a place is free.
    pub(super) fn is_any_free(&self) -> bool {
        self.taken.len() < ATTEMPTS_MAX
    }

    /// Whether an account may have one more place.
    pub(super) fn has_one_for(&self, account: AccountId) -> bool {
        let acting = usize::from(self.acting == Some(account));
        let own = self.taken.iter().filter(|taken| **taken == account).count() - acting;
        own < ATTEMPTS_MAX - self.taken.len()
    }

    /// Takes a place for an attempt of this account.
    pub(super) fn take(&mut self, account: AccountId) {
        assert!(self.is_any_free(), "an attempt begins only where a place is free");
        self.taken.push(account);
    }

    /// Notes that an attempt of this account acts.
    pub(super) fn begin_acting(&mut self, account: AccountId) {
        debug_assert!(self.taken.contains(&account));
        self.acting = Some(account);
    }

    /// Notes that the attempt has acted, and keeps its place.
    pub(super) fn end_acting(&mut self) {
        self.acting = None;
    }

    /// Frees the place of the acting attempt, which is over.
    pub(super) fn give_back(&mut self) {
        let own = self.acting.take();
        let place = self.taken.iter().position(|taken| Some(*taken) == own);
        let Some(place) = place else { unreachable!("an attempt that acts has a place") };
        self.taken.swap_remove(place);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn single_account_gets_half_of_the_places() {
        let (mut shares, [busy, other]) = (Shares::default(), [1, 2].map(AccountId::from_bits));
        for _ in 0..ATTEMPTS_MAX / 2 {
            assert!(shares.has_one_for(busy));
            shares.take(busy);
        }
        assert!(!shares.has_one_for(busy));
        assert!(shares.has_one_for(other));
        (0..2).for_each(|_| shares.take(other));
        shares.begin_acting(busy);
        shares.give_back();
        assert!(!shares.has_one_for(busy), "{} places are free", ATTEMPTS_MAX - shares.taken());
        shares.begin_acting(other);
        shares.give_back();
        assert!(shares.has_one_for(busy));
    }

    #[test]
    fn acting_attempt_counts_as_free_for_its_account() {
        let (mut shares, account) = (Shares::default(), AccountId::from_bits(1));
        (0..ATTEMPTS_MAX / 2).for_each(|_| shares.take(account));
        shares.begin_acting(account);
        assert!(shares.has_one_for(account));
        shares.end_acting();
        assert!(!shares.has_one_for(account));
    }
}
