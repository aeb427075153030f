//! Finds the end of a command line.
//!
//! Only CRLF ends a line. Some servers take a bare CR or LF for a line end, and others do not. So a
//! line with a bare CR or LF is refused: the client may be trying to smuggle a command past an
//! earlier relay.
//!
//! Implements: RFC 5321 sections 2.3.8 and 4.5.3.1.4.

/// The longest command line, with its CRLF. RFC 5321 requires 512. The parameters of the extensions
/// need about 700 more for MAIL (most of them for AUTH and ENVID), and about 550 more for RCPT
/// (ORCPT and NOTIFY).
pub const LINE_BYTES_MAX: usize = 1536;

/// The longest response of a login, with its CRLF. RFC 4954 section 4 requires the length that the
/// mechanisms need.
pub const RESPONSE_LINE_BYTES_MAX: usize = sasl::RESPONSE_BYTES_MAX + LINE_END_BYTES;

/// The first line of the received bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SmtpLine<'a> {
    /// A whole line, without the CRLF that follows it.
    Whole(&'a [u8]),
    /// A line that has not ended yet.
    Partial,
    /// More bytes than a line may have, without a line end.
    TooLong,
    /// A CR or an LF that is not part of a CRLF.
    BareEnd,
}

/// Bytes in the CRLF that ends a line.
pub(crate) const LINE_END_BYTES: usize = 2;

/// Finds the first line of `bytes`. The line may have at most `limit` bytes with its CRLF.
pub(crate) fn first_line(bytes: &[u8], limit: usize) -> SmtpLine<'_> {
    let within_limit = bytes.get(..limit).unwrap_or(bytes);
    let Some(end) = memchr::memchr2(b'\r', b'\n', within_limit) else {
        return if bytes.len() >= limit { SmtpLine::TooLong } else { SmtpLine::Partial };
    };
    match (bytes.get(end), bytes.get(end + 1)) {
        (Some(b'\r'), Some(b'\n')) => SmtpLine::Whole(bytes.get(..end).unwrap_or_default()),
        (Some(b'\r'), None) => SmtpLine::Partial,
        _ => SmtpLine::BareEnd,
    }
}

/// The end of a line that is discarded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum DiscardedLine {
    /// The line ends after this many bytes, including its CRLF.
    EndsAfter(usize),
    /// The end has not arrived. This many bytes can be dropped.
    GoesOn(usize),
    /// The line has a CR or an LF that is not part of a CRLF.
    BareEnd,
}

/// Finds the end of a line that was too long.
pub(crate) fn rest_of_line(bytes: &[u8]) -> DiscardedLine {
    let Some(end) = memchr::memchr2(b'\r', b'\n', bytes) else {
        return DiscardedLine::GoesOn(bytes.len());
    };
    match (bytes.get(end), bytes.get(end + 1)) {
        (Some(b'\r'), Some(b'\n')) => DiscardedLine::EndsAfter(end + LINE_END_BYTES),
        (Some(b'\r'), None) => DiscardedLine::GoesOn(end),
        _ => DiscardedLine::BareEnd,
    }
}
