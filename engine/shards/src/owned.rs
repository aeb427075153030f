//! The state that a core owns: the mail of its accounts, their counters, and facts about external
//! hosts.

use store::Store;

use crate::allowances::Allowances;
use crate::facts::Facts;
use crate::maildrop::Maildrops;

/// The store of a core's accounts, their locked maildrops, and their sending limits.
pub struct Owned {
    /// The mail of its accounts.
    pub store: Store,
    pub(crate) maildrops: Maildrops,
    pub(crate) allowances: Allowances,
    /// The facts about external hosts that this core owns.
    pub facts: Facts,
}
