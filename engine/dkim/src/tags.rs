//! Tag lists: the syntax of signatures and keys (RFC 6376 §3.2).

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::ops::Range;

use base64ct::{Base64, Encoding};

/// Tags, and the ranges of their values in the text. Each tag occurs once.
pub(crate) struct Tags<'a> {
    text: &'a [u8],
    values: BTreeMap<&'a [u8], Range<usize>>,
}

impl<'a> Tags<'a> {
    /// Reads a tag list. `None`: it is not valid.
    pub(crate) fn read(text: &'a [u8]) -> Option<Tags<'a>> {
        let mut values = BTreeMap::new();
        let mut start = 0;
        for tag in text.split(|byte| *byte == b';') {
            let end = start + tag.len();
            let is_last = end == text.len();
            match tag
                .iter()
                .position(|byte| *byte == b'=')
                .and_then(|equals| tag.split_at_checked(equals))
            {
                Some((name, [_, value @ ..])) => {
                    let name = name.trim_ascii();
                    let is_right = is_name(name) && value.iter().all(|byte| is_value_byte(*byte));
                    if !is_right || values.insert(name, end - value.len()..end).is_some() {
                        return None;
                    }
                }
                // The list may end after its last semicolon.
                _ if is_last && start > 0 && tag.trim_ascii().is_empty() => {}
                _ => return None,
            }
            start = end + 1;
        }
        Some(Tags { text, values })
    }

    /// A tag's value, without surrounding white space.
    pub(crate) fn get(&self, name: &[u8]) -> Option<&'a [u8]> {
        self.text.get(self.span(name)?).map(<[u8]>::trim_ascii)
    }

    /// The range of a tag's value, with surrounding white space.
    pub(crate) fn span(&self, name: &[u8]) -> Option<Range<usize>> {
        self.values.get(name).cloned()
    }
}

fn is_name(name: &[u8]) -> bool {
    name.first().is_some_and(u8::is_ascii_alphabetic)
        && name.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
}

/// Whether a byte is allowed in a value. The only forbidden bytes are control characters other than
/// white space. Bytes beyond ASCII are allowed (RFC 8616).
fn is_value_byte(byte: u8) -> bool {
    !byte.is_ascii_control() || byte.is_ascii_whitespace()
}

/// The members of a list, without surrounding white space.
pub(crate) fn members(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|byte| *byte == b':').map(<[u8]>::trim_ascii)
}

/// The bytes of base64 text, which may be folded anywhere (RFC 6376 §2.10).
pub(crate) fn decoded(value: &[u8]) -> Option<Vec<u8>> {
    let dense: Vec<u8> = value.iter().copied().filter(|byte| !byte.is_ascii_whitespace()).collect();
    Base64::decode_vec(str::from_utf8(&dense).ok()?).ok()
}

/// A number of up to 76 digits. A number of more than 64 bits becomes `u64::MAX`.
pub(crate) fn number(value: &[u8]) -> Option<u64> {
    let is_plain = (1..=76).contains(&value.len()) && value.iter().all(u8::is_ascii_digit);
    let add =
        |number: u64, digit: &u8| number.saturating_mul(10).saturating_add(u64::from(digit - b'0'));
    is_plain.then(|| value.iter().fold(0, add))
}
