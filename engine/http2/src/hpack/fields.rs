//! The decoded fields of one block.

use heapless::Vec;

use super::HpackError;
use super::huffman;
use super::table::{NameValue, TABLE_BYTES_MAX};

/// The longest list of fields that is kept, in bytes. Each field counts 32 bytes more than its name
/// and value (RFC 9113 section 6.5.2).
pub const LIST_BYTES_MAX: usize = 8192;

/// The maximum number of fields that are kept.
pub const FIELDS_MAX: usize = 104;

/// Bytes that a field counts in addition to its name and its value.
const FIELD_OVERHEAD: usize = 32;

/// The size of the text buffer, in bytes: the longest list, and any field of the dynamic table
/// after it.
const TEXT_BYTES: usize = LIST_BYTES_MAX + TABLE_BYTES_MAX;

/// The fields of a block, in order. Names and values are not validated.
#[derive(Default)]
pub struct FieldList {
    text: Vec<u8, TEXT_BYTES>,
    /// The end of the name and of the value of each field, as offsets in the text.
    ends: Vec<(u16, u16), FIELDS_MAX>,
    list_bytes: usize,
    is_too_large: bool,
}

impl FieldList {
    /// An empty list.
    pub fn new() -> FieldList {
        FieldList::default()
    }

    /// Whether the block exceeded the limits. If so, some of its fields are missing from this list.
    pub fn is_too_large(&self) -> bool {
        self.is_too_large
    }

    /// The names and values, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let mut start = 0;
        self.ends.iter().filter_map(move |(name_end, end)| {
            let name = self.text.get(start..usize::from(*name_end))?;
            start = usize::from(*end);
            Some((name, self.text.get(usize::from(*name_end)..start)?))
        })
    }

    /// Begins a field that may be kept.
    pub(crate) fn begin(&mut self) -> PartialField<'_> {
        let start = self.text.len();
        PartialField { fields: self, start, name_end: start, is_whole: true }
    }
}

/// A field that is being written after the fields of the list.
pub(crate) struct PartialField<'a> {
    fields: &'a mut FieldList,
    start: usize,
    name_end: usize,
    /// Whether all bytes of the field had space in the buffer.
    is_whole: bool,
}

impl PartialField<'_> {
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.is_whole &= self.fields.text.extend_from_slice(bytes).is_ok();
    }

    pub(crate) fn push_coded(&mut self, coded: &[u8]) -> Result<(), HpackError> {
        huffman::decode(coded, |byte| self.is_whole &= self.fields.text.push(byte).is_ok())
    }

    pub(crate) fn name_ended(&mut self) {
        self.name_end = self.fields.text.len();
    }

    /// The field, if all its bytes had space. Any field that fits into the table has enough space.
    pub(crate) fn field(&self) -> Option<NameValue<'_>> {
        let text = self.fields.text.get(self.start..).filter(|_| self.is_whole)?;
        text.split_at_checked(self.name_end - self.start)
    }

    /// Adds the field to the list, unless the list would exceed its limits.
    pub(crate) fn keep(self) {
        let fields = self.fields;
        let end = fields.text.len();
        fields.list_bytes = fields.list_bytes.saturating_add(end - self.start + FIELD_OVERHEAD);
        let fits = self.is_whole && fields.list_bytes <= LIST_BYTES_MAX;
        if !fits || fields.ends.push((self.name_end as u16, end as u16)).is_err() {
            fields.is_too_large = true;
            fields.text.truncate(self.start);
        }
    }
}
