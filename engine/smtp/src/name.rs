//! The client's name, kept from its greeting to its last message.
//!
//! Nearly every name fits into the session. Only a long name costs an allocation.
//!
//! Invariant: a name has only printable ASCII characters, and none that means something in a header
//! field. So it can be written into a `Received:` field, and no name forges the rest of the field.
//! The client may send any bytes. As in Postfix, `?` replaces all bytes that are not allowed.

use alloc::boxed::Box;

/// A client's name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum ClientName {
    /// At most 46 bytes.
    Short(heapless::String<46, u8>),
    /// More than 46 bytes, and at most the length of a command line.
    Long(Box<str>),
}

impl ClientName {
    pub(crate) fn as_str(&self) -> &str {
        match self {
            ClientName::Short(name) => name,
            ClientName::Long(name) => name,
        }
    }
}

impl From<&[u8]> for ClientName {
    fn from(name: &[u8]) -> ClientName {
        let harmless =
            name.iter().map(|byte| if is_harmless(*byte) { char::from(*byte) } else { '?' });
        let mut short = heapless::String::new();
        match harmless.clone().try_for_each(|character| short.push(character)) {
            Ok(()) => ClientName::Short(short),
            Err(_) => ClientName::Long(harmless.collect()),
        }
    }
}

/// Whether a byte may stand in a name of a header field.
fn is_harmless(byte: u8) -> bool {
    byte.is_ascii_graphic()
        && !matches!(byte, b'(' | b')' | b'<' | b'>' | b'@' | b',' | b';' | b'"' | b'\\')
}
