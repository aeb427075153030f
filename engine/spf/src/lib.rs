//! Whether a host may send mail in the name of a domain, by the domain's policy: the Sender Policy
//! Framework (RFC 7208).
//!
//! [`check`] is a plain function of the sender and of what is known of names. If it needs an answer
//! that is not known, it returns the question, and is called again with the answer. It then starts
//! over, which costs less than to keep its state, since a policy may ask for few names.
//!
//! Explanations of domains (`exp=`) are parsed, since an invalid one makes the policy invalid. They
//! are not used: they are text of an untrusted domain.
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
