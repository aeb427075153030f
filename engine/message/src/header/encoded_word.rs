//! Encoded words: `=?utf-8?Q?Gr=C3=BC=C3=9Fe?=`.
//!
//! Invariants:
//! - Each byte is examined a bounded number of times, even if many words have no end.
//! - A broken word is shown unchanged. Adjacent words in unknown charsets, or with bytes beyond
//!   ASCII although they name ASCII, are guessed together, as a body is.
//! - White space between two words is removed. A character may be cut between two words of one
//!   charset. Its halves are joined. In ISO-2022-JP each word is decoded alone, since each begins
//!   and ends in ASCII (RFC 1468).
//!
//! The reader is more lenient than the RFC, as mail requires. Words may be too long, or next to
//! other text without a space. They may have spaces and question marks.
//!
//! Implements: RFC 2047 sections 2, 4 and 6; RFC 2231 section 5 (a language after the charset,
//! which is skipped).

use alloc::string::String;
use alloc::vec::Vec;

use encoding_rs::{Decoder, Encoding, ISO_2022_JP};

use crate::charset;
use crate::transfer::base64;

const CHARSET_BYTES_MAX: usize = 64;

/// The decoded text of `value`, on one line.
pub(super) fn decode(value: &[u8]) -> String {
    let mut out = DecodedText { text: String::with_capacity(value.len()), open: None };
    let mut literal = value; // the text before the next word, and the rest
    let mut at = 0; // the position in `literal` to search from
    while let Some(found) = literal.get(at..).and_then(|rest| memchr::memmem::find(rest, b"=?")) {
        let start = at + found;
        let Some((before, candidate)) = literal.split_at_checked(start) else { break };
        match EncodedWord::parse(candidate) {
            ParsedWord::Word(word, rest) => {
                out.word(before, &word);
                (literal, at) = (rest, 0);
            }
            ParsedWord::Broken { length } => at = start + length,
            ParsedWord::Endless => break,
        }
    }
    out.literal(literal);
    let text = out.text.trim();
    if text.len() == out.text.len() { out.text } else { String::from(text) }
}

/// The length of the encoded word at the start of `bytes`. Only its form is checked.
pub(super) fn length(bytes: &[u8]) -> Option<usize> {
    if !bytes.starts_with(b"=?") {
        return None;
    }
    let (_, _, text) = split(bytes)?;
    let end = memchr::memmem::find(text.get(..WORD_BYTES_MAX).unwrap_or(text), b"?=")?;
    let has_space = text.iter().take(end).any(|byte| super::lexer::is_space(*byte));
    (!has_space).then(|| bytes.len() - text.len() + end + 2)
}

/// The longest encoded word among other words of a field. The limit bounds the search for the end
/// of each word. RFC 2047 allows 75.
const WORD_BYTES_MAX: usize = 256;

/// The charset, the encoding and the text after them, of bytes that begin with `=?`.
fn split(bytes: &[u8]) -> Option<(&[u8], u8, &[u8])> {
    let inside = bytes.get(2..)?;
    let near = inside.get(..CHARSET_BYTES_MAX).unwrap_or(inside);
    let (charset, rest) = inside.split_at_checked(memchr::memchr(b'?', near)?)?;
    let is_name = !charset.is_empty() && charset.iter().all(u8::is_ascii_graphic);
    match rest {
        [b'?', encoding @ (b'B' | b'b' | b'Q' | b'q'), b'?', text @ ..] if is_name => {
            Some((charset, *encoding, text))
        }
        _ => None,
    }
}

struct EncodedWord {
    /// The encoding. `None`: it must be guessed.
    encoding: Option<&'static Encoding>,
    bytes: Vec<u8>,
}

enum ParsedWord<'a> {
    /// A word, and the bytes after it.
    Word(EncodedWord, &'a [u8]),
    /// The word is broken. This many bytes are shown unchanged.
    Broken { length: usize },
    /// The rest of the text has no end of a word.
    Endless,
}

impl EncodedWord {
    /// Parses a word. `bytes` begin with `=?`.
    fn parse(bytes: &[u8]) -> ParsedWord<'_> {
        let Some((charset, encoding, text)) = split(bytes) else {
            return ParsedWord::Broken { length: 2 };
        };
        let Some(end) = memchr::memmem::find(text, b"?=") else { return ParsedWord::Endless };
        let length = bytes.len() - text.len() + end + 2;
        let (Some(text), Some(rest)) = (text.get(..end), bytes.get(length..)) else {
            return ParsedWord::Endless;
        };
        let charset = charset.split(|byte| *byte == b'*').next().unwrap_or_default();
        let decoded = if matches!(encoding, b'B' | b'b') {
            base64::decode_word(text)
        } else {
            Some(q_decoded(text))
        };
        let Some(bytes) = decoded else { return ParsedWord::Broken { length } };
        ParsedWord::Word(EncodedWord { encoding: charset::encoding(charset), bytes }, rest)
    }
}

/// Decodes quoted-printable in which `_` is a space (RFC 2047 section 4.2).
fn q_decoded(text: &[u8]) -> Vec<u8> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text;
    while let [byte, after @ ..] = rest {
        rest = after;
        match (byte, after) {
            (b'_', _) => decoded.push(b' '),
            (b'=', [high, low, after @ ..])
                if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() =>
            {
                decoded.push(hex_value(*high) << 4 | hex_value(*low));
                rest = after;
            }
            (b'\r' | b'\n', _) => {}
            _ => decoded.push(*byte),
        }
    }
    decoded
}

/// The value of a hexadecimal digit.
pub(crate) fn hex_value(digit: u8) -> u8 {
    match digit {
        b'a'..=b'f' => digit - b'a' + 10,
        b'A'..=b'F' => digit - b'A' + 10,
        _ => digit.wrapping_sub(b'0') & 15,
    }
}

/// The decoded text so far.
struct DecodedText {
    text: String,
    /// The last words, while another word may follow them.
    open: Option<OpenWords>,
}

/// Adjacent words in one charset.
enum OpenWords {
    Known(&'static Encoding, Decoder),
    /// The charset is guessed when all bytes are known.
    Guessed(Vec<u8>),
}

impl DecodedText {
    /// Adds a word. `before`: the text between this word and the previous one.
    fn word(&mut self, before: &[u8], word: &EncodedWord) {
        if self.open.is_none() || !before.iter().all(u8::is_ascii_whitespace) {
            self.literal(before);
        }
        let is_other = match &self.open {
            Some(OpenWords::Known(open, _)) => word.encoding != Some(*open) || *open == ISO_2022_JP,
            Some(OpenWords::Guessed(_)) => word.encoding.is_some(),
            None => false,
        };
        if is_other {
            self.close();
        }
        let open = self.open.get_or_insert_with(|| match word.encoding {
            Some(encoding) => {
                OpenWords::Known(encoding, encoding.new_decoder_without_bom_handling())
            }
            None => OpenWords::Guessed(Vec::new()),
        });
        match open {
            OpenWords::Known(_, decoder) => {
                push_decoded(&mut self.text, decoder, &word.bytes, EndOfWords::No);
            }
            OpenWords::Guessed(bytes) => bytes.extend_from_slice(&word.bytes),
        }
    }

    fn literal(&mut self, bytes: &[u8]) {
        self.close();
        let text = charset::decode_guessed(bytes);
        // The line end of a fold is removed, and only its white space stays (RFC 5322 section
        // 2.2.3).
        text.split(['\r', '\n']).for_each(|line| charset::push_line(&mut self.text, line));
    }

    fn close(&mut self) {
        match self.open.take() {
            Some(OpenWords::Known(_, mut decoder)) => {
                push_decoded(&mut self.text, &mut decoder, &[], EndOfWords::Yes);
            }
            Some(OpenWords::Guessed(bytes)) => {
                charset::push_line(&mut self.text, &charset::decode_guessed(&bytes));
            }
            None => {}
        }
    }
}

#[derive(PartialEq, Eq)]
enum EndOfWords {
    Yes,
    No,
}

fn push_decoded(out: &mut String, decoder: &mut Decoder, bytes: &[u8], last: EndOfWords) {
    let Some(room) = decoder.max_utf8_buffer_length(bytes.len()) else { return };
    let mut text = String::with_capacity(room);
    // The buffer is large enough for every text.
    let _ = decoder.decode_to_string(bytes, &mut text, last == EndOfWords::Yes);
    charset::push_line(out, &text);
}
