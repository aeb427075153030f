//! Parts of the messages of all mechanisms: user names, and bytes in base64.

use base64ct::{Base64, Encoding};

/// A valid user name: text without control characters, and not empty.
pub(crate) fn name(bytes: &[u8]) -> Option<&str> {
    let name = core::str::from_utf8(bytes).ok()?;
    (!name.is_empty() && !name.chars().any(char::is_control)).then_some(name)
}

/// Decodes base64 of exactly `BYTES` bytes.
pub(crate) fn decoded<const BYTES: usize>(base64: &str) -> Option<[u8; BYTES]> {
    let mut bytes = [0; BYTES];
    (Base64::decode(base64, &mut bytes).ok()?.len() == BYTES).then_some(bytes)
}
