//! The fields of one block, decoded, in room of their own.

use heapless::Vec;

use super::Broken;
use super::huffman;
use super::table::{Field, TABLE_BYTES_MAX};

/// The longest list of fields that is kept, in bytes, each field counted with 32 more as RFC 9113 section 6.5.2 does.
pub const LIST_BYTES_MAX: usize = 8192;

/// The most fields that are kept.
pub const FIELDS_MAX: usize = 104;

/// What a field counts beside its name and its value.
const FIELD_OVERHEAD: usize = 32;

/// Behind all that is kept there is room for any field that fits into the table.
const TEXT_BYTES: usize = LIST_BYTES_MAX + TABLE_BYTES_MAX;

/// The fields of a block, in order. Nothing of this was held against any grammar.
#[derive(Default)]
pub struct Fields {
    text: Vec<u8, TEXT_BYTES>,
    /// Where in the text each ends: its name, and its value.
    ends: Vec<(u16, u16), FIELDS_MAX>,
    list_bytes: usize,
    is_too_large: bool,
}

impl Fields {
    /// No fields yet.
    pub fn new() -> Fields {
        Fields::default()
    }

    /// Whether the block said more than is kept: then not all of its fields are here.
    pub fn is_too_large(&self) -> bool {
        self.is_too_large
    }

    /// Names and values.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let mut start = 0;
        self.ends.iter().filter_map(move |(name_end, end)| {
            let name = self.text.get(start..usize::from(*name_end))?;
            start = usize::from(*end);
            Some((name, self.text.get(usize::from(*name_end)..start)?))
        })
    }

    /// Begins a field that may be kept.
    pub(crate) fn begin(&mut self) -> Begun<'_> {
        let start = self.text.len();
        Begun { fields: self, start, name_end: start, is_whole: true }
    }
}

/// A field that is being written behind those that are kept.
pub(crate) struct Begun<'a> {
    fields: &'a mut Fields,
    start: usize,
    name_end: usize,
    /// Whether there was room for all of it.
    is_whole: bool,
}

impl Begun<'_> {
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.is_whole &= self.fields.text.extend_from_slice(bytes).is_ok();
    }

    pub(crate) fn push_coded(&mut self, coded: &[u8]) -> Result<(), Broken> {
        huffman::decode(coded, |byte| self.is_whole &= self.fields.text.push(byte).is_ok())
    }

    pub(crate) fn name_ended(&mut self) {
        self.name_end = self.fields.text.len();
    }

    /// The field, if there was room for all of it: one that fits into the table is always whole.
    pub(crate) fn field(&self) -> Option<Field<'_>> {
        let text = self.fields.text.get(self.start..).filter(|_| self.is_whole)?;
        text.split_at_checked(self.name_end - self.start)
    }

    /// Keeps the field, unless there would be too much.
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
