//! Sealing: makes a group of the gathered records. When the group is durable, applies it to the
//! index. Section 6 of `docs/format.md`.
//!
//! Invariants:
//! - No gathered record is lost: a record that finds no space on the disk stays gathered.
//! - The index changes only by records of a group that a flush has made durable.

use crate::block;
use crate::checkpoint::Checkpointer;
use crate::group::Superseded;
use crate::journals::blocks_of;
use crate::layout::ShardId;
use crate::metadata_changes::METADATA_CHANGES_BLOCKS;
use crate::parts::StoreParts;
use crate::shards::ShardSet;
use crate::superblock::Root;
use crate::writing::{has_places, needs_fence, write_blocks};
use alloc::vec::Vec;

/// Makes a group of everything that is gathered, unless a group is in flight. During a retry (after
/// a failure of the disk) no checkpoint continues.
pub(crate) fn seal(parts: &mut StoreParts, checkpointer: &mut Checkpointer, is_retry: bool) {
    if !parts.commit.is_idle() || !has_to_seal(parts, checkpointer) {
        return;
    }
    let mut checkpoint = Vec::new();
    let mut sealing = parts.journals.dirty();
    if !is_retry && let Some(shard) = checkpointer.records(parts, &mut checkpoint) {
        seal_shard(parts, shard, checkpoint);
        // Metadata changes that did not fit wait for the next group, because a shard has one group
        // at a time.
        sealing.remove(shard);
    }
    for shard in sealing.iter() {
        seal_shard(parts, shard, Vec::new());
    }
    if parts.commit.seal() {
        parts.role.superblock_is_due();
    }
}

/// Whether the next group may have any content. In most turns it has none.
fn has_to_seal(parts: &StoreParts, checkpointer: &Checkpointer) -> bool {
    !parts.journals.candidates().is_empty() || checkpointer.is_busy() || parts.commit.has_to_seal()
}

/// Cuts `before` and a shard's gathered records into blocks, and queues the blocks. If there is no
/// space, all these records stay gathered.
pub(crate) fn seal_shard(parts: &mut StoreParts, shard: ShardId, mut before: Vec<u8>) {
    carry_out_metadata_changes(parts, shard, &mut before);
    let gathered = parts.journals.take_gathered(shard);
    let records = if before.is_empty() { gathered } else { [before, gathered].concat() };
    let fence = needs_fence(parts, shard);
    let blocks = blocks_of(&records);
    if !has_places(parts, shard, blocks + u32::from(fence)) {
        return parts.journals.put_back(shard, records);
    }
    if blocks > 0 {
        write_blocks(parts, shard, fence, blocks, &records);
    }
    parts.journals.sealed(shard, records, parts.commit.pending());
}

/// Turns the pending metadata changes of a shard into records, if there is space for them. Must be
/// called while no group is in flight.
fn carry_out_metadata_changes(parts: &mut StoreParts, shard: ShardId, out: &mut Vec<u8>) {
    if !parts.journals.has_metadata_changes(shard) {
        return;
    }
    let others = blocks_of(out) + parts.journals.gathered_blocks(shard) + 1;
    if has_places(parts, shard, others + METADATA_CHANGES_BLOCKS) {
        parts.journals.carry_out_metadata_changes(
            shard,
            parts.indexes.of_mut(shard),
            out,
            &mut parts.wakes,
        );
    }
}

/// Applies the group in flight, which is durable, to the index.
pub(crate) fn apply(parts: &mut StoreParts, checkpointer: &mut Checkpointer) {
    let mut applied = ShardSet::EMPTY;
    for (shard, pair) in parts.commit.flushed() {
        let Some(pair) = pair else { unreachable!("a block that was flushed and not written") };
        parts.indexes.apply(shard, block::records_of(&pair), &mut parts.segments);
        parts.pool.give_pair(pair);
        applied.insert(shard);
    }
    parts.indexes.group_ended(applied);
    parts.journals.group_ended(applied);
    checkpointer.flushed(parts);
    superblock_flushed(parts);
}

fn superblock_flushed(parts: &mut StoreParts) {
    for superseded in parts.commit.take_released() {
        if superseded.is_in_one_version {
            superseded
                .segments
                .into_iter()
                .for_each(|segment| parts.segments.release_journal(segment));
        } else {
            // Two slots have the new root, and the two slots of the previous version have the old
            // root. If both new slots are lost, these segments are needed. So they are not released
            // yet.
            let root = root_of(parts, superseded.shard);
            parts.role.root_changed(&mut parts.superblock, superseded.shard, root);
            parts
                .commit
                .release_by_superblock(Superseded { is_in_one_version: true, ..superseded });
        }
    }
    for shard in parts.commit.take_started().iter() {
        let root = root_of(parts, shard);
        parts.commit.superblock_is_due();
        parts.role.root_changed(&mut parts.superblock, shard, Root { started: true, ..root });
    }
}

/// The root of a journal that has begun.
fn root_of(parts: &StoreParts, shard: ShardId) -> Root {
    match parts.superblock.root(shard) {
        Some(root) => root,
        None => unreachable!("a journal that began without a root"),
    }
}
