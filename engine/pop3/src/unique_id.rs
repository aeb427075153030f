//! Unique-ids: the names by which clients know which messages they have already.
//!
//! Invariants:
//! - 1 to 70 bytes, each in 0x21 to 0x7e.
//! - The same input makes the same text for ever: a change would make every client fetch everything again.
//!
//! Answers to: RFC 1939 section 7 (UIDL).

/// The longest unique-id, in bytes.
pub const UNIQUE_ID_BYTES_MAX: usize = 70;

/// The unique-id of one message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UniqueId(heapless::String<UNIQUE_ID_BYTES_MAX, u8>);

impl UniqueId {
    /// The unique-id made of a mailbox's UIDVALIDITY and a message's UID: 16 hexadecimal digits. Unique in the mailbox,
    /// and never used again there (RFC 9051 section 2.3.1.1).
    pub fn from_uid(uidvalidity: u32, uid: u32) -> UniqueId {
        UniqueId::from_hexadecimal(&uidvalidity.to_be_bytes(), &uid.to_be_bytes())
    }

    /// The unique-id made of a message's GUID: 32 hexadecimal digits. Survives even a mailbox that is made anew.
    pub fn from_guid(guid: [u8; 16]) -> UniqueId {
        UniqueId::from_hexadecimal(&guid, &[])
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn from_hexadecimal(first: &[u8], second: &[u8]) -> UniqueId {
        let mut text = heapless::String::new();
        for byte in first.iter().chain(second) {
            for digit in [byte >> 4, byte & 0xf] {
                let digit = char::from_digit(digit.into(), 16).unwrap_or('0');
                // Two digits for each of at most 35 bytes fit.
                let _ = text.push(digit);
            }
        }
        UniqueId(text)
    }
}
