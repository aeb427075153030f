//! Finds the fields of a message's header that message lists show, in one pass. The length of a
//! name is compared first, so most other fields are skipped without comparing a name.
//!
//! The end of the header and the fields are found as in
//! [`StructureReader`](crate::structure::StructureReader).

use crate::header::{begins_field, is_envelope_line, is_of_gateway, split_name};
use crate::structure::FIELD_BYTES_MAX;

/// The fields that a message list needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum SummaryField {
    From,
    Recipients,
    Subject,
    Date,
    MessageId,
    InReplyTo,
    References,
    ContentType,
    ContentDisposition,
    ContentTransferEncoding,
    ContentId,
}

impl SummaryField {
    /// The number of field names.
    pub(super) const COUNT: usize = SummaryField::ContentId as usize + 1;

    fn of(name: &[u8]) -> Option<SummaryField> {
        // Most names are written as in the RFCs.
        let is = |known: &[u8], found| {
            (name == known || name.eq_ignore_ascii_case(known)).then_some(found)
        };
        match name.len() {
            2 => {
                is(b"To", SummaryField::Recipients).or_else(|| is(b"Cc", SummaryField::Recipients))
            }
            4 => is(b"From", SummaryField::From).or_else(|| is(b"Date", SummaryField::Date)),
            7 => is(b"Subject", SummaryField::Subject),
            10 => is(b"Message-ID", SummaryField::MessageId)
                .or_else(|| is(b"References", SummaryField::References))
                .or_else(|| is(b"Content-ID", SummaryField::ContentId)),
            11 => is(b"In-Reply-To", SummaryField::InReplyTo),
            12 => is(b"Content-Type", SummaryField::ContentType),
            19 => is(b"Content-Disposition", SummaryField::ContentDisposition),
            25 => is(b"Content-Transfer-Encoding", SummaryField::ContentTransferEncoding),
            _ => None,
        }
    }
}

/// A field that is needed.
#[derive(Clone, Copy, Debug)]
pub(super) struct NeededField<'a> {
    pub(super) name: SummaryField,
    /// The value after the colon, as far as fields are examined, without trailing white space.
    pub(super) value: &'a [u8],
    /// The whole field, with its line ends.
    pub(super) bytes: &'a [u8],
}

impl NeededField<'_> {
    /// Whether readers see the text of the field.
    pub(super) fn is_for_readers(&self) -> bool {
        matches!(self.name, SummaryField::From | SummaryField::Recipients | SummaryField::Subject)
    }
}

/// The header's fields that are needed.
pub(super) struct NeededFields<'a> {
    rest: &'a [u8],
    /// Whether the header has any line before `rest`.
    pub(super) has_field: bool,
}

impl<'a> NeededFields<'a> {
    pub(super) fn new(message: &'a [u8]) -> NeededFields<'a> {
        NeededFields { rest: message, has_field: false }
    }

    /// The bytes after the fields, from the empty line on.
    pub(super) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// The next needed field.
    pub(super) fn next(&mut self) -> Option<NeededField<'a>> {
        loop {
            let (start, length) = (self.rest, line_length(self.rest));
            let line = start.get(..length.min(FIELD_BYTES_MAX)).unwrap_or_default();
            let name = match line {
                [] | b"\n" | b"\r\n" | b"\r" => return None,
                // A continuation line without a field: the line before it was ignored.
                [b' ' | b'\t', ..] => None,
                _ => match split_name(line) {
                    Some((name, _)) => Some(name),
                    None if is_envelope_line(line) => None,
                    // A line of a gateway, within the header.
                    None if self.has_field
                        && is_of_gateway(line)
                        && begins_field(start.get(length..)?) =>
                    {
                        self.rest = start.get(length..)?;
                        continue;
                    }
                    // The body has begun without an empty line.
                    None => return None,
                },
            };
            self.rest = start.get(length..).unwrap_or_default();
            self.has_field = true;
            let Some(name) = name else { continue };
            while let [b' ' | b'\t', ..] = self.rest {
                self.rest = self.rest.get(line_length(self.rest)..).unwrap_or_default();
            }
            if let Some(known) = SummaryField::of(name) {
                let bytes = start.get(..start.len() - self.rest.len()).unwrap_or_default();
                let field = bytes.get(..FIELD_BYTES_MAX).unwrap_or(bytes).trim_ascii_end();
                let colon = memchr::memchr(b':', field).unwrap_or(field.len());
                let value = field.get(colon + 1..).unwrap_or_default();
                return Some(NeededField { name: known, value, bytes });
            }
        }
    }
}

/// The length of the line at the start of `bytes`, with its end.
#[inline]
fn line_length(bytes: &[u8]) -> usize {
    memchr::memchr(b'\n', bytes).map_or(bytes.len(), |end| end + 1)
}
