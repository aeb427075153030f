//! The words of a structured field: the texts between white space. A comment, a quoted string or a
//! domain literal is one word.
//!
//! Invariants:
//! - Each byte is examined a bounded number of times. A word that is opened and never closed
//!   reaches to the end.
//! - An encoded word is one word, whatever characters it has, since some programs encode less than
//!   they should.
//!
//! Implements: RFC 5322 sections 3.2 and 4.1; RFC 2047 section 5.

use alloc::vec::Vec;

use super::encoded_word;

/// One word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Token<'a> {
    /// Characters without quotes, and dots.
    Atom(&'a [u8]),
    /// The text between quotes, with its backslashes.
    Quoted(&'a [u8]),
    /// The text in brackets, with the brackets.
    Literal(&'a [u8]),
    /// The text between the outermost parentheses, with backslashes and inner parentheses.
    Comment(&'a [u8]),
    /// One of `<>:;@,`, or a bracket or parenthesis that closes nothing.
    Special(u8),
}

/// The words of a value.
#[derive(Clone, Debug)]
pub(super) struct Tokens<'a> {
    rest: &'a [u8],
    is_cut: bool,
}

impl<'a> Tokens<'a> {
    pub(super) fn new(value: &'a [u8]) -> Tokens<'a> {
        Tokens { rest: value, is_cut: false }
    }

    /// Whether a word was opened and never closed.
    pub(super) fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// The next word, and whether white space precedes it.
    pub(super) fn next(&mut self) -> Option<(Token<'a>, bool)> {
        let before = self.rest.len();
        while let [byte, rest @ ..] = self.rest {
            if !is_space(*byte) {
                break;
            }
            self.rest = rest;
        }
        let is_spaced = self.rest.len() < before;
        let token = match self.rest {
            [] => return None,
            [b'"', rest @ ..] => Token::Quoted(self.take_until(rest, quoted_length(rest), 1)),
            [b'(', rest @ ..] => Token::Comment(self.take_until(rest, comment_length(rest), 1)),
            whole @ [b'[', rest @ ..] => {
                let end = memchr::memchr(b']', rest);
                self.is_cut |= end.is_none();
                let length = end.map_or(whole.len(), |end| end + 2);
                Token::Literal(self.take_until(whole, length, 0))
            }
            [byte, rest @ ..] if is_special(*byte) => {
                self.rest = rest;
                Token::Special(*byte)
            }
            whole => {
                let length = match encoded_word::length(whole) {
                    Some(length) => length,
                    None => whole
                        .iter()
                        .take_while(|byte| !is_special(**byte) && !is_space(**byte))
                        .count(),
                };
                Token::Atom(self.take_until(whole, length, 0))
            }
        };
        Some((token, is_spaced))
    }

    /// Takes the first `length` bytes of `from`, and skips `closing` more bytes.
    fn take_until(&mut self, from: &'a [u8], length: usize, closing: usize) -> &'a [u8] {
        let (taken, rest) = from.split_at_checked(length).unwrap_or((from, &[]));
        self.is_cut |= rest.len() < closing;
        self.rest = rest.get(closing..).unwrap_or_default();
        taken
    }
}

/// Whether a byte counts as white space. Broken mail has control characters, which also count.
pub(super) fn is_space(byte: u8) -> bool {
    byte <= b' ' || byte == 0x7f
}

fn is_special(byte: u8) -> bool {
    matches!(byte, b'<' | b'>' | b':' | b';' | b'@' | b',' | b'"' | b'(' | b')' | b'[' | b']')
}

pub(super) fn quoted_length(inside: &[u8]) -> usize {
    let mut is_escaped = false;
    let is_inside = |byte: &&u8| {
        let ends = **byte == b'"' && !is_escaped;
        is_escaped = **byte == b'\\' && !is_escaped;
        !ends
    };
    inside.iter().take_while(is_inside).count()
}

fn comment_length(inside: &[u8]) -> usize {
    let mut depth = 0_usize;
    let mut is_escaped = false;
    let is_inside = |byte: &&u8| {
        match **byte {
            _ if is_escaped => {}
            b'(' => depth += 1,
            b')' if depth == 0 => return false,
            b')' => depth -= 1,
            _ => {}
        }
        is_escaped = **byte == b'\\' && !is_escaped;
        true
    };
    inside.iter().take_while(is_inside).count()
}

/// Resolves the backslashes in text between quotes or parentheses: a backslash stands for the
/// character after it. Line ends are removed. Before an alphanumeric character the backslash stands
/// for itself: some programs write file names with folders in quotes, and no program escapes such a
/// character.
pub(super) fn unescaped(inside: &[u8]) -> Vec<u8> {
    let mut unescaped_text = Vec::with_capacity(inside.len());
    let mut rest = inside;
    while let [byte, after @ ..] = rest {
        rest = after;
        match (byte, after) {
            (b'\\', [escaped, after @ ..]) if !escaped.is_ascii_alphanumeric() => {
                unescaped_text.extend((!matches!(escaped, b'\r' | b'\n')).then_some(*escaped));
                rest = after;
            }
            (b'\r' | b'\n', _) | (b'\\', []) => {}
            _ => unescaped_text.push(*byte),
        }
    }
    unescaped_text
}
