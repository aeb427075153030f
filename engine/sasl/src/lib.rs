//! SASL (RFC 4422): the authentication of a client in lines of base64, independent of the protocol
//! that carries them.
//!
//! An [`Exchange`] gets each response of the client and returns the result: a challenge, a user
//! name with a proof, or an error. It does not decide about the login, and does not depend on the
//! mail protocol. The owner of the accounts implements [`Host`]. A [`ClientExchange`] is the client
//! side of SCRAM, for our own logins at other servers.
//!
//! Invariants:
//! - The mechanism fixes the number of responses in an exchange. An invalid response ends the
//!   exchange early.
//! - A user name is text without control characters, and not empty. It is passed on unchanged.
//! - The time to decode does not depend on the decoded data, and the time to compare does not
//!   depend on the compared data.
//! - A proof of SCRAM is valid in one exchange only, since it covers our nonce.
//! - The answers for an unknown user name look like those for an existing name, in each attempt
//!   ([`Verifier::for_unknown_name`]).
//!
//! Deliberately absent: CRAM-MD5 and DIGEST-MD5, which need plaintext passwords on the disk;
//! channel bindings of SCRAM; and SASLprep (RFC 4013). Names and passwords are used as sent. For
//! nearly all typed text, SASLprep would change nothing. A server-final-message with an error,
//! `e=`, is not sent, which RFC 5802 section 5.1 allows. Instead, a failed exchange ends at once
//! with an error reply of the mail protocol. Existing clients read only this reply.
//!
//! Implements: RFC 4422 section 3; RFC 4616 (PLAIN); draft-murchison-sasl-login (LOGIN), as
//! existing clients use it; RFC 5802 and RFC 7677 (SCRAM-SHA-256); RFC 5803 section 2.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod answer;
mod client_exchange;
mod derivation;
mod exchange;
mod grammar;
mod hash;
mod nonces;
mod scram;
mod verifier;

pub use answer::SaslStep;
pub use client_exchange::{ClientExchange, NotAChallenge};
pub use derivation::Derivation;
pub use exchange::{Credentials, Exchange, Host, Mechanism, NAMES, Proof, RESPONSE_BYTES_MAX};
pub use hash::SALT_BYTES;
pub use nonces::Nonces;
pub use scram::{CHALLENGE_BYTES_MAX, Puzzle, ScramProof};
pub use verifier::{ITERATIONS, ServerSignature, Verifier};

#[cfg(test)]
mod tests;
