//! Mail as a whole, above the protocols: who a recipient is, and who may log in.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod password;
#[cfg(test)]
mod tests;
mod throttle;
mod verified;

pub use password::{HashError, Hasher, MEMORY_KIB_MAX, SALT_BYTES, WORK_KIB_MAX, check_hash};
pub use throttle::{PENDING_MAX, Throttle};
pub use verified::VerifiedLogins;
