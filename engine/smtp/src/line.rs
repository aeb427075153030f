//! Where a command line ends.
//!
//! Only CRLF ends it. A CR or LF on its own is a line's end to some servers and none to others, so a line that has one
//! is never guessed at: whoever sends it may be smuggling a command past a relay in front.
//!
//! Answers to: RFC 5321 sections 2.3.8 and 4.5.3.1.4.

/// The longest command line, with its CRLF. RFC 5321 asks for 512; for MAIL the parameters of the extensions ask for some 700 more (most of them AUTH and ENVID), for RCPT some 550
/// (ORCPT and NOTIFY).
pub const LINE_BYTES_MAX: usize = 1536;

/// The longest response of a login, with its CRLF: RFC 4954 section 4 asks for whatever the mechanisms need.
pub const RESPONSE_LINE_BYTES_MAX: usize = sasl::RESPONSE_BYTES_MAX + LINE_END_BYTES;

/// What the bytes begin with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Line<'a> {
    /// A line, here without its CRLF, which follows it.
    Whole(&'a [u8]),
    /// A line whose end is yet to come.
    Partial,
    /// More bytes than a line may have, without its end.
    TooLong,
    /// A CR or an LF that is not part of a CRLF.
    BareEnd,
}

/// Bytes in the CRLF that ends a line.
pub(crate) const LINE_END_BYTES: usize = 2;

/// The first line of `bytes`, which has at most `limit` bytes with its CRLF.
pub(crate) fn first_line(bytes: &[u8], limit: usize) -> Line<'_> {
    let within_limit = bytes.get(..limit).unwrap_or(bytes);
    let Some(end) = memchr::memchr2(b'\r', b'\n', within_limit) else {
        return if bytes.len() >= limit { Line::TooLong } else { Line::Partial };
    };
    match (bytes.get(end), bytes.get(end + 1)) {
        (Some(b'\r'), Some(b'\n')) => Line::Whole(bytes.get(..end).unwrap_or_default()),
        (Some(b'\r'), None) => Line::Partial,
        _ => Line::BareEnd,
    }
}

/// Where a line that is thrown away ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Rest {
    /// After so many bytes, its CRLF among them.
    EndsAfter(usize),
    /// Not yet; so many bytes are of no further use.
    GoesOn(usize),
    /// At a CR or an LF that is not part of a CRLF.
    BareEnd,
}

/// Looks for the end of a line that was too long.
pub(crate) fn rest_of_line(bytes: &[u8]) -> Rest {
    let Some(end) = memchr::memchr2(b'\r', b'\n', bytes) else { return Rest::GoesOn(bytes.len()) };
    match (bytes.get(end), bytes.get(end + 1)) {
        (Some(b'\r'), Some(b'\n')) => Rest::EndsAfter(end + LINE_END_BYTES),
        (Some(b'\r'), None) => Rest::GoesOn(end),
        _ => Rest::BareEnd,
    }
}
