//! Replies of a peer: one line or several, with a code.
//!
//! Invariants:
//! - A reply does not depend on how its bytes were split.
//! - The memory for a reply is bounded, whatever the peer sends: [`TEXT_BYTES_MAX`], and
//!   [`LINE_KEPT_BYTES`] of the line that is being read.
//! - A reply's text has no control characters, so it stays on one line of a report or a page. The
//!   charset of text that is not UTF-8 is guessed. In header fields, other characters than ASCII
//!   are escaped (`report`).
//!
//! Implements: RFC 5321 sections 4.2 and 4.5.3.1.5, RFC 2034 section 4, RFC 3463 section 2, RFC
//! 6531 section 3.7.4.2 (UTF-8 in replies).

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use message::report::Enhanced;

use crate::extensions::ServerExtensions;
use crate::outcome::Misbehaviour;

/// The longest line that is accepted. RFC 5321 has a limit of 512 bytes, but some servers send
/// pages of advice.
const LINE_BYTES_MAX: usize = 4096;
/// The most bytes of a line that are kept.
const LINE_KEPT_BYTES: usize = 512;
/// The most lines of a reply.
const LINES_MAX: usize = 128;
/// The most bytes of a reply's text that are kept.
const TEXT_BYTES_MAX: usize = 512;
/// The most bytes of a line before its words: the code, and an enhanced code.
const CODE_BYTES: usize = "550-".len() + "5.123.123 ".len();

/// A reply of the peer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reply {
    /// The code, 200 to 599.
    pub code: u16,
    /// The enhanced status code, if the reply has one with the first digit of `code`.
    pub enhanced: Option<Enhanced>,
    /// The text: its lines with a space between them, without control characters, at most 512
    /// bytes.
    pub text: String,
}

impl Reply {
    /// The first digit of the code.
    pub fn class(&self) -> u16 {
        self.code / 100
    }
}

impl fmt::Display for Reply {
    /// The reply on one line.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}", self.code)?;
        if let Some(enhanced) = self.enhanced {
            write!(out, " {enhanced}")?;
        }
        if self.text.is_empty() { Ok(()) } else { write!(out, " {}", self.text) }
    }
}

/// A reply, and the extensions that it names if it answers EHLO.
#[derive(Debug)]
pub(crate) struct ReplyWithExtensions {
    pub(crate) reply: Reply,
    pub(crate) extensions: ServerExtensions,
}

/// Assembles replies from bytes.
#[derive(Default, Debug)]
pub(crate) struct ReplyReader {
    /// The line that is being read, as far as it is kept.
    line: Vec<u8>,
    /// The length of the line so far, with the bytes that are not kept.
    line_bytes: usize,
    lines: usize,
    code: u16,
    enhanced: Option<Enhanced>,
    text: String,
    extensions: ServerExtensions,
}

impl ReplyReader {
    /// Takes bytes up to the end of the next reply.
    pub(crate) fn arrived(
        &mut self,
        bytes: &mut &[u8],
    ) -> Result<Option<ReplyWithExtensions>, Misbehaviour> {
        while let Some(end) = memchr::memchr(b'\n', bytes) {
            let (line, rest) = bytes.split_at_checked(end).unwrap_or((bytes, &[]));
            *bytes = rest.get(1..).unwrap_or_default();
            self.keep(line)?;
            if self.line_ended()? == ReplyLine::Last {
                let ReplyReader { code, enhanced, text, extensions, .. } = core::mem::take(self);
                return Ok(Some(ReplyWithExtensions {
                    reply: Reply { code, enhanced, text },
                    extensions,
                }));
            }
        }
        let rest = core::mem::take(bytes);
        self.keep(rest).map(|()| None)
    }

    /// Adds bytes to the line that is being read, as far as the line is kept.
    fn keep(&mut self, bytes: &[u8]) -> Result<(), Misbehaviour> {
        self.line_bytes += bytes.len();
        if self.line_bytes > LINE_BYTES_MAX {
            return Err(Misbehaviour::LineTooLong);
        }
        let room = LINE_KEPT_BYTES.saturating_sub(self.line.len());
        self.line.extend_from_slice(bytes.get(..room).unwrap_or(bytes));
        Ok(())
    }

    /// Handles a complete line of a reply.
    fn line_ended(&mut self) -> Result<ReplyLine, Misbehaviour> {
        let line = core::mem::take(&mut self.line);
        self.line_bytes = 0;
        let line = line.strip_suffix(b"\r").unwrap_or(&line);
        let (code, kind, text) = parse(line).ok_or(Misbehaviour::NoReply)?;
        self.lines += 1;
        if self.lines > LINES_MAX {
            return Err(Misbehaviour::TooManyLines);
        }
        if self.lines > 1 && code != self.code {
            return Err(Misbehaviour::TwoCodes);
        }
        if self.lines > 1 {
            self.extensions.learn(text);
        }
        self.code = code;
        self.keep_text(text);
        Ok(kind)
    }

    /// Adds the text of a line to the text of the reply, without a repeated enhanced code.
    fn keep_text(&mut self, text: &[u8]) {
        let (enhanced, words) =
            match enhanced(text).filter(|(found, _)| u16::from(found.class) == self.code / 100) {
                Some((found, rest)) => (Some(found), rest),
                None => (None, text),
            };
        if self.lines == 1 {
            self.enhanced = enhanced;
        }
        // Each line of a reply repeats the enhanced code (RFC 2034 section 4).
        let words = if enhanced == self.enhanced { words } else { text };
        if !self.text.is_empty() {
            self.text.push(' ');
        }
        self.text.extend(decoded(words).trim_ascii().chars().map(printable));
        self.text.truncate(self.text.floor_char_boundary(TEXT_BYTES_MAX));
    }
}

/// The words of a line. A line that was cut may end within a character, which is left out.
fn decoded(words: &[u8]) -> Cow<'_, str> {
    match core::str::from_utf8(words) {
        Err(error)
            if error.error_len().is_none() && words.len() + CODE_BYTES >= LINE_KEPT_BYTES =>
        {
            message::decode_guessed(words.get(..error.valid_up_to()).unwrap_or_default())
        }
        _ => message::decode_guessed(words),
    }
}

fn printable(character: char) -> char {
    if character.is_control() { '?' } else { character }
}

/// Whether a line is the last one of its reply.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ReplyLine {
    Last,
    Another,
}

/// Parses a line: the code, whether another line follows, and the text.
fn parse(line: &[u8]) -> Option<(u16, ReplyLine, &[u8])> {
    let (code, rest) = line.split_first_chunk::<3>()?;
    if !matches!(code, [b'2'..=b'5', b'0'..=b'9', b'0'..=b'9']) {
        return None;
    }
    let code = code.iter().fold(0, |code, digit| code * 10 + u16::from(digit - b'0'));
    match rest.split_first() {
        None => Some((code, ReplyLine::Last, &[])),
        Some((b' ', text)) => Some((code, ReplyLine::Last, text)),
        Some((b'-', text)) => Some((code, ReplyLine::Another, text)),
        Some(_) => None,
    }
}

/// The enhanced status code at the beginning of a text, and the rest of the text.
fn enhanced(text: &[u8]) -> Option<(Enhanced, &[u8])> {
    let end = text.iter().position(|byte| *byte == b' ').unwrap_or(text.len());
    let (word, rest) = text.split_at_checked(end)?;
    Some((Enhanced::read(word)?, rest))
}
