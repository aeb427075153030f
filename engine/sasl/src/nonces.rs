//! Nonces. Each nonce is used once and cannot be predicted.
//!
//! A nonce is the keyed hash of a counter. The key is random for each core and each start. The
//! method is similar to the HMAC generator of NIST SP 800-90A. So a session needs no random numbers
//! in the middle of a turn.

use alloc::string::String;

use base64ct::{Base64, Encoding};

use crate::hash::{HASH_BYTES, SALT_BYTES, hmac_of};

/// Bytes of a nonce: base64 of 144 bits.
pub(crate) const NONCE_BYTES: usize = 24;

/// A source of nonces.
pub struct Nonces {
    key: [u8; 32],
    given: u64,
}

impl Nonces {
    /// Nonces under a random `key`.
    pub fn new(key: [u8; 32]) -> Nonces {
        Nonces { key, given: 0 }
    }

    /// A new nonce.
    pub fn draw(&mut self) -> String {
        Base64::encode_string(self.next().get(..NONCE_BYTES / 4 * 3).unwrap_or_default())
    }

    /// New salt for a password.
    pub fn salt(&mut self) -> [u8; SALT_BYTES] {
        self.next().first_chunk().copied().unwrap_or_default()
    }

    fn next(&mut self) -> [u8; HASH_BYTES] {
        self.given += 1;
        hmac_of(&self.key, &self.given.to_le_bytes())
    }
}
