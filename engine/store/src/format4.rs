//! How format 4 stores an outbox entry: in separate records, besides the record of its message.
//!
//! - Kind 14, `queued`: account u64, UID u32, MODSEQ u64, origin u8, state u8, notices u8, layout
//!   u8, done u8, reported u8, first u16, count u8.
//! - Kind 15, `progress`: account u64, UID u32, MODSEQ u64, state u8, notices u8, layout u8, done
//!   u8, reported u8.
//!
//! `queued` is the complete state of an entry. It follows the record of its message, in the same
//! group. `progress` is a change. A change only adds to the state. So all changes that are gathered
//! in one group take effect.
//!
//! Invariants:
//! - A recipient with a reported result is done. A recipient that is done belongs to the entry. A
//!   record that contradicts this does not parse.
//! - An entry of a message that is forwarded has no count of recipients. Their number depends on
//!   the configuration, which may change. For any other entry, a change of a recipient above the
//!   count is a bug of ours.
//! - [`QueuedRecord::parse`] accepts only what [`QueuedRecord::emit`] writes.

use crate::bytes::FieldReader;
use crate::outbox::{COUNT_MAX, EntrySource, EntryState, OutboxEntry, Results, recipients};
use crate::types::{AccountId, Uid};
use alloc::vec::Vec;

const SUBMITTED: u8 = 1;
const FORWARDED: u8 = 2;
const PACKED: u8 = 0;
const EXPLICIT: u8 = 1;
const DELAY_REPORTED: u8 = 1;
const DAMAGE_REPORTED: u8 = 2;

/// The complete state of an entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct QueuedRecord {
    pub(crate) account: AccountId,
    pub(crate) uid: Uid,
    pub(crate) modseq: u64,
    pub(crate) entry: OutboxEntry,
}

/// A change that adds to an entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ProgressRecord {
    pub(crate) account: AccountId,
    pub(crate) uid: Uid,
    pub(crate) modseq: u64,
    /// The results to add, in the layout of the entry's results. If the results are explicit, their
    /// count is not used.
    pub(crate) results: Results,
    pub(crate) state: Option<EntryState>,
    pub(crate) is_delay_reported: bool,
    pub(crate) is_damage_reported: bool,
}

impl QueuedRecord {
    pub(crate) fn parse(mut reader: FieldReader<'_>) -> Option<QueuedRecord> {
        let (account, uid, modseq) =
            (AccountId(reader.u64()?), Uid(reader.u32()?), reader.count()?);
        let source = match reader.u8()? {
            SUBMITTED => EntrySource::Submitted,
            FORWARDED => EntrySource::Forwarded,
            _ => return None,
        };
        let state = state(reader.u8()?)??;
        let (is_delay_reported, is_damage_reported) = notices(reader.u8()?)?;
        let (layout, done, reported) = (reader.u8()?, reader.u8()?, reader.u8()?);
        let first = reader.u16()?;
        let count = reader.u8()?;
        let results = results(layout, count, done, reported)?;
        if source == EntrySource::Forwarded && count != 0 {
            return None;
        }
        let entry = OutboxEntry {
            source,
            state,
            first,
            results,
            is_delay_reported,
            is_damage_reported,
            is_in_marks: false,
        };
        reader.rest().is_empty().then_some(QueuedRecord { account, uid, modseq, entry })
    }

    /// Appends the fields.
    pub(crate) fn emit(&self, out: &mut Vec<u8>) {
        let OutboxEntry {
            source,
            state,
            first,
            results,
            is_delay_reported,
            is_damage_reported,
            ..
        } = self.entry;
        put_place(out, self.account, self.uid, self.modseq);
        let (layout, count, done, reported) = fields(results);
        let source = match source {
            EntrySource::Submitted => SUBMITTED,
            EntrySource::Forwarded => FORWARDED,
        };
        out.extend_from_slice(&[
            source,
            number(Some(state)),
            bits(is_delay_reported, is_damage_reported),
        ]);
        out.extend_from_slice(&[layout, done, reported]);
        out.extend_from_slice(&first.to_le_bytes());
        out.push(count);
    }
}

impl ProgressRecord {
    pub(crate) fn parse(mut reader: FieldReader<'_>) -> Option<ProgressRecord> {
        let (account, uid, modseq) =
            (AccountId(reader.u64()?), Uid(reader.u32()?), reader.count()?);
        let state = state(reader.u8()?)?;
        let (is_delay_reported, is_damage_reported) = notices(reader.u8()?)?;
        let results = results(reader.u8()?, 0, reader.u8()?, reader.u8()?)?;
        let record = ProgressRecord {
            account,
            uid,
            modseq,
            results,
            state,
            is_delay_reported,
            is_damage_reported,
        };
        reader.rest().is_empty().then_some(record)
    }

    /// Appends the fields.
    pub(crate) fn emit(&self, out: &mut Vec<u8>) {
        put_place(out, self.account, self.uid, self.modseq);
        let (layout, _, done, reported) = fields(self.results);
        out.extend_from_slice(&[
            number(self.state),
            bits(self.is_delay_reported, self.is_damage_reported),
        ]);
        out.extend_from_slice(&[layout, done, reported]);
    }

    /// Applies the change to an entry. Results that do not fit the layout or the number of
    /// recipients of the entry are ignored. Only a damaged disk has such results.
    pub(crate) fn apply(&self, entry: &mut OutboxEntry) {
        match (&mut entry.results, self.results) {
            (Results::Packed(known), Results::Packed(more)) => *known |= more,
            (
                Results::Explicit { count, done, reported },
                Results::Explicit { done: more, reported: also, .. },
            ) => {
                (*done, *reported) =
                    (*done | more & recipients(*count), *reported | also & recipients(*count));
            }
            (Results::Packed(_), Results::Explicit { .. })
            | (Results::Explicit { .. }, Results::Packed(_)) => {}
        }
        entry.state = self.state.unwrap_or(entry.state);
        entry.is_delay_reported |= self.is_delay_reported;
        entry.is_damage_reported |= self.is_damage_reported;
    }
}

fn put_place(out: &mut Vec<u8>, AccountId(account): AccountId, Uid(uid): Uid, modseq: u64) {
    out.extend_from_slice(&account.to_le_bytes());
    out.extend_from_slice(&uid.to_le_bytes());
    out.extend_from_slice(&modseq.to_le_bytes());
}

fn results(layout: u8, count: u8, done: u8, reported: u8) -> Option<Results> {
    let is_sound = reported & !done == 0 && done & !recipients(count) == 0;
    match layout {
        PACKED if count == 0 && reported == 0 => Some(Results::Packed(done)),
        EXPLICIT if count <= COUNT_MAX && is_sound => {
            Some(Results::Explicit { count, done, reported })
        }
        _ => None,
    }
}

fn fields(results: Results) -> (u8, u8, u8, u8) {
    match results {
        Results::Packed(results) => (PACKED, 0, results, 0),
        Results::Explicit { count, done, reported } => {
            assert!(reported & !done == 0, "an entry with a reported result that is not done");
            assert!(done & !recipients(count) == 0, "an entry with a recipient beyond its count");
            (EXPLICIT, count, done, reported)
        }
    }
}

/// The state with this number. `Some(None)`: the number of a change that keeps the state.
fn state(number: u8) -> Option<Option<EntryState>> {
    Some(match number {
        0 => None,
        1 => Some(EntryState::Queued),
        2 => Some(EntryState::Held),
        3 => Some(EntryState::Returned),
        _ => return None,
    })
}

fn number(state: Option<EntryState>) -> u8 {
    match state {
        None => 0,
        Some(EntryState::Queued) => 1,
        Some(EntryState::Held) => 2,
        Some(EntryState::Returned) => 3,
    }
}

fn notices(bits: u8) -> Option<(bool, bool)> {
    let is_known = bits & !(DELAY_REPORTED | DAMAGE_REPORTED) == 0;
    is_known.then_some((bits & DELAY_REPORTED != 0, bits & DAMAGE_REPORTED != 0))
}

fn bits(is_delay_reported: bool, is_damage_reported: bool) -> u8 {
    (u8::from(is_delay_reported) * DELAY_REPORTED)
        | (u8::from(is_damage_reported) * DAMAGE_REPORTED)
}

#[cfg(test)]
mod tests;
