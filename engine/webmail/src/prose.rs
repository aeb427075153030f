//! Plain text of a message as HTML. Quotes are folded, addresses become links, and empty lines
//! around quotes are dropped, since the style sheet gives quotes a margin. All other text is
//! unchanged.
//!
//! Invariant: text is written only between tags that this module writes, and each character of it
//! is escaped. An address becomes a value of `href` only if it begins with `https://` or `http://`,
//! and has only characters that RFC 3986 allows.

use core::fmt::{self, Write};

use memchr::{memchr, memchr_iter};

/// Plain text of a message, which is displayed as HTML.
#[derive(Clone, Copy, Debug)]
pub struct Prose<'a>(pub &'a str);

/// At most this many consecutive quoted lines are shown without folding.
const QUOTED_OPEN_MAX: usize = 3;

/// Plain text as in [`Prose`], for printing. Quotes are not folded, since a reader cannot unfold
/// them on paper.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unfolded<'a>(&'a str);

impl<'a> Prose<'a> {
    /// The text for printing.
    pub(crate) fn unfolded(&self) -> Unfolded<'a> {
        Unfolded(self.0)
    }
}

impl fmt::Display for Prose<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        paragraphs(self.0, QUOTED_OPEN_MAX, out)
    }
}

impl fmt::Display for Unfolded<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        paragraphs(self.0, usize::MAX, out)
    }
}

impl askama::filters::HtmlSafe for Prose<'_> {}
impl askama::filters::HtmlSafe for Unfolded<'_> {}

/// Writes `text` as paragraphs and quotes. `open_max`: at most this many consecutive quoted lines
/// are not folded.
fn paragraphs(text: &str, open_max: usize, out: &mut fmt::Formatter<'_>) -> fmt::Result {
    let mut rest = without_empty_lines(text.trim_end());
    while !rest.is_empty() {
        let is_quoted = rest.starts_with('>');
        let (part, tail) = split_where(rest, is_quoted);
        rest = without_empty_lines(tail);
        if is_quoted {
            quoted(part, open_max, out)?;
        } else {
            out.write_str("<p>")?;
            lines(part, out)?;
            out.write_str("</p>")?;
        }
    }
    Ok(())
}

/// The text without empty lines at its beginning.
fn without_empty_lines(mut part: &str) -> &str {
    while let Some((_, rest)) = part.split_once('\n').filter(|(line, _)| line.trim().is_empty()) {
        part = rest;
    }
    part
}

/// Splits before the first line that is not quoted if `is_quoted`, and before the first quoted line
/// otherwise.
fn split_where(text: &str, is_quoted: bool) -> (&str, &str) {
    let bytes = text.as_bytes();
    let is_quoted_at = |at: &usize| bytes.get(*at) == Some(&b'>');
    let ends = if is_quoted {
        memchr_iter(b'\n', bytes).map(|end| end + 1).find(|at| !is_quoted_at(at))
    } else {
        // A text has fewer `>` than line ends, so a search for `>` is faster.
        memchr_iter(b'>', bytes)
            .find(|at| at.checked_sub(1).and_then(|before| bytes.get(before)) == Some(&b'\n'))
    };
    text.split_at_checked(ends.unwrap_or(text.len())).unwrap_or((text, ""))
}

fn quoted(part: &str, open_max: usize, out: &mut fmt::Formatter<'_>) -> fmt::Result {
    let folds = part.lines().count() > open_max;
    out.write_str(if folds {
        "<details><summary>Quoted text</summary><blockquote dir=\"auto\">"
    } else {
        "<blockquote dir=\"auto\">"
    })?;
    lines(part, out)?;
    out.write_str(if folds { "</blockquote></details>" } else { "</blockquote>" })
}

fn lines(part: &str, out: &mut fmt::Formatter<'_>) -> fmt::Result {
    let mut rest = part.trim_end();
    while let Some((line, tail)) =
        memchr(b'\n', rest.as_bytes()).and_then(|end| rest.split_at_checked(end))
    {
        linked(line.strip_suffix('\r').unwrap_or(line), out)?;
        out.write_str("\n")?;
        rest = tail.get(1..).unwrap_or_default();
    }
    linked(rest, out)
}

/// Writes a line, with its addresses as links.
fn linked(line: &str, out: &mut fmt::Formatter<'_>) -> fmt::Result {
    let mut rest = line;
    while let Some((before, address, after)) = next_address(rest) {
        escaped(before, out)?;
        out.write_str("<a href=\"")?;
        escaped(address, out)?;
        out.write_str("\" rel=\"noopener noreferrer nofollow\" target=\"_blank\">")?;
        escaped(address, out)?;
        out.write_str("</a>")?;
        rest = after;
    }
    escaped(rest, out)
}

/// The text before the next address, the address, and the rest.
pub(crate) fn next_address(text: &str) -> Option<(&str, &str, &str)> {
    let mut from = 0;
    loop {
        // Colons are rare in text, so the search for a colon is fast.
        let colon = from + memchr(b':', text.as_bytes().get(from..)?)?;
        from = colon + 1;
        let (before, tail) = text.split_at_checked(colon)?;
        let scheme = ["https", "http"].into_iter().find(|scheme| before.ends_with(scheme));
        let Some(scheme) = scheme.filter(|_| tail.starts_with("://")) else { continue };
        let (before, tail) = text.split_at_checked(colon - scheme.len())?;
        if before.chars().next_back().is_some_and(char::is_alphanumeric) {
            continue;
        }
        let end = tail.find(|character| !is_of_address(character)).unwrap_or(tail.len());
        let address = without_punctuation(tail.get(..end)?);
        if address.len() > scheme.len() + "://".len() {
            return Some((before, address, tail.get(address.len()..)?));
        }
    }
}

/// Whether RFC 3986 section 2 allows the character in an address.
fn is_of_address(character: char) -> bool {
    character.is_ascii_alphanumeric() || "-._~:/?#[]@!$&'()*+,;=%".contains(character)
}

/// Removes the punctuation of the sentence from the end of an address, and closing brackets that
/// are not opened in the address.
fn without_punctuation(mut address: &str) -> &str {
    let surplus = |close: char, open: char| {
        address.matches(close).count().saturating_sub(address.matches(open).count())
    };
    let (mut round, mut square) = (surplus(')', '('), surplus(']', '['));
    loop {
        let spare = match address.chars().next_back() {
            Some('.' | ',' | ';' | ':' | '!' | '?' | '\'') => &mut 1,
            Some(')') => &mut round,
            Some(']') => &mut square,
            _ => return address,
        };
        let Some(shorter) = address.get(..address.len() - 1).filter(|_| *spare > 0) else {
            return address;
        };
        *spare -= 1;
        address = shorter;
    }
}

/// Text with HTML escapes.
///
/// The template engine escapes byte by byte. This escaper checks several bytes at once, since most
/// text needs no escapes.
#[derive(Clone, Copy, Debug)]
pub struct Escaped<'a>(pub &'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        escaped(self.0, out)
    }
}

impl askama::filters::HtmlSafe for Escaped<'_> {}

impl askama::FastWritable for Escaped<'_> {
    fn write_into(&self, mut out: &mut dyn Write, _: &dyn askama::Values) -> askama::Result<()> {
        Ok(escaped(self.0, &mut out)?)
    }
}

fn escaped(text: &str, out: &mut impl Write) -> fmt::Result {
    let mut rest = text;
    // Each special character is one byte in UTF-8, and that byte is never part of another
    // character.
    while let Some(at) = next_special(rest.as_bytes()) {
        let (before, tail) = rest.split_at(at);
        out.write_str(before)?;
        let mut characters = tail.chars();
        match characters.next() {
            Some('&') => out.write_str("&amp;")?,
            Some('<') => out.write_str("&lt;")?,
            Some('>') => out.write_str("&gt;")?,
            Some('"') => out.write_str("&quot;")?,
            Some('\'') => out.write_str("&#39;")?,
            other => other.map_or(Ok(()), |character| out.write_char(character))?,
        }
        rest = characters.as_str();
    }
    out.write_str(rest)
}

/// The position of the next character with a special meaning in HTML.
fn next_special(text: &[u8]) -> Option<usize> {
    let is_special = |byte: &u8| {
        (*byte == b'&') | (*byte == b'<') | (*byte == b'>') | (*byte == b'"') | (*byte == b'\'')
    };
    // The compiler turns this into vector instructions.
    let (chunks, _) = text.as_chunks::<16>();
    let is_plain =
        |chunk: &&[u8; 16]| !chunk.iter().fold(false, |any, byte| any | is_special(byte));
    let plain = chunks.iter().take_while(is_plain).count() * 16;
    Some(plain + text.get(plain..)?.iter().position(is_special)?)
}
