//! A message's header for signatures: its fields in order, and their canonicalization (RFC 6376
//! §3.4.1, §3.4.2, §5.4.2).

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::ops::Range;

use memchr::{memchr, memmem};

use crate::body::CanonicalForm;

/// The most fields of a header: if a message has more, none of its signatures passes. This server
/// accepts messages with 1,000 fields (crate `inbound`), and the limit leaves room for added
/// fields.
pub const FIELDS_MAX: usize = 1_100;

/// The approximate memory of a name in the map, in bytes, without the name itself.
const NAME_BYTES: usize = 128;

/// The fields of a header.
pub(crate) struct HeaderIndex {
    bytes: Vec<u8>,
    fields: Vec<FieldRange>,
    /// The fields with each name, from the top. Names are in lower case.
    by_name: BTreeMap<Box<[u8]>, Vec<usize>>,
    /// Whether `fields` has all fields of the header.
    is_whole: bool,
}

/// The range of a field including its line end, and the range of its value without the line end.
struct FieldRange {
    whole: Range<usize>,
    value: Range<usize>,
}

impl HeaderIndex {
    /// Reads a header: its lines, without the empty line after them, and up to [`FIELDS_MAX`]
    /// fields. A line that is not a field is skipped.
    pub(crate) fn read(mut bytes: Vec<u8>) -> HeaderIndex {
        if !bytes.is_empty() && !bytes.ends_with(b"\r\n") {
            bytes.extend(b"\r\n");
        }
        bytes.shrink_to_fit();
        let mut header =
            HeaderIndex { bytes, fields: Vec::new(), by_name: BTreeMap::new(), is_whole: true };
        let mut start = 0;
        while let Some(length) = field_length(header.at(start..header.bytes.len())) {
            let whole = start..start + length;
            if let Some((name, value)) = parts(header.at(whole.clone())) {
                if header.fields.len() >= FIELDS_MAX {
                    header.is_whole = false;
                    break;
                }
                let value = start + value.start..start + value.end;
                header.by_name.entry(name).or_default().push(header.fields.len());
                header.fields.push(FieldRange { whole: whole.clone(), value });
            }
            start = whole.end;
        }
        header
    }

    /// Whether all fields of the header were read.
    pub(crate) fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// The whole header as received.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The approximate memory of the header, in bytes.
    pub(crate) fn footprint(&self) -> usize {
        let names: usize = self.by_name.keys().map(|name| name.len() + NAME_BYTES).sum();
        self.bytes.capacity()
            + self.fields.capacity() * (size_of::<FieldRange>() + size_of::<usize>())
            + names
    }

    /// The fields with a name, from the top. `name` must be in lower case.
    pub(crate) fn named(&self, name: &[u8]) -> &[usize] {
        self.by_name.get(name).map(Vec::as_slice).unwrap_or_default()
    }

    /// Whether the header begins with white space. The first line of such a header would continue a
    /// field that is placed above it.
    pub(crate) fn begins_folded(&self) -> bool {
        matches!(self.bytes.first(), Some(b' ' | b'\t'))
    }

    /// The value of a field. Empty if there is no such field.
    pub(crate) fn value(&self, field: usize) -> &[u8] {
        self.fields.get(field).map(|field| self.at(field.value.clone())).unwrap_or_default()
    }

    /// Writes the fields with these names. A name stands for the lowest field of that name that was
    /// not written yet, or for nothing if no field is left. The field `except` is never written.
    pub(crate) fn write_selected<'a>(
        &self,
        names: impl Iterator<Item = &'a [u8]>,
        except: Option<usize>,
        form: CanonicalForm,
        out: &mut Vec<u8>,
    ) {
        let mut left = BTreeMap::new();
        for name in names {
            let name = name.to_ascii_lowercase();
            let fields = self.named(&name);
            let left = left
                .entry(name)
                .or_insert_with(|| fields.iter().rev().filter(|field| Some(**field) != except));
            if let Some(field) = left.next().and_then(|field| self.fields.get(*field)) {
                write(self.at(field.whole.clone()), form, out);
            }
        }
    }

    /// Writes a field with its line end.
    pub(crate) fn write_field(&self, field: usize, form: CanonicalForm, out: &mut Vec<u8>) {
        let Some(FieldRange { whole, .. }) = self.fields.get(field) else { return };
        write(self.at(whole.clone()), form, out);
    }

    /// Writes a field without a part of its value and without its line end. Signatures cover their
    /// own fields in this form.
    pub(crate) fn write_without(
        &self,
        field: usize,
        part: Range<usize>,
        form: CanonicalForm,
        out: &mut Vec<u8>,
    ) {
        let Some(FieldRange { whole, value }) = self.fields.get(field) else { return };
        let before = self.at(whole.start..value.start + part.start);
        let after = self.at(value.start + part.end..whole.end);
        write_last(&[before, after].concat(), form, out);
    }

    fn at(&self, range: Range<usize>) -> &[u8] {
        self.bytes.get(range).unwrap_or_default()
    }
}

/// The length of the first field in `bytes`, with its line end. A field ends at the first line end
/// that no white space follows.
fn field_length(bytes: &[u8]) -> Option<usize> {
    memmem::find_iter(bytes, b"\r\n")
        .map(|end| end + 2)
        .find(|end| !matches!(bytes.get(*end), Some(b' ' | b'\t')))
}

/// A field's name in lower case, and the range of its value.
fn parts(field: &[u8]) -> Option<(Box<[u8]>, Range<usize>)> {
    let colon = memchr(b':', field)?;
    let name = field.get(..colon)?.trim_ascii_end();
    let is_name = !name.is_empty() && name.iter().all(u8::is_ascii_graphic);
    is_name.then(|| (name.to_ascii_lowercase().into(), colon + 1..field.len().saturating_sub(2)))
}

/// Writes a field in a canonical form, without its line end.
pub(crate) fn write_last(field: &[u8], form: CanonicalForm, out: &mut Vec<u8>) {
    write(field, form, out);
    out.truncate(out.len().saturating_sub(2));
}

/// Writes a field in a canonical form.
pub(crate) fn write(field: &[u8], form: CanonicalForm, out: &mut Vec<u8>) {
    match form {
        CanonicalForm::Simple => out.extend(field),
        CanonicalForm::Relaxed => write_relaxed(field, out),
    }
}

fn write_relaxed(field: &[u8], out: &mut Vec<u8>) {
    let colon = memchr(b':', field).unwrap_or(field.len());
    let (name, value) = field.split_at_checked(colon).unwrap_or_default();
    out.extend(name.trim_ascii_end().to_ascii_lowercase());
    out.push(b':');
    // A line end within a field precedes white space, so the line end is at the end of a word.
    let unfolded = value.get(1..).unwrap_or_default().split(|byte| b" \t".contains(byte));
    let words = unfolded
        .map(|word| word.strip_suffix(b"\r\n").unwrap_or(word))
        .filter(|word| !word.is_empty());
    for (number, word) in words.enumerate() {
        if number > 0 {
            out.push(b' ');
        }
        out.extend(word);
    }
    out.extend(b"\r\n");
}
