//! Writes the lines of bodies in a transfer encoding, and folds the lines of headers.

use alloc::vec::Vec;

use base64ct::{Base64, Encoding as _};

use super::LINE_BYTES_MAX;
use crate::compose::hex_digit;

/// The longest line of an encoded body (RFC 2045 sections 6.7 and 6.8).
const ENCODED_BYTES_MAX: usize = 76;
/// The bytes that fill a line of base64.
const BASE64_LINE_BYTES: usize = ENCODED_BYTES_MAX / 4 * 3;

/// Writes the body of a part.
#[derive(Debug)]
pub(super) enum BodyWriter {
    Unchanged,
    /// Cuts lines of base64 that are too long. The value is the length of the written line.
    Cut(usize),
    QuotedPrintable {
        column: usize,
        /// White space, which is encoded if it ends the line.
        held: Option<u8>,
        /// Whether the written line continues a line of the text.
        is_continued: bool,
    },
    Base64 {
        /// Bytes that do not fill a line yet.
        bytes: Vec<u8>,
        /// A line end that belongs to the body unless a boundary follows.
        line_end: Vec<u8>,
    },
}

impl BodyWriter {
    pub(super) fn cut() -> BodyWriter {
        BodyWriter::Cut(0)
    }

    pub(super) fn quoted_printable() -> BodyWriter {
        BodyWriter::QuotedPrintable { column: 0, held: None, is_continued: false }
    }

    pub(super) fn base64() -> BodyWriter {
        BodyWriter::Base64 { bytes: Vec::new(), line_end: Vec::new() }
    }

    /// Takes a line, or a part of one if the line is long. `is_begun`: whether the beginning of the
    /// line was passed before.
    pub(super) fn line_arrived(&mut self, line: &[u8], is_begun: bool, out: &mut Vec<u8>) {
        let text = line.strip_suffix(b"\n").map(|text| text.strip_suffix(b"\r").unwrap_or(text));
        let is_whole = text.is_some();
        let text = text.unwrap_or(line);
        let line_end = line.get(text.len()..).unwrap_or_default();
        match self {
            BodyWriter::Unchanged => out.extend_from_slice(line),
            BodyWriter::Cut(_) if !is_begun && is_whole && text.len() <= LINE_BYTES_MAX => {
                out.extend_from_slice(line);
            }
            BodyWriter::Cut(column) => {
                for byte in text {
                    if *column == ENCODED_BYTES_MAX {
                        out.extend_from_slice(b"\r\n");
                        *column = 0;
                    }
                    out.push(*byte);
                    *column += 1;
                }
                out.extend_from_slice(line_end);
                if is_whole {
                    *column = 0;
                }
            }
            BodyWriter::QuotedPrintable { column, held, is_continued } => {
                for byte in text {
                    if let Some(space) = held.take() {
                        quote(space, true, (&mut *column, &mut *is_continued), out);
                    }
                    match byte {
                        b' ' | b'\t' => *held = Some(*byte),
                        _ => quote(*byte, true, (&mut *column, &mut *is_continued), out),
                    }
                }
                if is_whole {
                    if let Some(space) = held.take() {
                        quote(space, false, (&mut *column, &mut *is_continued), out);
                    }
                    out.extend_from_slice(b"\r\n");
                    (*column, *is_continued) = (0, false);
                }
            }
            BodyWriter::Base64 { bytes, line_end: end_before } => {
                for piece in [&core::mem::take(end_before)[..], text] {
                    write_base64(piece, bytes, out);
                }
                *end_before = line_end.to_vec();
            }
        }
    }

    /// The part has ended: a boundary follows.
    pub(super) fn part_ended(&mut self, out: &mut Vec<u8>) {
        match self {
            BodyWriter::Base64 { bytes, .. } => write_base64_line(bytes, out),
            BodyWriter::QuotedPrintable { held: Some(space), column, is_continued } => {
                quote(*space, false, (column, is_continued), out);
            }
            BodyWriter::Unchanged | BodyWriter::Cut(_) | BodyWriter::QuotedPrintable { .. } => {}
        }
    }

    /// The message has ended.
    pub(super) fn message_ended(&mut self, out: &mut Vec<u8>) {
        if let BodyWriter::Base64 { bytes, line_end } = self {
            write_base64(&core::mem::take(line_end), bytes, out);
        }
        self.part_ended(out);
    }
}

/// Writes a byte of quoted-printable. `may_be_literal`: whether white space may be unencoded here.
fn quote(
    byte: u8,
    may_be_literal: bool,
    (column, is_continued): (&mut usize, &mut bool),
    out: &mut Vec<u8>,
) {
    let is_literal = match byte {
        b' ' | b'\t' => may_be_literal,
        b'=' => false,
        // A cut must not make a line of the text look like a boundary.
        b'-' => !(*is_continued && *column == 0),
        _ => byte.is_ascii_graphic(),
    };
    let length = if is_literal { 1 } else { 3 };
    if *column + length >= ENCODED_BYTES_MAX {
        out.extend_from_slice(b"=\r\n");
        (*column, *is_continued) = (0, true);
        return quote(byte, may_be_literal, (column, is_continued), out);
    }
    if is_literal {
        out.push(byte);
    } else {
        out.extend([b'=', hex_digit(byte >> 4), hex_digit(byte & 15)]);
    }
    *column += length;
}

fn write_base64(mut piece: &[u8], bytes: &mut Vec<u8>, out: &mut Vec<u8>) {
    while !piece.is_empty() {
        let room = BASE64_LINE_BYTES - bytes.len();
        let (taken, rest) = piece.split_at_checked(room).unwrap_or((piece, &[]));
        bytes.extend_from_slice(taken);
        piece = rest;
        if bytes.len() == BASE64_LINE_BYTES {
            write_base64_line(bytes, out);
        }
    }
}

/// Writes the bytes as a line, if there are any.
fn write_base64_line(bytes: &mut Vec<u8>, out: &mut Vec<u8>) {
    if !bytes.is_empty() {
        let mut line = [0; ENCODED_BYTES_MAX];
        let line = Base64::encode(bytes, &mut line).unwrap_or_default();
        out.extend_from_slice(line.as_bytes());
        out.extend_from_slice(b"\r\n");
        bytes.clear();
    }
}

/// Writes a line of a header. A line that is too long is folded before white space, where it has
/// some.
pub(super) fn write_folded(line: &[u8], out: &mut Vec<u8>) {
    let mut rest = line;
    while rest.trim_ascii_end().len() > LINE_BYTES_MAX {
        let text = rest.trim_ascii_end();
        let is_space = |at: &usize| matches!(text.get(*at), Some(b' ' | b'\t'));
        // No line has only white space, and each line but the first begins with some.
        let first = text.iter().position(|byte| !matches!(byte, b' ' | b'\t')).unwrap_or(0) + 1;
        let within = (first..=LINE_BYTES_MAX).rev().find(is_space);
        let Some(at) = within.or_else(|| (first.max(LINE_BYTES_MAX)..text.len()).find(is_space))
        else {
            break;
        };
        let (before, after) = rest.split_at_checked(at).unwrap_or((rest, &[]));
        // White space before a fold would be lost to some readers.
        let start = before.iter().rposition(|byte| !matches!(byte, b' ' | b'\t'));
        let (before, spaces) =
            before.split_at_checked(start.map_or(0, |at| at + 1)).unwrap_or((before, &[]));
        out.extend_from_slice(before);
        out.extend_from_slice(b"\r\n");
        out.extend_from_slice(spaces);
        rest = after;
    }
    out.extend_from_slice(rest);
}
