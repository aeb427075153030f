//! Notes: small values that are stored for an account by key. The store does not interpret them.
//!
//! Invariants:
//! - An account has at most [`NOTES_MAX`] notes, of [`NOTES_BYTES_MAX`] bytes together. So a
//!   checkpoint of them is always short.
//! - A note without a value does not exist.
//! - Changes of notes are pending metadata changes (`metadata_changes`). A change sees the notes
//!   that exist when its group is made. So it cannot replace a note that was removed before.
//! - The store itself makes notes of *arrivals*. Such a note makes sure that a message is delivered
//!   once, even if delivery is attempted several times. The note is written in the group of the
//!   message that has arrived. Its value is the GUID number of the message. If the message is torn,
//!   the note is removed with it. Arrivals have their own limit. A message that stands for several
//!   others, such as one report about several recipients, has a note for each of them.

use crate::outcome::Refusal;
use crate::record;
use crate::types::{AccountId, SentId};
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// The most notes of an account.
pub const NOTES_MAX: usize = 32;
/// The most bytes of keys and values of an account together.
pub const NOTES_BYTES_MAX: usize = 10 * 1024;
/// The most bytes of a key.
pub const NOTE_KEY_MAX: usize = 64;
/// The most bytes of a value.
pub const NOTE_BYTES_MAX: usize = 3840;

/// The most noted arrivals of an account: more than the recipients of one message. Each note is
/// kept only as long as the sender of the message may try again.
pub const ARRIVALS_MAX: usize = 128;

/// The most arrivals that one message notes.
pub const ARRIVALS_OF_MESSAGE_MAX: usize = 64;

/// The prefix and the length of an arrival's key.
const ARRIVED: &[u8; 8] = b"arrived ";
const ARRIVAL_KEY: usize = ARRIVED.len() + 16;

const _: () = assert!(
    NOTE_KEY_MAX + NOTE_BYTES_MAX + 16 <= crate::block::RECORDS_MAX,
    "the largest note fits into a block"
);

/// The overhead of a note beside its key and its value, in memory and in the journal.
const NOTE_OVERHEAD: usize = 96;

/// Notes of an account, by their keys.
pub(crate) type Notes = BTreeMap<Box<[u8]>, Box<[u8]>>;

/// A change of a note.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NoteChange {
    /// Sets the note with this key to this value.
    Put(Box<[u8]>, Box<[u8]>),
    /// Sets the note if it exists.
    Replace(Box<[u8]>, Box<[u8]>),
    /// Removes the note.
    Remove(Box<[u8]>),
}

impl SentId {
    /// The key of the note of the message's arrival.
    pub(crate) fn key(self) -> [u8; ARRIVAL_KEY] {
        let mut key = [0; ARRIVAL_KEY];
        let parts = [&ARRIVED[..], &self.account.0.to_le_bytes(), &self.number.to_le_bytes()];
        for (place, byte) in key.iter_mut().zip(parts.into_iter().flatten()) {
            *place = *byte;
        }
        key
    }
}

pub(crate) fn is_arrival(key: &[u8]) -> bool {
    key.len() == ARRIVAL_KEY && key.starts_with(ARRIVED)
}

/// The keys of the notes that a message's arrival has made. `guid`: the GUID number of the message.
pub(crate) fn arrivals_of(notes: &Notes, guid: u64) -> Vec<Box<[u8]>> {
    let value = guid.to_le_bytes();
    let of_message = notes.iter().filter(|(key, noted)| is_arrival(key) && ***noted == value);
    of_message.map(|(key, _)| key.clone()).collect()
}

/// The number of further arrivals that can be noted.
pub(crate) fn arrivals_left(notes: &Notes) -> usize {
    ARRIVALS_MAX.saturating_sub(notes.keys().filter(|key| is_arrival(key)).count())
}

/// Checks that an arrival can be noted. Errors: `Arrived`; `TooMany` for more than
/// [`ARRIVALS_MAX`].
pub(crate) fn check_arrival(notes: &Notes, origin: SentId) -> Result<(), Refusal> {
    if notes.contains_key(&origin.key()[..]) {
        return Err(Refusal::Arrived);
    }
    if arrivals_left(notes) > 0 { Ok(()) } else { Err(Refusal::TooMany) }
}

/// The most bytes of a note, in memory and in a checkpoint.
pub(crate) fn bytes_of_note(key: &[u8], value: &[u8]) -> u64 {
    (key.len() + value.len() + NOTE_OVERHEAD) as u64
}

/// Checks the number and the sizes of changes. Errors: `TooLarge`.
pub(crate) fn check(changes: &[NoteChange]) -> Result<(), Refusal> {
    let fits = |change: &NoteChange| {
        let value_fits = match change {
            NoteChange::Put(_, value) | NoteChange::Replace(_, value) => {
                (1..=NOTE_BYTES_MAX).contains(&value.len())
            }
            NoteChange::Remove(_) => true,
        };
        value_fits && (1..=NOTE_KEY_MAX).contains(&change.key().len())
    };
    let bytes: usize = changes.iter().map(|change| change.value().len()).sum();
    let all_fit =
        changes.len() <= NOTES_MAX && bytes <= NOTES_BYTES_MAX && changes.iter().all(fits);
    if all_fit { Ok(()) } else { Err(Refusal::TooLarge) }
}

/// Appends the records of the changes. The account changes when the records are durable.
///
/// Errors: `TooMany`, and nothing is appended; `NoSuchNote`, if nothing changes.
pub(crate) fn change(
    account: AccountId,
    notes: &Notes,
    changes: &[NoteChange],
    out: &mut Vec<u8>,
) -> Result<(), Refusal> {
    let mut after: BTreeMap<&[u8], &[u8]> =
        notes.iter().map(|(key, value)| (&**key, &**value)).collect();
    let begin = out.len();
    for change in changes {
        let key = change.key();
        match change {
            NoteChange::Replace(..) | NoteChange::Remove(_) if !after.contains_key(key) => continue,
            NoteChange::Remove(_) => after.remove(key),
            NoteChange::Put(..) | NoteChange::Replace(..) => after.insert(key, change.value()),
        };
        record::put_note(out, account, key, change.value());
    }
    if out.len() == begin {
        return Err(Refusal::NoSuchNote);
    }
    after.retain(|key, _| !is_arrival(key));
    let bytes: usize = after.iter().map(|(key, value)| key.len() + value.len()).sum();
    if after.len() > NOTES_MAX || bytes > NOTES_BYTES_MAX {
        out.truncate(begin);
        return Err(Refusal::TooMany);
    }
    Ok(())
}

impl NoteChange {
    fn key(&self) -> &[u8] {
        match self {
            NoteChange::Put(key, _) | NoteChange::Replace(key, _) | NoteChange::Remove(key) => key,
        }
    }

    /// The new value. Empty: the note is removed.
    fn value(&self) -> &[u8] {
        match self {
            NoteChange::Put(_, value) | NoteChange::Replace(_, value) => value,
            NoteChange::Remove(_) => &[],
        }
    }
}
