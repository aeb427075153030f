//! The lines of a calendar: a name, parameters, and a value.
//!
//! Implements: RFC 5545 sections 3.1, 3.2 and 3.3.11; RFC 6868 (parameters).

use alloc::string::String;
use alloc::vec::Vec;

use crate::charset;
use crate::header::HeaderMailbox;
use crate::shown::one_line;

/// Some programs write it before the first line.
const BYTE_ORDER_MARK: char = '\u{feff}';

/// Unfolds the lines of a calendar, and then decodes them: a fold may be within a character.
pub(super) fn unfolded(bytes: &[u8], charset: Option<&str>) -> String {
    let mut out = Vec::with_capacity(bytes.len());
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        match line {
            [b' ' | b'\t', continuation @ ..] if !out.is_empty() => {
                let end = out.strip_suffix(b"\n").unwrap_or(&out);
                let end = end.strip_suffix(b"\r").unwrap_or(end).len();
                out.truncate(end);
                out.extend_from_slice(continuation);
            }
            _ => out.extend_from_slice(line),
        }
    }
    let text = charset::decode(charset.map(str::as_bytes), &out);
    text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&text).into()
}

/// A line.
#[derive(Clone, Copy, Debug)]
pub(super) struct ContentLine<'a> {
    name: &'a str,
    /// The parameters, with a semicolon before each.
    parameters: &'a str,
    /// The value as written.
    pub(super) value: &'a str,
}

impl<'a> ContentLine<'a> {
    /// Reads a line. `None`: it has no value.
    pub(super) fn read(line: &'a str) -> Option<ContentLine<'a>> {
        let (before, value) = split_outside_quotes(line, ':')?;
        let name_length = before.find(';').unwrap_or(before.len());
        let (name, parameters) = before.split_at_checked(name_length)?;
        Some(ContentLine { name: name.trim(), parameters, value: value.trim() })
    }

    /// Whether the line has this name, in upper or lower case.
    pub(super) fn is(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name)
    }

    /// The parameter with this name, as written and without quotes.
    pub(super) fn parameter(&self, name: &str) -> Option<&'a str> {
        let mut rest = self.parameters.strip_prefix(';')?;
        loop {
            let (parameter, after) = split_outside_quotes(rest, ';').unwrap_or((rest, ""));
            match parameter.split_once('=') {
                Some((found, value)) if found.trim().eq_ignore_ascii_case(name) => {
                    let value = value.trim();
                    let quoted = value.strip_prefix('"').and_then(|value| value.strip_suffix('"'));
                    return Some(quoted.unwrap_or(value));
                }
                _ if after.is_empty() => return None,
                _ => rest = after,
            }
        }
    }

    /// The text of the value on one line, at most `most` characters.
    pub(super) fn text(&self, most: usize) -> String {
        let mut is_escaped = false;
        let characters = self.value.chars().filter_map(move |character| {
            let was_escaped = core::mem::replace(&mut is_escaped, false);
            match character {
                '\\' if !was_escaped => {
                    is_escaped = true;
                    None
                }
                'n' | 'N' if was_escaped => Some(' '),
                _ => Some(character),
            }
        });
        one_line(characters, most)
    }

    /// The person that the line names: the address, and the name in a parameter.
    pub(super) fn person(&self, most: usize) -> HeaderMailbox {
        let address = match self.value.split_at_checked("mailto:".len()) {
            Some((scheme, address)) if scheme.eq_ignore_ascii_case("mailto:") => address,
            _ => "",
        };
        let name = self.parameter("CN").map(parameter_text).unwrap_or_default();
        HeaderMailbox {
            name: one_line(name.chars(), most),
            address: one_line(address.chars(), most),
        }
    }
}

/// Splits at the first `separator` that is not within quotes.
fn split_outside_quotes(text: &str, separator: char) -> Option<(&str, &str)> {
    let mut is_quoted = false;
    let at = text.find(|character| {
        is_quoted ^= character == '"';
        character == separator && !is_quoted
    })?;
    Some((text.get(..at)?, text.get(at + separator.len_utf8()..)?))
}

/// Decodes `^n`, `^^` and `^'` (RFC 6868).
fn parameter_text(value: &str) -> String {
    let mut out = String::with_capacity(value.len());
    let mut rest = value.chars();
    while let Some(character) = rest.next() {
        let mut after = rest.clone();
        let decoded = match (character, after.next()) {
            ('^', Some('n')) => '\n',
            ('^', Some('^')) => '^',
            ('^', Some('\'')) => '"',
            _ => {
                out.push(character);
                continue;
            }
        };
        out.push(decoded);
        rest = after;
    }
    out
}
