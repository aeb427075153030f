//! The charset that HTML names in its `<meta>` element.
//!
//! Invariants: only the first [`BYTES_SEARCHED`] bytes are examined, each a bounded number of
//! times.
//!
//! Implements: RFC 6657 section 2; HTML section 13.2.3.2 (prescan of the byte stream, simplified).

use encoding_rs::{Encoding, UTF_8};

use crate::charset;

/// The number of bytes in which the element is searched, as in browsers.
pub(super) const BYTES_SEARCHED: usize = 1_024;

/// The charset that the first bytes of HTML name. `None`: they name no usable charset, or UTF-8.
/// Then the caller guesses: bytes that are not UTF-8 are read in another charset.
pub(super) fn charset(html: &[u8]) -> Option<&'static Encoding> {
    let mut rest = html.get(..BYTES_SEARCHED).unwrap_or(html);
    while let Some(start) = memchr::memchr(b'<', rest) {
        rest = rest.get(start + 1..)?;
        let (name, inside) = rest.split_at_checked("meta".len())?;
        if !name.eq_ignore_ascii_case(b"meta") {
            continue;
        }
        let tag = inside.get(..memchr::memchr(b'>', inside)?)?;
        if let Some(name) = named(tag) {
            let encoding = charset::encoding(name)?;
            return (encoding != UTF_8 && encoding.is_ascii_compatible()).then_some(encoding);
        }
    }
    None
}

/// The text after `charset=` in a tag.
fn named(tag: &[u8]) -> Option<&[u8]> {
    const KEY: &[u8] = b"charset";
    let is_key = |window: &[u8]| window.eq_ignore_ascii_case(KEY);
    let starts = tag.windows(KEY.len()).enumerate().filter(|(_, window)| is_key(window));
    let mut values = starts.filter_map(|(start, _)| {
        let value = tag.get(start + KEY.len()..)?.trim_ascii_start().strip_prefix(b"=")?;
        let value = value.trim_ascii_start();
        let value = value.strip_prefix(b"\"").or(value.strip_prefix(b"'")).unwrap_or(value);
        let is_of_name =
            |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b':');
        let end = value.iter().position(|byte| !is_of_name(byte)).unwrap_or(value.len());
        value.get(..end).filter(|name| !name.is_empty())
    });
    values.next()
}
