//! Takes a message apart while it arrives, line by line, with a stack of the open parts.
//!
//! A line is examined in place. It is copied only if a piece ends within it and it may still be a
//! field or a boundary.

use alloc::vec::Vec;
use core::mem;

use super::content_size::Base64Size;
use super::listener::Listener;
use super::part::{Encoding, Part};
use super::{DEPTH_MAX, PARTS_MAX, Structure};
use crate::header::{
    ADDRESSES_MAX, Field, begins_field, is_envelope_line, is_of_gateway, split_name, without_mark,
};

/// The most bytes that are examined of a field without addresses.
pub const FIELD_BYTES_MAX: usize = 8_192;

/// The most bytes that are examined of a field with addresses: [`ADDRESSES_MAX`] of the longest
/// addresses.
pub const ADDRESS_FIELD_BYTES_MAX: usize = ADDRESSES_MAX * 256;

/// The fields with addresses (RFC 5322 sections 3.6.2 and 3.6.3).
const ADDRESS_FIELDS: [&str; 6] = ["From", "Sender", "Reply-To", "To", "Cc", "Bcc"];

/// The longest boundary. RFC 2046 section 5.1.1 allows 70 bytes, but longer boundaries are in use.
const BOUNDARY_BYTES_MAX: usize = 200;

/// The longest line with a boundary: two dashes before and after it, and some white space.
const DELIMITER_BYTES_MAX: usize = BOUNDARY_BYTES_MAX + 64;

/// Takes a message apart.
#[derive(Debug)]
pub struct StructureReader {
    structure: Structure,
    /// The open parts. Each part is inside the part before it.
    open: Vec<OpenPart>,
    expect: Expect,
    /// The number of bytes of the message before the current line.
    line_start: u64,
    /// The number of bytes of the current line in earlier pieces.
    line_length: u64,
    /// The beginning of the current line, if it came in earlier pieces and may be needed.
    line: Vec<u8>,
    /// The length of the line end of the previous line.
    line_end_length: u64,
    /// The last byte of the previous piece.
    last_byte: u8,
    /// The field that is being read, and the most bytes of it that are examined.
    field: Vec<u8>,
    field_bytes_max: usize,
    is_field_wanted: bool,
    header_facts: StructureFields,
    /// The last line, if it is not a field, and its position. The next line decides whether it
    /// belongs to the header or begins the body.
    doubtful: Option<(u64, Vec<u8>)>,
    /// The size of the body that is being read, if it is in base64.
    base64: Option<Base64Size>,
    /// Whether the current line begins with a dash.
    is_dashed: bool,
}

/// The facts about the structure from the header that is being read. A repeated field counts once.
#[derive(Debug, Default)]
struct StructureFields {
    /// A bit for each field of [`STRUCTURAL`] that was read.
    fields: u8,
    boundary: Option<Vec<u8>>,
    /// Whether the header has any line so far.
    has_field: bool,
}

/// The fields that describe the structure.
const STRUCTURAL: [&str; 4] =
    ["Content-Type", "Content-Disposition", "Content-Transfer-Encoding", "Content-ID"];

#[derive(Debug)]
struct OpenPart {
    /// The index of the part.
    part: usize,
    /// The boundary between its parts, while more of them may follow.
    boundary: Option<Vec<u8>>,
}

/// The meaning of the next line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Expect {
    /// A field, the continuation of one, or the end of the header.
    Field,
    /// A line of a body that is passed on.
    BodyLine,
    /// Only a boundary matters.
    Boundary,
}

impl Default for StructureReader {
    fn default() -> StructureReader {
        StructureReader::new()
    }
}

impl StructureReader {
    /// A reader at the beginning of a message.
    pub fn new() -> StructureReader {
        let mut reader = StructureReader {
            structure: Structure::default(),
            open: Vec::new(),
            expect: Expect::Field,
            line_start: 0,
            line_length: 0,
            line: Vec::new(),
            line_end_length: 0,
            last_byte: 0,
            field: Vec::new(),
            field_bytes_max: FIELD_BYTES_MAX,
            is_field_wanted: false,
            header_facts: StructureFields::default(),
            doubtful: None,
            base64: None,
            is_dashed: false,
        };
        reader.part_began(0, "text/plain", &mut ());
        reader
    }

    /// The parts that have begun so far.
    pub fn parts(&self) -> &[Part] {
        &self.structure.parts
    }

    /// Takes the next bytes of the message.
    pub fn bytes_arrived(&mut self, mut bytes: &[u8], listener: &mut impl Listener) {
        while !bytes.is_empty() && !listener.has_enough(&self.structure.parts) {
            let line_end = memchr::memchr(b'\n', bytes);
            let (piece, rest) = bytes
                .split_at_checked(line_end.map_or(bytes.len(), |at| at + 1))
                .unwrap_or((bytes, &[]));
            let is_whole = line_end.is_some();
            let is_in_base64 = self.base64.is_some();
            if is_whole && self.line_length == 0 {
                self.line_arrived(piece, listener);
            } else {
                self.piece_of_line_arrived(piece, is_whole, listener);
            }
            if self.line_length == 0 {
                self.is_dashed = piece.starts_with(b"-");
            }
            // A line with dashes may be a boundary, and is never in base64.
            let is_content = is_in_base64 && !self.is_dashed;
            if let Some(size) = self.base64.as_mut().filter(|_| is_content) {
                size.piece_arrived(piece);
            }
            self.line_length += piece.len() as u64;
            if is_whole {
                let before = piece
                    .len()
                    .checked_sub(2)
                    .map_or(self.last_byte, |at| piece.get(at).copied().unwrap_or(0));
                self.line_end_length = if before == b'\r' { 2 } else { 1 };
                self.line_start += self.line_length;
                self.line_length = 0;
            }
            self.last_byte = piece.last().copied().unwrap_or(0);
            bytes = rest;
        }
    }

    /// The message has ended.
    pub fn message_ended(mut self, listener: &mut impl Listener) -> Structure {
        if !self.line.is_empty() {
            let line = mem::take(&mut self.line);
            self.line_arrived(&line, listener);
        }
        let end = self.line_start + self.line_length;
        self.doubtful_line_is_of_body(listener);
        if self.expect == Expect::Field {
            self.header_ended(end, listener);
        }
        self.close_parts(0, end, listener);
        self.structure
    }

    /// Takes a piece of a cut line, and keeps it if it may be more than text.
    fn piece_of_line_arrived(
        &mut self,
        piece: &[u8],
        is_whole: bool,
        listener: &mut impl Listener,
    ) {
        let is_kept = !self.line.is_empty();
        let may_matter = self.expect == Expect::Field || piece.starts_with(b"-");
        if !is_kept && (self.line_length > 0 || !may_matter) {
            self.text_arrived(piece, listener);
            return;
        }
        let kept_max =
            if self.expect == Expect::Field { FIELD_BYTES_MAX } else { DELIMITER_BYTES_MAX };
        let mut beyond = self.keep_of_line(piece, kept_max);
        if self.expect == Expect::Field && !beyond.is_empty() {
            beyond = self.keep_of_line(beyond, self.header_line_bytes_max(&self.line));
        }
        if self.expect != Expect::Field && !beyond.is_empty() {
            // The line is too long for a boundary, so it is text.
            let line = mem::take(&mut self.line);
            self.text_arrived(&line, listener);
            self.text_arrived(beyond, listener);
        } else if is_whole {
            let mut line = mem::take(&mut self.line);
            self.line_arrived(&line, listener);
            line.clear();
            line.shrink_to(FIELD_BYTES_MAX);
            self.line = line;
        }
    }

    /// Keeps as much of a piece as fits into `kept_max` bytes of the line. Returns the rest.
    fn keep_of_line<'a>(&mut self, piece: &'a [u8], kept_max: usize) -> &'a [u8] {
        let room = kept_max.saturating_sub(self.line.len());
        let (kept, beyond) = piece.split_at_checked(room).unwrap_or((piece, &[]));
        self.line.extend_from_slice(kept);
        beyond
    }

    /// The number of bytes of a header line that are examined. `line`: the line, or its beginning.
    fn header_line_bytes_max(&self, line: &[u8]) -> usize {
        let start = line.get(..FIELD_BYTES_MAX).unwrap_or(line);
        match (start, split_name(start)) {
            ([b' ' | b'\t', ..], _) => self.field_bytes_max,
            (_, Some((name, _))) => field_bytes_max(name),
            (_, None) => FIELD_BYTES_MAX,
        }
    }

    fn text_arrived(&mut self, text: &[u8], listener: &mut impl Listener) {
        if self.expect == Expect::BodyLine {
            listener.body_arrived(text);
        }
    }

    /// Handles a line. `line`: the line with its line end, or the bytes of it that are examined.
    fn line_arrived(&mut self, line: &[u8], listener: &mut impl Listener) {
        if let Some((level, kind)) = line.starts_with(b"--").then(|| self.delimiter(line)).flatten()
        {
            return self.delimiter_arrived(level, kind, line, listener);
        }
        match self.expect {
            Expect::Field => self.header_line_arrived(line, listener),
            Expect::BodyLine => listener.body_arrived(line),
            Expect::Boundary => {}
        }
    }

    /// The level of the open part that has this line as its boundary, and the kind of the boundary.
    /// If several parts have it, the innermost counts.
    fn delimiter(&self, line: &[u8]) -> Option<(usize, Delimiter)> {
        if line.len() > DELIMITER_BYTES_MAX {
            return None;
        }
        let text = line.trim_ascii_end().strip_prefix(b"--")?;
        let candidates = self.open.iter().enumerate().rev();
        let mut candidates =
            candidates.filter_map(|(level, open)| Some((level, open.boundary.as_deref()?)));
        candidates.find_map(|(level, boundary)| match text.strip_prefix(boundary)? {
            b"" => Some((level, Delimiter::Next)),
            b"--" => Some((level, Delimiter::Last)),
            _ => None,
        })
    }

    fn delimiter_arrived(
        &mut self,
        level: usize,
        kind: Delimiter,
        line: &[u8],
        listener: &mut impl Listener,
    ) {
        // The line end before a boundary belongs to the boundary (RFC 2046 section 5.1.1).
        let end = self.line_start.saturating_sub(self.line_end_length);
        if self.expect == Expect::Field {
            let has_body = self.doubtful.is_some();
            self.doubtful_line_is_of_body(listener);
            if !has_body {
                self.header_ended(end, listener);
            }
            if self.open.get(level).is_none_or(|open| open.boundary.is_none()) {
                // The part with this header was the last that is taken apart. The rest of the
                // message begins with this line.
                if let Some(rest) = self.structure.parts.last_mut().filter(|_| !has_body) {
                    *rest = Part::rest(self.line_start);
                }
                return self.text_arrived(line, listener);
            }
        }
        self.close_parts(level + 1, end, listener);
        self.expect = Expect::Boundary;
        if kind == Delimiter::Last {
            if let Some(open) = self.open.last_mut() {
                open.boundary = None;
            }
        } else {
            let is_digest = self.open.last().and_then(|open| self.structure.parts.get(open.part));
            let is_digest = is_digest.is_some_and(|part| part.media_type == "multipart/digest");
            // The part starts after this line, which `line_start` does not count yet.
            let start = self.line_start + line.len() as u64;
            self.part_began(
                start,
                if is_digest { "message/rfc822" } else { "text/plain" },
                listener,
            );
        }
    }

    /// Ends all parts that are `level` deep or deeper.
    fn close_parts(&mut self, level: usize, end: u64, listener: &mut impl Listener) {
        if mem::replace(&mut self.expect, Expect::Boundary) == Expect::BodyLine {
            listener.body_ended();
        }
        // If the end is within the empty line of the header, the part ends after that line. All
        // parts that contain it end there too.
        let read = end.max(self.line_start);
        let (mut end, mut base64) = (end, self.base64.take());
        for open in self.open.drain(level.min(self.open.len())..).rev() {
            if let Some(part) = self.structure.parts.get_mut(open.part) {
                end = end.max(part.body.start);
                // Only the innermost part is in base64.
                let size = base64.take();
                let content =
                    size.map(|size| size.content_bytes(read.saturating_sub(part.body.start)));
                part.body_ended(end, content);
            }
        }
    }

    fn part_began(&mut self, start: u64, default_type: &str, listener: &mut impl Listener) {
        if self.structure.parts.len() >= PARTS_MAX {
            return self.rest_began(start, listener);
        }
        assert!(self.open.len() < DEPTH_MAX, "a part beyond the depth limit is not taken apart");
        let parent = self.open.last().map_or(0, |open| open.part);
        self.structure.parts.push(Part::new(self.open.len(), parent, default_type, start));
        self.open.push(OpenPart { part: self.structure.parts.len() - 1, boundary: None });
        self.expect = Expect::Field;
    }

    /// There are too many parts. The rest of the message becomes one more part, directly in the
    /// message.
    fn rest_began(&mut self, start: u64, listener: &mut impl Listener) {
        assert!(self.structure.parts.len() == PARTS_MAX, "the rest is not taken apart");
        self.structure.is_cut = true;
        for open in self.open.drain(1..).rev() {
            if let Some(part) = self.structure.parts.get_mut(open.part) {
                part.body_ended(start.max(part.body.start), None);
            }
        }
        if let Some(message) = self.open.first_mut() {
            message.boundary = None;
        }
        self.structure.parts.push(Part::rest(start));
        self.open.push(OpenPart { part: self.structure.parts.len() - 1, boundary: None });
        let is_body_wanted = listener.body_began(&self.structure.parts);
        self.expect = if is_body_wanted { Expect::BodyLine } else { Expect::Boundary };
    }

    fn header_line_arrived(&mut self, line: &[u8], listener: &mut impl Listener) {
        if self.doubtful.is_some() && !begins_field(line) {
            self.doubtful_line_is_of_body(listener);
            return self.line_arrived(line, listener);
        }
        self.doubtful = None;
        let line = match without_mark(line) {
            unmarked if self.line_start == 0 && split_name(unmarked).is_some() => unmarked,
            _ => line,
        };
        let line = line.get(..self.header_line_bytes_max(line)).unwrap_or(line);
        let is_empty = matches!(line, b"\n" | b"\r\n" | b"\r" | b"");
        if is_empty {
            self.header_ended(self.line_start + line.len() as u64, listener);
        } else if matches!(line, [b' ' | b'\t', ..]) {
            self.header_facts.has_field = true;
            self.push_field(line);
        } else if let Some((name, _)) = split_name(line) {
            self.field_ended(listener);
            self.header_facts.has_field = true;
            let part = self.open.last().and_then(|open| self.structure.parts.get(open.part));
            self.is_field_wanted = part
                .is_some_and(|part| describes_structure(name) || listener.wants_field(part, name));
            self.field_bytes_max = field_bytes_max(name);
            self.push_field(line);
        } else if is_envelope_line(line) {
            // A continuation of this line does not belong to a field.
            self.field_ended(listener);
            self.header_facts.has_field = true;
        } else if self.header_facts.has_field && is_of_gateway(line) {
            self.field_ended(listener);
            self.doubtful = Some((self.line_start, line.to_vec()));
        } else {
            // The line is not a field and not empty, so the body has begun without an empty line.
            self.header_ended(self.line_start, listener);
            self.line_arrived(line, listener);
        }
    }

    /// The doubtful line, if there is one, begins the body.
    fn doubtful_line_is_of_body(&mut self, listener: &mut impl Listener) {
        if let Some((start, line)) = self.doubtful.take() {
            let now = mem::replace(&mut self.line_start, start);
            self.header_ended(start, listener);
            self.line_arrived(&line, listener);
            self.line_start = now;
        }
    }

    fn push_field(&mut self, line: &[u8]) {
        if self.is_field_wanted {
            let room = self.field_bytes_max.saturating_sub(self.field.len());
            self.field.extend_from_slice(line.get(..room).unwrap_or(line));
        }
    }

    fn field_ended(&mut self, listener: &mut impl Listener) {
        let mut bytes = mem::take(&mut self.field);
        let Some(open) = self.open.last() else { return };
        let Some(part) = self.structure.parts.get_mut(open.part) else { return };
        if let (true, Some((name, value))) =
            (self.is_field_wanted, split_name(bytes.trim_ascii_end()))
        {
            let field = Field { name, value };
            let kind =
                STRUCTURAL.iter().position(|known| field.is(known)).unwrap_or(STRUCTURAL.len());
            let is_first = self.header_facts.fields & 1 << kind == 0;
            self.header_facts.fields |= 1 << kind;
            match kind {
                0 if is_first => self.header_facts.boundary = part.content_type_arrived(&field),
                1 if is_first => part.disposition_arrived(&field),
                2 if is_first => part.encoding_arrived(&field),
                3 if is_first => part.content_id_arrived(&field),
                _ => {}
            }
            if listener.wants_field(part, name) {
                listener.field_arrived(&field);
            }
        }
        // The memory of a long field is released, since most messages have no long field.
        bytes.clear();
        bytes.shrink_to(FIELD_BYTES_MAX);
        self.field = bytes;
        self.is_field_wanted = false;
    }

    /// The header has ended. `end`: the position at which the body begins.
    fn header_ended(&mut self, end: u64, listener: &mut impl Listener) {
        self.field_ended(listener);
        let level = self.open.len();
        let Some(open) = self.open.last_mut() else { return };
        let Some(part) = self.structure.parts.get_mut(open.part) else { return };
        let end = end.max(part.header.start);
        part.header.end = end;
        part.body = end..end;
        // An empty or extremely long boundary separates nothing.
        let is_boundary = |boundary: &Vec<u8>| {
            (1..=BOUNDARY_BYTES_MAX).contains(&boundary.trim_ascii_end().len())
        };
        let boundary = mem::take(&mut self.header_facts).boundary.filter(is_boundary);
        part.is_too_deep = boundary.is_some() && level >= DEPTH_MAX;
        self.structure.is_cut |= part.is_too_deep;
        open.boundary = boundary.filter(|_| !part.is_too_deep);
        if let Some(boundary) = &mut open.boundary {
            boundary.truncate(boundary.trim_ascii_end().len());
        }
        if part.holds_message() {
            self.part_began(end, "text/plain", listener);
        } else {
            self.base64 = (part.encoding == Encoding::Base64).then(Base64Size::default);
            let is_body_wanted = listener.body_began(&self.structure.parts);
            self.expect = if is_body_wanted { Expect::BodyLine } else { Expect::Boundary };
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Delimiter {
    /// Another part follows.
    Next,
    /// No other part follows.
    Last,
}

fn field_bytes_max(name: &[u8]) -> usize {
    let has_addresses =
        ADDRESS_FIELDS.iter().any(|known| name.eq_ignore_ascii_case(known.as_bytes()));
    if has_addresses { ADDRESS_FIELD_BYTES_MAX } else { FIELD_BYTES_MAX }
}

/// Whether a field with this name is one of [`STRUCTURAL`].
fn describes_structure(name: &[u8]) -> bool {
    STRUCTURAL.iter().any(|known| name.eq_ignore_ascii_case(known.as_bytes()))
}
