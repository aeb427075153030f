//! The beginning of a text, on one line.

use super::plain::{has_double_space, is_all_printable};
use super::text::TextBuffer;
use crate::shown::is_shown;

/// Enough space for characters of four bytes.
const BYTES_MAX: usize = super::SNIPPET_BYTES_MAX + 8;

/// The beginning of a text: its words with one space between them.
#[derive(Debug)]
pub(super) struct Snippet {
    text: TextBuffer<{ BYTES_MAX + 8 }>,
    is_spaced: bool,
    line: SnippetLine,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum SnippetLine {
    Begins,
    GoesOn,
    /// A quote.
    IsQuote,
}

impl Default for Snippet {
    fn default() -> Snippet {
        Snippet { text: TextBuffer::default(), is_spaced: false, line: SnippetLine::Begins }
    }
}

impl Snippet {
    pub(super) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    pub(super) fn is_full(&self) -> bool {
        self.text.length() > BYTES_MAX
    }

    #[inline]
    pub(super) fn push(&mut self, c: char) {
        if c == ' ' || c.is_whitespace() || c.is_control() {
            self.is_spaced = !self.text.is_empty();
        } else if !self.is_full() && (c.is_ascii_graphic() || is_shown(c)) {
            if core::mem::take(&mut self.is_spaced) {
                self.text.push(' ');
            }
            self.text.push(c);
        }
    }

    /// Adds text within a line.
    fn push_all(&mut self, text: &str) {
        if !self.push_words(text.as_bytes()) {
            text.chars().for_each(|c| self.push(c));
        }
    }

    /// Adds bytes if they are words of printable ASCII with one space between them, as in most
    /// texts. Such bytes are copied unchanged. Returns whether they were added.
    pub(super) fn push_words(&mut self, text: &[u8]) -> bool {
        let words = text.trim_ascii();
        if !is_all_printable(words) || has_double_space(words) {
            return false;
        }
        let is_space_before = self.is_spaced || text.first().is_some_and(u8::is_ascii_whitespace);
        if words.is_empty() {
            self.is_spaced = is_space_before && !self.text.is_empty();
            return true;
        }
        if is_space_before && !self.text.is_empty() {
            self.text.push_ascii(b" ");
        }
        self.text.push_ascii(words);
        self.is_spaced = text.last().is_some_and(u8::is_ascii_whitespace);
        true
    }

    /// Adds a text in which lines that begin with `>` are quotes. It may begin and end within a
    /// line.
    pub(super) fn push_lines(&mut self, text: &str) {
        let mut rest = text;
        while !rest.is_empty() && !self.is_full() {
            let end = memchr::memchr(b'\n', rest.as_bytes()).map_or(rest.len(), |at| at + 1);
            let (line, after) = rest.split_at_checked(end).unwrap_or((rest, ""));
            if self.line == SnippetLine::Begins {
                self.line =
                    if line.starts_with('>') { SnippetLine::IsQuote } else { SnippetLine::GoesOn };
            }
            if self.line == SnippetLine::GoesOn {
                self.push_all(line);
            }
            if line.ends_with('\n') {
                self.line = SnippetLine::Begins;
            }
            rest = after;
        }
    }

    /// At most `bytes_max` bytes of the snippet.
    pub(super) fn finish(&mut self, bytes_max: usize) -> &[u8] {
        self.text.cut(bytes_max);
        self.text.bytes()
    }
}

/// Whether all characters of a text are visible. Most characters are plain, and are examined as
/// bytes.
pub(super) fn are_shown(text: &str) -> bool {
    let mut rest = text;
    loop {
        rest = rest.get(plain_bytes(rest.as_bytes())..).unwrap_or_default();
        let mut characters = rest.chars();
        match characters.next() {
            None => return true,
            Some(character) if !is_shown(character) => return false,
            Some(_) => rest = characters.as_str(),
        }
    }
}

/// The number of plain characters at the start of `bytes`.
fn plain_bytes(bytes: &[u8]) -> usize {
    let is_plain = |byte: &u8| matches!(byte, b' '..=b'~');
    // Several bytes are examined at once, with vector instructions.
    let (chunks, _) = bytes.as_chunks::<16>();
    let whole = chunks
        .iter()
        .take_while(|chunk| chunk.iter().fold(true, |all, byte| all & is_plain(byte)))
        .count()
        * 16;
    whole + bytes.get(whole..).unwrap_or_default().iter().take_while(|byte| is_plain(byte)).count()
}
