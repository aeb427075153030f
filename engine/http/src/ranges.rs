//! Byte ranges: parts of a representation.
//!
//! Implements: RFC 9110 section 14.

use core::ops::Range;

use heapless::Vec;

/// The most parts of one response. A client that asks for more gets the whole file (RFC 9110
/// section 14.2 warns of many small ones).
pub(crate) const RANGES_MAX: usize = 8;

/// Parts of a representation, none empty, in the client's order.
pub(crate) type Parts = Vec<Range<u64>, RANGES_MAX>;

/// The meaning of a `Range` field.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum RequestedRanges {
    /// The whole file: the field is not understood, or asks for too much.
    Whole,
    /// One part, or several.
    Parts(Parts),
    /// No part that exists: 416.
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
    // The parts are larger than the whole file together: the client tries to cause work.
    if parts.iter().map(|part| part.end - part.start).sum::<u64>() > length {
        return RequestedRanges::Whole;
    }
    RequestedRanges::Parts(parts)
}

/// One `first-last`, `first-` or `-count`. The result is empty if the part is outside of the file,
/// and `None` if `item` is malformed.
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

/// A number. It saturates instead of overflowing.
fn number(digits: &[u8]) -> Option<u64> {
    digits.iter().try_fold(0u64, |number, digit| {
        let digit = digit.is_ascii_digit().then(|| u64::from(digit - b'0'))?;
        Some(number.saturating_mul(10).saturating_add(digit))
    })
}
