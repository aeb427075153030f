//! Domain-based Message Authentication, Reporting and Conformance (RFC 9989). It checks whether a
//! message comes from its author's domain, and finds the domain's policy if nothing proves that.
//!
//! [`check`] is a pure function of the author's domain, of the domains that SPF and DKIM have
//! proved, and of the answers of name servers so far. If it needs another answer, it returns the
//! question, and the caller calls it again with the answer.
//!
//! Invariants:
//! - Questions are asked only about domains that could belong to the author's organization.
//!   Signatures of many other domains cause no questions.
//! - For each domain, at most [`WALK_MAX`] names are looked up.
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
