//! The policy of a message's author domain for messages that nothing proves to be its own:
//! Domain-based Message Authentication, Reporting and Conformance (RFC 9989).
//!
//! [`check`] is a plain function of the author's domain, of the domains that SPF and DKIM have
//! proved, and of what is known of names. If it needs an answer that is not known, it returns the
//! question. Then it is called again with the answer.
//!
//! Invariants:
//! - Questions are asked only about domains that could belong to the author's organization: a
//!   signer with many names costs no more than one with a single name.
//! - For each domain at most [`WALK_MAX`] names are asked for.
//!
//! No reports are sent: the reporting tags of a record are read only to decide whether the record
//! counts.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod evaluation;
mod record;
#[cfg(test)]
mod tests;
mod walk;

pub use evaluation::{DmarcVerdict, MessageOrigins, check};
pub use record::DmarcPolicy;
pub use walk::WALK_MAX;
