//! Certificates that take the place of others while the machine serves: checked as those of the configuration are, kept in the log, shown on all cores.
//!
//! A certificate that an administrator sends is a letter in an account of the machine's own, with its chain and its key, in PEM as it came. One core owns that account and is the
//! only one that replaces anything, one certificate at a time:
//!
//! ```text
//!   a session, on any core ── the PEM ──▸ the owner: is it right?  ─▸ a letter, durable ─▸ all cores show it ─▸ letters that no longer count go
//!                          ◂── why not, or what there is now ─────────────────────────────────────────┘
//! ```
//!
//! **The rule.** The new one is shown in place of every other for the names that both are for. It stands before the first that it shares a name with; those all of whose names it
//! is for are gone. Where it shares none it is the last. So who takes a name of the first takes its place, which is shown to everybody who asks for no name that another has. After
//! a restart the same is done again with the certificates of the configuration, letter by letter; but one of the configuration whose validity began after a letter came is newer than
//! that letter, and stays.
//!
//! Invariants:
//! - Nobody is told that a certificate is shown before it is durable, and all cores show it.
//! - A letter is removed only after the one is durable that takes its place: a power cut finds the old one or the new one.
//! - Lists of certificates have versions, and a core never goes back to an older one.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod asking;
mod expiry;
mod keeping;
mod reading;
mod rollout;
mod shown;
mod state;
mod taking;

pub use asking::CERTIFICATE_PATH;
pub use asking::{METHODS, UPLOAD_BYTES_MAX, Wish, reply_to, unknown};
pub use reading::ReadSoFar;
pub use shown::{ListVersion, Replaced, Shown, Upload, described};
pub use state::{ACCOUNT, Certificates, Context, Event};
