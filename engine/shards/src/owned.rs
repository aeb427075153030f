//! What a core has of its accounts: their mail, and what is counted of them.

use store::Store;

use crate::allowances::Allowances;
use crate::maildrop::Maildrops;

/// The store of a core's accounts, their maildrops that are locked, and what they have sent.
pub struct Owned {
    /// Their mail.
    pub store: Store,
    pub(crate) maildrops: Maildrops,
    pub(crate) allowances: Allowances,
}
