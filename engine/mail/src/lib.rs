//! Login security and abuse limits, independent of protocols: passwords, login throttling, rate
//! limits and greylisting.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod greylist;
mod password;
mod rate_limits;
#[cfg(test)]
mod tests;
mod throttle;
mod verified;

pub use greylist::{Greylist, SenderOrigin, Triplet};
pub use password::{
    HashError, Hasher, MEMORY_KIB_MAX, PasswordMark, SALT_BYTES, WORK_KIB_MAX, check_hash,
};
pub use rate_limits::{
    ClientLimits, ClientRateLimits, ConnectionKind, NETWORK_SHARE, RateLimitedAction, RemoteActions,
};
pub use throttle::{FailedLogin, PENDING_MAX, Throttle};
pub use verified::VerifiedLogins;
