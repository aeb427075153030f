//! Rewrites a message for servers that would not accept it: with short lines, and in ASCII.
//!
//! The parts of the message that have no transfer encoding get one: quoted-printable for text, and
//! base64 for all other parts. Long lines of base64 are cut, and long lines of a header are folded.
//! A signature of the message is no longer valid afterwards.
//!
//! These parts stay unchanged:
//! - a part with signed or encrypted content (`multipart/signed` and `multipart/encrypted`), with
//!   all parts in it: its signature covers the encoded bytes;
//! - parts of the types `message/…` and `multipart/…` themselves, which must not be encoded (RFC
//!   2046 section 5.2.1, RFC 2045 section 6.4). The parts within a `message/rfc822` are rewritten;
//! - parts that are quoted-printable, or have an unknown encoding;
//! - parts with a type or an encoding in a field of more than [`FIELD_BYTES_MAX`] bytes.
//!
//! Which part has the long line is known only after its header has passed. So all parts without an
//! encoding get one. Reading them gives the same content as before.
//!
//! Invariants:
//! - The output does not depend on how the message is cut into pieces.
//! - Memory holds a line of a header, or the beginning of a line of a body. A line of a header that
//!   is longer than [`HEADER_LINE_BYTES_MAX`] is folded in pieces, and may stay too long where two
//!   pieces meet.
//!
//! Implements: RFC 2045 sections 6.7 and 6.8, RFC 2046 section 5.1, RFC 5322 sections 2.1.1 and
//! 2.2.3, RFC 6152 section 3.

mod writers;

use alloc::vec::Vec;

use crate::header::{Field, is_envelope_line, split_name};
use writers::{BodyWriter, write_folded};

/// The longest line of a message, without its line end (RFC 5322 section 2.1.1).
pub(crate) const LINE_BYTES_MAX: usize = 998;
/// The longest line of a header that is held as a whole.
const HEADER_LINE_BYTES_MAX: usize = 128 * 1024;
/// The most bytes of a body's line that are held until the line ends.
const BODY_LINE_BYTES_HELD: usize = 4096;
/// The most bytes of a field that are examined.
pub(crate) const FIELD_BYTES_MAX: usize = 8192;
/// The most parts that contain each other. Deeper parts stay unchanged.
const DEPTH_MAX: usize = 32;

/// The form in which a message is required.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RequiredForm {
    /// No line has more than [`LINE_BYTES_MAX`] bytes.
    ShortLines,
    /// Each line is short, and the content is ASCII.
    SevenBit,
}

/// Rewrites a message.
#[derive(Debug)]
pub struct Reencoder {
    form: RequiredForm,
    /// The boundaries of the open multiparts, from the outermost.
    open: Vec<OpenMultipart>,
    state: State,
    /// The line that is arriving, as far as it was not passed on.
    line: Vec<u8>,
    /// Whether the beginning of the line was passed on.
    is_line_begun: bool,
    /// Whether all of the output is ASCII.
    is_ascii: bool,
}

#[derive(Debug)]
struct OpenMultipart {
    boundary: Vec<u8>,
    is_digest: bool,
}

#[derive(Debug)]
enum State {
    Header(PartHeader),
    Body(BodyWriter),
}

/// The header that is passing.
#[derive(Debug, Default)]
struct PartHeader {
    /// Whether this is the header of a message, and not of a part.
    is_of_message: bool,
    /// Whether the part is a message if the header does not say what it is.
    is_message_by_default: bool,
    has_mime_version: bool,
    /// The kind of the field that is passing.
    field: FieldKind,
    /// The fields `Content-Type` and `Content-Transfer-Encoding`. The second is held back.
    media_type: Vec<u8>,
    encoding: Vec<u8>,
    /// Whether one of these two is longer than [`FIELD_BYTES_MAX`], so the part stays unchanged.
    is_too_long: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum FieldKind {
    #[default]
    Other,
    MediaType,
    Encoding,
}

/// What happens to a part.
enum Treatment {
    /// The part stays as it is.
    Keep,
    /// The body is written by this writer, and its encoding gets this name.
    Encode(BodyWriter, &'static [u8]),
    /// The lines of the encoded body are cut.
    Cut,
    /// The part has other parts, with this boundary between them.
    Multipart(OpenMultipart),
    /// The part is a message.
    Message,
}

impl Reencoder {
    /// A writer at the beginning of a message.
    pub fn new(form: RequiredForm) -> Reencoder {
        let header = PartHeader { is_of_message: true, ..PartHeader::default() };
        Reencoder {
            form,
            open: Vec::new(),
            state: State::Header(header),
            line: Vec::new(),
            is_line_begun: false,
            is_ascii: true,
        }
    }

    /// Takes the next bytes of the message, and adds what is rewritten to `out`.
    pub fn bytes_arrived(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        let before = out.len();
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            let mut rest = line;
            while !rest.is_empty() {
                let most = match self.state {
                    State::Header(_) => HEADER_LINE_BYTES_MAX,
                    State::Body(_) => BODY_LINE_BYTES_HELD,
                };
                let room = most - self.line.len();
                let (piece, after) = rest.split_at_checked(room).unwrap_or((rest, &[]));
                self.line.extend_from_slice(piece);
                rest = after;
                if piece.ends_with(b"\n") || self.line.len() == most {
                    self.line_arrived(out);
                }
            }
        }
        self.is_ascii &= out.get(before..).unwrap_or_default().is_ascii();
    }

    /// The message has ended: adds the rest to `out`. Returns whether the whole output is ASCII.
    pub fn ended(mut self, out: &mut Vec<u8>) -> bool {
        let before = out.len();
        while !self.line.is_empty() {
            self.line_arrived(out);
        }
        match &mut self.state {
            State::Header(header) => out.extend_from_slice(&header.encoding),
            State::Body(body) => body.message_ended(out),
        }
        self.is_ascii && out.get(before..).unwrap_or_default().is_ascii()
    }

    /// Handles the held line, or the held part of a long line.
    fn line_arrived(&mut self, out: &mut Vec<u8>) {
        let mut line = core::mem::take(&mut self.line);
        // A line end is never cut.
        let cr = if line.len() > 1 { line.pop_if(|last| *last == b'\r') } else { None };
        let is_begun = core::mem::replace(&mut self.is_line_begun, !line.ends_with(b"\n"));
        if let Some((level, is_last)) = self.delimiter(&line).filter(|_| !is_begun) {
            self.delimiter_arrived(level, is_last, &line, out);
        } else {
            match &mut self.state {
                State::Body(body) => body.line_arrived(&line, is_begun, out),
                State::Header(header) => match header.line_arrived(&line, is_begun, out) {
                    PassedLine::OfHeader => {}
                    PassedLine::Empty => self.header_ended(&line, out),
                    PassedLine::OfBody => {
                        // The body has begun without an empty line.
                        self.header_ended(b"\r\n", out);
                        if let State::Body(body) = &mut self.state {
                            body.line_arrived(&line, is_begun, out);
                        }
                    }
                },
            }
        }
        line.clear();
        line.extend(cr);
        self.line = line;
    }

    /// The open multipart with this line as its boundary, and whether it is the last boundary. The
    /// last line of a message may have no line end.
    fn delimiter(&self, line: &[u8]) -> Option<(usize, bool)> {
        let is_whole = line.ends_with(b"\n") || line.len() + 1 < BODY_LINE_BYTES_HELD;
        let text = Some(line).filter(|_| is_whole)?.trim_ascii_end().strip_prefix(b"--")?;
        self.open.iter().enumerate().rev().find_map(|(level, open)| {
            match text.strip_prefix(&*open.boundary)? {
                b"" => Some((level, false)),
                b"--" => Some((level, true)),
                _ => None,
            }
        })
    }

    fn delimiter_arrived(&mut self, level: usize, is_last: bool, line: &[u8], out: &mut Vec<u8>) {
        match &mut self.state {
            State::Header(header) => out.extend_from_slice(&header.encoding),
            State::Body(body) => body.part_ended(out),
        }
        out.extend_from_slice(line);
        self.open.truncate(level + usize::from(!is_last));
        self.state = if is_last {
            State::Body(BodyWriter::Unchanged)
        } else {
            let is_digest = self.open.last().is_some_and(|open| open.is_digest);
            let header = PartHeader { is_message_by_default: is_digest, ..PartHeader::default() };
            State::Header(header)
        };
    }

    /// The header has ended with this line: decides what happens to the part.
    fn header_ended(&mut self, empty_line: &[u8], out: &mut Vec<u8>) {
        let State::Header(header) = &mut self.state else { return };
        let header = core::mem::take(header);
        let is_too_deep = self.open.len() >= DEPTH_MAX;
        let treatment = if is_too_deep { Treatment::Keep } else { header.treatment() };
        let (state, encoding) = match treatment {
            Treatment::Keep => (State::Body(BodyWriter::Unchanged), None),
            Treatment::Cut => (State::Body(BodyWriter::cut()), None),
            Treatment::Encode(body, name) => (State::Body(body), Some(name)),
            Treatment::Multipart(open) => {
                self.open.push(open);
                (State::Body(BodyWriter::Unchanged), self.encoding_of_container(&header))
            }
            Treatment::Message => {
                let inner = PartHeader { is_of_message: true, ..PartHeader::default() };
                (State::Header(inner), self.encoding_of_container(&header))
            }
        };
        match encoding {
            None => out.extend_from_slice(&header.encoding),
            Some(name) => {
                if header.is_of_message && !header.has_mime_version {
                    out.extend_from_slice(b"MIME-Version: 1.0\r\n");
                }
                for part in [b"Content-Transfer-Encoding: ", name, b"\r\n"] {
                    out.extend_from_slice(part);
                }
            }
        }
        out.extend_from_slice(empty_line);
        self.state = state;
    }

    /// The new name of the encoding of a part that has other parts, if they become ASCII.
    fn encoding_of_container(&self, header: &PartHeader) -> Option<&'static [u8]> {
        let is_wide = matches!(&*header.encoding_name(), b"8bit" | b"binary");
        (is_wide && self.form == RequiredForm::SevenBit).then_some(b"7bit")
    }
}

/// The kind of a line that arrived within a header.
enum PassedLine {
    OfHeader,
    Empty,
    OfBody,
}

impl PartHeader {
    /// Passes a line on, or holds it back.
    fn line_arrived(&mut self, line: &[u8], is_begun: bool, out: &mut Vec<u8>) -> PassedLine {
        if !is_begun {
            match line {
                b"\r\n" | b"\n" => return PassedLine::Empty,
                [b' ' | b'\t', ..] => {}
                _ if is_envelope_line(line) => self.field = FieldKind::Other,
                _ => {
                    let Some((name, _)) = split_name(line) else { return PassedLine::OfBody };
                    let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
                    self.has_mime_version |= is("MIME-Version");
                    self.field = match () {
                        () if is("Content-Type") => FieldKind::MediaType,
                        () if is("Content-Transfer-Encoding") => FieldKind::Encoding,
                        () => FieldKind::Other,
                    };
                }
            }
        }
        let held = match self.field {
            FieldKind::Other => None,
            FieldKind::MediaType => Some(&mut self.media_type),
            FieldKind::Encoding => Some(&mut self.encoding),
        };
        if let Some(held) = held {
            self.is_too_long |= held.len() + line.len() > FIELD_BYTES_MAX;
            if !self.is_too_long {
                held.extend_from_slice(line);
            }
        }
        match self.field {
            FieldKind::Encoding if self.is_too_long => {
                out.append(&mut self.encoding);
                out.extend_from_slice(line);
            }
            FieldKind::Encoding => {}
            FieldKind::Other | FieldKind::MediaType => write_folded(line, out),
        }
        PassedLine::OfHeader
    }

    fn encoding_name(&self) -> Vec<u8> {
        field(&self.encoding).map_or(Vec::new(), |field| field.parameters().value().into())
    }

    fn treatment(&self) -> Treatment {
        if self.is_too_long {
            return Treatment::Keep;
        }
        let parameters = field(&self.media_type).map(|field| field.parameters());
        let default = if self.is_message_by_default { "message/rfc822" } else { "text/plain" };
        let media_type = parameters.as_ref().map_or("", |parameters| parameters.value());
        let media_type = if media_type.contains('/') { media_type } else { default };
        let is_identity = matches!(&*self.encoding_name(), b"" | b"7bit" | b"8bit" | b"binary");
        match media_type.split_once('/') {
            Some(("multipart", "signed" | "encrypted")) => Treatment::Keep,
            Some(("multipart", kind)) if is_identity => {
                let boundary =
                    parameters.as_ref().and_then(|parameters| parameters.bytes("boundary"));
                let boundary = boundary.map(|boundary| boundary.trim_ascii_end().to_vec());
                match boundary.filter(|boundary| (1..LINE_BYTES_MAX).contains(&boundary.len())) {
                    Some(boundary) => Treatment::Multipart(OpenMultipart {
                        boundary,
                        is_digest: kind == "digest",
                    }),
                    None => Treatment::Keep,
                }
            }
            Some(("message", "rfc822" | "global")) if is_identity => Treatment::Message,
            Some(("multipart" | "message", _)) => Treatment::Keep,
            Some(("text", _)) if is_identity => {
                Treatment::Encode(BodyWriter::quoted_printable(), b"quoted-printable")
            }
            _ if is_identity => Treatment::Encode(BodyWriter::base64(), b"base64"),
            _ if &*self.encoding_name() == b"base64" => Treatment::Cut,
            _ => Treatment::Keep,
        }
    }
}

fn field(bytes: &[u8]) -> Option<Field<'_>> {
    let (name, value) = split_name(bytes)?;
    Some(Field { name, value: value.trim_ascii_end() })
}

/// Finds long lines in bytes that pass.
#[derive(Clone, Copy, Default, Debug)]
pub struct LongLines {
    line_bytes: usize,
    is_any: bool,
}

impl LongLines {
    /// Takes the next bytes.
    pub fn bytes_arrived(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while let Some(end) = memchr::memchr(b'\n', rest) {
            let (line, after) = rest.split_at_checked(end + 1).unwrap_or((rest, &[]));
            // The line end is not part of the line.
            self.is_any |= self.line_bytes + line.len() > LINE_BYTES_MAX + b"\r\n".len();
            (self.line_bytes, rest) = (0, after);
        }
        self.line_bytes += rest.len();
        self.is_any |= self.line_bytes > LINE_BYTES_MAX + b"\r".len();
    }

    /// Whether a line was longer than [`LINE_BYTES_MAX`].
    pub fn is_any(&self) -> bool {
        self.is_any
    }
}
