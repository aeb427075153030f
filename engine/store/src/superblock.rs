//! The superblock: the identity and geometry of the disk, and the root of each shard's journal.
//! Section 3 of `docs/format.md`.
//!
//! Invariants:
//! - Version n is written to the slots 0 and 2, or to the slots 1 and 3. It never overwrites
//!   version n - 1.
//! - Magic and format version are checked first, because the rest depends on the format. They have
//!   the same offset in every format.

use crate::bytes::{FieldReader, HeaderWriter};
use crate::hash::{Hash, HashKey};
use crate::layout::{Geometry, PAGE_BYTES, Page, SHARDS, SegmentIndex, ShardId};
use alloc::boxed::Box;

const MAGIC: &[u8; 8] = b"BAREPOST";
/// The newest format that this code reads and writes. New disks have it.
pub const FORMAT_VERSION: u32 = 4;

/// The format of a disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Format {
    /// Outbox entries are in the flags and keywords of their messages.
    Three,
    /// Outbox entries are in separate records.
    Four,
}

impl Format {
    pub(crate) fn version(self) -> u32 {
        match self {
            Format::Three => 3,
            Format::Four => FORMAT_VERSION,
        }
    }

    fn of_version(version: u32) -> Option<Format> {
        [Format::Three, Format::Four].into_iter().find(|format| format.version() == version)
    }
}

const HEAD_BYTES: usize = 96;
const ROOT_BYTES: usize = 32;
const END: usize = HEAD_BYTES + SHARDS * ROOT_BYTES;
const NO_SEGMENT: u32 = u32::MAX;

/// The beginning of a shard's journal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Root {
    pub(crate) segment: SegmentIndex,
    /// The place of the journal's first block in that segment.
    pub(crate) place: u16,
    /// Whether the journal's first block is known to be durable.
    pub(crate) started: bool,
    /// The sequence of the journal's first block.
    pub(crate) sequence: u64,
    /// The `previous` value of that block.
    pub(crate) previous: u64,
}

/// The superblock.
#[derive(Clone)]
pub(crate) struct Superblock {
    pub(crate) format: Format,
    pub(crate) sequence: u64,
    pub(crate) id: [u8; 16],
    pub(crate) key: HashKey,
    pub(crate) geometry: Geometry,
    pub(crate) roots: [Option<Root>; SHARDS],
}

/// The content of one slot.
pub(crate) enum SlotContent {
    Zero,
    Valid(Box<Superblock>),
    OtherFormat(u32),
    Unknown,
}

impl Superblock {
    /// Sets the root of a shard's journal, from the next version on.
    pub(crate) fn set_root(&mut self, shard: ShardId, root: Root) {
        let Some(place) = self.roots.get_mut(shard.index()) else {
            unreachable!("a shard above the last one")
        };
        *place = Some(root);
    }

    /// The root of a shard's journal.
    pub(crate) fn root(&self, shard: ShardId) -> Option<Root> {
        let Some(root) = self.roots.get(shard.index()) else {
            unreachable!("a shard above the last one")
        };
        *root
    }

    /// The segment and the sequence of each root, even if its journal has not begun.
    pub(crate) fn journals(&self) -> [Option<(SegmentIndex, u64)>; SHARDS] {
        self.roots.map(|root| root.map(|root| (root.segment, root.sequence)))
    }

    /// The first 8 bytes of the GUID of every message in this store.
    pub(crate) fn guid_prefix(&self) -> u64 {
        let [a, b, c, d, e, f, g, h, ..] = self.id;
        u64::from_be_bytes([a, b, c, d, e, f, g, h])
    }

    /// The two slots, of four, that this version is written to.
    pub(crate) fn slot_numbers(&self) -> [usize; 2] {
        if self.sequence.is_multiple_of(2) { [0, 2] } else { [1, 3] }
    }

    /// The bytes of the page to write at `page`. Each version has a random `stamp` in every sector.
    /// So sectors of two versions never form a valid page, even if an earlier life has torn a
    /// write.
    pub(crate) fn emit(&self, page: Page, stamp: u64) -> Box<[u8]> {
        let mut bytes = alloc::vec![0; PAGE_BYTES].into_boxed_slice();
        HeaderWriter::of(&mut bytes).put(MAGIC).u32(self.format.version()).u32(page.0);
        let mut fields = HeaderWriter::of(&mut bytes)
            .skip(32)
            .u64(self.sequence)
            .put(&self.id)
            .put(&self.key.bytes())
            .u64(u64::from(self.geometry.pages))
            .u32(self.geometry.segment_pages)
            .u32(SHARDS as u32)
            .skip(8);
        for root in &self.roots {
            fields = match root {
                Some(root) => fields
                    .u32(root.segment.0)
                    .u16(root.place)
                    .u16(u16::from(root.started))
                    .u64(root.sequence)
                    .u64(root.previous)
                    .u64(stamp),
                None => fields.u32(NO_SEGMENT).skip(20).u64(stamp),
            };
        }
        let hash = page_hash(&self.key, &bytes);
        let (Some(Hash(hash)), Some(place)) = (hash, bytes.get_mut(16..32)) else {
            unreachable!("a superblock that is shorter than a page")
        };
        place.copy_from_slice(&hash);
        bytes
    }

    /// The content of the slot at `page`.
    pub(crate) fn parse(bytes: &[u8], page: Page) -> SlotContent {
        let mut reader = FieldReader::new(bytes);
        if reader.take(8) != Some(MAGIC) {
            return if bytes.iter().all(|byte| *byte == 0) {
                SlotContent::Zero
            } else {
                SlotContent::Unknown
            };
        }
        let Some(version) = reader.u32() else { return SlotContent::Unknown };
        let Some(format) = Format::of_version(version) else {
            return SlotContent::OtherFormat(version);
        };
        match parse_first(bytes, page, format) {
            Some(superblock) => SlotContent::Valid(Box::new(superblock)),
            None => SlotContent::Unknown,
        }
    }
}

fn parse_first(bytes: &[u8], page: Page, format: Format) -> Option<Superblock> {
    let mut reader = FieldReader::new(bytes);
    reader.take(12)?;
    let own_page = reader.u32()?;
    let stored = reader.take(16)?;
    let sequence = reader.count()?;
    let id = reader.key()?;
    let key = HashKey::new(reader.key()?);
    let pages = u32::try_from(reader.u64()?).ok()?;
    let geometry = Geometry { pages, segment_pages: reader.u32()? }.checked()?;
    let shards = reader.u32()?;
    reader.take(8)?;
    if own_page != page.0 || page_hash(&key, bytes)?.0 != *stored || shards != SHARDS as u32 {
        return None;
    }
    let mut roots = [None; SHARDS];
    for root in &mut roots {
        *root = parse_root(FieldReader::new(reader.take(ROOT_BYTES)?), geometry)?;
    }
    Some(Superblock { format, sequence, id, key, geometry, roots })
}

fn parse_root(mut reader: FieldReader<'_>, geometry: Geometry) -> Option<Option<Root>> {
    let segment = reader.u32()?;
    let place = reader.u16()?;
    let started = reader.u16()? == 1;
    if segment == NO_SEGMENT {
        return Some(None);
    }
    let root = Root {
        segment: SegmentIndex(segment),
        place,
        started,
        sequence: reader.count()?,
        previous: reader.u64()?,
    };
    let is_inside = segment < geometry.segments() && u32::from(place) < geometry.link_place();
    is_inside.then_some(Some(root))
}

fn page_hash(key: &HashKey, bytes: &[u8]) -> Option<Hash> {
    Some(key.hash([bytes.get(32..END)?, bytes.get(..16)?]))
}

const _: () = assert!(END <= PAGE_BYTES);
