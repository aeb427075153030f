//! Plain text of a message as HTML. Quotes are folded with the line that introduces them, and lose
//! their marks. Addresses become links. Patches and signatures are set apart. Empty lines around
//! quotes are dropped, since the style sheet gives quotes a margin. All other text is unchanged.
//!
//! Invariant: text is written only between tags that this module writes, and each character of it
//! is escaped. An address becomes a value of `href` only if it begins with `https://` or `http://`,
//! and has only characters that RFC 3986 allows.

use core::fmt::{self, Write};

use memchr::{memchr, memchr_iter, memmem};

/// Plain text of a message, which is displayed as HTML.
#[derive(Clone, Copy, Debug)]
pub struct Prose<'a>(pub &'a str);

/// At most this many consecutive quoted lines are shown without folding.
const QUOTED_OPEN_MAX: usize = 3;

/// At most this many quotes are shown within each other. Further marks are text.
const QUOTE_DEPTH_MAX: usize = 8;

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
        let (own, tail) = if rest.starts_with('>') { ("", rest) } else { split_where(rest, false) };
        let (quote, tail) = split_where(tail, true);
        rest = without_empty_lines(tail);
        let folds = quote.lines().count() > open_max;
        let (own, introduction) = if folds { split_introduction(own) } else { (own, "") };
        unquoted(own, out)?;
        if folds {
            out.write_str("<details><summary>Quoted text</summary>")?;
            paragraph("<p>", introduction, "</p>", out)?;
        }
        quoted(quote, out)?;
        out.write_str(if folds { "</details>" } else { "" })?;
    }
    Ok(())
}

/// The longest introduction of a quote in bytes. A longer line is a paragraph without line ends.
const INTRODUCTION_BYTES_MAX: usize = 300;

/// Splits off the last lines if they introduce a quote: "On Monday Ada Lovelace wrote:", which may
/// be wrapped.
fn split_introduction(own: &str) -> (&str, &str) {
    let text = own.trim_end();
    let line_before = |end: usize| {
        let before = text.get(..end).unwrap_or_default();
        before.rfind('\n').map_or(0, |end| end + 1)
    };
    let last = line_before(text.len());
    let wrapped = line_before(last.saturating_sub(1));
    let is_begun = |at: usize| text.get(at..).is_some_and(|line| line.starts_with("On "));
    let is_introduction = text.ends_with("wrote:") || text.ends_with(':') && is_begun(last);
    let start = match is_introduction {
        false => return (own, ""),
        true if !is_begun(last) && is_begun(wrapped) => wrapped,
        true => last,
    };
    let is_short = own.len() - start <= INTRODUCTION_BYTES_MAX;
    own.split_at_checked(start).filter(|_| is_short).unwrap_or((own, ""))
}

/// Writes text that is not quoted: with a patch in a fixed-width font, and a signature.
fn unquoted(text: &str, out: &mut fmt::Formatter<'_>) -> fmt::Result {
    let [patch, signature] = patch_and_signature(text);
    let (text, signature) = text.split_at_checked(signature).unwrap_or((text, ""));
    let (text, patch) = text.split_at_checked(patch).unwrap_or((text, ""));
    paragraph("<p>", text, "</p>", out)?;
    paragraph("<pre>", patch, "</pre>", out)?;
    paragraph("<p class=\"signature\">", signature, "</p>", out)
}

/// The beginnings of a patch in the format of Git, with its table of changed files, and of a
/// signature. If the text has no patch or no signature, it begins at the end of the text.
fn patch_and_signature(text: &str) -> [usize; 2] {
    let (mut table, mut patch, mut signature) = (None, None, None);
    for dashes in memmem::find_iter(text.as_bytes(), "--") {
        let before = text.get(..dashes).unwrap_or_default();
        let start = before.strip_suffix("diff ").unwrap_or(before).len();
        let is_line = matches!(text.as_bytes().get(..start), Some([] | [.., b'\n']));
        let line = text.get(start..).filter(|_| is_line).and_then(|rest| rest.lines().next());
        match line {
            Some("-- ") => signature = Some(start),
            Some("---") => table = table.or(Some(start)),
            Some(line) if line.starts_with("diff --git ") || line.starts_with("--- a/") => {
                patch = patch.or(table).or(Some(start));
            }
            _ => {}
        }
    }
    let end = text.len();
    let signature = signature.filter(|start| patch.is_none_or(|patch| patch < *start));
    [patch.unwrap_or(end), signature.unwrap_or(end)]
}

/// Writes text between two tags, if it is not empty.
fn paragraph(open: &str, text: &str, close: &str, out: &mut fmt::Formatter<'_>) -> fmt::Result {
    if text.is_empty() {
        return Ok(());
    }
    out.write_str(open)?;
    lines(text, out)?;
    out.write_str(close)
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

/// Writes quoted lines without their marks. A quote within a quote is an element within an element.
fn quoted(part: &str, out: &mut fmt::Formatter<'_>) -> fmt::Result {
    let mut depth = 0;
    for (number, line) in part.lines().enumerate() {
        let (own_depth, text) = without_marks(line);
        if own_depth == depth && number > 0 {
            out.write_str("\n")?;
        }
        for _ in depth..own_depth {
            out.write_str("<blockquote dir=\"auto\">")?;
        }
        for _ in own_depth..depth {
            out.write_str("</blockquote>")?;
        }
        depth = own_depth;
        linked(text, out)?;
    }
    (0..depth).try_for_each(|_| out.write_str("</blockquote>"))
}

/// The depth of the quote that a line belongs to, and its text.
fn without_marks(line: &str) -> (usize, &str) {
    let (mut depth, mut text) = (0, line);
    while depth < QUOTE_DEPTH_MAX
        && let Some(rest) = text.strip_prefix('>').or_else(|| text.strip_prefix(" >"))
    {
        (depth, text) = (depth + 1, rest);
    }
    (depth, text.strip_prefix(' ').unwrap_or(text))
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
