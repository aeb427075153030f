//! Resuming service after a failed write or flush. Section 10 of `docs/format.md`.
//!
//! It is unknown whether the disk has the data that was in flight when it failed. Every caller that
//! waited for this data was refused. The index holds what was durable before. So the store takes
//! each journal back, in memory, to its last durable position, and begins a new life there. The
//! store writes a fence in the place of the failed group's first block. The result is the same as
//! after a power cut that left the group incomplete. When the fences and a superblock are durable,
//! the failed group can never count, whatever part of it is on the disk. Then the store serves
//! again.
//!
//! With several cores, each core does this for its own shards when the disk owner tells it to. The
//! disk owner makes the flush.
//!
//! Invariants:
//! - A retry begins when none of the store's writes and flushes is in flight.
//! - Until its flush has completed nothing is gathered, allocated or lent, and all journals keep
//!   their last durable positions.
//! - The newest superblock known to be durable is not overwritten. A version that may have failed
//!   is replaced in its own slots.

use crate::backing::DiskQueue;
use crate::layout::ShardId;
use crate::parts::StoreParts;
use crate::record;
use crate::sealing::seal_shard;
use crate::writing::{has_places, needs_fence, refresh_reserve, write_blocks};
use alloc::vec::Vec;

/// Forgets everything that was not durable when the disk failed. Writes the fences that keep the
/// failed group from ever counting.
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

/// Writes the fence that keeps the failed group from ever continuing the journal.
fn fence(parts: &mut StoreParts, shard: ShardId) {
    if needs_fence(parts, shard) && !has_places(parts, shard, 2) {
        // The disk is full: the fence is alone in its group.
        return write_blocks(parts, shard, true, 0, &[]);
    }
    // `write_blocks` puts a fence or a link before this record.
    record::put_life(parts.journals.gather(shard), parts.random.number());
    seal_shard(parts, shard, Vec::new());
}

/// Whether nothing is in flight except reads of bodies and requests of other cores.
pub(crate) fn is_settled(backing: &DiskQueue) -> bool {
    use crate::backing::DiskPurpose::{Body, ForClient};
    backing.all_are(|purpose| matches!(purpose, Body(_) | ForClient { .. }))
}
