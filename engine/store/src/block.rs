//! The journal's blocks: one page each, written twice. Section 4 of `docs/format.md`.
//!
//! Invariants:
//! - A block is accepted only at its own place, in its own shard, and under the keyed hash.
//! - The two copies have the same bytes up to the end of the records, so that one hash serves both.

use crate::bytes::{FieldReader, HeaderWriter};
use crate::hash::{HASH_BYTES, Hash, HashKey};
use crate::layout::{PAGE_BYTES, Page, SegmentIndex, ShardId};

const MAGIC: u32 = u32::from_le_bytes(*b"JRNL");
const HEADER_BYTES: usize = 64;
/// The most bytes of records in a block, and therefore the largest record.
pub(crate) const RECORDS_MAX: usize = PAGE_BYTES - HEADER_BYTES;
/// The most blocks of one group.
pub(crate) const GROUP_BLOCKS_MAX: u32 = 32;

const KIND_RECORDS: u8 = 1;
const KIND_LINK: u8 = 2;

/// The header fields of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct BlockHeader {
    pub(crate) shard: ShardId,
    pub(crate) sequence: u64,
    pub(crate) group_first: u64,
    pub(crate) group_blocks: u32,
    pub(crate) previous: u64,
}

/// A block that was parsed.
#[derive(Clone, Copy, Debug)]
pub(crate) enum JournalBlock<'a> {
    Records { header: BlockHeader, hash: u64, records: &'a [u8] },
    Link { header: BlockHeader, hash: u64, next: SegmentIndex },
}

/// Fills `pair`, the buffer of both copies, with a block of `records` for `page`. Returns the
/// `previous` value for the next block.
pub(crate) fn emit_records(
    pair: &mut [u8],
    key: &HashKey,
    page: Page,
    header: BlockHeader,
    records: &[u8],
) -> u64 {
    emit(pair, key, page, header, KIND_RECORDS, 0, records).short()
}

/// Fills `pair` with a link to the segment `next`, for `page`. A link has no sequence and no group
/// of its own: `header` has the sequence of the block after the link, and a random number as
/// `group_first`. Returns the `previous` value for the block after the link.
pub(crate) fn emit_link(
    pair: &mut [u8],
    key: &HashKey,
    page: Page,
    header: BlockHeader,
    next: SegmentIndex,
) -> u64 {
    emit(pair, key, page, header, KIND_LINK, next.0, &[]).short()
}

fn emit(
    pair: &mut [u8],
    key: &HashKey,
    page: Page,
    header: BlockHeader,
    kind: u8,
    next: u32,
    records: &[u8],
) -> Hash {
    assert!(records.len() <= RECORDS_MAX, "a journal block of more records than fit");
    let mut fields = [0; HEADER_BYTES];
    HeaderWriter::of(&mut fields)
        .skip(HASH_BYTES)
        .u32(MAGIC)
        .u8(kind)
        .u8(header.shard.0)
        .u16(records.len() as u16)
        .u64(u64::from(page.0))
        .u64(header.sequence)
        .u64(header.group_first)
        .u64(header.previous)
        .u32(header.group_blocks)
        .u32(next);
    let end = HEADER_BYTES + records.len();
    let (first, second) = pair.split_at_mut(PAGE_BYTES);
    let Some((head, body)) = first.split_first_chunk_mut::<HEADER_BYTES>() else {
        unreachable!("a page that is shorter than a header")
    };
    *head = fields;
    let Some(used) = body.get_mut(..records.len()) else {
        unreachable!("a block of more records than fit")
    };
    used.copy_from_slice(records);
    let hash = key.seal(first, end);
    let (Some(copy), Some(original)) = (second.get_mut(..end), first.get(..end)) else {
        unreachable!("a buffer that is shorter than two blocks")
    };
    copy.copy_from_slice(original);
    hash
}

/// Parses `bytes`, one page. Returns the block if it is valid, belongs to `shard`, and was written
/// for `page`.
pub(crate) fn parse<'a>(
    bytes: &'a [u8],
    key: &HashKey,
    page: Page,
    shard: ShardId,
) -> Option<JournalBlock<'a>> {
    let mut reader = FieldReader::new(bytes);
    reader.take(HASH_BYTES)?;
    if reader.u32()? != MAGIC {
        return None;
    }
    let kind = reader.u8()?;
    let own_shard = ShardId(reader.u8()?);
    let length = usize::from(reader.u16()?);
    if own_shard != shard || reader.u64()? != u64::from(page.0) || length > RECORDS_MAX {
        return None;
    }
    let hash = key.check(bytes, HEADER_BYTES + length)?;
    let sequence = reader.count()?;
    let group_first = reader.u64()?;
    let previous = reader.u64()?;
    let group_blocks = reader.u32()?;
    let next = SegmentIndex(reader.u32()?);
    let header = BlockHeader { shard, sequence, group_first, group_blocks, previous };
    match kind {
        KIND_RECORDS => Some(JournalBlock::Records {
            header,
            hash: hash.short(),
            records: reader.take(length)?,
        }),
        KIND_LINK => Some(JournalBlock::Link { header, hash: hash.short(), next }),
        _ => None,
    }
}

/// Whether `bytes`, one page, look like a block that some store wrote for `page`. Without the key
/// of that store, no more can be checked.
pub(crate) fn may_begin(bytes: &[u8], page: Page) -> bool {
    let mut reader = FieldReader::new(bytes);
    reader.take(HASH_BYTES).is_some()
        && reader.u32() == Some(MAGIC)
        && reader.take(4).is_some()
        && reader.u64() == Some(u64::from(page.0))
}

/// The records in a block's buffer. The caller must be the writer of the block.
pub(crate) fn records_of(pair: &[u8]) -> &[u8] {
    let mut reader = FieldReader::new(pair);
    let (Some(_), Some(length)) = (reader.take(22), reader.u16()) else {
        unreachable!("a written block that is shorter than its header")
    };
    let records = pair.get(HEADER_BYTES..HEADER_BYTES + usize::from(length));
    let Some(records) = records else {
        unreachable!("a written block that is shorter than its records")
    };
    records
}
