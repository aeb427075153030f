//! The client's side of SCRAM-SHA-256: what we say where we log in, and what the server has to say for us to believe that it knows us.
//!
//! ```text
//!   claim ──▸ n,,n=ada,r=OURS        ◂── r=OURSTHEIRS,s=SALT,i=16384
//!         steps of PBKDF2 ──▸ c=biws,r=OURSTHEIRS,p=PROOF        ◂── v=SIGNATURE
//! ```
//! Invariants:
//! - The password is never said, nor anything from which it could be guessed faster than by [`ITERATIONS_MIN`] hashes a guess.
//! - No step is longer than one of [`crate::Derivation`], and there are no more of them than [`ITERATIONS_MAX`] has.
//! - Of a server's message only what is about this exchange is believed: our nonce stands in it.
//!
//! Answers to: RFC 5802 sections 3, 5.1 and 7; RFC 7677 section 4.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use base64ct::{Base64, Encoding};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::derivation::Stretch;
use crate::grammar::decoded;
use crate::hash::{HASH_BYTES, hmac_of};

/// Whoever asks for fewer wants to guess (RFC 7677 section 4).
const ITERATIONS_MIN: u32 = 4096;
/// Whoever asks for more wants to keep us busy.
const ITERATIONS_MAX: u32 = 1_000_000;

/// `n,,` in base64: we bind nothing to the channel, and act for ourselves.
const HEADER: &str = "biws";

/// An exchange in which we are the client.
pub struct Claim {
    /// Our nonce, and behind it the server's, once it is known.
    nonce: String,
    /// What both have said, as far as it is proved: `AuthMessage`.
    said: String,
    stretch: Option<Stretch>,
    /// What the server has to say, once we have proved that we know the password.
    signature: Option<[u8; HASH_BYTES]>,
}

/// A message of the server's that is none about this exchange, or asks for what we do not do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NotAChallenge;

impl Claim {
    /// Begins one as `name`, with a `nonce` that was never used. With it the message to be said, in base64.
    pub fn begin(name: &str, nonce: String) -> (Claim, String) {
        let name = name.replace('=', "=3D").replace(',', "=2C");
        let said = format!("n={name},r={nonce}");
        let message = Base64::encode_string(format!("n,,{said}").as_bytes());
        (Claim { nonce, said, stretch: None, signature: None }, message)
    }

    /// The server has asked for a proof that we know `password`: in base64, its first message.
    ///
    /// Errors: it is none.
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
        self.said = format!("{},{message},c={HEADER},r={nonce}", self.said);
        self.nonce = nonce.into();
        self.stretch = Some(Stretch::of(password.as_bytes(), &salt, iterations));
        Ok(())
    }

    /// Goes a step on towards the proof. The message with it, in base64, once it is made; then there is no further step.
    pub fn step(&mut self) -> Option<String> {
        let salted_password = self.stretch.as_mut()?.step()?;
        let client_key = hmac_of(&salted_password, b"Client Key");
        let mut proof = hmac_of(Sha256::digest(client_key).as_slice(), self.said.as_bytes());
        proof.iter_mut().zip(client_key).for_each(|(byte, key)| *byte ^= key);
        self.signature =
            Some(hmac_of(&hmac_of(&salted_password, b"Server Key"), self.said.as_bytes()));
        let message = format!("c={HEADER},r={},p={}", self.nonce, Base64::encode_string(&proof));
        Some(Base64::encode_string(message.as_bytes()))
    }

    /// Whether this, in base64, is the message of a server that knows our password too.
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

/// Both nonces, the salt, and how often to hash. What may follow is passed over, but for what must not be (`m=`), which would stand first.
fn parse(message: &str) -> Option<(&str, Vec<u8>, u32)> {
    let mut attributes = message.split(',');
    let nonce = attributes.next()?.strip_prefix("r=")?;
    let salt = Base64::decode_vec(attributes.next()?.strip_prefix("s=")?)
        .ok()
        .filter(|salt| !salt.is_empty())?;
    let iterations = attributes.next()?.strip_prefix("i=")?.parse().ok()?;
    Some((nonce, salt, iterations))
}

impl fmt::Debug for Claim {
    /// Without what is made of the password.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Claim").finish_non_exhaustive()
    }
}
