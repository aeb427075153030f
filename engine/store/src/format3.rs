//! How format 3 stores an outbox entry: in the flags and keywords of its message.
//!
//! | bits of a message with an entry | |
//! |---|---|
//! | flag 16 | the message is to be forwarded: [`EntrySource::Forwarded`] |
//! | flags 64 and 128 | state: 64 queued, 64 and 128 held, 128 returned, neither: no entry |
//! | flag 32 | the sender was told of the delay |
//! | flag 4 | the account was told that the head of the message cannot be read |
//! | keywords, upper 8 | the number of the entry's first recipient |
//! | keywords, lower 8 | the results of the recipients, in the form of [`Packing`] |
//! | other flags | the message's own |
//!
//! Only this file knows these bits. In all other code an entry is an [`OutboxEntry`], and flags and
//! keywords belong to a client.
//!
//! Invariants:
//! - [`join`] is the inverse of [`split`], for any content of the disk.
//! - A change of an entry clears bits only to set the entry's state.

use crate::outbox::{EntryChange, EntrySource, EntryState, OutboxEntry, Packing, Results};
use crate::types::{Flags, MarkChange, Marks};

const FORWARDED: Flags = Flags(16);
const DAMAGE_REPORTED: Flags = Flags(4);
const DELAY_REPORTED: Flags = Flags(32);
const IS_TO_LEAVE: Flags = Flags(64);
const IS_TAKEN_OUT: Flags = Flags(128);
const STATE: Flags = IS_TO_LEAVE.with(IS_TAKEN_OUT);
/// The flags that store an entry.
const ENTRY: Flags = STATE.with(FORWARDED).with(DAMAGE_REPORTED).with(DELAY_REPORTED);

const FIRST_SHIFT: u32 = 8;

/// Splits the marks that an outbox message has on the disk into the client's flags and keywords,
/// and the entry.
pub(crate) fn split(Marks { flags, keywords }: Marks) -> (Marks, Option<OutboxEntry>) {
    let state = match (flags.contains(IS_TO_LEAVE), flags.contains(IS_TAKEN_OUT)) {
        (true, false) => EntryState::Queued,
        (true, true) => EntryState::Held,
        (false, true) => EntryState::Returned,
        (false, false) => return (Marks { flags, keywords }, None),
    };
    let entry = OutboxEntry {
        source: if flags.contains(FORWARDED) {
            EntrySource::Forwarded
        } else {
            EntrySource::Submitted
        },
        state,
        first: keywords >> FIRST_SHIFT,
        results: Results::Packed(keywords as u8),
        is_delay_reported: flags.contains(DELAY_REPORTED),
        is_damage_reported: flags.contains(DAMAGE_REPORTED),
        is_in_marks: true,
    };
    (Marks { flags: flags.without(ENTRY), keywords: 0 }, Some(entry))
}

/// The marks that a message has on the disk: the inverse of [`split`].
pub(crate) fn join(marks: Marks, entry: Option<OutboxEntry>) -> Marks {
    let Some(entry) = entry else { return marks };
    let bits = [
        (entry.source == EntrySource::Forwarded, FORWARDED),
        (entry.is_delay_reported, DELAY_REPORTED),
        (entry.is_damage_reported, DAMAGE_REPORTED),
    ];
    let set = bits
        .into_iter()
        .filter(|(is_set, _)| *is_set)
        .fold(of_state(entry.state), |set, (_, bit)| set.with(bit));
    let results = match entry.results {
        Results::Packed(results) => results,
        // Only a new entry is converted to format 3. Its recipients have no results yet.
        Results::Explicit { .. } => 0,
    };
    let keywords = entry.first << FIRST_SHIFT | u16::from(results);
    Marks { flags: marks.flags.with(set), keywords: marks.keywords | keywords }
}

/// The change of the marks on the disk for a change of an entry.
pub(crate) fn marks_of(change: &EntryChange, packing: Packing) -> MarkChange {
    let mut marks = MarkChange::default();
    if let Some(state) = change.state {
        marks.set.flags = of_state(state);
        marks.clear.flags = STATE.without(marks.set.flags);
    }
    for (is_set, bit) in
        [(change.is_delay_reported, DELAY_REPORTED), (change.is_damage_reported, DAMAGE_REPORTED)]
    {
        if is_set {
            marks.set.flags = marks.set.flags.with(bit);
        }
    }
    marks.set.keywords = change.results(packing).into();
    marks
}

/// The change of the marks on the disk for a client's change of flags and keywords. It does not
/// change the bits of an entry, and creates no entry.
pub(crate) fn marks_of_client(change: MarkChange, has_entry: bool) -> MarkChange {
    let is_of_client = |marks: Marks| match has_entry {
        true => Marks { flags: marks.flags.without(ENTRY), keywords: 0 },
        false => Marks { flags: marks.flags.without(STATE), ..marks },
    };
    MarkChange { clear: is_of_client(change.clear), set: is_of_client(change.set) }
}

fn of_state(state: EntryState) -> Flags {
    match state {
        EntryState::Queued => IS_TO_LEAVE,
        EntryState::Held => STATE,
        EntryState::Returned => IS_TAKEN_OUT,
    }
}

#[cfg(test)]
mod tests;
