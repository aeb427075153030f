//! The chunks of message bodies. Section 5 of `docs/format.md`.
//!
//! Invariants:
//! - A chunk is accepted only at its own page and under the keyed hash. Its header fits one page
//!   and contains the hash of the octets. So the header can be verified without the octets.
//! - The octets of a body are in its chunks in order, [`CHUNK_OCTETS`] in each but the last. If the
//!   message has a head, the head is at the end of the body.

use crate::bytes::{FieldReader, HeaderWriter};
use crate::hash::{HASH_BYTES, HashKey};
use crate::layout::{PAGE_BYTES, PIECE_BYTES, PIECE_PAGES, Page};
use crate::types::{AccountId, HeadSize};
use alloc::vec::Vec;
use core::ops::Range;

const MAGIC: u32 = u32::from_le_bytes(*b"BODY");
/// Bytes before the octets: one sector.
pub(crate) const HEADER_BYTES: usize = 512;
/// The bytes of the header before the summary.
const FIELDS_BYTES: usize = 112;
/// The most bytes of a summary.
pub const SUMMARY_BYTES: usize = HEADER_BYTES - FIELDS_BYTES;
/// The most bytes of a shortened header: see [`Summarizer`].
pub const SHORT_HEADER_BYTES_MAX: usize = 6_400;
/// The most messages of which a store keeps a shortened header at a time. Further messages are
/// summarized from their first chunk.
pub(crate) const SHORT_HEADERS_MAX: usize = 16;
/// The most bytes of all shortened headers. One more is made while a chunk is examined, from a copy
/// of the chunk.
pub const SHORT_HEADERS_BYTES_MAX: usize =
    (SHORT_HEADERS_MAX + 1) * SHORT_HEADER_BYTES_MAX + CHUNK_OCTETS;

/// Makes the summaries of messages: the facts that must be known without reading a message.
#[derive(Clone, Copy, Debug)]
pub struct Summarizer {
    /// Writes the summary of the message that begins with these octets. Returns the length of the
    /// summary, and the number of the message's conversation. 0: the message begins a conversation.
    pub summarize: fn(&[u8], &mut [u8; SUMMARY_BYTES]) -> (usize, u64),
    /// Shortens the header of the message that begins with these octets to the fields that
    /// `summarize` needs, at most [`SHORT_HEADER_BYTES_MAX`]. The next octets of the message can be
    /// added to the result. `None`: the header ends within these octets.
    pub shorten_header: fn(&[u8]) -> Option<Vec<u8>>,
}

impl Summarizer {
    /// Messages have no summary, and each is a conversation.
    pub const NONE: Summarizer = Summarizer { summarize: |_, _| (0, 0), shorten_header: |_| None };
}

/// The octets in each chunk but the last.
pub const CHUNK_OCTETS: usize = PIECE_BYTES - HEADER_BYTES;
/// The most chunks of one body.
pub(crate) const CHUNKS_MAX: u32 = 4096;
/// The octets of the largest body.
pub const BODY_OCTETS_MAX: u32 = CHUNKS_MAX * CHUNK_OCTETS as u32;

/// The offset of the octets' hash in the header.
const OCTETS_HASH_AT: usize = 96;

const KIND_PART: u8 = 1;
const KIND_LAST: u8 = 2;

/// The header fields of a chunk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ChunkHeader {
    pub(crate) account: AccountId,
    pub(crate) guid: u64,
    pub(crate) index: u32,
    pub(crate) length: u32,
    pub(crate) mailbox: u32,
    pub(crate) uid_validity: u32,
    pub(crate) conversation: u64,
    /// `None` in all chunks but the last.
    pub(crate) last: Option<LastChunkFields>,
}

/// Fields that only the last chunk has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct LastChunkFields {
    pub(crate) uid: u32,
    pub(crate) octets: u32,
    pub(crate) modseq: u64,
    pub(crate) date: u32,
    pub(crate) head: HeadSize,
}

/// The number of chunks of a body of `octets`.
pub(crate) fn chunks_of(octets: u32) -> u32 {
    octets.div_ceil(CHUNK_OCTETS as u32).max(1)
}

/// The number of pages of the chunk with `index` in a body of `octets`.
pub(crate) fn pages_of_chunk(octets: u32, index: u32) -> u32 {
    if index + 1 < chunks_of(octets) {
        return PIECE_PAGES;
    }
    pages_for((octets - (index.min(octets / CHUNK_OCTETS as u32)) * CHUNK_OCTETS as u32) as usize)
}

/// The number of pages of a chunk with `length` octets.
pub(crate) fn pages_for(length: usize) -> u32 {
    (HEADER_BYTES + length).div_ceil(PAGE_BYTES) as u32
}

/// Completes the chunk for `page` in `buffer`, which has the octets after the space for the header.
/// Returns the first eight bytes of the hash.
pub(crate) fn emit(
    buffer: &mut [u8],
    key: &HashKey,
    page: Page,
    header: &ChunkHeader,
    summary: &[u8],
) -> u64 {
    let pages = (buffer.len() / PAGE_BYTES) as u8;
    let kind = if header.last.is_some() { KIND_LAST } else { KIND_PART };
    let last = header.last.unwrap_or(LastChunkFields {
        uid: 0,
        octets: 0,
        modseq: 0,
        date: 0,
        head: HeadSize::NONE,
    });
    let octets = key.hash([octets_of(buffer, header.length)]);
    let mut head = [0; HEADER_BYTES];
    HeaderWriter::of(&mut head)
        .skip(HASH_BYTES)
        .u32(MAGIC)
        .u8(kind)
        .u8(pages)
        .u16(summary.len() as u16)
        .u64(u64::from(page.0))
        .u64(header.account.0)
        .u64(header.guid)
        .u32(header.index)
        .u32(header.length)
        .u32(header.mailbox)
        .u32(header.uid_validity)
        .u32(last.uid)
        .u32(last.octets)
        .u64(last.modseq)
        .u32(last.date)
        .u8(last.head.0)
        .skip(3)
        .u64(header.conversation);
    head.iter_mut().skip(OCTETS_HASH_AT).zip(octets.0).for_each(|(place, byte)| *place = byte);
    let place = head.get_mut(FIELDS_BYTES..FIELDS_BYTES + summary.len());
    let Some(place) = place else { unreachable!("a summary that is larger than its space") };
    place.copy_from_slice(summary);
    let Some(place) = buffer.first_chunk_mut() else {
        unreachable!("a chunk that is shorter than its header")
    };
    *place = head;
    key.seal(buffer, FIELDS_BYTES + summary.len()).short()
}

fn octets_of(buffer: &[u8], length: u32) -> &[u8] {
    let octets = buffer.get(HEADER_BYTES..HEADER_BYTES + length as usize);
    let Some(octets) = octets else { unreachable!("a chunk that is shorter than its octets") };
    octets
}

/// Changes the chunk in `buffer` for its new place `page`. `chunk`: the result of parsing it.
pub(crate) fn readdress(buffer: &mut [u8], key: &HashKey, page: Page, chunk: &Chunk) {
    let Some(place) = buffer.get_mut(24..32) else {
        unreachable!("a chunk that is shorter than its header")
    };
    place.copy_from_slice(&u64::from(page.0).to_le_bytes());
    key.seal(buffer, chunk.summary().end);
}

/// A chunk that was read and verified.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chunk {
    pub(crate) header: ChunkHeader,
    pub(crate) pages: u32,
    pub(crate) hash: u64,
    summary: usize,
}

impl Chunk {
    /// The range of the summary in the chunk's bytes.
    pub(crate) fn summary(&self) -> Range<usize> {
        FIELDS_BYTES..FIELDS_BYTES + self.summary
    }
}

/// Parses the chunk at the start of `bytes`. Returns it if it is valid and was written for `page`.
pub(crate) fn parse(bytes: &[u8], key: &HashKey, page: Page) -> Option<Chunk> {
    let chunk = parse_head(bytes, key, page)?;
    let octets = bytes.get(HEADER_BYTES..HEADER_BYTES + chunk.header.length as usize)?;
    let stored = bytes.get(OCTETS_HASH_AT..OCTETS_HASH_AT + HASH_BYTES)?;
    (key.hash([octets]).0 == *stored).then_some(chunk)
}

/// Parses the first page of a chunk, without the octets. Returns the chunk if its header and
/// summary are valid and were written for `page`.
pub(crate) fn parse_head(bytes: &[u8], key: &HashKey, page: Page) -> Option<Chunk> {
    let mut reader = FieldReader::new(bytes);
    reader.take(HASH_BYTES)?;
    if reader.u32()? != MAGIC {
        return None;
    }
    let kind = reader.u8()?;
    let pages = u32::from(reader.u8()?);
    let summary = usize::from(reader.u16()?);
    if reader.u64()? != u64::from(page.0) {
        return None;
    }
    if summary > SUMMARY_BYTES {
        return None;
    }
    let hash = key.check(bytes, FIELDS_BYTES + summary)?.short();
    let account = AccountId(reader.u64()?);
    let guid = reader.u64()?;
    let index = reader.u32()?;
    let length = reader.u32()?;
    let is_possible =
        length as usize <= CHUNK_OCTETS && (1..=PIECE_PAGES).contains(&pages) && index < CHUNKS_MAX;
    if !is_possible {
        return None;
    }
    let mailbox = reader.u32()?;
    let uid_validity = reader.u32()?;
    let last = LastChunkFields {
        uid: reader.u32()?,
        octets: reader.u32()?,
        modseq: reader.count()?,
        date: reader.u32()?,
        head: HeadSize(reader.u8()?),
    };
    reader.take(3)?;
    let conversation = reader.u64()?;
    let last = (kind == KIND_LAST).then_some(last);
    let header =
        ChunkHeader { account, guid, index, length, mailbox, uid_validity, conversation, last };
    Some(Chunk { header, pages, hash, summary })
}

/// Whether a chunk might begin at `page`. This test rejects other pages without hashing them.
pub(crate) fn may_begin(bytes: &[u8], page: Page) -> bool {
    let mut reader = FieldReader::new(bytes);
    reader.take(HASH_BYTES).is_some()
        && reader.u32() == Some(MAGIC)
        && reader.take(4).is_some()
        && reader.u64() == Some(u64::from(page.0))
}

/// The number of pages to the next place where a chunk might begin.
pub(crate) fn pages_to_next(bytes: &[u8], page: Page) -> u32 {
    let pages = bytes.chunks_exact(PAGE_BYTES).zip(0u32..).skip(1);
    let next = pages.into_iter().find(|(bytes, number)| may_begin(bytes, page.plus(*number)));
    next.map_or((bytes.len() / PAGE_BYTES) as u32, |(_, number)| number)
}
