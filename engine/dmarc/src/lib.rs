//! What the domain of a letter's author wants to be done with letters that nobody proves to be its own: Domain-based Message Authentication, Reporting
//! and Conformance (RFC 9989).
//!
//! [`check`] is a plain function of who the author is, of whose mail SPF and DKIM have proved a letter to be, and of what is known of names. What it has to
//! know and does not it says, and it is called again when that is known too.
//!
//! Invariants:
//! - Only of domains that could be the author's own anything is asked: whoever signs in many names costs no more than who signs in one.
//! - For each domain at most [`WALK_MAX`] names are asked for.
//!
//! Nobody gets reports: what a record says of these is read as far as it says whether the record counts.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod evaluation;
mod record;
#[cfg(test)]
mod tests;
mod walk;

pub use evaluation::{Letter, Verdict, check};
pub use record::Handling;
pub use walk::WALK_MAX;
