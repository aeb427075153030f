//! Resuming service after a failed write or flush. Section 10 of `docs/format.md`.
//!
//! When the disk fails, it is unknown whether it has stored the data in flight. The store has
//! refused every caller that waited for this data, and the index holds what was durable before. So
//! the store sets each journal, in memory, back to its last durable position. There it begins a new
//! life, as after a power cut that left the group incomplete. It writes a fence in the place of the
//! failed group's first block. When the fences and a superblock are durable, the failed group can
//! never be replayed, whatever part of it is on the disk. Then the store serves again.
//!
//! With several cores, each core does this for its own shards when the disk owner (the core with
//! the disk's queue) tells it to. The disk owner makes the flush.
//!
//! Invariants:
//! - A retry begins when no write and no flush of the store is in flight.
//! - Until the flush of the retry has completed, no record is gathered, and no page is allocated or
//!   lent. All journals keep their last durable positions until then.
//! - The newest superblock that is known to be durable is not overwritten. A version with a write
//!   that may have failed is replaced in its own slots.

use crate::backing::DiskQueue;
use crate::layout::ShardId;
use crate::parts::StoreParts;
use crate::record;
use crate::sealing::seal_shard;
use crate::writing::{has_places, needs_fence, refresh_reserve, write_blocks};
use alloc::vec::Vec;

/// Forgets everything that was not durable when the disk failed. Writes the fences, so that the
/// failed group can never be replayed.
pub(crate) fn begin(parts: &mut StoreParts) {
    parts.journals.go_back(&mut parts.segments);
    for pair in parts.commit.give_up() {
        parts.pool.give_pair(pair);
    }
    refresh_reserve(parts);
    parts.role.try_again();
    // If the removal of torn messages was not durable, it is journaled again.
    parts.journals.gather_drops(&mut parts.indexes);
    for shard in ShardId::all() {
        if parts.journals.of(shard).is_some_and(|journal| journal.is_unsure()) {
            fence(parts, shard);
        }
    }
    parts.commit.superblock_is_due();
}

/// Writes the fence against the failed group: no block of the group can continue the journal.
fn fence(parts: &mut StoreParts, shard: ShardId) {
    if needs_fence(parts, shard) && !has_places(parts, shard, 2) {
        // The disk is full. So the group has only the fence.
        return write_blocks(parts, shard, true, 0, &[]);
    }
    // `write_blocks` writes a fence or a link before this record.
    record::put_life(parts.journals.gather(shard), parts.random.number());
    seal_shard(parts, shard, Vec::new());
}

/// Whether nothing is in flight except reads of bodies and requests of other cores.
pub(crate) fn is_settled(backing: &DiskQueue) -> bool {
    use crate::backing::DiskPurpose::{Body, ForClient};
    backing.all_are(|purpose| matches!(purpose, Body(_) | ForClient { .. }))
}
