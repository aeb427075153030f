//! How it stands with each entry of a core's outboxes: whether it waits and until when, whether a courier has it, whether an administrator holds it; and what is remembered of how it was tried.
//!
//! Invariants:
//! - An entry has one state. Those that wait are in `waiting` as well, by when they are due; nothing else is.
//! - What a page shows, and what comes behind an entry, is found without looking at the others.
//! - Words are remembered of at most [`WORDS_MAX`] entries; a domain is known by a keyed hash of its name.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::collections::btree_map::Entry;
use alloc::string::String;
use core::num::NonZeroU64;
use core::ops::Bound;

use machine::{Instant, Micros};
use relay::schedule::LIFETIME;
use store::AccountId;

use super::waiting::{Place, Waiting};

#[cfg(test)]
mod tests;

/// Entries of which it is remembered what came of them the last time, and bytes of that.
const WORDS_MAX: usize = 4096;
const WORDS_BYTES_MAX: usize = 400;
/// However old an entry of an earlier life is by its date, it is tried so long.
const DAY: Micros = Micros::from_secs(24 * 3600);

/// A domain, by a keyed hash of its name in lower case.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct DomainMark(pub(super) NonZeroU64);

/// Where an entry is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    /// It waits for this time. Who has come just now waits since ever.
    Waits(Instant),
    /// It waits until somebody leaves the road to its domain.
    Behind,
    /// A courier has it.
    UnderWay,
    /// An administrator holds it.
    Held,
    /// What an administrator wants done with it is on its way to the disk.
    Ordered,
    /// Its head cannot be read, or a rebuild has found it. Only an administrator can delete it.
    LeftAlone,
}

/// How it stands with an entry.
#[derive(Clone, Copy, Debug)]
pub(super) struct Standing {
    pub(super) state: State,
    /// Where it is for, once somebody has read it.
    pub(super) domain: Option<DomainMark>,
    /// How often somebody has set out with it.
    pub(super) tries: u16,
    /// When it came, in this life.
    arrived: Option<Instant>,
    /// The end of the time for which it was held in this life, as far as is known.
    held_until: Option<Instant>,
    /// The operator was told, in this life, that it cannot be sent.
    is_operator_told: bool,
}

impl Standing {
    /// The age that the entry can have at most, whatever the dates say: the time that the machine
    /// has run with it. Before the start it is unknown how much of the time that was, so that there
    /// is always a day left for it.
    fn age_max(&self, now: Instant) -> Micros {
        match self.arrived {
            Some(arrived) => now.since(arrived),
            None => Micros(now.since(Instant::START).0 + LIFETIME.0 - DAY.0),
        }
    }

    /// The age that the entry has at least: the time that the machine has run with it in this life
    /// and did not hold it.
    fn age_min(&self, now: Instant) -> Micros {
        let began = self.held_until.or(self.arrived).unwrap_or(Instant::START);
        now.since(began.min(now))
    }
}

/// All entries of a core.
#[derive(Default)]
pub(super) struct Standings {
    entries: BTreeMap<Place, Standing>,
    waiting: Waiting,
    words: BTreeMap<Place, Box<str>>,
    held: usize,
}

impl Standings {
    /// An entry is there, if it was not before.
    pub(super) fn found(&mut self, place: Place, state: State) {
        if let Entry::Vacant(new) = self.entries.entry(place) {
            new.insert(Standing {
                state: State::Ordered,
                domain: None,
                tries: 0,
                arrived: None,
                held_until: None,
                is_operator_told: false,
            });
            self.set(place, state);
        }
    }

    /// An entry has come in this life.
    pub(super) fn arrived(&mut self, place: Place, now: Instant) {
        self.found(place, State::Waits(Instant::START));
        if let Some(standing) = self.entries.get_mut(&place) {
            standing.arrived = Some(now);
        }
    }

    /// An entry is held until then at least.
    pub(super) fn hold(&mut self, place: Place, until: Instant) {
        if let Some(standing) = self.entries.get_mut(&place) {
            standing.held_until = Some(until);
        }
    }

    /// The age of an entry. `dated`: its age by the dates. The clock may be wrong now, or may have
    /// been when the entry came, so the time that the machine has run with the entry bounds the age.
    pub(super) fn age(&self, place: Place, dated: Micros, now: Instant) -> Micros {
        let Some(standing) = self.entries.get(&place) else { return Micros::default() };
        dated.max(standing.age_min(now)).min(standing.age_max(now))
    }

    /// It stands so with an entry from now on, if there is one.
    pub(super) fn set(&mut self, place: Place, state: State) {
        let Some(standing) = self.entries.get_mut(&place) else { return };
        let before = core::mem::replace(&mut standing.state, state);
        self.left(place, before);
        match state {
            State::Waits(at) => self.waiting.insert(at, place),
            State::Held => self.held += 1,
            State::Behind | State::UnderWay | State::Ordered | State::LeftAlone => {}
        }
    }

    /// There is no such entry any more.
    pub(super) fn gone(&mut self, place: Place) {
        if let Some(standing) = self.entries.remove(&place) {
            self.left(place, standing.state);
            self.words.remove(&place);
        }
    }

    fn left(&mut self, place: Place, before: State) {
        match before {
            State::Waits(at) => self.waiting.remove(at, place),
            State::Held => self.held -= 1,
            State::Behind | State::UnderWay | State::Ordered | State::LeftAlone => {}
        }
    }

    /// It is for this domain.
    pub(super) fn is_for(&mut self, place: Place, domain: DomainMark) {
        if let Some(standing) = self.entries.get_mut(&place) {
            standing.domain = Some(domain);
        }
    }

    /// Somebody sets out with it.
    pub(super) fn tried(&mut self, place: Place) {
        if let Some(standing) = self.entries.get_mut(&place) {
            standing.tries = standing.tries.saturating_add(1);
        }
    }

    /// Whether the operator is to be told that it cannot be sent: once in this life.
    pub(super) fn is_operator_to_be_told(&mut self, place: Place) -> bool {
        let standing = self.entries.get_mut(&place);
        standing.is_some_and(|standing| !core::mem::replace(&mut standing.is_operator_told, true))
    }

    /// This came of it.
    pub(super) fn said(&mut self, place: Place, mut words: String) {
        words.truncate(words.floor_char_boundary(WORDS_BYTES_MAX));
        if self.words.len() >= WORDS_MAX && !self.words.contains_key(&place) {
            self.words.pop_first();
        }
        self.words.insert(place, words.into());
    }

    /// What came of it the last time, if that is remembered.
    pub(super) fn words(&self, place: Place) -> Option<&str> {
        self.words.get(&place).map(|words| &**words)
    }

    pub(super) fn of(&self, place: Place) -> Option<Standing> {
        self.entries.get(&place).copied()
    }

    pub(super) fn is(&self, place: Place, state: State) -> bool {
        self.of(place).is_some_and(|standing| standing.state == state)
    }

    /// The entries behind this one, or all.
    pub(super) fn behind(&self, place: Option<Place>) -> impl Iterator<Item = (Place, Standing)> {
        let from = place.map_or(Bound::Unbounded, Bound::Excluded);
        self.entries.range((from, Bound::Unbounded)).map(|(place, standing)| (*place, *standing))
    }

    /// The first that waits of those whose turn it may be.
    pub(super) fn next(&self, may_be: impl Fn(AccountId) -> bool) -> Option<(Instant, Place)> {
        self.waiting.next(may_be)
    }

    /// Whether an entry waits for its time.
    pub(super) fn do_some_wait(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.entries.len()
    }

    /// How many are held.
    pub(super) fn held(&self) -> usize {
        self.held
    }
}
