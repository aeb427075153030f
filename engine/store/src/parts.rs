//! The parts that what is done with a store is done with.
//!
//! Each keeps its own invariants behind private fields. What needs several takes all of them:
//! what is above (deliveries, reads, compaction, checkpoints, opening) is no part, and knows
//! nothing of the others.

use crate::backing::DiskQueue;
use crate::group::Commit;
use crate::hash::Random;
use crate::indexes::Indexes;
use crate::journals::Journals;
use crate::keeper::Role;
use crate::outcome::Wakes;
use crate::pool::Pool;
use crate::segments::Segments;
use crate::superblock::Superblock;

pub(crate) struct Parts {
    /// Requests to the disk.
    pub(crate) backing: DiskQueue,
    /// Buffers.
    pub(crate) pool: Pool,
    /// What this store is to the disk.
    pub(crate) role: Role,
    pub(crate) superblock: Superblock,
    /// Space on the disk.
    pub(crate) segments: Segments,
    pub(crate) indexes: Indexes,
    pub(crate) journals: Journals,
    /// The group in flight.
    pub(crate) commit: Commit,
    /// What came of what was asked for.
    pub(crate) wakes: Wakes,
    pub(crate) random: Random,
}
