//! The data that the server stores for a password: enough to check a proof of SCRAM (RFC 5802
//! section 3), but not enough to make a proof.
//!
//! RFC 5803 section 2 defines the text form of this data, which other servers use too:
//! `SCRAM-SHA-256$16384:SALT$StoredKey:ServerKey`, with base64.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use base64ct::{Base64, Encoding};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::grammar::decoded;
use crate::hash::{HASH_BYTES, SALT_BYTES, hmac_of};
use crate::scram::{Puzzle, ScramProof};

/// The number of iterations of a verifier that we make. RFC 7677 section 4 asks for at least 4096,
/// and its rule of thumb gives about 15,000. The server computes them once for each account. A
/// client that does not cache the key computes them for each login, in some milliseconds. An
/// attacker with a stolen disk computes them for each guess.
pub const ITERATIONS: u32 = 16_384;

const SCHEME: &str = "SCRAM-SHA-256";

/// The data to check proofs of one password.
#[derive(Clone, PartialEq, Eq)]
pub struct Verifier {
    salt: [u8; SALT_BYTES],
    iterations: u32,
    stored_key: [u8; HASH_BYTES],
    server_key: [u8; HASH_BYTES],
}

/// The proof to a client that we know its password too: `ServerSignature`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ServerSignature([u8; HASH_BYTES]);

impl Verifier {
    /// Makes the verifier from the PBKDF2 result of a password.
    pub(crate) fn new(
        salt: [u8; SALT_BYTES],
        iterations: u32,
        salted_password: &[u8; HASH_BYTES],
    ) -> Verifier {
        let client_key = hmac_of(salted_password, b"Client Key");
        let stored_key = Sha256::digest(client_key).into();
        Verifier {
            salt,
            iterations,
            stored_key,
            server_key: hmac_of(salted_password, b"Server Key"),
        }
    }

    /// Parses the text form of a verifier.
    pub fn parse(text: &str) -> Option<Verifier> {
        let mut parts = text.split('$');
        if parts.next()? != SCHEME {
            return None;
        }
        let (iterations, salt) = parts.next()?.split_once(':')?;
        let (stored_key, server_key) = parts.next()?.split_once(':')?;
        let verifier = Verifier {
            salt: decoded(salt)?,
            iterations: iterations.parse().ok()?,
            stored_key: decoded(stored_key)?,
            server_key: decoded(server_key)?,
        };
        parts.next().is_none().then_some(verifier)
    }

    /// A fake verifier for an account that does not exist or has no verifier. It is always the same
    /// for one `name` under one `secret`. No proof is valid for it.
    pub fn for_unknown_name(secret: &[u8; 16], name: &str) -> Verifier {
        let unknown = hmac_of(secret, name.as_bytes());
        let mut salt = [0; SALT_BYTES];
        salt.iter_mut().zip(hmac_of(&unknown, b"salt")).for_each(|(byte, hashed)| *byte = hashed);
        Verifier { salt, iterations: ITERATIONS, stored_key: unknown, server_key: unknown }
    }

    /// The challenge to a client. `nonce` must be new.
    pub fn puzzle(&self, nonce: String) -> Puzzle {
        Puzzle { salt: self.salt, iterations: self.iterations, nonce }
    }

    /// Checks the proof. If the client knows the password, returns the signature to send to it.
    pub fn check(&self, proof: &ScramProof) -> Option<ServerSignature> {
        let mut client_key = hmac_of(&self.stored_key, &proof.auth_message);
        client_key.iter_mut().zip(proof.proof).for_each(|(byte, proof)| *byte ^= proof);
        let is_right = Sha256::digest(client_key).as_slice().ct_eq(&self.stored_key);
        let signature = ServerSignature(hmac_of(&self.server_key, &proof.auth_message));
        bool::from(is_right).then_some(signature)
    }
}

impl ServerSignature {
    /// The server-final-message with this signature, in base64.
    pub(crate) fn server_final(&self) -> Vec<u8> {
        let message = [b"v=", Base64::encode_string(&self.0).as_bytes()].concat();
        Base64::encode_string(&message).into_bytes()
    }
}

/// Writes the text form of the verifier.
impl fmt::Display for Verifier {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let base64 = |bytes: &[u8]| -> String { Base64::encode_string(bytes) };
        let (stored_key, server_key) = (base64(&self.stored_key), base64(&self.server_key));
        write!(out, "{SCHEME}${}:{}${stored_key}:{server_key}", self.iterations, base64(&self.salt))
    }
}

/// Never prints the keys, so that no log contains them.
impl fmt::Debug for Verifier {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Verifier({} iterations)", self.iterations)
    }
}
