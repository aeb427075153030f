//! Whether a host may send mail in the name of a domain, as the domain says: the Sender Policy Framework (RFC 7208).
//!
//! [`check`] is a plain function of who sends and of what is known of names. What it has to know and does not it says, and it is called again when that is
//! known too: it starts over, which costs less than to remember where it stood, since a policy may ask for so few names.
//!
//! Explanations of domains (`exp=`) are read, since a broken one breaks the policy, and not used: they are text of a stranger.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod evaluation;
mod expansion;
mod policy;
mod specification;
#[cfg(test)]
mod tests;

pub use evaluation::{Sender, Verdict, check};
