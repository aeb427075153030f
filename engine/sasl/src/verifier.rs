//! What the server keeps of a password: enough to check a proof of SCRAM (RFC 5802 section 3), and not enough to make one.
//!
//! Its text is that of RFC 5803 section 2, as other servers have it too: `SCRAM-SHA-256$16384:SALT$StoredKey:ServerKey`, with base64.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use base64ct::{Base64, Encoding};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::grammar::decoded;
use crate::hash::{HASH_BYTES, SALT_BYTES, hmac_of};
use crate::scram::{Puzzle, ScramProof};

/// How often a password is hashed for a verifier that we make. RFC 7677 section 4 asks for 4096 at the least, and by its rule of thumb for some 15,000. This is paid once by us, for each
/// account, and by each client for each login that does not remember the key: some milliseconds. Whoever has stolen the disk pays it for each guess.
pub const ITERATIONS: u32 = 16_384;

const SCHEME: &str = "SCRAM-SHA-256";

/// What proofs of one password are checked against.
#[derive(Clone, PartialEq, Eq)]
pub struct Verifier {
    salt: [u8; SALT_BYTES],
    iterations: u32,
    stored_key: [u8; HASH_BYTES],
    server_key: [u8; HASH_BYTES],
}

/// What proves to a client that we know its password too: `ServerSignature`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Signature([u8; HASH_BYTES]);

impl Verifier {
    /// Of what PBKDF2 has made of a password.
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

    /// From its text.
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

    /// In place of the one of an account that is not there, or has none: always the same for one `name` under one `secret`. No proof is right by it.
    pub fn of_nobody(secret: &[u8; 16], name: &str) -> Verifier {
        let unknown = hmac_of(secret, name.as_bytes());
        let mut salt = [0; SALT_BYTES];
        salt.iter_mut().zip(hmac_of(&unknown, b"salt")).for_each(|(byte, hashed)| *byte = hashed);
        Verifier { salt, iterations: ITERATIONS, stored_key: unknown, server_key: unknown }
    }

    /// What a client is asked by it; `nonce` was never used.
    pub fn puzzle(&self, nonce: String) -> Puzzle {
        Puzzle { salt: self.salt, iterations: self.iterations, nonce }
    }

    /// Whether whoever made `proof` knows the password; what it is told then.
    pub fn check(&self, proof: &ScramProof) -> Option<Signature> {
        let mut client_key = hmac_of(&self.stored_key, &proof.said);
        client_key.iter_mut().zip(proof.proof).for_each(|(byte, proof)| *byte ^= proof);
        let is_right = Sha256::digest(client_key).as_slice().ct_eq(&self.stored_key);
        let signature = Signature(hmac_of(&self.server_key, &proof.said));
        bool::from(is_right).then_some(signature)
    }
}

impl Signature {
    /// The message of the server's that says so, in base64.
    pub(crate) fn server_final(&self) -> Vec<u8> {
        let message = [b"v=", Base64::encode_string(&self.0).as_bytes()].concat();
        Base64::encode_string(&message).into_bytes()
    }
}

/// Its text.
impl fmt::Display for Verifier {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let base64 = |bytes: &[u8]| -> String { Base64::encode_string(bytes) };
        let (stored_key, server_key) = (base64(&self.stored_key), base64(&self.server_key));
        write!(out, "{SCHEME}${}:{}${stored_key}:{server_key}", self.iterations, base64(&self.salt))
    }
}

/// Never prints the keys, so that no log ever holds them.
impl fmt::Debug for Verifier {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Verifier({} iterations)", self.iterations)
    }
}
