//! The kinds of lines in a message's header.

use crate::date::DATE_TIME_BYTES;
use crate::header::{BYTE_ORDER_MARK, without_mark};

/// The most bytes of a line that decide its kind, and that are held back until the kind is known.
pub(super) const HELD_BYTES_MAX: usize = 256;

/// The origin of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Origin {
    /// A host outside our networks.
    External,
    /// A host in our networks.
    Relayed,
    /// A client that has logged in.
    Submitted,
}

/// The values that this server writes into the messages it changes.
#[derive(Clone, Copy, Debug)]
pub struct Reviser<'a> {
    /// The server's name, at most 255 bytes.
    pub hostname: &'a str,
    /// The server's identifier for the message, an atom of at most 32 bytes.
    pub identifier: &'a [u8],
    /// The address of the account that submits the message: at most 320 bytes are used.
    pub author: &'a str,
    /// The current time, in the form of [`crate::date_time`].
    pub now: &'a [u8; DATE_TIME_BYTES],
}

/// The kind of a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum HeaderLine {
    /// Unknown: more bytes are needed.
    Unknown,
    /// A continuation of the field before it.
    Folded,
    Received,
    Author,
    Date,
    Identifier,
    OtherField,
    /// A field that is removed.
    Unwanted,
    /// The empty line after the header.
    Empty,
    /// Text that begins without the empty line after the header.
    Text,
}

/// Decides the kind of a line.
pub(super) struct Classifier<'a> {
    pub(super) origin: Origin,
    /// The number of header fields before the line.
    pub(super) fields_before: u16,
    pub(super) own: &'a Reviser<'a>,
}

impl Classifier<'_> {
    /// The kind of the line at the start of `bytes`. `bytes`: all available bytes of the line, and
    /// any bytes after it.
    #[inline]
    pub(super) fn line(&self, bytes: &[u8]) -> HeaderLine {
        let Some(first) = bytes.first() else { return HeaderLine::Unknown };
        match (first, self.origin) {
            (b' ' | b'\t', _) => HeaderLine::Folded,
            (b'\n', _) => HeaderLine::Empty,
            (b'\r', _) => match bytes.get(1) {
                None => HeaderLine::Unknown,
                Some(b'\n') => HeaderLine::Empty,
                Some(_) => self.text(),
            },
            // The first byte is enough for nearly all lines. 0xef may begin a byte order mark.
            (first, Origin::Relayed) if !matches!(first, b'A' | b'a' | b'R' | b'r' | 0xef) => {
                HeaderLine::OtherField
            }
            (first, Origin::External)
                if !matches!(
                    first,
                    b'A' | b'a' | b'D' | b'd' | b'R' | b'r' | b'X' | b'x' | 0xef
                ) =>
            {
                HeaderLine::OtherField
            }
            _ => self.field(bytes),
        }
    }

    fn field(&self, bytes: &[u8]) -> HeaderLine {
        // Only the bytes that can be held are examined.
        let bytes = bytes.get(..HELD_BYTES_MAX).unwrap_or(bytes);
        let is_enough = bytes.len() == HELD_BYTES_MAX;
        if bytes.len() < BYTE_ORDER_MARK.len() && BYTE_ORDER_MARK.as_bytes().starts_with(bytes) {
            return HeaderLine::Unknown;
        }
        // Pages find a field even behind a mark.
        let bytes = without_mark(bytes);
        let name_end = bytes.iter().position(|byte| !is_name_byte(*byte));
        let (name, rest) =
            bytes.split_at_checked(name_end.unwrap_or(bytes.len())).unwrap_or_default();
        let in_doubt = match is_enough {
            false => HeaderLine::Unknown,
            // A reader may take the line for the field with this name.
            true if self.may_be_taken_for_ours(name) || name.eq_ignore_ascii_case(RESULTS) => {
                HeaderLine::Unwanted
            }
            true => self.text(),
        };
        if name_end.is_none() {
            return in_doubt;
        }
        // Old mail may have white space before the colon (RFC 5322 section 4.5).
        match rest
            .iter()
            .position(|byte| !matches!(byte, b' ' | b'\t'))
            .and_then(|at| rest.get(at..))
        {
            None => in_doubt,
            Some([b':', value @ ..]) if !name.is_empty() => self.named(name, value, is_enough),
            Some(_) if self.is_envelope_line(name, rest) || self.may_be_taken_for_ours(name) => {
                HeaderLine::Unwanted
            }
            Some(_) => self.text(),
        }
    }

    fn named(&self, name: &[u8], value: &[u8], is_enough: bool) -> HeaderLine {
        let is = |other: &str| name.eq_ignore_ascii_case(other.as_bytes());
        let is_submitted = self.origin == Origin::Submitted;
        if is("Received") {
            HeaderLine::Received
        } else if name.eq_ignore_ascii_case(RESULTS) {
            match server_of(value).map(|server| self.is_own_name(server)) {
                Some(false) => HeaderLine::OtherField,
                None if !is_enough => HeaderLine::Unknown,
                Some(true) | None => HeaderLine::Unwanted,
            }
        } else if is("Return-Path")
            || self.is_ours(name)
            || is_submitted && (is("Bcc") || is("Resent-Bcc"))
        {
            HeaderLine::Unwanted
        } else if is_submitted && is("From") {
            HeaderLine::Author
        } else if is_submitted && is("Date") {
            HeaderLine::Date
        } else if is_submitted && is("Message-ID") {
            HeaderLine::Identifier
        } else {
            HeaderLine::OtherField
        }
    }

    /// Whether only this server writes fields with this name, and the message is from outside our
    /// networks.
    fn is_ours(&self, name: &[u8]) -> bool {
        let start = name.get(..OWN_FIELDS.len()).unwrap_or_default();
        let is_ours =
            start.eq_ignore_ascii_case(OWN_FIELDS) || name.eq_ignore_ascii_case(DELIVERED_TO);
        self.origin == Origin::External && is_ours
    }

    /// Whether some reader could take a line that begins with `name`, but is not a field, for one
    /// of our fields.
    fn may_be_taken_for_ours(&self, name: &[u8]) -> bool {
        let is_result =
            name.eq_ignore_ascii_case(RESULTS) || name.eq_ignore_ascii_case(b"Return-Path");
        self.is_ours(name) || self.origin == Origin::External && is_result
    }

    /// Whether the name of a server in `Authentication-Results:` is our name, or could be taken for
    /// it.
    fn is_own_name(&self, server: &[u8]) -> bool {
        let is_plain =
            server.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(byte));
        let undotted = server.iter().rposition(|byte| *byte != b'.').map_or(0, |last| last + 1);
        let server = match self.origin {
            Origin::External if !is_plain => return true,
            Origin::External => server.get(..undotted).unwrap_or_default(),
            Origin::Relayed | Origin::Submitted => server,
        };
        server.eq_ignore_ascii_case(self.own.hostname.as_bytes())
    }

    /// Whether this is a line that mailbox files have above each message: `From ada@example.org Fri
    /// Feb 13 23:31:30 2009`.
    fn is_envelope_line(&self, name: &[u8], rest: &[u8]) -> bool {
        let is_first = self.origin == Origin::Submitted && self.fields_before == 0;
        is_first && matches!(name, b"From" | b">From") && rest.starts_with(b" ")
    }

    /// The kind of a line that is not a field. Headers from other servers are left unchanged.
    fn text(&self) -> HeaderLine {
        match self.origin {
            Origin::Relayed | Origin::External => HeaderLine::OtherField,
            Origin::Submitted => HeaderLine::Text,
        }
    }
}

const RESULTS: &[u8] = b"Authentication-Results";
/// Only this server writes fields with this prefix.
const OWN_FIELDS: &[u8] = b"X-Barepost-";
/// This field says that a message passed an account. To detect loops, this server trusts only its
/// own mark (`relay::loops`).
const DELIVERED_TO: &[u8] = b"Delivered-To";

/// Whether a byte is allowed in the name of a field (RFC 5322 section 3.6.8).
fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_graphic() && byte != b':'
}

/// The name of the server that wrote an `Authentication-Results:` field (RFC 8601 section 2.2).
/// Empty: the field has none. `None`: the name is not complete yet.
fn server_of(value: &[u8]) -> Option<&[u8]> {
    let mut rest = value;
    let mut depth = 0_usize;
    loop {
        rest = match (rest, depth) {
            ([], _) | ([b'\r'], _) | ([b'\r', b'\n'], _) => return None,
            ([b'\r', b'\n', b' ' | b'\t', after @ ..], _) => after,
            ([b'\r', b'\n', ..], _) => return Some(b""),
            ([b'(', after @ ..], _) => {
                depth += 1;
                after
            }
            ([b')', after @ ..], 1..) => {
                depth -= 1;
                after
            }
            ([b'\\', _, after @ ..], 1..) => after,
            ([_, after @ ..], 1..) | ([b' ' | b'\t', after @ ..], 0) => after,
            (_, 0) => break,
        };
    }
    match rest {
        [b'"', quoted @ ..] => {
            quoted.split_at_checked(memchr::memchr(b'"', quoted)?).map(|(name, _)| name)
        }
        _ => {
            let end = rest
                .iter()
                .position(|byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\n' | b';' | b'('))?;
            rest.get(..end)
        }
    }
}
