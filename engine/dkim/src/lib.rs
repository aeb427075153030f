//! Signatures of messages by domains: DomainKeys Identified Mail (RFC 6376, RFC 8301, RFC 8463),
//! and the ARC chain of forwarded messages (RFC 8617).
//!
//! ```text
//!   Reading ── pieces, in order ──▸ Message ── a Knowledge, one signature a call ──▸ Verdict
//!                                      │                                        ChainVerdict
//!                                      └── a SigningKey ──▸ the field with its signature
//!                                                           a set for its chain, by Sealing
//! ```
//! A message is read once, in pieces of any size. Its body is hashed once for each canonicalization
//! that its signatures and its chain use. At most two canonicalizations exist. If a key is missing
//! ([`dns::Missing`]), it is looked up before anything is computed.
//!
//! Invariants:
//! - A verdict does not depend on how the message was cut into pieces.
//! - Only the header of a message is kept, and not its body. The header has at most
//!   [`HEADER_BYTES_MAX`] bytes and [`FIELDS_MAX`] fields. The work is linear in the message's
//!   bytes.
//! - At most [`SIGNATURES_MAX`] signatures of a message are verified, with up to [`KEYS_MAX`] keys
//!   for each. [`SETS_MAX`] and [`CHAIN_KEYS_MAX`] limit the work for a chain.
//! - The text of a verdict is safe in a header field.
//!
//! Choices that the RFCs leave open:
//! - A signature that covers only the beginning of a body (`l=`) does not pass: anyone could append
//!   text to the message (RFC 6376 §8.2).
//! - If there are several `From` fields, all must be signed, since a mail client may show any of
//!   them (RFC 6376 §8.15).
//! - A signature of a domain that is testing (`t=y`) is ignored, even if it is valid (RFC 6376
//!   §3.6.1).
//! - If a name has several keys, it is enough that one of them verifies (RFC 6376 §6.1.2).
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod arc_results;
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

pub use chain::{ArcError, CHAIN_KEYS_MAX, ChainVerdict, SETS_MAX};
pub use header::FIELDS_MAX;
pub use key::KEYS_MAX;
pub use message::{CompleteMessage, SIGNATURES_MAX};
pub use reading::{HEADER_BYTES_MAX, MessageReader};
pub use sealing::Sealing;
pub use signature::Algorithm;
pub use signing::{NotAKey, SigningKey, Unsignable, UnsignedField};
pub use verdict::{SignatureOutcome, SignatureReason, SignatureVerdict, SignerIdentity};
