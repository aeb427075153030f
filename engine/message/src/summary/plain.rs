//! Fast readers for the usual forms: a subject without encoded words; names and addresses without
//! comments, groups and escapes; a text that is not encoded.
//!
//! Invariants:
//! - The result is the same as that of the general reader. Input that the general reader could read
//!   differently is [`Hard`], and is left to that reader.
//! - Each byte is examined a bounded number of times.

use encoding_rs::UTF_8;

use super::text::TextBuffer;
use crate::charset;
use crate::structure::TextFlow;

/// The input does not have the usual form.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Hard;

/// A mailbox: the name, if there is one, and the address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct PlainMailbox<'a> {
    pub(super) name: &'a [u8],
    pub(super) address: &'a [u8],
}

/// The mailboxes of a list.
pub(super) struct Mailboxes<'a> {
    rest: &'a [u8],
}

impl<'a> Mailboxes<'a> {
    pub(super) fn new(value: &'a [u8]) -> Mailboxes<'a> {
        Mailboxes { rest: value }
    }

    /// The next mailbox. `None` at the end.
    pub(super) fn next(&mut self) -> Result<Option<PlainMailbox<'a>>, Hard> {
        self.take_while(|byte| is_space(byte) || byte == b',');
        let name = match self.rest {
            [] => return Ok(None),
            [b'<', ..] => &[],
            [b'"', rest @ ..] => {
                self.rest = rest;
                let name = self
                    .take_while(|byte| is_printable(byte) && !matches!(byte, b'"' | b'\\' | b'?'));
                self.expect(b'"')?;
                name.trim_ascii()
            }
            _ => {
                let start = self.rest;
                let words = self.take_while(|byte| is_atom_byte(byte) || byte == b' ');
                if self.rest.starts_with(b"@") {
                    return self.bare_address(start, words.len()).map(Some);
                }
                let name = words.strip_suffix(b" ").unwrap_or(words);
                if name.ends_with(b" ") || has_double_space(name) {
                    return Err(Hard);
                }
                name
            }
        };
        self.take_while(is_space);
        self.expect(b'<')?;
        let address = self.take_while(|byte| is_atom_byte(byte) || byte == b'@');
        self.expect(b'>')?;
        self.mailbox_ends()?;
        if address.is_empty() { Err(Hard) } else { Ok(Some(PlainMailbox { name, address })) }
    }

    /// Reads the rest of a bare address, such as `ada@example.org`. The address begins at `start`,
    /// and the next byte is its `@`, after `local` bytes.
    fn bare_address(&mut self, start: &'a [u8], local: usize) -> Result<PlainMailbox<'a>, Hard> {
        self.expect(b'@')?;
        let domain = self.take_while(is_atom_byte).len();
        self.mailbox_ends()?;
        let address = start.get(..local + 1 + domain).ok_or(Hard)?;
        if domain == 0 || address.contains(&b' ') {
            Err(Hard)
        } else {
            Ok(PlainMailbox { name: &[], address })
        }
    }

    fn mailbox_ends(&mut self) -> Result<(), Hard> {
        self.take_while(is_space);
        if matches!(self.rest, [] | [b',', ..]) { Ok(()) } else { Err(Hard) }
    }

    #[inline]
    fn take_while(&mut self, belongs: impl Fn(u8) -> bool) -> &'a [u8] {
        let length = self.rest.iter().position(|byte| !belongs(*byte)).unwrap_or(self.rest.len());
        let (taken, rest) = self.rest.split_at_checked(length).unwrap_or((self.rest, &[]));
        self.rest = rest;
        taken
    }

    fn expect(&mut self, expected: u8) -> Result<(), Hard> {
        match self.rest {
            [byte, rest @ ..] if *byte == expected => {
                self.rest = rest;
                Ok(())
            }
            _ => Err(Hard),
        }
    }
}

/// Whether a byte is white space, as in the lexer of fields.
fn is_space(byte: u8) -> bool {
    byte <= b' ' || byte == 0x7f
}

fn is_printable(byte: u8) -> bool {
    matches!(byte, b' '..=b'~')
}

/// Whether a byte can be in a word without quotes that is not encoded.
fn is_atom_byte(byte: u8) -> bool {
    const KINDS: [bool; 256] = {
        let mut kinds = [false; 256];
        let mut byte = b'!';
        while byte <= b'~' {
            let is_special = matches!(
                byte,
                b'<' | b'>' | b':' | b';' | b'@' | b',' | b'"' | b'(' | b')' | b'[' | b']'
            );
            // The index is a byte, and the table has 256 entries.
            #[allow(clippy::indexing_slicing)]
            {
                kinds[byte as usize] = !is_special && !matches!(byte, b'\\' | b'?');
            }
            byte += 1;
        }
        kinds
    };
    KINDS.get(usize::from(byte)).copied().unwrap_or(false)
}

/// Whether all of `text` is printable ASCII. Sixteen bytes are examined together, and some of the
/// last sixteen twice.
#[inline]
pub(super) fn is_all_printable(text: &[u8]) -> bool {
    let (chunks, rest) = text.as_chunks::<16>();
    let is_so =
        |chunk: &[u8; 16]| chunk.iter().fold(true, |is_so, byte| is_so & is_printable(*byte));
    match text.last_chunk() {
        Some(last) => chunks.iter().all(is_so) && is_so(last),
        None => rest.iter().all(|byte| is_printable(*byte)),
    }
}

/// Whether `text` has two spaces side by side.
#[inline]
pub(super) fn has_double_space(text: &[u8]) -> bool {
    let (left, right) =
        (text.split_last().map_or(text, |(_, left)| left), text.get(1..).unwrap_or_default());
    let is_double = |left: u8, right: u8| (left == b' ') & (right == b' ');
    let has_one = |(left, right): (&[u8; 16], &[u8; 16])| {
        left.iter()
            .zip(right)
            .fold(false, |has_one, (left, right)| has_one | is_double(*left, *right))
    };
    match (left.last_chunk(), right.last_chunk()) {
        (Some(lasts), Some(rights)) => {
            let mut chunks = left.as_chunks().0.iter().zip(right.as_chunks().0);
            chunks.any(has_one) || has_one((lasts, rights))
        }
        _ => left.iter().zip(right).any(|(left, right)| is_double(*left, *right)),
    }
}

/// Writes the free text of a field into an empty `out`.
pub(super) fn push_text<const N: usize>(value: &[u8], out: &mut TextBuffer<N>) -> Result<(), Hard> {
    let begins_word = |pair: &[u8]| pair == b"=?";
    if memchr::memchr(b'?', value).is_some() && value.windows(2).any(begins_word) {
        return Err(Hard);
    }
    let text = value.trim_ascii();
    if is_all_printable(text) {
        out.push_ascii(text);
        return Ok(());
    }
    // The text is folded: the line end of a fold is removed, and its white space stays.
    for line in text.split(|byte| matches!(byte, b'\r' | b'\n')) {
        let (space, line) = match line {
            [b'\t', line @ ..] => (b" ".as_slice(), line),
            _ => (b"".as_slice(), line),
        };
        if !is_all_printable(line) {
            return Err(Hard);
        }
        out.push_ascii(space);
        out.push_ascii(line);
    }
    Ok(())
}

/// The properties of an unencoded text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Plain {
    pub(super) flow: TextFlow,
    /// Whether bytes beyond ASCII are UTF-8, as long as they are valid.
    pub(super) is_utf8: bool,
}

impl Plain {
    /// The properties of a text without a declared type.
    pub(super) const UNDECLARED: Plain = Plain { flow: TextFlow::Fixed, is_utf8: true };

    /// Reads a type such as `text/plain; charset=UTF-8; format=flowed`.
    pub(super) fn of_type(value: &[u8]) -> Result<Plain, Hard> {
        let mut parts = value.split(|byte| *byte == b';');
        if !parts.next().unwrap_or_default().trim_ascii().eq_ignore_ascii_case(b"text/plain") {
            return Err(Hard);
        }
        let (mut charset, mut format) = (None, None);
        for part in parts {
            let part = part.trim_ascii();
            let equals = memchr::memchr(b'=', part).ok_or(Hard)?;
            let (name, value) = part.split_at_checked(equals).ok_or(Hard)?;
            let value = token(value.get(1..).unwrap_or_default())?;
            let place = match name.len() {
                7 if name.eq_ignore_ascii_case(b"charset") => &mut charset,
                6 if name.eq_ignore_ascii_case(b"format") => &mut format,
                _ => return Err(Hard),
            };
            if place.replace(value).is_some() {
                return Err(Hard);
            }
        }
        let flow = match format {
            None => TextFlow::Fixed,
            Some(format) if format.eq_ignore_ascii_case(b"flowed") => TextFlow::Flowed,
            Some(_) => TextFlow::Fixed,
        };
        Ok(Plain { flow, is_utf8: charset.map_or(Ok(true), is_utf8)? })
    }
}

/// A parameter's value, with or without quotes. It may have only the characters of charset names.
fn token(value: &[u8]) -> Result<&[u8], Hard> {
    let inside = match value {
        [b'"', inside @ .., b'"'] => inside,
        _ => value,
    };
    let is_of_token =
        |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    if !inside.is_empty() && inside.iter().all(is_of_token) { Ok(inside) } else { Err(Hard) }
}

/// Whether bytes beyond ASCII are UTF-8. A charset that is not compatible with ASCII is hard.
fn is_utf8(charset: &[u8]) -> Result<bool, Hard> {
    if charset.eq_ignore_ascii_case(b"utf-8") || charset.eq_ignore_ascii_case(b"us-ascii") {
        return Ok(true);
    }
    match charset::encoding(charset) {
        None => Ok(true),
        Some(encoding) if encoding.is_ascii_compatible() => Ok(encoding == UTF_8),
        Some(_) => Err(Hard),
    }
}
