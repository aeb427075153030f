//! Accounts: creation, lookup of addresses, logins, sending limits, and the outbox entries of a
//! message.
//!
//! | file | what |
//! |---|---|
//! | `directory` | from an address to an account |
//! | `logins` | checks a password or a SCRAM proof, with throttling |
//! | `allowances` | whether the webmail may send one more message |
//! | `setup` | sets up the accounts of the configuration, in two parts: |
//! | `provisioning` | creates accounts, and changes aliases and password hashes |
//! | `passwords` | makes and checks plain passwords while clients are served |
//! | `differences` | compares the configuration with the disk |
//! | `entries` | how a message and its envelope become outbox entries |
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod allowances;
mod differences;
mod directory;
pub mod entries;
mod lines;
pub mod logins;
mod passwords;
mod provisioning;
mod setup;
mod wait_points;

pub use allowances::{Excess, may_send};
pub use directory::{Directory, LoginAccount};
pub use logins::Logins;
pub use provisioning::SetupContext;
pub use setup::AccountSetup;
