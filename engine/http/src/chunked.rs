//! The chunked transfer coding: finds the end of a body, and extracts its content.
//!
//! Chunk extensions and trailer fields are not used, so they are skipped, up to a limit for each.
//! Only CRLF ends a line, and each line of the trailer section must be a field.
//!
//! Implements: RFC 9112 section 7.1.

use crate::head::{HEAD_BYTES_MAX, is_token};
use crate::types::Status;

/// The maximum number of hexadecimal digits in the size of a chunk.
const SIZE_DIGITS_MAX: u8 = 15;
/// The longest extensions of one chunk, in bytes.
const EXTENSION_BYTES_MAX: u16 = 256;
/// The longest trailer section, in bytes.
const TRAILER_BYTES_MAX: u16 = HEAD_BYTES_MAX as u16;

/// The progress through a chunked body.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Chunked(Expect);

/// The next part of the body.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Expect {
    /// A digit of a chunk's size, or the byte after the size.
    Size {
        size: u64,
        digits: u8,
    },
    /// White space between a chunk's size and its extensions.
    SizeSpace {
        size: u64,
        bytes: u16,
    },
    /// The rest of a chunk's extensions.
    Extension {
        size: u64,
        bytes: u16,
    },
    /// The LF after the size and the extensions.
    SizeLf {
        size: u64,
    },
    /// Bytes of a chunk.
    Data {
        left: u64,
    },
    /// The CR and the LF after a chunk.
    DataCr,
    DataLf,
    /// The first byte of a line of the trailer section.
    TrailerLine {
        bytes: u16,
    },
    /// The rest of a field name, or the colon after it.
    TrailerName {
        bytes: u16,
    },
    /// The rest of a field value.
    TrailerValue {
        bytes: u16,
    },
    /// The LF of a line of the trailer section.
    TrailerLf {
        bytes: u16,
    },
    /// The LF of the empty line at the end.
    LastLf,
    /// The body has ended.
    Nothing,
}

impl Chunked {
    pub(crate) fn new() -> Chunked {
        Chunked(Expect::Size { size: 0, digits: 0 })
    }

    pub(crate) fn is_over(&self) -> bool {
        self.0 == Expect::Nothing
    }

    /// Reads the part of `bytes` that belongs to the body, and returns how many bytes it has.
    /// `keep` gets the content of the chunks.
    ///
    /// Errors: `bytes` are not valid chunks.
    pub(crate) fn read(
        &mut self,
        bytes: &[u8],
        mut keep: impl FnMut(&[u8]),
    ) -> Result<usize, Status> {
        let mut taken = 0;
        while let Some(&byte) = bytes.get(taken) {
            match self.0 {
                Expect::Nothing => break,
                Expect::Data { left } => {
                    let count =
                        usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len() - taken);
                    keep(bytes.get(taken..taken + count).unwrap_or_default());
                    taken += count;
                    let left = left - count as u64;
                    self.0 = if left == 0 { Expect::DataCr } else { Expect::Data { left } };
                }
                expect => {
                    self.0 = next(expect, byte).ok_or(Status::BadRequest)?;
                    taken += 1;
                }
            }
        }
        Ok(taken)
    }
}

/// The state after `byte`. `None` if `byte` is not allowed in the state `expect`.
fn next(expect: Expect, byte: u8) -> Option<Expect> {
    Some(match (expect, byte) {
        (Expect::Size { size, digits: 1.. }, b'\r') => Expect::SizeLf { size },
        (Expect::Size { size, digits: 1.. }, b';') => Expect::Extension { size, bytes: 0 },
        (Expect::Size { size, digits: 1.. }, b' ' | b'\t') => Expect::SizeSpace { size, bytes: 1 },
        (Expect::SizeSpace { size, bytes }, b' ' | b'\t') if bytes < EXTENSION_BYTES_MAX => {
            Expect::SizeSpace { size, bytes: bytes + 1 }
        }
        (Expect::SizeSpace { size, bytes }, b';') => Expect::Extension { size, bytes },
        (Expect::Size { size, digits }, _) if digits < SIZE_DIGITS_MAX => Expect::Size {
            size: size * 16 + u64::from(char::from(byte).to_digit(16)?),
            digits: digits + 1,
        },
        (Expect::Extension { size, .. }, b'\r') => Expect::SizeLf { size },
        (Expect::Extension { size, bytes }, _)
            if bytes < EXTENSION_BYTES_MAX && is_of_line(byte) =>
        {
            Expect::Extension { size, bytes: bytes + 1 }
        }
        (Expect::SizeLf { size: 0 }, b'\n') => Expect::TrailerLine { bytes: 0 },
        (Expect::SizeLf { size }, b'\n') => Expect::Data { left: size },
        (Expect::DataCr, b'\r') => Expect::DataLf,
        (Expect::DataLf, b'\n') => Expect::Size { size: 0, digits: 0 },
        (Expect::TrailerLine { .. }, b'\r') => Expect::LastLf,
        (Expect::TrailerLine { bytes } | Expect::TrailerName { bytes }, _)
            if bytes < TRAILER_BYTES_MAX && is_token(&[byte]) =>
        {
            Expect::TrailerName { bytes: bytes + 1 }
        }
        (Expect::TrailerName { bytes }, b':') => Expect::TrailerValue { bytes },
        (Expect::TrailerValue { bytes }, b'\r') => Expect::TrailerLf { bytes },
        (Expect::TrailerValue { bytes }, _) if bytes < TRAILER_BYTES_MAX && is_of_line(byte) => {
            Expect::TrailerValue { bytes: bytes + 1 }
        }
        (Expect::TrailerLf { bytes }, b'\n') => Expect::TrailerLine { bytes },
        (Expect::LastLf, b'\n') => Expect::Nothing,
        _ => return None,
    })
}

/// Whether the byte may occur in chunk extensions and in values of the trailer section.
fn is_of_line(byte: u8) -> bool {
    byte == b'\t' || (byte >= b' ' && byte != 0x7f)
}
