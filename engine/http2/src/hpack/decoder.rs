//! The decoder for blocks of fields: RFC 7541 sections 3.2, 5.2 and 6.

use super::HpackError;
use super::fields::{FieldList, PartialField};
use super::integer;
use super::table::Table;

/// The state that one side keeps to decode the fields of the other side.
#[derive(Debug)]
pub struct Decoder {
    table: Table,
}

/// The representation of a field in a block.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FieldRepresentation {
    /// An index of the static or dynamic table.
    Indexed,
    /// A literal that is added to the dynamic table.
    WithIndexing,
    /// A literal that is not added to the dynamic table.
    WithoutIndexing,
    /// A new limit for the dynamic table, instead of a field.
    Limit,
}

impl FieldRepresentation {
    /// The representation that begins with `byte`, and how many low bits of `byte` begin an
    /// integer.
    fn of(byte: u8) -> (FieldRepresentation, u32) {
        match byte {
            0x80.. => (FieldRepresentation::Indexed, 7),
            0x40.. => (FieldRepresentation::WithIndexing, 6),
            0x20.. => (FieldRepresentation::Limit, 5),
            _ => (FieldRepresentation::WithoutIndexing, 4),
        }
    }
}

impl Default for Decoder {
    fn default() -> Decoder {
        Decoder::new()
    }
}

impl Decoder {
    /// A decoder with an empty dynamic table.
    pub fn new() -> Decoder {
        Decoder { table: Table::new() }
    }

    /// Decodes a whole block into `fields`.
    ///
    /// Errors: the block is malformed. Later blocks of the connection cannot be decoded.
    pub fn decode(&mut self, block: &[u8], fields: &mut FieldList) -> Result<(), HpackError> {
        let mut rest = block;
        let mut is_at_start = true;
        while let Some(first) = rest.first() {
            let (form, bits) = FieldRepresentation::of(*first);
            let number = integer::take(&mut rest, bits)? as usize;
            if form == FieldRepresentation::Limit {
                // RFC 7541 section 4.2: a new limit may occur only at the start of a block.
                let is_set = is_at_start && self.table.set_limit(number);
                is_set.then_some(()).ok_or(HpackError)?;
                continue;
            }
            is_at_start = false;
            let mut field = fields.begin();
            self.read(form, number, &mut rest, &mut field)?;
            if form == FieldRepresentation::WithIndexing {
                match field.field() {
                    Some((name, value)) => self.table.add(name, value),
                    None => self.table.clear(),
                }
            }
            field.keep();
        }
        Ok(())
    }

    /// The memory of the dynamic table, in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.table.memory_bytes()
    }

    fn read(
        &self,
        form: FieldRepresentation,
        number: usize,
        rest: &mut &[u8],
        field: &mut PartialField<'_>,
    ) -> Result<(), HpackError> {
        if form == FieldRepresentation::Indexed {
            let (name, value) = self.table.get(number).ok_or(HpackError)?;
            field.push(name);
            field.name_ended();
            field.push(value);
            return Ok(());
        }
        match number {
            0 => string(rest, field)?,
            _ => field.push(self.table.get(number).ok_or(HpackError)?.0),
        }
        field.name_ended();
        string(rest, field)
    }
}

/// Takes a string from `rest`, with or without Huffman code, and appends it to `field`.
fn string(rest: &mut &[u8], field: &mut PartialField<'_>) -> Result<(), HpackError> {
    let is_coded = rest.first().is_some_and(|first| first & 0x80 != 0);
    let length = integer::take(rest, 7)? as usize;
    let (bytes, behind) = rest.split_at_checked(length).ok_or(HpackError)?;
    *rest = behind;
    if is_coded {
        return field.push_coded(bytes);
    }
    field.push(bytes);
    Ok(())
}
