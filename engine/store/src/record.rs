//! The journal's records. Section 4 of `docs/format.md`.
//!
//! Invariants:
//! - A record never exceeds a block ([`crate::block::RECORDS_MAX`]).
//! - A record that does not parse is reported: see `frame`.

mod writing;

pub(crate) use writing::*;

use crate::block::RECORDS_MAX;
use crate::bytes::FieldReader;
use crate::format4::{ProgressRecord, QueuedRecord};
use crate::frame::{FRAME_BYTES, Unread, frames};
use crate::layout::Page;
use crate::messages::{ENTRY_BYTES, MessageEntry};
use crate::types::{AccountId, Flags, MarkChange, Marks, Place};

const ACCOUNT: u8 = 1;
const MAILBOX: u8 = 2;
const DELIVERED: u8 = 3;
const CHUNKS: u8 = 4;
const RANGE: u8 = 5;
const REMOVED: u8 = 6;
const MARKED: u8 = 7;
const MOVED: u8 = 8;
const SHARD: u8 = 9;
/// A record of this kind does not change the index: see [`put_life`].
const LIFE: u8 = 10;
const FILED: u8 = 11;
const GONE: u8 = 12;
const NOTE: u8 = 13;
/// Format 3 has only records of lower kinds than this.
pub(crate) const QUEUED: u8 = 14;
const PROGRESS: u8 = 15;

/// The most pages in one `chunks` record.
pub(crate) const CHUNKS_IN_RECORD: usize = 900;
/// The most messages in one `range` record: as many as fill a block.
pub(crate) const RANGE_ENTRIES: usize =
    (RECORDS_MAX - FRAME_BYTES - RANGE_FIELDS_BYTES) / ENTRY_BYTES;
/// The bytes of the fields of a `range` record before its messages.
const RANGE_FIELDS_BYTES: usize = 20;
/// The most ranges of UIDs in one `removed` record.
pub(crate) const REMOVED_RANGES: usize = 400;

/// One record, as it is in the journal.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Record<'a> {
    Account {
        id: AccountId,
        address: &'a str,
        aliases: Texts<'a>,
        password_hash: &'a str,
        verifier: &'a str,
        replaced: &'a str,
    },
    Mailbox {
        account: AccountId,
        mailbox: u32,
        uid_validity: u32,
        uid_next: u32,
        highest_modseq: u64,
        name: &'a str,
    },
    Delivered {
        account: AccountId,
        mailbox: u32,
        uid_validity: u32,
        entry: MessageEntry,
        check: u64,
    },
    Chunks {
        guid: u64,
        first: u32,
        pages: Words<'a>,
    },
    Range {
        account: AccountId,
        mailbox: u32,
        first: u32,
        last: u32,
        entries: Entries<'a>,
    },
    Removed {
        account: AccountId,
        mailbox: u32,
        modseq: u64,
        ranges: Words<'a>,
    },
    Marked {
        account: AccountId,
        place: Place,
        modseq: u64,
        change: MarkChange,
    },
    Moved {
        account: AccountId,
        mailbox: u32,
        uid: u32,
        guid: u64,
        index: u32,
        from: Page,
        to: Page,
    },
    Shard {
        guid_next: u64,
    },
    Filed {
        account: AccountId,
        from: Place,
        modseq: u64,
        to: u32,
        uid_validity: u32,
        entry: MessageEntry,
    },
    /// See [`put_life`].
    Life,
    Gone {
        account: AccountId,
        mailbox: u32,
    },
    Note {
        account: AccountId,
        key: &'a [u8],
        /// Empty: the note is removed.
        value: &'a [u8],
    },
    Queued(QueuedRecord),
    Progress(ProgressRecord),
}

impl Record<'_> {
    /// The kind of the record, if format 3 does not have this kind.
    pub(crate) fn later_kind(&self) -> Option<u8> {
        match self {
            Record::Queued(_) => Some(QUEUED),
            Record::Progress(_) => Some(PROGRESS),
            _ => None,
        }
    }
}

/// A sequence of four-byte numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Words<'a>(&'a [u8]);

impl<'a> Words<'a> {
    pub(crate) fn iter(self) -> impl Iterator<Item = u32> + 'a {
        self.0.as_chunks::<4>().0.iter().map(|bytes| u32::from_le_bytes(*bytes))
    }

    /// The numbers as pairs of first and last.
    pub(crate) fn pairs(self) -> impl Iterator<Item = (u32, u32)> + 'a {
        self.0.as_chunks::<8>().0.iter().map(|bytes| {
            let [a, b, c, d, e, f, g, h] = *bytes;
            (u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes([e, f, g, h]))
        })
    }
}

/// A sequence of messages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entries<'a>(&'a [u8]);

impl<'a> Entries<'a> {
    pub(crate) fn iter(self) -> impl Iterator<Item = MessageEntry> + 'a {
        self.0.as_chunks::<ENTRY_BYTES>().0.iter().map(MessageEntry::from_bytes)
    }
}

/// A sequence of texts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Texts<'a> {
    count: u8,
    bytes: &'a [u8],
}

impl<'a> Texts<'a> {
    pub(crate) fn iter(self) -> impl Iterator<Item = &'a str> {
        let mut reader = FieldReader::new(self.bytes);
        (0..self.count).map_while(move |_| reader.text())
    }
}

/// The records in `bytes`, oldest first.
pub(crate) fn records(bytes: &[u8]) -> impl Iterator<Item = Record<'_>> {
    read(bytes).filter_map(Result::ok)
}

/// The records in `bytes`. Records that cannot be read are included, except those that may be
/// skipped.
pub(crate) fn read(bytes: &[u8]) -> impl Iterator<Item = Result<Record<'_>, Unread<'_>>> {
    frames(bytes).filter_map(|frame| match frame.kind {
        ACCOUNT..=PROGRESS => {
            let record = parse(frame.kind, FieldReader::new(frame.body));
            Some(record.ok_or(Unread::Malformed(frame.kind, frame.bytes())))
        }
        _ if frame.is_skippable() => None,
        kind => Some(Err(Unread::Unknown(kind))),
    })
}

/// Whether `bytes` are the records of a fence.
pub(crate) fn is_fence(bytes: &[u8]) -> bool {
    frames(bytes).next().is_some_and(|frame| frame.kind == LIFE)
}

fn parse(kind: u8, mut reader: FieldReader<'_>) -> Option<Record<'_>> {
    Some(match kind {
        ACCOUNT => return parse_account(reader),
        MAILBOX => Record::Mailbox {
            account: AccountId(reader.u64()?),
            mailbox: reader.u32()?,
            uid_validity: reader.u32()?,
            uid_next: reader.u32()?,
            highest_modseq: reader.count()?,
            name: reader.text()?,
        },
        DELIVERED => Record::Delivered {
            account: AccountId(reader.u64()?),
            mailbox: reader.u32()?,
            uid_validity: reader.u32()?,
            entry: MessageEntry::from_bytes(reader.take(ENTRY_BYTES)?.first_chunk()?),
            check: reader.u64()?,
        },
        CHUNKS => Record::Chunks {
            guid: reader.u64()?,
            first: reader.u32()?,
            pages: Words(reader.rest()),
        },
        RANGE => Record::Range {
            account: AccountId(reader.u64()?),
            mailbox: reader.u32()?,
            first: reader.u32()?,
            last: reader.u32()?,
            entries: Entries(reader.rest()),
        },
        REMOVED => Record::Removed {
            account: AccountId(reader.u64()?),
            mailbox: reader.u32()?,
            modseq: reader.count()?,
            ranges: Words(reader.rest()),
        },
        _ => return parse_small(kind, reader),
    })
}

fn parse_small(kind: u8, mut reader: FieldReader<'_>) -> Option<Record<'_>> {
    Some(match kind {
        MARKED => Record::Marked {
            account: AccountId(reader.u64()?),
            place: Place { mailbox: reader.u32()?, uid: reader.u32()? },
            modseq: reader.count()?,
            change: MarkChange { clear: marks(&mut reader)?, set: marks(&mut reader)? },
        },
        MOVED => Record::Moved {
            account: AccountId(reader.u64()?),
            mailbox: reader.u32()?,
            uid: reader.u32()?,
            guid: reader.u64()?,
            index: reader.u32()?,
            from: Page(reader.u32()?),
            to: Page(reader.u32()?),
        },
        SHARD => Record::Shard { guid_next: reader.count()? },
        FILED => Record::Filed {
            account: AccountId(reader.u64()?),
            from: Place { mailbox: reader.u32()?, uid: reader.u32()? },
            modseq: reader.count()?,
            to: reader.u32()?,
            uid_validity: reader.u32()?,
            entry: MessageEntry::from_bytes(reader.take(ENTRY_BYTES)?.first_chunk()?),
        },
        LIFE => Record::Life,
        GONE => Record::Gone { account: AccountId(reader.u64()?), mailbox: reader.u32()? },
        NOTE => Record::Note {
            account: AccountId(reader.u64()?),
            key: {
                let length = reader.u8()?;
                reader.take(usize::from(length))?
            },
            value: reader.rest(),
        },
        QUEUED => Record::Queued(QueuedRecord::parse(reader)?),
        PROGRESS => Record::Progress(ProgressRecord::parse(reader)?),
        _ => return None,
    })
}

fn marks(reader: &mut FieldReader<'_>) -> Option<Marks> {
    Some(Marks { flags: Flags(reader.u8()?), keywords: reader.u16()? })
}

fn parse_account(mut reader: FieldReader<'_>) -> Option<Record<'_>> {
    let id = AccountId(reader.u64()?);
    let address = reader.text()?;
    let count = reader.u8()?;
    let bytes = reader.rest();
    for _ in 0..count {
        reader.text()?;
    }
    let aliases = Texts { count, bytes };
    Some(Record::Account {
        id,
        address,
        aliases,
        password_hash: reader.text()?,
        verifier: reader.text()?,
        replaced: reader.text()?,
    })
}
