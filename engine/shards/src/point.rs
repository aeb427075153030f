//! Where messages for accounts of several cores wait.

use tasks::Subsystem;

tasks::points! {
    /// Where messages wait that concern several cores.
    pub(crate) enum Point of Subsystem::Shards;
    /// A message for accounts of several cores: one of them has a place for its part.
    PartBegun,
    /// The same: one of them has room for more of it.
    PartRoom,
    /// The same: this core may know now whether it has space for its part.
    PartSpace,
    /// The same: one of them has all of it, and space for it.
    PartPrepared,
    /// The same: one of them has it on the disk.
    PartStored,
    /// A message of another core for accounts of this one: the store has room for more of it.
    LetterRoom,
    /// The same: it is on the disk.
    LetterStored,
    /// Something was noted for an account. Nothing waits for it.
    Noted,
}
