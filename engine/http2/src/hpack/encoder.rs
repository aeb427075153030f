//! What of the encoder needs no table of its own: RFC 7541 sections 6.1, 6.2.2 and 6.2.3.

use heapless::Vec;

use super::integer;
use super::statics;

/// There was no room for all of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Full;

/// What a field begins with that is said in full.
const WITHOUT_INDEXING: u8 = 0;
const NEVER_INDEXED: u8 = 0x10;

/// Where in the static table `:status` begins, and which statuses it has.
const STATUS_INDEX: usize = 8;
const STATUSES: [u16; 7] = [200, 204, 206, 304, 400, 404, 500];

/// Adds the status of a response, of three digits, which comes before all fields.
///
/// Errors: what there was room for is written, which is of no use.
pub fn encode_status<const BYTES: usize>(
    block: &mut Vec<u8, BYTES>,
    status: u16,
) -> Result<(), Full> {
    if let Some(nth) = STATUSES.iter().position(|known| *known == status) {
        return block.push(0x80 | (STATUS_INDEX + nth) as u8).map_err(|_| Full);
    }
    let digits = [status / 100, status / 10, status].map(|number| b'0' + (number % 10) as u8);
    number(block, STATUS_INDEX, 4, WITHOUT_INDEXING)?;
    string(block, digits.into_iter())
}

/// Adds a field; the name's letters become small, as they must be.
///
/// Errors: what there was room for is written, which is of no use.
pub fn encode_field<const BYTES: usize>(
    block: &mut Vec<u8, BYTES>,
    name: &[u8],
    value: &[u8],
) -> Result<(), Full> {
    literal(block, WITHOUT_INDEXING, name, value)
}

/// The same with a value that is nobody's business: whoever passes it on may not put it into a table either (section 7.1.3).
///
/// Errors: what there was room for is written, which is of no use.
pub fn encode_secret<const BYTES: usize>(
    block: &mut Vec<u8, BYTES>,
    name: &[u8],
    value: &[u8],
) -> Result<(), Full> {
    literal(block, NEVER_INDEXED, name, value)
}

fn literal<const BYTES: usize>(
    block: &mut Vec<u8, BYTES>,
    above: u8,
    name: &[u8],
    value: &[u8],
) -> Result<(), Full> {
    match statics::ENTRIES.iter().position(|(known, _)| known.eq_ignore_ascii_case(name)) {
        Some(nth) => number(block, nth + 1, 4, above)?,
        None => {
            number(block, 0, 4, above)?;
            string(block, name.iter().map(u8::to_ascii_lowercase))?;
        }
    }
    number(block, value.len(), 7, 0)?;
    block.extend_from_slice(value).map_err(|_| Full)
}

fn string<const BYTES: usize>(
    block: &mut Vec<u8, BYTES>,
    bytes: impl ExactSizeIterator<Item = u8>,
) -> Result<(), Full> {
    number(block, bytes.len(), 7, 0)?;
    for byte in bytes {
        block.push(byte).map_err(|_| Full)?;
    }
    Ok(())
}

fn number<const BYTES: usize>(
    block: &mut Vec<u8, BYTES>,
    value: usize,
    bits: u32,
    above: u8,
) -> Result<(), Full> {
    let mut fits = true;
    integer::put(value, bits, above, |byte| fits &= block.push(byte).is_ok());
    fits.then_some(()).ok_or(Full)
}
