//! Writes header fields: folded between words, with encoded words for text beyond ASCII.
//!
//! Implements: RFC 5322 sections 2.2.3 and 3.2; RFC 2047 sections 2 and 5; RFC 2231 sections 3
//! and 4.

use alloc::string::String;
use alloc::vec::Vec;

use base64ct::{Base64, Encoding as _};

use super::hex_digit;
use crate::charset;
use crate::header::HeaderMailbox;

/// The length that a line should not exceed (RFC 5322 section 2.1.1).
const LINE_BYTES: usize = 78;
/// The longest encoded word (RFC 2047 section 2).
const ENCODED_WORD_BYTES_MAX: usize = 75;
/// The length of the text around the encoded bytes of a word.
const AROUND_ENCODED: usize = "=?utf-8?Q??=".len();
/// An encoded word is begun only on a line with at least this much space, since some characters
/// take twelve bytes.
const ENCODED_WORD_BYTES_MIN: usize = AROUND_ENCODED + 16;
/// A word that is longer than this is encoded, which splits it. A word of this length still fits
/// after the longest name of a field.
const WORD_BYTES_MAX: usize = 66;

/// The longest address, without the angle brackets (RFC 5321 section 4.5.3.1.3).
const ADDRESS_BYTES_MAX: usize = 254;
const IDENTIFIER_BYTES_MAX: usize = 250;

/// One field that is being written.
pub(super) struct FieldWriter<'a> {
    out: &'a mut Vec<u8>,
    /// The length of the line so far.
    column: usize,
    /// Whether the line has a word: a line with only white space is not allowed (RFC 5322 section
    /// 3.2.2).
    has_words: bool,
}

impl<'a> FieldWriter<'a> {
    pub(super) fn new(name: &str, out: &'a mut Vec<u8>) -> FieldWriter<'a> {
        out.extend_from_slice(name.as_bytes());
        out.push(b':');
        FieldWriter { out, column: name.len() + 1, has_words: false }
    }

    pub(super) fn end(self) {
        self.out.extend_from_slice(b"\r\n");
    }

    /// Adds a space and the word, on a new line if it does not fit on this one.
    pub(super) fn word(mut self, word: &[u8]) -> FieldWriter<'a> {
        if self.column + 1 + word.len() > LINE_BYTES && self.has_words {
            self.fold();
        }
        self.out.push(b' ');
        self.out.extend_from_slice(word);
        self.column += 1 + word.len();
        self.has_words = true;
        self
    }

    fn fold(&mut self) {
        self.out.extend_from_slice(b"\r\n");
        self.column = 0;
        self.has_words = false;
    }

    pub(super) fn text(self, text: &str) -> FieldWriter<'a> {
        let text = line(text);
        if text.is_empty() {
            self
        } else if text.split(' ').all(is_plain_word) {
            text.split(' ').fold(self, |field, word| field.word(word.as_bytes()))
        } else {
            self.encoded(&text)
        }
    }

    pub(super) fn identifiers<'b>(
        self,
        identifiers: impl IntoIterator<Item = &'b [u8]>,
    ) -> FieldWriter<'a> {
        identifiers
            .into_iter()
            .fold(self, |field, identifier| field.word(&[b"<", identifier, b">"].concat()))
    }

    pub(super) fn mailboxes(self, mailboxes: &[HeaderMailbox]) -> FieldWriter<'a> {
        let last = mailboxes.len().saturating_sub(1);
        mailboxes.iter().enumerate().fold(self, |field, (index, mailbox)| {
            let name = line(&mailbox.name);
            let comma: &[u8] = if index < last { b"," } else { b"" };
            let address = mailbox.address.as_bytes();
            match &*name {
                "" => field.word(&[address, comma].concat()),
                name => field.phrase(name).word(&[b"<", address, b">", comma].concat()),
            }
        })
    }

    /// Adds a name: unchanged, in quotes, or encoded.
    fn phrase(self, name: &str) -> FieldWriter<'a> {
        let is_atom = |word: &str| is_plain_word(word) && word.bytes().all(is_atext);
        if name.split(' ').all(is_atom) {
            return name.split(' ').fold(self, |field, word| field.word(word.as_bytes()));
        }
        let is_printable = name.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic());
        let quoted = quoted(name);
        if is_printable && quoted.len() <= WORD_BYTES_MAX && !name.contains("=?") {
            return self.word(&quoted);
        }
        self.encoded(name)
    }

    fn encoded(mut self, text: &str) -> FieldWriter<'a> {
        let q_length: usize =
            text.bytes().map(|byte| if is_literal(byte) || byte == b' ' { 1 } else { 3 }).sum();
        let is_q = q_length <= text.len() * 4 / 3;
        let mut rest = text;
        while !rest.is_empty() {
            let left = LINE_BYTES.saturating_sub(self.column + 1);
            if left < ENCODED_WORD_BYTES_MIN {
                self.fold();
                continue;
            }
            let room = left.min(ENCODED_WORD_BYTES_MAX) - AROUND_ENCODED;
            let length = if is_q {
                fitting(rest, room, |byte| byte == b' ' || is_literal(byte))
            } else {
                rest.floor_char_boundary(room / 4 * 3)
            };
            let (taken, after) = rest.split_at_checked(length).unwrap_or((rest, ""));
            let mut word = Vec::with_capacity(ENCODED_WORD_BYTES_MAX);
            word.extend_from_slice(if is_q { b"=?utf-8?Q?" } else { b"=?utf-8?B?" });
            if is_q {
                taken.bytes().for_each(|byte| push_q(byte, &mut word));
            } else {
                let mut encoded = [0; ENCODED_WORD_BYTES_MAX];
                word.extend_from_slice(
                    Base64::encode(taken.as_bytes(), &mut encoded).unwrap_or_default().as_bytes(),
                );
            }
            word.extend_from_slice(b"?=");
            self = self.word(&word);
            rest = after;
        }
        self
    }
}

/// The text on one line, without spaces around it.
fn line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    charset::push_line(&mut line, text);
    String::from(line.trim())
}

/// Whether a word can be written unchanged: it is not empty, not too long, and does not look
/// encoded.
fn is_plain_word(word: &str) -> bool {
    (1..=WORD_BYTES_MAX).contains(&word.len())
        && word.bytes().all(|byte| byte.is_ascii_graphic())
        && !word.contains("=?")
}

/// Whether a byte is `atext` (RFC 5322 section 3.2.3).
fn is_atext(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-/=?^_`{|}~".contains(&byte)
}

/// Whether a byte is literal in every encoded word (RFC 2047 section 5, rule 3).
fn is_literal(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!*+-/".contains(&byte)
}

/// The number of bytes of the whole characters of `text` that fit into `room`. Each byte that is
/// not `literal` takes three bytes.
fn fitting(text: &str, room: usize, literal: impl Fn(u8) -> bool) -> usize {
    let mut used = 0;
    let fits = |c: &char| {
        used += if c.is_ascii() && literal(*c as u8) { 1 } else { 3 * c.len_utf8() };
        used <= room
    };
    text.chars().take_while(fits).map(char::len_utf8).sum()
}

fn push_q(byte: u8, out: &mut Vec<u8>) {
    match byte {
        b' ' => out.push(b'_'),
        byte if is_literal(byte) => out.push(byte),
        byte => out.extend([b'=', hex_digit(byte >> 4), hex_digit(byte & 15)]),
    }
}

fn quoted(text: &str) -> Vec<u8> {
    let mut quoted = Vec::with_capacity(text.len() + 2);
    quoted.push(b'"');
    for byte in text.bytes() {
        if matches!(byte, b'"' | b'\\') {
            quoted.push(b'\\');
        }
        quoted.push(byte);
    }
    quoted.push(b'"');
    quoted
}

/// Writes ` name="value"`, or as many sections in the form of RFC 2231 as `value` needs, with line
/// ends between them.
pub(super) fn write_parameter(name: &str, value: &str, out: &mut Vec<u8>) {
    let value = line(value);
    let is_simple =
        |byte: u8| byte == b' ' || (byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\'));
    if value.len() <= LINE_BYTES / 2 && value.bytes().all(is_simple) && !value.contains("=?") {
        [b" ", name.as_bytes(), b"=\"", value.as_bytes(), b"\""]
            .iter()
            .for_each(|text| out.extend_from_slice(text));
        return;
    }
    let mut rest = &*value;
    let mut section = 0_u8;
    while !rest.is_empty() && section < u8::MAX {
        let (taken, after) = rest
            .split_at_checked(fitting(rest, LINE_BYTES / 2, is_attribute))
            .unwrap_or((rest, ""));
        out.extend_from_slice(if section == 0 { b" " } else { b";\r\n " });
        let begins = if section == 0 { "utf-8''" } else { "" };
        out.extend_from_slice(alloc::format!("{name}*{section}*={begins}").as_bytes());
        for byte in taken.bytes() {
            if is_attribute(byte) {
                out.push(byte);
            } else {
                out.extend([b'%', hex_digit(byte >> 4), hex_digit(byte & 15)]);
            }
        }
        rest = after;
        section += 1;
    }
}

/// Whether a byte is literal in a parameter (RFC 2231 section 7).
fn is_attribute(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!+-.^_`{|}~".contains(&byte)
}

/// The media type of a file, if it is valid and may be encoded as base64. Otherwise it is
/// `application/octet-stream`.
pub(super) fn media_type(text: &str) -> &[u8] {
    let is_token = |text: &str| !text.is_empty() && text.bytes().all(is_atext_or_dot);
    match text.split_once('/') {
        Some(("message" | "multipart", _)) => b"application/octet-stream",
        Some((main, sub))
            if is_token(main) && is_token(sub) && text.len() <= WORD_BYTES_MAX - 10 =>
        {
            text.as_bytes()
        }
        _ => b"application/octet-stream",
    }
}

fn is_atext_or_dot(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$&-^_.+".contains(&byte)
}

/// Whether an address can be written into a field unchanged: it has one `@` outside of quotes with
/// text on both sides, and no character that would end the address.
pub(super) fn is_address(address: &str) -> bool {
    let Some((local, domain)) = address.rsplit_once('@') else { return false };
    let is_dot_atom = |text: &str| {
        text.split('.')
            .all(|atom| !atom.is_empty() && atom.bytes().all(|byte| is_atext(byte) || byte >= 0x80))
    };
    let is_quoted = |text: &str| {
        let inside = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
        inside.is_some_and(|inside| {
            let mut bytes = inside.bytes();
            let mut is_sound = true;
            while let Some(byte) = bytes.next() {
                let byte = if byte == b'\\' {
                    bytes.next().filter(|byte| *byte >= b' ')
                } else {
                    Some(byte).filter(|byte| *byte != b'"')
                };
                is_sound &= byte.is_some_and(|byte| byte >= b' ' && byte != 0x7f);
            }
            is_sound
        })
    };
    let literal = domain.strip_prefix('[').and_then(|domain| domain.strip_suffix(']'));
    let is_literal = literal.is_some_and(|inside| {
        !inside.is_empty()
            && inside.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".:-".contains(&byte))
    });
    let has_control = address.chars().any(char::is_control);
    address.len() <= ADDRESS_BYTES_MAX
        && !has_control
        && (is_dot_atom(local) || is_quoted(local))
        && (is_dot_atom(domain) || is_literal)
}

/// Whether an identifier can be written between angle brackets.
pub(super) fn is_identifier(identifier: &[u8]) -> bool {
    let is_sound =
        |byte: &u8| (byte.is_ascii_graphic() || *byte >= 0x80) && !matches!(byte, b'<' | b'>');
    (1..=IDENTIFIER_BYTES_MAX).contains(&identifier.len()) && identifier.iter().all(is_sound)
}
