//! Byte ranges: parts of a representation.
//!
//! Implements: RFC 9110 section 14.

use core::ops::Range;

use heapless::Vec;

/// The maximum number of parts of one response. A client that asks for more parts gets the whole
/// file, since RFC 9110 section 14.2 warns of many small ranges.
pub(crate) const RANGES_MAX: usize = 8;

/// Non-empty parts of a representation, in the order of the client's request.
pub(crate) type Parts = Vec<Range<u64>, RANGES_MAX>;

/// The meaning of a `Range` field.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum RequestedRanges {
    /// The whole file: the field is not understood, or asks for too much.
    Whole,
    /// The requested parts that exist, at least one.
    Parts(Parts),
    /// None of the requested parts exists: 416.
    Nothing,
}

/// Reads the value of a `Range` field for a representation of `length` bytes.
pub(crate) fn parse(value: &[u8], length: u64) -> RequestedRanges {
    let Some((unit, set)) = value.split_at_checked(6) else { return RequestedRanges::Whole };
    if !unit.eq_ignore_ascii_case(b"bytes=") {
        return RequestedRanges::Whole;
    }
    let mut parts = Parts::new();
    for item in
        set.split(|&byte| byte == b',').map(<[u8]>::trim_ascii).filter(|item| !item.is_empty())
    {
        match part(item, length) {
            None => return RequestedRanges::Whole,
            Some(part) if part.is_empty() => {}
            Some(part) => {
                if parts.push(part).is_err() {
                    return RequestedRanges::Whole;
                }
            }
        }
    }
    if parts.is_empty() {
        return RequestedRanges::Nothing;
    }
    // If all parts together are larger than the file, the client probably only wants to cause work,
    // and gets the whole file.
    if parts.iter().map(|part| part.end - part.start).sum::<u64>() > length {
        return RequestedRanges::Whole;
    }
    RequestedRanges::Parts(parts)
}

/// Parses one `first-last`, `first-` or `-count`. The result is empty if the range is outside of
/// the file, and `None` if `item` is malformed.
fn part(item: &[u8], length: u64) -> Option<Range<u64>> {
    let dash = item.iter().position(|&byte| byte == b'-')?;
    let (first, last) = (item.get(..dash)?, item.get(dash + 1..)?);
    match (first.is_empty(), last.is_empty()) {
        (true, true) => None,
        (true, false) => Some(length.saturating_sub(number(last)?)..length),
        (false, true) => Some(number(first)?.min(length)..length),
        (false, false) => {
            let (first, last) = (number(first)?, number(last)?);
            (first <= last).then(|| first.min(length)..last.saturating_add(1).min(length))
        }
    }
}

/// Parses a number. A number that is too large becomes `u64::MAX`.
fn number(digits: &[u8]) -> Option<u64> {
    digits.iter().try_fold(0u64, |number, digit| {
        let digit = digit.is_ascii_digit().then(|| u64::from(digit - b'0'))?;
        Some(number.saturating_mul(10).saturating_add(digit))
    })
}
