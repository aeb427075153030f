//! The part of the encoder that needs no dynamic table: RFC 7541 sections 6.1, 6.2.2 and 6.2.3.

use heapless::Vec;

use super::integer;
use super::statics;

/// The buffer has too little space for a field.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BufferFull;

/// First bytes of a literal field.
const WITHOUT_INDEXING: u8 = 0;
const NEVER_INDEXED: u8 = 0x10;

/// The first index of `:status` in the static table, and the statuses in that table.
const STATUS_INDEX: usize = 8;
const STATUSES: [u16; 7] = [200, 204, 206, 304, 400, 404, 500];

/// Appends the status of a response, with three digits. Call it before all fields.
///
/// Errors: `block` is too small. It then ends with an unusable part of the field.
pub fn encode_status<const BYTES: usize>(
    block: &mut Vec<u8, BYTES>,
    status: u16,
) -> Result<(), BufferFull> {
    if let Some(nth) = STATUSES.iter().position(|known| *known == status) {
        return block.push(0x80 | (STATUS_INDEX + nth) as u8).map_err(|_| BufferFull);
    }
    let digits = [status / 100, status / 10, status].map(|number| b'0' + (number % 10) as u8);
    number(block, STATUS_INDEX, 4, WITHOUT_INDEXING)?;
    string(block, digits.into_iter())
}

/// Appends a field. Writes its name in lower case, as the protocol requires.
///
/// Errors: `block` is too small. It then ends with an unusable part of the field.
pub fn encode_field<const BYTES: usize>(
    block: &mut Vec<u8, BYTES>,
    name: &[u8],
    value: &[u8],
) -> Result<(), BufferFull> {
    literal(block, WITHOUT_INDEXING, name, value)
}

/// Appends a field with a secret value, which no proxy may add to a table (section 7.1.3).
///
/// Errors: `block` is too small. It then ends with an unusable part of the field.
pub fn encode_secret<const BYTES: usize>(
    block: &mut Vec<u8, BYTES>,
    name: &[u8],
    value: &[u8],
) -> Result<(), BufferFull> {
    literal(block, NEVER_INDEXED, name, value)
}

fn literal<const BYTES: usize>(
    block: &mut Vec<u8, BYTES>,
    above: u8,
    name: &[u8],
    value: &[u8],
) -> Result<(), BufferFull> {
    match statics::ENTRIES.iter().position(|(known, _)| known.eq_ignore_ascii_case(name)) {
        Some(nth) => number(block, nth + 1, 4, above)?,
        None => {
            number(block, 0, 4, above)?;
            string(block, name.iter().map(u8::to_ascii_lowercase))?;
        }
    }
    number(block, value.len(), 7, 0)?;
    block.extend_from_slice(value).map_err(|_| BufferFull)
}

fn string<const BYTES: usize>(
    block: &mut Vec<u8, BYTES>,
    bytes: impl ExactSizeIterator<Item = u8>,
) -> Result<(), BufferFull> {
    number(block, bytes.len(), 7, 0)?;
    for byte in bytes {
        block.push(byte).map_err(|_| BufferFull)?;
    }
    Ok(())
}

fn number<const BYTES: usize>(
    block: &mut Vec<u8, BYTES>,
    value: usize,
    bits: u32,
    above: u8,
) -> Result<(), BufferFull> {
    let mut fits = true;
    integer::put(value, bits, above, |byte| fits &= block.push(byte).is_ok());
    fits.then_some(()).ok_or(BufferFull)
}
