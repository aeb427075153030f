//! The header of a record (RFC 8446 section 5.1, RFC 5246 section 6.2.1).

use crate::alert::Alert;

/// The size of a record header.
pub(crate) const HEADER_BYTES: usize = 5;

/// The maximum number of bytes of plaintext in one record.
pub const PLAINTEXT_BYTES_MAX: usize = 1 << 14;

/// The maximum number of bytes that encryption may add to a record. RFC 5246 allows more, for
/// ciphers that we do not offer.
const EXPANSION_BYTES_MAX: usize = 256;

/// The longest record, in bytes. The next record always fits into a buffer of this size.
pub const RECORD_BYTES_MAX: usize = HEADER_BYTES + PLAINTEXT_BYTES_MAX + EXPANSION_BYTES_MAX;

/// The content type of a record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ContentType {
    ChangeCipherSpec = 20,
    Alert = 21,
    Handshake = 22,
    ApplicationData = 23,
}

impl ContentType {
    pub(crate) fn of(byte: u8) -> Option<ContentType> {
        match byte {
            20 => Some(ContentType::ChangeCipherSpec),
            21 => Some(ContentType::Alert),
            22 => Some(ContentType::Handshake),
            23 => Some(ContentType::ApplicationData),
            _ => None,
        }
    }
}

/// The bytes at the start of a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Front {
    /// An incomplete record.
    Partial,
    /// A record of this length, including its header.
    Record { content: ContentType, length: usize },
    /// Bytes that do not begin a record. The alert says what is wrong with them.
    NoRecord(Alert),
    /// A record above the maximum length.
    TooLong,
}

impl Front {
    pub(crate) fn of(bytes: &[u8]) -> Front {
        let content = bytes.first().map(|byte| ContentType::of(*byte));
        if content == Some(None) {
            return Front::NoRecord(Alert::UNEXPECTED_MESSAGE);
        }
        if bytes.get(1).is_some_and(|major| *major != 3) {
            return Front::NoRecord(Alert::PROTOCOL_VERSION);
        }
        let Some((&[_, _, _, high, low], rest)) = bytes.split_first_chunk::<HEADER_BYTES>() else {
            return Front::Partial;
        };
        let payload = usize::from(u16::from_be_bytes([high, low]));
        match content.flatten() {
            _ if payload > RECORD_BYTES_MAX - HEADER_BYTES => Front::TooLong,
            Some(content) if payload <= rest.len() => {
                Front::Record { content, length: HEADER_BYTES + payload }
            }
            _ => Front::Partial,
        }
    }
}

/// The number of bytes until the first record of the stream is complete, or until its length is
/// known.
pub(crate) fn bytes_wanted(bytes: &[u8]) -> u16 {
    match bytes {
        &[_, _, _, high, low, ..] => HEADER_BYTES as u16 + u16::from_be_bytes([high, low]),
        _ => HEADER_BYTES as u16,
    }
}

/// The header of a record with a payload of this length. Both versions write TLS 1.2 into it.
pub(crate) fn header(content: ContentType, payload: usize) -> [u8; HEADER_BYTES] {
    let [high, low] = (payload as u16).to_be_bytes();
    [content as u8, 3, 3, high, low]
}
