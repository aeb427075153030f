//! Integers that begin in some bits of a byte: RFC 7541 section 5.1.

use super::HpackError;

/// The largest integer that is accepted. No field needs a larger one.
const VALUE_MAX: u32 = 1 << 24;

/// Takes the integer that begins in the lowest `bits` bits of the first byte.
///
/// Errors: the integer is incomplete, or larger than `VALUE_MAX`.
pub(crate) fn take(input: &mut &[u8], bits: u32) -> Result<u32, HpackError> {
    let (first, mut rest) = input.split_first().ok_or(HpackError)?;
    let most = (1u32 << bits) - 1;
    let mut value = u32::from(*first) & most;
    if value == most {
        let mut shift = 0;
        loop {
            let (byte, behind) = rest.split_first().ok_or(HpackError)?;
            rest = behind;
            value += u32::from(byte & 0x7f).checked_shl(shift).ok_or(HpackError)?;
            shift += 7;
            match byte & 0x80 {
                _ if value > VALUE_MAX || shift > 28 => return Err(HpackError),
                0 => break,
                _ => {}
            }
        }
    }
    *input = rest;
    Ok(value)
}

/// Writes an integer. It begins in the lowest `bits` bits of a byte that has `above` in its other
/// bits, and continues in more bytes.
pub(crate) fn put(value: usize, bits: u32, above: u8, mut put: impl FnMut(u8)) {
    let most = (1usize << bits) - 1;
    if value < most {
        return put(above | value as u8);
    }
    put(above | most as u8);
    let mut left = value - most;
    while left >= 0x80 {
        put(left as u8 | 0x80);
        left >>= 7;
    }
    put(left as u8);
}
