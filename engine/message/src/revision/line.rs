//! What a line of a message's header is, for the server that takes the message.

use crate::date::DATE_TIME_BYTES;

/// Bytes of a line by which it is told what it is. So many are held back until it can be told.
pub(super) const HELD_BYTES_MAX: usize = 256;

/// Where a message comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Origin {
    /// A host outside of our networks.
    Stranger,
    /// A host of our networks.
    Relayed,
    /// The program of a client that has logged in.
    Submitted,
}

/// The server that revises, and what it calls the message.
#[derive(Clone, Copy, Debug)]
pub struct Reviser<'a> {
    /// The server's name, at most 255 bytes.
    pub hostname: &'a str,
    /// Its name for the message, an atom of at most 32 bytes.
    pub identifier: &'a [u8],
    /// The address of the account that submits it: at most 320 bytes are used.
    pub author: &'a str,
    /// The present, as [`crate::date_time`] writes it.
    pub now: &'a [u8; DATE_TIME_BYTES],
}

/// What a line is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Line {
    /// Too little of it is there.
    Unknown,
    /// It goes on with the field before it.
    Folded,
    Received,
    Author,
    Date,
    Identifier,
    OtherField,
    /// A field that is left out.
    Unwanted,
    /// The empty line behind the header.
    Empty,
    /// No field although the header isn't over.
    Text,
}

/// By what it is told what a line is.
pub(super) struct Classifier<'a> {
    pub(super) origin: Origin,
    /// Header fields that stand before it.
    pub(super) fields_before: u16,
    pub(super) own: &'a Reviser<'a>,
}

impl Classifier<'_> {
    /// What the line is that begins here. `bytes`: as much as there is of it, and of what follows
    /// it.
    #[inline]
    pub(super) fn line(&self, bytes: &[u8]) -> Line {
        let Some(first) = bytes.first() else { return Line::Unknown };
        match (first, self.origin) {
            (b' ' | b'\t', _) => Line::Folded,
            (b'\n', _) => Line::Empty,
            (b'\r', _) => match bytes.get(1) {
                None => Line::Unknown,
                Some(b'\n') => Line::Empty,
                Some(_) => self.text(),
            },
            // Nearly all lines.
            (first, Origin::Relayed) if !matches!(first, b'A' | b'a' | b'R' | b'r') => {
                Line::OtherField
            }
            (first, Origin::Stranger)
                if !matches!(first, b'A' | b'a' | b'D' | b'd' | b'R' | b'r' | b'X' | b'x') =>
            {
                Line::OtherField
            }
            _ => self.field(bytes),
        }
    }

    fn field(&self, bytes: &[u8]) -> Line {
        // However much of it is there, no more counts than can be held.
        let bytes = bytes.get(..HELD_BYTES_MAX).unwrap_or(bytes);
        let is_enough = bytes.len() == HELD_BYTES_MAX;
        let name_end = bytes.iter().position(|byte| !is_of_name(*byte));
        let (name, rest) =
            bytes.split_at_checked(name_end.unwrap_or(bytes.len())).unwrap_or_default();
        let in_doubt = match is_enough {
            false => Line::Unknown,
            // A reader may take it for the field that it begins like.
            true if self.may_be_taken_for_ours(name) || name.eq_ignore_ascii_case(RESULTS) => {
                Line::Unwanted
            }
            true => self.text(),
        };
        if name_end.is_none() {
            return in_doubt;
        }
        // Old mail may put white space before the colon (RFC 5322 section 4.5).
        match rest
            .iter()
            .position(|byte| !matches!(byte, b' ' | b'\t'))
            .and_then(|at| rest.get(at..))
        {
            None => in_doubt,
            Some([b':', value @ ..]) if !name.is_empty() => self.named(name, value, is_enough),
            Some(_) if self.is_envelope_line(name, rest) || self.may_be_taken_for_ours(name) => {
                Line::Unwanted
            }
            Some(_) => self.text(),
        }
    }

    fn named(&self, name: &[u8], value: &[u8], is_enough: bool) -> Line {
        let is = |other: &str| name.eq_ignore_ascii_case(other.as_bytes());
        let is_submitted = self.origin == Origin::Submitted;
        if is("Received") {
            Line::Received
        } else if name.eq_ignore_ascii_case(RESULTS) {
            match server_of(value).map(|server| self.is_own_name(server)) {
                Some(false) => Line::OtherField,
                None if !is_enough => Line::Unknown,
                Some(true) | None => Line::Unwanted,
            }
        } else if is("Return-Path")
            || self.is_ours(name)
            || is_submitted && (is("Bcc") || is("Resent-Bcc"))
        {
            Line::Unwanted
        } else if is_submitted && is("From") {
            Line::Author
        } else if is_submitted && is("Date") {
            Line::Date
        } else if is_submitted && is("Message-ID") {
            Line::Identifier
        } else {
            Line::OtherField
        }
    }

    /// Whether only this server writes fields of that name, and this one is another's.
    fn is_ours(&self, name: &[u8]) -> bool {
        let start = name.get(..OWN_FIELDS.len()).unwrap_or_default();
        let is_ours =
            start.eq_ignore_ascii_case(OWN_FIELDS) || name.eq_ignore_ascii_case(DELIVERED_TO);
        self.origin == Origin::Stranger && is_ours
    }

    /// Whether a line that begins so, and is no field, is one of ours for some reader.
    fn may_be_taken_for_ours(&self, name: &[u8]) -> bool {
        let is_result =
            name.eq_ignore_ascii_case(RESULTS) || name.eq_ignore_ascii_case(b"Return-Path");
        self.is_ours(name) || self.origin == Origin::Stranger && is_result
    }

    /// Whether a server that calls itself so in `Authentication-Results:` is, or could be taken
    /// for, this one.
    fn is_own_name(&self, server: &[u8]) -> bool {
        let is_plain =
            server.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(byte));
        let undotted = server.iter().rposition(|byte| *byte != b'.').map_or(0, |last| last + 1);
        let server = match self.origin {
            Origin::Stranger if !is_plain => return true,
            Origin::Stranger => server.get(..undotted).unwrap_or_default(),
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

    /// What is no field: other servers' headers are left as they are.
    fn text(&self) -> Line {
        match self.origin {
            Origin::Relayed | Origin::Stranger => Line::OtherField,
            Origin::Submitted => Line::Text,
        }
    }
}

const RESULTS: &[u8] = b"Authentication-Results";
/// Fields that begin so are written by this server alone.
const OWN_FIELDS: &[u8] = b"X-Barepost-";
/// Says that a message passed an account. Against loops this server trusts only its own mark
/// (`relay::loops`).
const DELIVERED_TO: &[u8] = b"Delivered-To";

/// RFC 5322 section 3.6.8.
fn is_of_name(byte: u8) -> bool {
    byte.is_ascii_graphic() && byte != b':'
}

/// The name that an `Authentication-Results:` field gives the server that wrote it (RFC 8601
/// section 2.2); empty when the field has none. `None`: not all of it is there.
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
