//! Unique identifiers, by which a client finds out which messages it has fetched already.
//!
//! Invariants:
//! - An identifier has 1 to 70 bytes, each in 0x21 to 0x7e.
//! - The same input always gives the same text: a change would make every client fetch all messages
//!   again.
//!
//! Implements: RFC 1939 section 7 (UIDL).

/// The longest unique identifier, in bytes.
pub const UNIQUE_ID_BYTES_MAX: usize = 70;

/// The unique identifier of a message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UniqueId(heapless::String<UNIQUE_ID_BYTES_MAX, u8>);

impl UniqueId {
    /// The identifier from a mailbox's UIDVALIDITY and a message's UID, in 16 hexadecimal digits.
    /// The identifier is unique in the mailbox, and the mailbox never uses it again (RFC 9051
    /// section 2.3.1.1).
    pub fn from_uid(uidvalidity: u32, uid: u32) -> UniqueId {
        let mut text = heapless::String::new();
        let number = u64::from(uidvalidity) << 32 | u64::from(uid);
        for shift in (0..64).step_by(4).rev() {
            let digit = char::from_digit((number >> shift) as u32 & 0xf, 16).unwrap_or('0');
            // 16 digits fit.
            let _ = text.push(digit);
        }
        UniqueId(text)
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}
