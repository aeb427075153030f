//! Frames: the kind and the length of each record, and the handling of records that this program
//! cannot read. Section 4 of `docs/format.md`, "Records".
//!
//! Invariants:
//! - A record of an unknown kind may contain mail. So it stops the opening before anything is
//!   written. Only records of kinds from [`SKIPPABLE`] on may be skipped, and so lost.
//! - A record with a length beyond the end of the block ends the records of that block.

use crate::bytes::FieldReader;

/// Bytes of kind and length of a record.
pub(crate) const FRAME_BYTES: usize = 3;

/// Unknown kinds from this number on are skipped.
const SKIPPABLE: u8 = 128;

/// A record that has not been parsed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RecordFrame<'a> {
    pub(crate) kind: u8,
    pub(crate) body: &'a [u8],
    /// The bytes of this record and of all records after it.
    from: &'a [u8],
    /// The end of this record, as an offset from the first record.
    end: usize,
}

/// The records in `bytes`.
pub(crate) fn frames(bytes: &[u8]) -> impl Iterator<Item = RecordFrame<'_>> {
    let mut reader = FieldReader::new(bytes);
    core::iter::from_fn(move || {
        let from = reader.rest();
        let kind = reader.u8()?;
        let length = reader.u16()?;
        let body = reader.take(usize::from(length))?;
        Some(RecordFrame { kind, body, from, end: bytes.len() - reader.rest().len() })
    })
}

/// The number of bytes of the whole records, from the start of `bytes`, that fit into `limit`.
pub(crate) fn whole_records(bytes: &[u8], limit: usize) -> usize {
    let mut whole = 0;
    for frame in frames(bytes) {
        if frame.end > limit {
            break;
        }
        whole = frame.end;
    }
    whole
}

/// A record that cannot be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Unread<'a> {
    /// A later format may define this kind.
    Unknown(u8),
    /// The fields do not match the kind. The store keeps the record.
    Malformed(u8, &'a [u8]),
}

impl<'a> RecordFrame<'a> {
    /// The whole record.
    pub(crate) fn bytes(&self) -> &'a [u8] {
        let record = self.from.get(..FRAME_BYTES + self.body.len());
        let Some(record) = record else {
            unreachable!("a record that is shorter than what was read of it")
        };
        record
    }

    /// Whether a program that does not know the kind may skip the record.
    pub(crate) fn is_skippable(&self) -> bool {
        self.kind >= SKIPPABLE
    }
}
