//! RFC 5322: the fields that a mail server itself writes and reads, over bytes that the caller lends.
//!
//! The date of a header, the trace fields that every relay adds ([`Received`], [`return_path`]) and the count of the
//! trace fields that are there already ([`ReceivedCount`], the guard against mail loops).
//!
//! Invariants:
//! - Nothing here allocates, and nothing keeps what it was lent.
//! - What a peer said of itself never ends a header line or adds one: control characters do not pass.
//!
//! Answers to: RFC 5322 section 3.3 (dates), RFC 5321 section 4.4 (trace) and 6.3 (loops), RFC 6531 section 4.3.
#![no_std]
#![forbid(unsafe_code)]

mod date;
mod hops;
mod trace;
mod writer;

pub use date::{DATE_TIME_BYTES, DateTimeNow, date_time};
pub use hops::ReceivedCount;
pub use trace::{Assurance, Protocol, RECEIVED_BYTES_MAX, RETURN_PATH_BYTES_MAX, Received, return_path};

#[cfg(test)]
mod tests;
