//! The client side of SCRAM-SHA-256, for our logins at other servers. It also checks that the
//! server knows the password.
//!
//! ```text
//!   begin ──▸ n,,n=ada,r=OURS        ◂── r=OURSTHEIRS,s=SALT,i=16384
//!         steps of PBKDF2 ──▸ c=biws,r=OURSTHEIRS,p=PROOF        ◂── v=SIGNATURE
//! ```
//! Invariants:
//! - The password is never sent. An attacker with the data that is sent needs at least
//!   [`ITERATIONS_MIN`] hashes for each guess at the password.
//! - A step takes as long as a step of [`crate::Derivation`]. [`ITERATIONS_MAX`] limits the number
//!   of steps.
//! - A challenge is accepted only if it contains our nonce, and so belongs to this exchange.
//!
//! Implements: RFC 5802 sections 3, 5.1 and 7; RFC 7677 section 4.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use base64ct::{Base64, Encoding};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::derivation::Pbkdf2Run;
use crate::grammar::decoded;
use crate::hash::{HASH_BYTES, hmac_of};

/// The fewest iterations that we accept. Fewer would make guesses cheap (RFC 7677 section 4).
const ITERATIONS_MIN: u32 = 4096;
/// The most iterations that we accept. More would waste our time.
const ITERATIONS_MAX: u32 = 1_000_000;

/// `n,,` in base64: no channel binding, and no other identity to act as.
const HEADER: &str = "biws";

/// An exchange in which we are the client.
pub struct ClientExchange {
    /// Our nonce, followed by the server's nonce once it is known.
    nonce: String,
    /// The part of `AuthMessage` (RFC 5802 section 3) that is known so far: messages of both sides.
    auth_message: String,
    stretch: Option<Pbkdf2Run>,
    /// The signature that we expect from the server. `None`: we have not sent our proof.
    signature: Option<[u8; HASH_BYTES]>,
}

/// A server message that does not belong to this exchange, or asks for something unsupported.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NotAChallenge;

impl ClientExchange {
    /// Begins an exchange as `name`, with a new `nonce`. Also returns the first message, in base64.
    pub fn begin(name: &str, nonce: String) -> (ClientExchange, String) {
        let name = name.replace('=', "=3D").replace(',', "=2C");
        let auth_message = format!("n={name},r={nonce}");
        let message = Base64::encode_string(format!("n,,{auth_message}").as_bytes());
        (ClientExchange { nonce, auth_message, stretch: None, signature: None }, message)
    }

    /// The server has sent its first message, in base64, and asks for a proof that we know
    /// `password`.
    ///
    /// Errors: the message is invalid.
    pub fn challenged(&mut self, password: &str, challenge: &str) -> Result<(), NotAChallenge> {
        let message =
            Base64::decode_vec(challenge).ok().and_then(|message| String::from_utf8(message).ok());
        let message = message.ok_or(NotAChallenge)?;
        let (nonce, salt, iterations) = parse(&message).ok_or(NotAChallenge)?;
        let is_about_us = nonce.len() > self.nonce.len()
            && nonce.starts_with(&self.nonce)
            && self.stretch.is_none();
        if !is_about_us || !(ITERATIONS_MIN..=ITERATIONS_MAX).contains(&iterations) {
            return Err(NotAChallenge);
        }
        self.auth_message = format!("{},{message},c={HEADER},r={nonce}", self.auth_message);
        self.nonce = nonce.into();
        self.stretch = Some(Pbkdf2Run::of(password.as_bytes(), &salt, iterations));
        Ok(())
    }

    /// Does one step of the proof. The last step returns the message with the proof, in base64.
    /// After the last step, this function must not be called again.
    pub fn step(&mut self) -> Option<String> {
        let salted_password = self.stretch.as_mut()?.step()?;
        let client_key = hmac_of(&salted_password, b"Client Key");
        let mut proof =
            hmac_of(Sha256::digest(client_key).as_slice(), self.auth_message.as_bytes());
        proof.iter_mut().zip(client_key).for_each(|(byte, key)| *byte ^= key);
        self.signature =
            Some(hmac_of(&hmac_of(&salted_password, b"Server Key"), self.auth_message.as_bytes()));
        let message = format!("c={HEADER},r={},p={}", self.nonce, Base64::encode_string(&proof));
        Some(Base64::encode_string(message.as_bytes()))
    }

    /// Whether `message`, in base64, proves that the server knows the password too.
    pub fn is_answered_by(&self, message: &str) -> bool {
        let Some(message) =
            Base64::decode_vec(message).ok().and_then(|message| String::from_utf8(message).ok())
        else {
            return false;
        };
        let signature = message
            .split(',')
            .next()
            .and_then(|first| decoded::<HASH_BYTES>(first.strip_prefix("v=")?));
        match (signature, self.signature) {
            (Some(theirs), Some(ours)) => theirs.ct_eq(&ours).into(),
            _ => false,
        }
    }
}

/// Parses the server's first message: the nonces, the salt and the number of iterations. Attributes
/// after these three are skipped. A mandatory extension (`m=`) would be the first attribute. It is
/// refused.
fn parse(message: &str) -> Option<(&str, Vec<u8>, u32)> {
    let mut attributes = message.split(',');
    let nonce = attributes.next()?.strip_prefix("r=")?;
    let salt = Base64::decode_vec(attributes.next()?.strip_prefix("s=")?)
        .ok()
        .filter(|salt| !salt.is_empty())?;
    let iterations = attributes.next()?.strip_prefix("i=")?.parse().ok()?;
    Some((nonce, salt, iterations))
}

impl fmt::Debug for ClientExchange {
    /// Leaves out the keys that are derived from the password.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("ClientExchange").finish_non_exhaustive()
    }
}
