//! Accounts: creation, lookup of addresses, logins, sending limits, and the outbox entries of a
//! message.
//!
//! | file | what |
//! |---|---|
//! | `directory` | from an address to an account |
//! | `logins` | checks a password or a SCRAM proof, with throttling |
//! | `allowances` | whether the webmail may send one more message |
//! | `provisioning` | creates the accounts of the configuration |
//! | `entries` | how a message and its envelope become outbox entries |
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod allowances;
mod directory;
pub mod entries;
pub mod logins;
mod provisioning;

pub use allowances::{Excess, may_send};
pub use directory::{Directory, LoginAccount};
pub use logins::Logins;
pub use provisioning::{
    AccountsWaitPoint, Provisioning, ProvisioningContext, ProvisioningProgress,
};
