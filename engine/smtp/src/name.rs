//! The client's name, kept from its greeting to its last message.
//!
//! Nearly every name fits into the session. Only a long name costs an allocation.

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

impl From<&str> for ClientName {
    fn from(name: &str) -> ClientName {
        match name.try_into() {
            Ok(short) => ClientName::Short(short),
            Err(_) => ClientName::Long(name.into()),
        }
    }
}
