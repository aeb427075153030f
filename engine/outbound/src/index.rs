//! The state of each entry of a core's outboxes, and the result of its last attempt. An entry waits
//! for a time or for another attempt, is under way, or is held by an administrator. In this file, a
//! life of the machine is the time from one start to the next.
//!
//! Invariants:
//! - An entry has one state. Entries that wait for a time are also in `waiting`, ordered by that
//!   time. So are reported entries, which are due at once. No other entry is in `waiting`.
//! - The entries of a page, and the entries after an entry, are found without a scan of all
//!   entries.
//! - An entry that replaces another counts as having arrived when the replaced entry did. So its
//!   message gets no second lifetime.
//! - The last results of at most [`WORDS_MAX`] entries are remembered. A domain is stored as a
//!   keyed hash of its name.

use alloc::boxed::Box;
use alloc::collections::btree_map::Entry;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;
use core::num::NonZeroU64;
use core::ops::Bound;

use machine::{Instant, Micros, UnixTime};
use relay::schedule::LIFETIME;
use store::{AccountId, Uid};

use super::waiting::{Place, WaitingEntries};

#[cfg(test)]
mod tests;

/// The number of last results that are remembered, and the most bytes of each.
const WORDS_MAX: usize = 4096;
const WORDS_BYTES_MAX: usize = 400;
/// The most by which the UIDs of one message's entries are expected to differ. The entries of a
/// message from SMTP follow each other, and those of a webmail message nearly so.
const SPREAD: u32 = 256;
/// An entry that is due this soon is about to be tried.
const SOON: Micros = Micros::from_secs(10);
/// The shortest time for which an entry of an earlier life is tried, even if its date makes it old.
const DAY: Micros = Micros::from_secs(24 * 3600);

/// A domain, by a keyed hash of its name in lower case.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct DomainMark(pub(super) NonZeroU64);

/// A message, by a keyed hash of its envelope and header.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct MessageMark(pub(super) NonZeroU64);

/// The state of an entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    /// The entry waits for this time. For a new entry, this is [`Instant::START`].
    Waits(Instant),
    /// The entry waits until an attempt at its destination ends.
    Behind,
    /// A delivery attempt has the entry.
    UnderWay,
    /// An administrator holds the entry.
    Held,
    /// No attempt may begin with the entry: it is new, an administrator's change is on its way to
    /// the disk, or another entry's attempt is storing a report that names recipients of this
    /// entry.
    Claimed,
    /// A report about the entry is stored. The entry is due, and its recipients are to be marked.
    Reported,
    /// The entry has an unreadable head, or was found by a rebuild. An administrator can only
    /// delete it.
    LeftAlone,
}

/// The state and the history of an entry.
#[derive(Clone, Copy, Debug)]
pub(super) struct EntryStatus {
    pub(super) state: State,
    /// The domain of its recipients, once the entry was read.
    pub(super) domain: Option<DomainMark>,
    message: EntryMessage,
    /// The time until which a report of a delay waits for other entries of the message.
    pub(super) delay_report_due: Option<Instant>,
    /// The number of attempts.
    pub(super) tries: u16,
    /// The time at which the entry arrived, if it arrived in this life.
    arrived: Option<Instant>,
    /// The end of the entry's hold in this life, as far as known.
    held_until: Option<Instant>,
    /// The date of the entry, if it is being replaced.
    replaced: Option<UnixTime>,
    /// Whether the operator was told in this life that the entry cannot be sent.
    is_operator_told: bool,
    /// Whether this machine had no space for the message, in a mailbox or on its disk.
    pub(super) lacks_space: bool,
}

/// What is known about the message of an entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum EntryMessage {
    /// The entry was not read.
    Unread,
    /// The message has no other entry.
    Single,
    /// The message has several entries.
    Shared(MessageMark),
}

impl EntryMessage {
    fn mark(self) -> Option<MessageMark> {
        match self {
            EntryMessage::Unread | EntryMessage::Single => None,
            EntryMessage::Shared(mark) => Some(mark),
        }
    }
}

impl EntryStatus {
    /// The greatest age that the entry can have: the time for which the machine has run with the
    /// entry, whatever the dates say. For an entry from an earlier life, that time is unknown. Such
    /// an entry counts as old, but always has at least a day left when the machine starts.
    fn age_max(&self, now: Instant) -> Micros {
        match self.arrived {
            Some(arrived) => now.since(arrived),
            None => Micros(now.since(Instant::START).0 + LIFETIME.0 - DAY.0),
        }
    }

    /// The smallest age that the entry can have: the time in this life since its arrival or the end
    /// of its hold.
    fn age_min(&self, now: Instant) -> Micros {
        let began = self.held_until.or(self.arrived).unwrap_or(Instant::START);
        now.since(began.min(now))
    }
}

/// All entries of a core.
#[derive(Default)]
pub(super) struct QueueIndex {
    entries: BTreeMap<Place, EntryStatus>,
    waiting: WaitingEntries,
    words: BTreeMap<Place, Box<str>>,
    held: usize,
    /// The entries that are being replaced, each with its date. A replacement has the same date.
    replaced: BTreeSet<(AccountId, UnixTime, Uid)>,
}

impl QueueIndex {
    /// Adds an entry, if the index does not have it yet.
    pub(super) fn found(&mut self, place: Place, state: State) {
        if let Entry::Vacant(new) = self.entries.entry(place) {
            new.insert(EntryStatus {
                state: State::Claimed,
                domain: None,
                message: EntryMessage::Unread,
                delay_report_due: None,
                tries: 0,
                arrived: None,
                held_until: None,
                replaced: None,
                is_operator_told: false,
                lacks_space: false,
            });
            self.set(place, state);
        }
    }

    /// Adds an entry with this date that arrived in this life. If it replaces another entry, it
    /// counts as having arrived when that entry did.
    pub(super) fn arrived(&mut self, place: Place, date: UnixTime, now: Instant) {
        self.found(place, State::Waits(Instant::START));
        let replaced = self.replaced_by(place, date);
        if let Some(status) = self.entries.get_mut(&place) {
            status.arrived = replaced.map_or(Some(now), |replaced| replaced.arrived);
            status.held_until = replaced.and_then(|replaced| replaced.held_until);
        }
    }

    /// Notes that an entry with this date is being replaced.
    pub(super) fn begin_replacement(&mut self, place: Place, date: UnixTime) {
        if let Some(status) = self.entries.get_mut(&place) {
            status.replaced = Some(date);
            self.replaced.insert((place.0, date, place.1));
        }
    }

    /// The entry that a new entry with this date replaces. Dates are in whole seconds, so the
    /// result may be another replaced entry of the same second. That entry is as old.
    fn replaced_by(&self, (account, _): Place, date: UnixTime) -> Option<EntryStatus> {
        let range = (account, date, Uid(0))..=(account, date, Uid(u32::MAX));
        let (_, _, uid) = self.replaced.range(range).next()?;
        self.of((account, *uid))
    }

    /// Notes that an entry is held at least until `until`.
    pub(super) fn hold(&mut self, place: Place, until: Instant) {
        if let Some(status) = self.entries.get_mut(&place) {
            status.held_until = Some(until);
        }
    }

    /// The age of an entry. `dated`: its age by the dates. The clock may be wrong now, or may have
    /// been wrong when the entry arrived. So the result is limited by the time that the machine has
    /// run with the entry.
    pub(super) fn age(&self, place: Place, dated: Micros, now: Instant) -> Micros {
        let Some(status) = self.entries.get(&place) else { return Micros::default() };
        dated.max(status.age_min(now)).min(status.age_max(now))
    }

    /// Sets the state of an entry, if the entry exists.
    pub(super) fn set(&mut self, place: Place, state: State) {
        let Some(status) = self.entries.get_mut(&place) else { return };
        let before = core::mem::replace(&mut status.state, state);
        self.state_left(place, before);
        match state {
            State::Waits(at) => self.waiting.insert(at, place),
            State::Reported => self.waiting.insert(Instant::START, place),
            State::Held => self.held += 1,
            State::Behind | State::UnderWay | State::Claimed | State::LeftAlone => {}
        }
    }

    /// Removes an entry.
    pub(super) fn gone(&mut self, place: Place) {
        if let Some(status) = self.entries.remove(&place) {
            self.state_left(place, status.state);
            self.words.remove(&place);
            if let Some(date) = status.replaced {
                self.replaced.remove(&(place.0, date, place.1));
            }
        }
    }

    /// Updates `waiting` and `held` for an entry that has left the state `before`.
    fn state_left(&mut self, place: Place, before: State) {
        match before {
            State::Waits(at) => self.waiting.remove(at, place),
            State::Reported => self.waiting.remove(Instant::START, place),
            State::Held => self.held -= 1,
            State::Behind | State::UnderWay | State::Claimed | State::LeftAlone => {}
        }
    }

    /// Sets the domain of an entry's recipients.
    pub(super) fn set_domain(&mut self, place: Place, domain: DomainMark) {
        if let Some(status) = self.entries.get_mut(&place) {
            status.domain = Some(domain);
        }
    }

    /// Notes the message of an entry that was read. `mark`: the mark of the message, if it has
    /// other entries.
    pub(super) fn set_message(&mut self, place: Place, mark: Option<MessageMark>) {
        if let Some(status) = self.entries.get_mut(&place) {
            status.message = mark.map_or(EntryMessage::Single, EntryMessage::Shared);
        }
    }

    /// The time until which the report of a delay waits for other entries of the message: the `due`
    /// of the first call for the entry.
    pub(super) fn delay_report_due(&mut self, place: Place, due: Instant) -> Instant {
        let status = self.entries.get_mut(&place);
        status.map_or(due, |status| *status.delay_report_due.get_or_insert(due))
    }

    /// The message of an entry. `None` if the entry was not read, or is the only entry of its
    /// message.
    pub(super) fn message(&self, place: Place) -> Option<MessageMark> {
        self.entries.get(&place)?.message.mark()
    }

    /// The entries with UIDs close to the UID of the entry at `place`, without that entry itself.
    pub(super) fn near(&self, place: Place) -> impl Iterator<Item = (Place, EntryStatus)> {
        let (account, Uid(uid)) = place;
        let from = (account, Uid(uid.saturating_sub(SPREAD)));
        let to = (account, Uid(uid.saturating_add(SPREAD)));
        let all = self.entries.range(from..=to).map(|(place, status)| (*place, *status));
        all.filter(move |(other, _)| *other != place)
    }

    /// The other entries of the message with an entry at `place`, as far as they were read.
    pub(super) fn of_message(
        &self,
        message: MessageMark,
        place: Place,
    ) -> Vec<(Place, EntryStatus)> {
        self.near(place).filter(|(_, status)| status.message.mark() == Some(message)).collect()
    }

    /// The messages of the entry at `place` and of the entries with close UIDs. Left out are
    /// entries that were not read, and messages with only one entry.
    pub(super) fn messages_near(&self, place: Place) -> BTreeSet<MessageMark> {
        let near = self.near(place).filter_map(|(_, status)| status.message.mark());
        near.chain(self.message(place)).collect()
    }

    /// Whether another entry of the message with an entry at `place` may be about to be tried. An
    /// entry that was not read may belong to any message.
    pub(super) fn has_untried(&self, message: MessageMark, place: Place, now: Instant) -> bool {
        let is_untried = |state| match state {
            State::UnderWay | State::Behind => true,
            State::Waits(at) => at <= now + SOON,
            State::Held | State::Claimed | State::Reported | State::LeftAlone => false,
        };
        self.near(place).any(|(_, status)| {
            let may_be_of_message = match status.message {
                EntryMessage::Unread => true,
                EntryMessage::Single => false,
                EntryMessage::Shared(other) => other == message,
            };
            may_be_of_message && is_untried(status.state)
        })
    }

    /// Counts an attempt.
    pub(super) fn tried(&mut self, place: Place) {
        if let Some(status) = self.entries.get_mut(&place) {
            status.tries = status.tries.saturating_add(1);
        }
    }

    /// Notes that this machine had no space for the message, in a mailbox or on its disk.
    pub(super) fn found_no_space(&mut self, place: Place) {
        if let Some(status) = self.entries.get_mut(&place) {
            status.lacks_space = true;
        }
    }

    /// Whether the operator must be told that the entry cannot be sent. Returns true only for the
    /// first call for an entry in this life. The operator then counts as told.
    pub(super) fn must_tell_operator(&mut self, place: Place) -> bool {
        let status = self.entries.get_mut(&place);
        status.is_some_and(|status| !core::mem::replace(&mut status.is_operator_told, true))
    }

    /// Remembers the result of the last attempt.
    pub(super) fn remember_result(&mut self, place: Place, mut words: String) {
        words.truncate(words.floor_char_boundary(WORDS_BYTES_MAX));
        if self.words.len() >= WORDS_MAX && !self.words.contains_key(&place) {
            self.words.pop_first();
        }
        self.words.insert(place, words.into());
    }

    /// The result of the last attempt, if it is remembered.
    pub(super) fn words(&self, place: Place) -> Option<&str> {
        self.words.get(&place).map(|words| &**words)
    }

    /// The status of an entry, if the entry exists.
    pub(super) fn of(&self, place: Place) -> Option<EntryStatus> {
        self.entries.get(&place).copied()
    }

    /// Whether the entry exists and has this state.
    pub(super) fn has_state(&self, place: Place, state: State) -> bool {
        self.of(place).is_some_and(|status| status.state == state)
    }

    /// The entries after `place`, or all entries.
    pub(super) fn behind(
        &self,
        place: Option<Place>,
    ) -> impl Iterator<Item = (Place, EntryStatus)> {
        let from = place.map_or(Bound::Unbounded, Bound::Excluded);
        self.entries.range((from, Bound::Unbounded)).map(|(place, status)| (*place, *status))
    }

    /// The first waiting entry of an account for which `may_be` holds.
    pub(super) fn next(&self, may_be: impl Fn(AccountId) -> bool) -> Option<(Instant, Place)> {
        self.waiting.next(may_be)
    }

    /// Whether an entry waits for its time.
    pub(super) fn has_waiting_entries(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// The number of entries.
    pub(super) fn count(&self) -> usize {
        self.entries.len()
    }

    /// The number of held entries.
    pub(super) fn held(&self) -> usize {
        self.held
    }
}
