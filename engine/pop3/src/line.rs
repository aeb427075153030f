//! Finds the end of a command line.
//!
//! An LF ends a line, with or without a CR, since people type POP3 by hand. This makes no smuggling
//! possible: a client never sends a message by POP3.
//!
//! Implements: RFC 1939 section 3, RFC 2449 section 4.

/// The longest command line with its line end. RFC 2449 requires 255; addresses and passwords may
/// be longer.
pub const LINE_BYTES_MAX: usize = 512;

/// The longest response of a login, with its CRLF. RFC 5034 section 4 requires lines that are long
/// enough for the mechanisms.
pub const RESPONSE_LINE_BYTES_MAX: usize = sasl::RESPONSE_BYTES_MAX + b"\r\n".len();

/// The first line of the received bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum CommandLine<'a> {
    /// A line without its line end, and the number of bytes of the line with its end.
    Whole(&'a [u8], usize),
    /// A line that has not ended yet.
    Partial,
    /// More bytes than a line may have, without a line end.
    TooLong,
}

/// Finds the first line of `bytes`. The line may have at most `limit` bytes with its end.
pub(crate) fn first_line(bytes: &[u8], limit: usize) -> CommandLine<'_> {
    let within_limit = bytes.get(..limit).unwrap_or(bytes);
    let Some(end) = memchr::memchr(b'\n', within_limit) else {
        return if bytes.len() >= limit { CommandLine::TooLong } else { CommandLine::Partial };
    };
    let line = bytes.get(..end).unwrap_or_default();
    CommandLine::Whole(line.strip_suffix(b"\r").unwrap_or(line), end + 1)
}
