//! Where a command line ends.
//!
//! An LF ends it, with or without its CR: people type POP3 by hand, and there is nothing that could be smuggled in, for
//! no message ever comes from a client.
//!
//! Answers to: RFC 1939 section 3, RFC 2449 section 4.

/// The longest command line, with its line end. RFC 2449 asks for 255; addresses and passwords may be longer.
pub const LINE_BYTES_MAX: usize = 512;

/// The longest response of a login, with its CRLF: RFC 5034 section 4 asks for whatever the mechanisms need.
pub const RESPONSE_LINE_BYTES_MAX: usize = sasl::RESPONSE_BYTES_MAX + b"\r\n".len();

/// What the bytes begin with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Line<'a> {
    /// A line without its end, and how many bytes it is with it.
    Whole(&'a [u8], usize),
    /// A line whose end is yet to come.
    Partial,
    /// More bytes than a line may have, without its end.
    TooLong,
}

/// The first line of `bytes`, which has at most `limit` bytes with its end.
pub(crate) fn first_line(bytes: &[u8], limit: usize) -> Line<'_> {
    let within_limit = bytes.get(..limit).unwrap_or(bytes);
    let Some(end) = memchr::memchr(b'\n', within_limit) else {
        return if bytes.len() >= limit { Line::TooLong } else { Line::Partial };
    };
    let line = bytes.get(..end).unwrap_or_default();
    Line::Whole(line.strip_suffix(b"\r").unwrap_or(line), end + 1)
}
