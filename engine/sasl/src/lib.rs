//! RFC 4422: what a client says to log in, in lines of base64, whatever the protocol that carries them.
//!
//! An [`Exchange`] is told each response of the client's and says what comes of it: a challenge, a name with its password, or nothing. It checks no password, and
//! knows no protocol.
//!
//! Invariants:
//! - An exchange ends after as many responses as its mechanism has, or with the first that is wrong.
//! - A name is text without control characters, and not empty; what is handed on was said as it is.
//! - How long decoding takes does not depend on what is decoded.
//!
//! Deliberately absent: CRAM-MD5 and DIGEST-MD5, which need passwords in plain text on the disk.
//!
//! Answers to: RFC 4422 section 3; RFC 4616 (PLAIN); draft-murchison-sasl-login (LOGIN), as clients in use speak it.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod exchange;

pub use exchange::{Answer, Credentials, Exchange, Mechanism, NAMES, RESPONSE_BYTES_MAX};

#[cfg(test)]
mod tests;
