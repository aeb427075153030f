//! Writes a message: the author's text and attached files.
//!
//! A [`NewMessage`] is written in one call, and then each file in pieces. The caller may take the
//! written bytes away at any time. So the memory never holds a whole file.
//!
//! Invariants:
//! - The message is ASCII, except for non-ASCII addresses (RFC 6532). Its lines end in CRLF. They
//!   have at most 998 bytes, or 78 where the words allow it.
//! - No text in a name, a subject or a file name begins a field or a part.
//! - Reading the message gives back the content, except spaces at the ends of lines, and control
//!   characters in names and subjects.
//!
//! Implements: RFC 5322 sections 2.1.1 and 3; RFC 2045, 2046, 2047, 2183, 2231; RFC 3676 section
//! 4.2.

mod field;
mod text;

use alloc::vec::Vec;

use base64ct::{Base64, Encoding as _};
use machine::UnixTime;

use crate::date_time;
use crate::header::HeaderMailbox;
use field::FieldWriter;

/// The most references that are written: the first, and the latest of the others.
pub const REFERENCES_MAX: usize = 20;

/// The content of a message to write.
#[derive(Clone, Copy, Debug)]
pub struct NewMessage<'a> {
    /// The author.
    pub from: &'a HeaderMailbox,
    /// The recipients.
    pub to: &'a [HeaderMailbox],
    /// The recipients of a copy.
    pub cc: &'a [HeaderMailbox],
    /// The hidden recipients. They are written only into the author's own copy, and are empty in
    /// the message that is sent.
    pub bcc: &'a [HeaderMailbox],
    /// The subject. Control characters become spaces.
    pub subject: &'a str,
    /// The time at which the message was written.
    pub date: UnixTime,
    /// The unique identifier of the message, without angle brackets.
    pub message_id: &'a str,
    /// The identifier of the message that this message answers, without angle brackets.
    pub in_reply_to: Option<&'a [u8]>,
    /// The identifiers of the conversation, from the first to the answered message, without angle
    /// brackets. Invalid identifiers are left out. If there are more than [`REFERENCES_MAX`], some
    /// in the middle are left out too.
    pub references: &'a [&'a [u8]],
    /// The text, with one paragraph on each line. `>` at the start of a line marks a quote.
    pub text: &'a str,
    /// The text as HTML, if the message has this form too.
    pub html: Option<&'a str>,
    /// A number that cannot be predicted. The boundaries of the parts are made from it.
    pub secret: u128,
    /// Whether files may be attached.
    pub files: Files,
}

/// Whether files may be attached to a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Files {
    /// The message has no files.
    None,
    /// Files may be attached.
    Some,
}

/// An attached file.
#[derive(Clone, Copy, Debug)]
pub struct AttachedFile<'a> {
    /// The name of the file.
    pub name: &'a str,
    /// The media type of the file, such as `image/png`. An invalid type, or one that must not be
    /// encoded as base64 (`message/…`, `multipart/…`), becomes `application/octet-stream`.
    pub media_type: &'a str,
}

/// Why a message cannot be written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unwritable {
    /// One of the addresses is not valid.
    Address,
    /// The identifier of the message is not valid.
    Identifier,
}

/// A message while its files are being written.
#[derive(Debug)]
pub struct Composer {
    secret: u128,
    files: Files,
    /// The bytes of a file that do not fill a line yet.
    held: Vec<u8>,
}

/// The number of bytes that one line of base64 encodes (RFC 2045 section 6.8: 76 characters).
const LINE_BYTES: usize = 57;

impl Composer {
    /// Writes the header and the text. On an error, nothing is written.
    pub fn begin(message: &NewMessage<'_>, out: &mut Vec<u8>) -> Result<Composer, Unwritable> {
        let mailboxes =
            [message.to, message.cc, message.bcc].into_iter().flatten().chain([message.from]);
        if !mailboxes.into_iter().all(|mailbox| field::is_address(&mailbox.address)) {
            return Err(Unwritable::Address);
        }
        if !field::is_identifier(message.message_id.as_bytes()) {
            return Err(Unwritable::Identifier);
        }
        write_header(message, out);
        let composer = Composer {
            secret: message.secret,
            files: message.files,
            held: Vec::with_capacity(LINE_BYTES),
        };
        if composer.files == Files::Some {
            multipart(b"mixed", &composer.boundary(MIXED), out);
            composer.delimiter(out);
        }
        composer.write_texts(message, out);
        Ok(composer)
    }

    /// Begins a file. The file before it must have ended.
    pub fn file_began(&mut self, file: &AttachedFile<'_>, out: &mut Vec<u8>) {
        assert!(self.files == Files::Some, "the message was begun with files");
        self.delimiter(out);
        out.extend_from_slice(b"Content-Type: ");
        out.extend_from_slice(field::media_type(file.media_type));
        out.extend_from_slice(b"\r\nContent-Disposition: attachment;\r\n");
        field::write_parameter("filename", file.name, out);
        out.extend_from_slice(b"\r\nContent-Transfer-Encoding: base64\r\n\r\n");
    }

    /// Takes the next bytes of the file.
    pub fn bytes_arrived(&mut self, mut bytes: &[u8], out: &mut Vec<u8>) {
        if !self.held.is_empty() {
            let (taken, rest) =
                bytes.split_at_checked(LINE_BYTES - self.held.len()).unwrap_or((bytes, &[]));
            self.held.extend_from_slice(taken);
            bytes = rest;
            if self.held.len() == LINE_BYTES {
                write_line(&self.held, out);
                self.held.clear();
            }
        }
        let (lines, rest) = bytes.as_chunks::<LINE_BYTES>();
        lines.iter().for_each(|line| write_line(line, out));
        self.held.extend_from_slice(rest);
    }

    /// Ends the file.
    pub fn file_ended(&mut self, out: &mut Vec<u8>) {
        if !self.held.is_empty() {
            write_line(&self.held, out);
            self.held.clear();
        }
    }

    /// Ends the message, after its last file.
    pub fn message_ended(self, out: &mut Vec<u8>) {
        if self.files == Files::Some {
            delimit(&self.boundary(MIXED), b"--", out);
        }
    }

    fn write_texts(&self, message: &NewMessage<'_>, out: &mut Vec<u8>) {
        let Some(html) = message.html else {
            text::write_plain(message.text, out);
            return;
        };
        let boundary = self.boundary(ALTERNATIVE);
        multipart(b"alternative", &boundary, out);
        delimit(&boundary, b"", out);
        text::write_plain(message.text, out);
        delimit(&boundary, b"", out);
        text::write_html(html, out);
        delimit(&boundary, b"--", out);
    }

    fn delimiter(&self, out: &mut Vec<u8>) {
        delimit(&self.boundary(MIXED), b"", out);
    }

    /// A boundary that no part contains. A text in quoted-printable or base64 never has `=_`, and
    /// any other text with `=_` is encoded.
    fn boundary(&self, kind: u8) -> Vec<u8> {
        let digits = (0..32).rev().map(|place| hex_digit((self.secret >> (4 * place)) as u8 & 15));
        [b'=', b'_', kind].into_iter().chain(digits).collect()
    }
}

const MIXED: u8 = b'm';
const ALTERNATIVE: u8 = b'a';

fn write_header(message: &NewMessage<'_>, out: &mut Vec<u8>) {
    FieldWriter::new("Date", out).word(&date_time(message.date)).end();
    FieldWriter::new("From", out).mailboxes(core::slice::from_ref(message.from)).end();
    for (name, mailboxes) in [("To", message.to), ("Cc", message.cc), ("Bcc", message.bcc)] {
        if !mailboxes.is_empty() {
            FieldWriter::new(name, out).mailboxes(mailboxes).end();
        }
    }
    FieldWriter::new("Subject", out).text(message.subject).end();
    FieldWriter::new("Message-ID", out).identifiers([message.message_id.as_bytes()]).end();
    if let Some(answered) =
        message.in_reply_to.filter(|identifier| field::is_identifier(identifier))
    {
        FieldWriter::new("In-Reply-To", out).identifiers([answered]).end();
    }
    let known =
        message.references.iter().copied().filter(|identifier| field::is_identifier(identifier));
    let beyond = known.clone().count().saturating_sub(REFERENCES_MAX);
    let mut kept = known.clone().take(1).chain(known.skip(1 + beyond)).peekable();
    if kept.peek().is_some() {
        FieldWriter::new("References", out).identifiers(kept).end();
    }
    out.extend_from_slice(b"MIME-Version: 1.0\r\n");
}

fn multipart(kind: &[u8], boundary: &[u8], out: &mut Vec<u8>) {
    for text in [b"Content-Type: multipart/", kind, b";\r\n boundary=\"", boundary, b"\"\r\n"] {
        out.extend_from_slice(text);
    }
}

/// Writes a boundary line. `end`: two dashes after the last part, or nothing.
fn delimit(boundary: &[u8], end: &[u8], out: &mut Vec<u8>) {
    for text in [b"\r\n--", boundary, end, b"\r\n"] {
        out.extend_from_slice(text);
    }
}

/// Writes a line of base64. `bytes`: at most [`LINE_BYTES`].
fn write_line(bytes: &[u8], out: &mut Vec<u8>) {
    let mut line = [0; 76];
    out.extend_from_slice(Base64::encode(bytes, &mut line).unwrap_or_default().as_bytes());
    out.extend_from_slice(b"\r\n");
}

/// The hexadecimal digit of `value`, which is under 16.
pub(crate) fn hex_digit(value: u8) -> u8 {
    if value < 10 { b'0' + value } else { b'A' + value - 10 }
}
