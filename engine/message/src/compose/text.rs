//! Writes texts: paragraphs as flowed lines, and quoted-printable for text beyond ASCII.
//!
//! Implements: RFC 3676 sections 4.2 to 4.5; RFC 2045 section 6.7.

use alloc::vec::Vec;

use super::hex_digit;

/// The length of flowed lines. They should have 66 to 78 characters (RFC 3676 section 4.2).
const FLOWED_CHARACTERS: usize = 72;
/// The longest line of quoted-printable, including the equals sign of a soft line break (RFC 2045
/// section 6.7, rule 5).
const QUOTED_PRINTABLE_BYTES: usize = 76;
/// The longest line of a message (RFC 5322 section 2.1.1).
const LINE_BYTES_MAX: usize = 998;

/// Writes the fields and the body of a plain text.
pub(super) fn write_plain(text: &str, out: &mut Vec<u8>) {
    let mut flowed = Vec::with_capacity(text.len() + text.len() / 32);
    lines(text).for_each(|line| write_paragraph(line, &mut flowed));
    write(b"text/plain; charset=utf-8; format=flowed", &flowed, out);
}

/// Writes the fields and the body of an HTML page.
pub(super) fn write_html(html: &str, out: &mut Vec<u8>) {
    let mut page = Vec::with_capacity(html.len() + html.len() / 32);
    for line in lines(html) {
        page.extend_from_slice(line.as_bytes());
        page.extend_from_slice(b"\r\n");
    }
    write(b"text/html; charset=utf-8", &page, out);
}

/// The lines of a text. A line ends with CRLF, or with LF or CR alone.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().flat_map(|line| line.split('\r'))
}

/// Writes a line of the author as flowed lines. A line that continues in the next one ends in a
/// space.
fn write_paragraph(line: &str, out: &mut Vec<u8>) {
    let unquoted = line.trim_start_matches('>');
    let depth = line.len() - unquoted.len();
    let content = if depth > 0 { unquoted.strip_prefix(' ').unwrap_or(unquoted) } else { unquoted };
    // A line that ends in a space would continue in the next one. The line before a signature is
    // the exception.
    let mut rest = if content == "-- " { content } else { content.trim_end_matches(' ') };
    loop {
        let (now, later) = rest.split_at_checked(fitting(rest, depth)).unwrap_or((rest, ""));
        out.extend(core::iter::repeat_n(b'>', depth));
        if depth > 0 || now.starts_with([' ', '>']) || now.starts_with("From ") {
            out.push(b' ');
        }
        out.extend_from_slice(now.as_bytes());
        out.extend_from_slice(b"\r\n");
        rest = later;
        if rest.is_empty() {
            return;
        }
    }
}

/// The number of bytes of a paragraph that are written on one line: up to the spaces after the last
/// word that fits, or the first word.
fn fitting(text: &str, depth: usize) -> usize {
    let room = FLOWED_CHARACTERS.saturating_sub(depth).max(FLOWED_CHARACTERS / 2);
    let mut end = 0;
    let mut before = ' ';
    for (count, (at, c)) in text.char_indices().enumerate() {
        let begins_word = before == ' ' && c != ' ' && at > 0;
        // The mark of a signature must not begin a line within a paragraph.
        if begins_word && text.get(..at) != Some("-- ") {
            if count > room && end > 0 {
                return end;
            }
            end = at;
        }
        before = c;
    }
    if text.chars().nth(room).is_some() && end > 0 { end } else { text.len() }
}

/// Writes the fields with the media type and the transfer encoding of `text`, and the text. `text`:
/// lines that end in CRLF.
fn write(media_type: &[u8], text: &[u8], out: &mut Vec<u8>) {
    let is_plain = |byte: &u8| matches!(byte, b' '..=b'~' | b'\t' | b'\r' | b'\n');
    let is_short = |line: &[u8]| line.len() < LINE_BYTES_MAX;
    // A text that might contain a boundary is encoded: then it cannot contain one.
    let is_unencoded = text.iter().all(is_plain)
        && memchr::memmem::find(text, b"=_").is_none()
        && text.split(|byte| *byte == b'\n').all(is_short);
    let encoding: &[u8] = if is_unencoded { b"7bit" } else { b"quoted-printable" };
    for part in
        [b"Content-Type: ", media_type, b"\r\nContent-Transfer-Encoding: ", encoding, b"\r\n\r\n"]
    {
        out.extend_from_slice(part);
    }
    if is_unencoded {
        out.extend_from_slice(text);
    } else {
        write_quoted_printable(text, out);
    }
}

fn write_quoted_printable(text: &[u8], out: &mut Vec<u8>) {
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        let line = line.strip_suffix(b"\r\n").unwrap_or(line);
        let mut column = 0;
        for (index, &byte) in line.iter().enumerate() {
            let is_last = index + 1 == line.len();
            let is_literal = match byte {
                b' ' | b'\t' => !is_last,
                b'=' => false,
                _ => byte.is_ascii_graphic(),
            };
            let length = if is_literal { 1 } else { 3 };
            if column + length >= QUOTED_PRINTABLE_BYTES {
                out.extend_from_slice(b"=\r\n");
                column = 0;
            }
            if is_literal {
                out.push(byte);
            } else {
                out.extend([b'=', hex_digit(byte >> 4), hex_digit(byte & 15)]);
            }
            column += length;
        }
        out.extend_from_slice(b"\r\n");
    }
}
