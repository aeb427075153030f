//! Frames: the kind and the length of each record, and what becomes of a record that this program
//! cannot read. Section 4 of `docs/format.md`, "Records".
//!
//! Invariants:
//! - A record of an unknown kind stops the opening, before anything is written: what it says may be
//!   mail. Only kinds from [`SKIPPABLE`] on may be lost.
//! - Where even the length does not fit, the block ends.

use crate::bytes::Reader;

/// Kind and length of a record.
pub(crate) const FRAME_BYTES: usize = 3;

/// Kinds from here on are passed over where they are unknown.
const SKIPPABLE: u8 = 128;

/// A record that has not been read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame<'a> {
    pub(crate) kind: u8,
    pub(crate) body: &'a [u8],
    /// The whole record.
    pub(crate) bytes: &'a [u8],
    /// Where it ends among all records.
    pub(crate) end: usize,
}

/// The records in `bytes`.
pub(crate) fn frames(bytes: &[u8]) -> impl Iterator<Item = Frame<'_>> {
    let mut reader = Reader::new(bytes);
    core::iter::from_fn(move || {
        let all = reader.rest();
        let kind = reader.u8()?;
        let length = usize::from(reader.u16()?);
        let body = reader.take(length)?;
        let own = all.get(..FRAME_BYTES + length)?;
        Some(Frame { kind, body, bytes: own, end: bytes.len() - reader.rest().len() })
    })
}

/// How many of the bytes, cut between two records, fit into `limit`.
pub(crate) fn whole_records(bytes: &[u8], limit: usize) -> usize {
    frames(bytes).map(|frame| frame.end).take_while(|end| *end <= limit).last().unwrap_or(0)
}

/// A record that cannot be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Unread<'a> {
    /// A later format has it.
    Unknown(u8),
    /// Its fields are none of its kind's. It is kept.
    Malformed(u8, &'a [u8]),
}

impl Frame<'_> {
    /// Whether a program that does not know its kind may pass it over.
    pub(crate) fn is_skippable(&self) -> bool {
        self.kind >= SKIPPABLE
    }
}
