//! Appending to a shard's journal: its blocks, and the links from segment to segment.
//!
//! Invariant: blocks of an earlier life are never mistaken for blocks of this life (a life is the
//! time from one opening of the disk to the next). So the first block that a life writes to a
//! journal is a fence, or follows a new link.

use crate::backing::{Backing, DiskPurpose};
use crate::block::{self, RECORDS_MAX};
use crate::frame;
use crate::journal::Journal;
use crate::layout::{Page, ShardId};
use crate::parts::StoreParts;
use crate::record;
use crate::segment::SegmentOwner;
use crate::segments::Want;
use crate::shards::ShardSet;
use crate::superblock::Root;
use alloc::vec::Vec;
use sometimes::{buggify, sometimes};

/// Whether a shard's journal has space for `blocks` more blocks.
pub(crate) fn has_places(parts: &StoreParts, shard: ShardId, blocks: u32) -> bool {
    let geometry = parts.segments.geometry();
    let left = parts.journals.of(shard).map_or(0, |journal| journal.places_left(geometry));
    blocks.saturating_sub(left).div_ceil(geometry.link_place()) <= parts.segments.free()
}

/// Whether the shard's journal continues at a place where an earlier life may have left blocks.
pub(crate) fn needs_fence(parts: &StoreParts, shard: ShardId) -> bool {
    let geometry = parts.segments.geometry();
    parts.journals.of(shard).is_some_and(|journal| journal.needs_fence(geometry))
}

/// Writes records as a group of `blocks` blocks, after a fence if `fence` is set. The caller has
/// checked the space.
pub(crate) fn write_blocks(
    parts: &mut StoreParts,
    shard: ShardId,
    fence: bool,
    blocks: u32,
    records: &[u8],
) {
    let first = parts.journals.of(shard).map_or(1, Journal::sequence);
    let group = (first, blocks + u32::from(fence));
    if fence {
        let mut life = Vec::new();
        record::put_life(&mut life, parts.random.number());
        write_block(parts, shard, group, &life);
    }
    let mut rest = records;
    while !rest.is_empty() {
        let (part, tail) = rest.split_at(frame::whole_records(rest, RECORDS_MAX));
        assert!(!part.is_empty(), "a record that fits into no block");
        rest = tail;
        let extended = extend_journal(parts, shard);
        assert!(extended, "a journal that found space a moment ago");
        write_block(parts, shard, group, part);
    }
}

/// Writes the next block of a shard's journal, which has a place for it.
fn write_block(parts: &mut StoreParts, shard: ShardId, group: (u64, u32), records: &[u8]) {
    let Some(journal) = parts.journals.of_mut(shard) else { unreachable!("a block of no journal") };
    journal.writes();
    let page = journal.page(parts.segments.geometry());
    let header = journal.header(shard, group);
    let mut pair = parts.pool.take_pair();
    if journal.note_fenced() {
        // The rest of the page is filled with zeros. So no old sector can complete a torn block of
        // an earlier life.
        pair.fill(0);
    }
    journal.block_follows(block::emit_records(
        &mut pair,
        &parts.superblock.key,
        page,
        header,
        records,
    ));
    let number = parts.commit.count_block(shard);
    parts.backing.write(page, pair, DiskPurpose::Block { number });
}

/// Makes sure that the shard's journal has a place for a block. Returns false if no segment is
/// free.
pub(crate) fn extend_journal(parts: &mut StoreParts, shard: ShardId) -> bool {
    let geometry = parts.segments.geometry();
    let full = match parts.journals.of(shard) {
        Some(journal) => {
            let is_early = parts.segments.free() > 2 * parts.segments.reserve()
                && buggify!(JournalSegmentEarly);
            journal.is_full(geometry) || is_early
        }
        None => true,
    };
    if !full {
        return true;
    }
    let Some(segment) = parts.segments.take(SegmentOwner::Journal(shard), Want::Journal) else {
        return false;
    };
    match parts.journals.of_mut(shard) {
        Some(journal) => {
            journal.writes();
            let page = geometry.place_page(journal.segment(), geometry.link_place());
            let header = journal.header(shard, (parts.random.number(), 0));
            let mut pair = parts.pool.take_pair();
            let hash = block::emit_link(&mut pair, &parts.superblock.key, page, header, segment);
            journal.link_follows(segment, hash);
            sometimes!(JournalLinked);
            let group = parts.commit.count_write();
            parts.backing.write(page, pair, DiskPurpose::Fixed { group });
        }
        None => {
            let root = Root {
                segment,
                place: 0,
                started: false,
                sequence: 1,
                previous: parts.random.number(),
            };
            parts.journals.begin(shard, Journal::at(root)).writes();
            parts.commit.starts(shard);
            parts.role.root_changed(&mut parts.superblock, shard, root);
        }
    }
    refresh_reserve(parts);
    true
}

/// Recomputes the number of free segments that deliveries may not take.
pub(crate) fn refresh_reserve(parts: &mut StoreParts) {
    let all: ShardSet = ShardId::all().collect();
    let reserve = parts.journals.reserve_of(all, &parts.indexes, parts.segments.geometry());
    parts.segments.set_reserve(reserve);
}

/// Allocates pages for a chunk in the shard's open segment. The pages stay pinned until they are
/// live or given up. If no pages are free, makes checkpoints due, so that journals release
/// segments.
pub(crate) fn allocate(
    parts: &mut StoreParts,
    shard: ShardId,
    pages: u32,
    want: Want,
) -> Option<Page> {
    let page = parts.segments.allocate(shard, pages, want);
    if page.is_none() {
        parts.journals.shorten(&parts.indexes, &parts.segments);
    }
    page
}
