//! HMAC with SHA-256 (RFC 2104), for SCRAM.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// Bytes of salt.
pub const SALT_BYTES: usize = 16;
/// Bytes of a SHA-256 hash.
pub(crate) const HASH_BYTES: usize = 32;

/// HMAC (RFC 2104) with the key `key`.
pub(crate) fn keyed(key: &[u8]) -> Hmac<Sha256> {
    match Hmac::new_from_slice(key) {
        Ok(hmac) => hmac,
        Err(_) => unreachable!("HMAC takes keys of any length"),
    }
}

pub(crate) fn hmac_of(key: &[u8], message: &[u8]) -> [u8; HASH_BYTES] {
    keyed(key).chain_update(message).finalize().into_bytes().into()
}
