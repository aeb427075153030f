//! Shortens a long header to the fields that a summary needs.
//!
//! Messages are summarized from their first chunk. Some headers are longer: a list of 700
//! recipients, or many ARC sets. So the store keeps the shortened header of the chunks that it has
//! written, and the next chunk continues it.
//!
//! Invariants:
//! - A shortened header is at most [`SHORT_HEADER_BYTES_MAX`] bytes long.
//! - The shortened header with the bytes that follow has the same needed fields as the whole
//!   message. Each field is cut to [`FIELD_BYTES_KEPT`] bytes. Of each name, only the first field
//!   with a value is kept.

use alloc::vec::Vec;

use super::fields::{NeededFields, SummaryField};

/// The bytes that are kept of a field. The text of a subject in a list has at most 120 bytes. With
/// the longest encoding, it has fewer than 480 in the header.
const FIELD_BYTES_KEPT: usize = 512;

/// The most bytes of a shortened header: one field of each name, and the line that goes on.
pub const SHORT_HEADER_BYTES_MAX: usize = (SummaryField::COUNT + 1) * (FIELD_BYTES_KEPT + 2);

/// A field without a meaning. It stands for a field that is not needed and may go on.
const OTHER_FIELD: &[u8] = b"X:";

/// The fields that a summary needs, from a header that continues after `beginning`. The caller may
/// append the next bytes of the message to the result, and shorten it again. `None`: the header
/// ends within `beginning`.
pub fn shorten_header(beginning: &[u8]) -> Option<Vec<u8>> {
    let mut short = Vec::new();
    let mut kept = [false; SummaryField::COUNT];
    let mut fields = NeededFields::new(beginning);
    // Whether the last field of `beginning` is the last kept field.
    let mut is_last_kept = false;
    while let Some(field) = fields.next() {
        is_last_kept = false;
        // White space before the colon may be longer than what is kept.
        let first = field.bytes.get(..FIELD_BYTES_KEPT).unwrap_or(field.bytes);
        if !first.contains(&b':') {
            continue;
        }
        let Some(kept) = kept.get_mut(field.name as usize).filter(|kept| !**kept) else { continue };
        let goes_on = fields.rest().is_empty();
        // An empty group, such as `undisclosed-recipients:;`, has no value either.
        *kept = goes_on || !field.value.is_empty() && !field.value.ends_with(b":;");
        if *kept {
            push_field(field.bytes, goes_on, &mut short);
            is_last_kept = goes_on;
        }
    }
    let rest = fields.rest();
    if rest.is_empty() {
        if !is_last_kept && !beginning.is_empty() {
            short.extend_from_slice(OTHER_FIELD);
            if beginning.ends_with(b"\n") {
                short.extend_from_slice(b"\r\n");
            }
        }
        return Some(short);
    }
    // The next bytes decide whether a line that is not a field belongs to the header.
    let line_end = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
    let is_last_line = line_end + 1 >= rest.len() && rest.len() <= FIELD_BYTES_KEPT;
    let is_empty_line = matches!(rest, b"\n" | b"\r\n");
    (is_last_line && !is_empty_line).then(|| {
        if short.is_empty() && fields.has_field {
            short.extend_from_slice(OTHER_FIELD);
            short.extend_from_slice(b"\r\n");
        }
        short.extend_from_slice(rest);
        short
    })
}

/// Adds the first bytes of a field. The next bytes of the message continue the field if it
/// `goes_on`.
fn push_field(bytes: &[u8], goes_on: bool, short: &mut Vec<u8>) {
    let Some(first) = bytes.get(..FIELD_BYTES_KEPT) else { return short.extend_from_slice(bytes) };
    // After a line end, the line end below would be the end of the header.
    short.extend_from_slice(first.trim_ascii_end());
    if !goes_on || bytes.ends_with(b"\n") {
        short.extend_from_slice(b"\r\n");
    }
}
