//! The parts of a store that the operations work on.
//!
//! Each part has private fields, which protect its own invariants. An operation that needs several
//! parts takes all parts. The layers above (deliveries, reads, compaction, checkpoints, opening)
//! are not parts, and none of them contains another.

use crate::backing::DiskQueue;
use crate::disk_owner::StoreRole;
use crate::group::Commit;
use crate::hash::DiskRandom;
use crate::index_shares::IndexShare;
use crate::indexes::Indexes;
use crate::journals::Journals;
use crate::outcome::Wakes;
use crate::pool::Pool;
use crate::segments::Segments;
use crate::superblock::Superblock;

pub(crate) struct StoreParts {
    /// Requests to the disk.
    pub(crate) backing: DiskQueue,
    /// Buffers for reads and writes.
    pub(crate) pool: Pool,
    /// The role of this store: disk owner or client core.
    pub(crate) role: StoreRole,
    pub(crate) superblock: Superblock,
    /// Space on the disk.
    pub(crate) segments: Segments,
    pub(crate) indexes: Indexes,
    /// This store's part in sharing the index limit with other cores.
    pub(crate) index_share: IndexShare,
    pub(crate) journals: Journals,
    /// The group in flight.
    pub(crate) commit: Commit,
    /// Results of operations.
    pub(crate) wakes: Wakes,
    pub(crate) random: DiskRandom,
}
