//! Signatures of domains under messages: DomainKeys Identified Mail (RFC 6376, RFC 8301, RFC 8463), and the chain of seals of those who have handed a message on
//! (RFC 8617).
//!
//! ```text
//!   Reading ──pieces of the message, in their order──> Message ──with a Knowledge, one signature a call──> Verdict
//!                                                         │                                               ChainVerdict
//!                                                         └─────with a SigningKey───────────────────────> the field that signs it
//!                                                                                                         a set for its chain, by Sealing
//! ```
//! A message is read once, in whatever pieces it lies: of its body a hash is kept for each way in which its signatures and its chain look at bodies, which are two at
//! most. What is to be known of names is asked for as it is needed ([`dns::Missing`]), before anything is computed.
//!
//! Invariants:
//! - A verdict does not depend on how the message was cut.
//! - What is kept of a message is its header, of [`HEADER_BYTES_MAX`] bytes and [`FIELDS_MAX`]
//!   fields, and no more of its body however long that is. Work is linear in the message's bytes.
//! - [`SIGNATURES_MAX`] signatures of a message are looked at and no more, and up to [`KEYS_MAX`] keys for each. A chain is looked at as long as [`SETS_MAX`] and [`CHAIN_KEYS_MAX`] allow.
//! - What a verdict says of a signature or a chain is safe to be written into a header field.
//!
//! Where the RFCs leave a choice:
//! - A signature that covers the beginning of a body alone (`l=`) does not pass, whatever it covers: anybody could add to what it is worth (RFC 6376 §8.2).
//! - Where there are several fields `From`, all have to be signed: people see one, and nobody knows which (RFC 6376 §8.15).
//! - A domain that tests (`t=y`) has signed nothing, right or wrong (RFC 6376 §3.6.1).
//! - Of several keys of one name, one that fits is enough (RFC 6376 §6.1.2).
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod body;
mod chain;
mod header;
mod key;
mod message;
mod reading;
mod sealing;
mod signature;
mod signing;
mod tags;
#[cfg(test)]
mod tests;
mod verdict;
mod vouching;

pub use chain::{CHAIN_KEYS_MAX, ChainVerdict, Flaw, SETS_MAX};
pub use header::FIELDS_MAX;
pub use key::KEYS_MAX;
pub use message::{Message, SIGNATURES_MAX};
pub use reading::{HEADER_BYTES_MAX, Reading};
pub use sealing::Sealing;
pub use signature::Algorithm;
pub use signing::{NotAKey, SigningKey, Unsignable, UnsignedField};
pub use verdict::{Outcome, Reason, Signer, Verdict};
