//! What a core has of its accounts: their mail, and what is counted of them; and what it knows of
//! hosts elsewhere.

use store::Store;

use crate::allowances::Allowances;
use crate::facts::Facts;
use crate::maildrop::Maildrops;

/// The store of a core's accounts, their maildrops that are locked, and what they have sent.
pub struct Owned {
    /// Their mail.
    pub store: Store,
    pub(crate) maildrops: Maildrops,
    pub(crate) allowances: Allowances,
    /// What is known of hosts elsewhere, if this core owns that.
    pub facts: Facts,
}
