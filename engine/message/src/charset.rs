//! Charsets: decodes bytes to UTF-8 by the charset names that mail uses.
//!
//! Invariants:
//! - A name means what the Encoding Standard says, as in browsers and other mail clients.
//! - ISO-2022-KR and HZ are not decoded, since no maintained library decodes them. Their text is
//!   shown undecoded.
//! - UTF-7 is not decoded. UTF-7 can hide text, such as markup, from checks of the bytes. Such text
//!   stays encoded.
//! - Without a known charset, bytes are UTF-8 as long as they are valid, and windows-1252 from the
//!   first invalid byte on.
//!
//! Implements: RFC 2045 section 5.2, RFC 2978; the Encoding Standard of WHATWG; RFC 6532 section 3.

use alloc::borrow::Cow;
use alloc::string::String;

use encoding_rs::{Encoding, WINDOWS_1252};

/// Names in mail for charsets that the standard knows by another name.
const ALIASES: &[(&str, &str)] = &[
    ("cp932", "shift_jis"),
    ("cp936", "gbk"),
    ("cp949", "euc-kr"),
    ("cp950", "big5"),
    ("eucjp", "euc-jp"),
    ("euckr", "euc-kr"),
    ("iso8859_1", "iso-8859-1"),
    ("iso-8859-1-windows-3.1-latin-1", "windows-1252"),
    ("koi8r", "koi8-r"),
    ("latin-1", "iso-8859-1"),
    ("utf_8", "utf-8"),
    ("utf8mb4", "utf-8"),
];

/// Names for ASCII. They say nothing about bytes beyond ASCII, although the standard reads such
/// bytes as windows-1252.
const ASCII: &[&str] = &["us-ascii", "ascii", "ansi_x3.4-1968", "iso646-us", "us"];

/// The encoding with this name. `None` for an unknown name, for UTF-7, and for ASCII, which says
/// nothing about the bytes that need to be decoded.
pub(crate) fn encoding(name: &[u8]) -> Option<&'static Encoding> {
    let name = name.trim_ascii();
    let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
    if ASCII.iter().any(|ascii| is(ascii)) {
        return None;
    }
    let name =
        ALIASES.iter().find(|(alias, _)| is(alias)).map_or(name, |(_, known)| known.as_bytes());
    Encoding::for_label_no_replacement(name)
}

/// Decodes all of `bytes`, by the charset with this name if it is known.
pub(crate) fn decode<'a>(name: Option<&[u8]>, bytes: &'a [u8]) -> Cow<'a, str> {
    match name.and_then(encoding) {
        Some(encoding) => encoding.decode_without_bom_handling(bytes).0,
        None => decode_guessed(bytes),
    }
}

/// Decodes all of `bytes` without a known charset.
pub fn decode_guessed(bytes: &[u8]) -> Cow<'_, str> {
    match core::str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => WINDOWS_1252.decode_without_bom_handling(bytes).0,
    }
}

/// Adds `text` with a space in place of each control character. So the added text stays on one
/// line, and never ends the line or field into which it is written.
pub(crate) fn push_line(out: &mut String, text: &str) {
    out.extend(text.chars().map(|c| if c.is_control() { ' ' } else { c }));
}
