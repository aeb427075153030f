//! The properties of a message or a file in a container.
//!
//! Implements: MS-OXTNEF section 2.1.3.4 and MS-OXCDATA section 2.11.1 (types).

/// A text of a property.
#[derive(Clone, Copy, Debug)]
pub(super) struct PropertyText<'a> {
    pub(super) bytes: &'a [u8],
    /// Whether the text is in UTF-16, little endian, and not in the code page of the container.
    pub(super) is_utf16: bool,
    /// Whether the given bytes end with the text. If they are only the beginning of the properties,
    /// the text may be incomplete.
    pub(super) is_last: bool,
}

/// Types of properties.
const STRING: u16 = 0x1e;
const UTF16: u16 = 0x1f;

/// In a type: the property has several values.
const MULTIPLE: u16 = 0x1000;

/// Identifiers from here on are followed by a name.
const FIRST_NAMED: u16 = 0x8000;

/// The number of bytes of the set of names before a name.
const NAME_SET_BYTES: usize = 16;

/// The first text with this identifier. `bytes`: the properties, or the beginning of them.
pub(super) fn text(bytes: &[u8], identifier: u16) -> Option<PropertyText<'_>> {
    let mut rest = bytes;
    let count = number(&mut rest)?;
    for _ in 0..count {
        let [t0, t1, i0, i1] = number(&mut rest)?.to_le_bytes();
        let (kind, found) = (u16::from_le_bytes([t0, t1]), u16::from_le_bytes([i0, i1]));
        if found >= FIRST_NAMED {
            take(&mut rest, NAME_SET_BYTES)?;
            if number(&mut rest)? == 0 {
                number(&mut rest)?;
            } else {
                sized(&mut rest)?;
            }
        }
        let value = values(&mut rest, kind)?;
        if found == identifier && matches!(kind, STRING | UTF16) {
            let (is_utf16, is_last) = (kind == UTF16, rest.is_empty());
            return Some(PropertyText { bytes: value, is_utf16, is_last });
        }
    }
    None
}

/// Takes the values of a property of this type. Returns the last one.
fn values<'a>(rest: &mut &'a [u8], kind: u16) -> Option<&'a [u8]> {
    let size = match kind & !MULTIPLE {
        0x0002..=0x0004 | 0x000a | 0x000b => Some(4),
        0x0005..=0x0007 | 0x0014 | 0x0040 => Some(8),
        0x0048 => Some(16),
        0x000d | 0x001e | 0x001f | 0x0102 => None,
        _ => return None,
    };
    let has_count = size.is_none() || kind & MULTIPLE != 0;
    let count = if has_count { number(rest)? } else { 1 };
    let mut last: &[u8] = &[];
    for _ in 0..count {
        last = match size {
            Some(size) => take(rest, size)?,
            None => sized(rest)?,
        };
    }
    Some(last)
}

/// Takes a number of 32 bits.
fn number(rest: &mut &[u8]) -> Option<u32> {
    let (number, after) = rest.split_first_chunk()?;
    *rest = after;
    Some(u32::from_le_bytes(*number))
}

/// Takes this many bytes.
fn take<'a>(rest: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
    let (taken, after) = rest.split_at_checked(count)?;
    *rest = after;
    Some(taken)
}

/// Takes a size and the value after it, as far as the bytes reach. The value is padded to a
/// multiple of four bytes.
fn sized<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let size = usize::try_from(number(rest)?).ok()?;
    let value = rest.get(..size).unwrap_or(rest);
    *rest = rest.get(size.checked_next_multiple_of(4)?..).unwrap_or_default();
    Some(value)
}
