//! RFC 4422: what a client says to log in, in lines of base64, whatever the protocol that carries them.
//!
//! An [`Exchange`] is told each response of the client's and says what comes of it: a challenge, a name with a proof, or nothing. It decides nothing and knows no protocol: whoever
//! knows the accounts is its [`Host`]. A [`Claim`] is the other side of SCRAM: what we say where we log in.
//!
//! Invariants:
//! - An exchange ends after as many responses as its mechanism has, or with the first that is wrong.
//! - A name is text without control characters, and not empty; what is handed on was said as it is.
//! - How long decoding takes does not depend on what is decoded, nor how long comparing on what is compared.
//! - A proof of SCRAM is about this exchange and no other: our nonce is part of what is proved.
//! - Of a name that nobody has the same is said as of somebody's, each time ([`Verifier::of_nobody`]).
//!
//! Deliberately absent: CRAM-MD5 and DIGEST-MD5, which need passwords in plain text on the disk; channel bindings of SCRAM; SASLprep (RFC 4013): names and passwords are taken as they
//! were said, which is what it makes of nearly all that people type. A server-final-message that tells an error, `e=`, is not sent: RFC 5802 section 5.1 leaves that to the server, an
//! exchange that fails ends at once in the protocol's own words, and clients in use read nothing else.
//!
//! Answers to: RFC 4422 section 3; RFC 4616 (PLAIN); draft-murchison-sasl-login (LOGIN), as clients in use speak it; RFC 5802 and RFC 7677 (SCRAM-SHA-256); RFC 5803 section 2.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod answer;
mod claim;
mod derivation;
mod exchange;
mod grammar;
mod hash;
mod nonces;
mod scram;
mod verifier;

pub use answer::Answer;
pub use claim::{Claim, NotAChallenge};
pub use derivation::Derivation;
pub use exchange::{Credentials, Exchange, Host, Mechanism, NAMES, Proof, RESPONSE_BYTES_MAX};
pub use hash::SALT_BYTES;
pub use nonces::Nonces;
pub use scram::{CHALLENGE_BYTES_MAX, Puzzle, ScramProof};
pub use verifier::{ITERATIONS, Signature, Verifier};

#[cfg(test)]
mod tests;
