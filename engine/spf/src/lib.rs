//! The Sender Policy Framework (RFC 7208): checks whether the policy of a domain allows a host to
//! send mail for the domain.
//!
//! [`check`] is a pure function of the sender and of the answers of name servers so far. If it
//! needs another answer, it returns the question, and the caller calls it again with the answer.
//! Each call evaluates the policy from its beginning. This costs less than to keep its state, since
//! a policy may ask for few names.
//!
//! Explanations of domains (`exp=`) are parsed, since an invalid explanation makes the policy
//! invalid. They are not used, since they are text of an untrusted domain.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod evaluation;
mod expansion;
mod policy;
mod specification;
#[cfg(test)]
mod tests;

pub use evaluation::{SpfSender, SpfVerdict, check};
