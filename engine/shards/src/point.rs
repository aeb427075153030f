//! The wait points of messages for accounts of several cores.

use tasks::Subsystem;

tasks::points! {
    /// The wait points of messages that concern several cores.
    pub(crate) enum ShardWaitPoint of Subsystem::Shards;
    /// A multi-shard message: one core has a place for its part.
    PartBegun,
    /// A multi-shard message: one core has space for more of its part.
    PartRoom,
    /// A multi-shard message: this core may know now whether it has space for its part.
    PartSpace,
    /// A multi-shard message: one core has all octets of its part, and space for them.
    PartPrepared,
    /// A multi-shard message: one core has its part on the disk.
    PartStored,
    /// A message of another core for accounts of this core: the store has space for more octets.
    RemoteRoom,
    /// A message of another core for accounts of this core: the message is on the disk.
    RemoteStored,
    /// A note of an account was stored. Nothing waits for this.
    Noted,
}
