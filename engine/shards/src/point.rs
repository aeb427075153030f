//! The wait points of messages for accounts of several cores.

use tasks::Subsystem;

tasks::points! {
    /// The wait points of messages that concern several cores.
    pub(crate) enum ShardWaitPoint of Subsystem::Shards;
    /// A multi-shard message: one core has a place for its part.
    PartBegun,
    /// The same: one core has space for more of its part.
    PartRoom,
    /// The same: this core may know now whether it has space for its part.
    PartSpace,
    /// The same: one core has all of its part, and space for it.
    PartPrepared,
    /// The same: one core has its part on the disk.
    PartStored,
    /// A message of another core for accounts of this one: the store has space for more of it.
    RemoteRoom,
    /// The same: it is on the disk.
    RemoteStored,
    /// Something was noted for an account. Nothing waits for it.
    Noted,
}
