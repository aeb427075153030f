//! Serving again after the disk has failed a write or a flush. Section 10 of `docs/format.md`.
//!
//! Whether the disk has what was in flight when it failed is unknown, and every caller that waited
//! for it was refused. The index holds what was durable before. So the store goes back, in memory,
//! to where each journal was durable, and begins a new life there: a fence in the place of the
//! failed group's first block, as after a power cut that left that group incomplete. When the
//! fences and a superblock are durable, the failed group can never count, whatever of it the disk
//! has, and the store serves.
//!
//! Among several cores each does this for its own shards, when the keeper says so; the flush is the
//! keeper's.
//!
//! Invariants:
//! - A retry begins when none of the store's writes and flushes is in flight.
//! - Until its flush has completed nothing is gathered, allocated or lent, and the marks of all
//!   journals stay.
//! - The newest superblock known to be durable is not written over: a version that may have failed
//!   is replaced in its own slots.

use crate::backing::DiskQueue;
use crate::layout::ShardId;
use crate::parts::Parts;
use crate::record;
use crate::sealing::seal_shard;
use crate::writing::{has_places, needs_fence, refresh_reserve, write_blocks};
use alloc::vec::Vec;

/// Everything that was not durable when the disk failed is forgotten, and what keeps the failed
/// group from ever counting is written.
pub(crate) fn begin(parts: &mut Parts) {
    parts.journals.go_back(&mut parts.segments);
    for pair in parts.commit.give_up() {
        parts.pool.give_pair(pair);
    }
    refresh_reserve(parts);
    parts.role.try_again();
    // Where that messages found torn are gone was not durable, it is journaled again.
    parts.journals.gather_drops(&mut parts.indexes);
    for shard in ShardId::all() {
        if parts.journals.of(shard).is_some_and(|journal| journal.is_unsure()) {
            fence(parts, shard);
        }
    }
    parts.commit.superblock_is_due();
}

/// Writes what keeps the failed group from ever being the journal's next.
fn fence(parts: &mut Parts, shard: ShardId) {
    if needs_fence(parts, shard) && !has_places(parts, shard, 2) {
        // The disk is full: nothing follows the fence in its group.
        return write_blocks(parts, shard, true, 0, &[]);
    }
    // A fence precedes it, or a link: see `write_blocks`.
    record::put_life(parts.journals.gather(shard), parts.random.number());
    seal_shard(parts, shard, Vec::new());
}

/// Whether nothing is in flight but reads of bodies and what other cores have asked for.
pub(crate) fn is_settled(backing: &DiskQueue) -> bool {
    use crate::backing::Purpose::{Body, Errand};
    backing.all_are(|purpose| matches!(purpose, Body(_) | Errand { .. }))
}
