//! Changes the header of a message while the message passes through the server.
//!
//! - `Authentication-Results:` fields that claim to be this server's own are removed, whatever host
//!   sends them: only this server may write its results (RFC 8601 section 5).
//! - `Return-Path:` fields are removed: the server that delivers a message writes it (RFC 5321
//!   section 4.4).
//! - From hosts outside our networks, `X-Barepost-*` and `Delivered-To:` fields are removed, which
//!   only this server writes. `Authentication-Results:` fields are removed too if a reader could
//!   take the server name in them for ours, such as our name with a dot after it.
//! - From a message that an account submits (RFC 6409 section 8), `Bcc:` is removed. A line of a
//!   mailbox file above the header (`From ada@…`) is removed too. Missing `From:`, `Date:` and
//!   `Message-ID:` fields are added. If a text begins without the empty line before it, that line
//!   is added.
//! - `Received:` fields are counted: many of them mean a mail loop (RFC 5321 section 6.3). All
//!   fields are counted too, including removed ones.
//!
//! All other bytes pass unchanged, in the longest possible runs.
//!
//! Invariants:
//! - The output does not depend on how the message is cut into pieces, or on how many bytes the
//!   receiver takes at a time.
//! - The beginning of a line is held back only until its kind is known, and at most
//!   [`HELD_BYTES_MAX`] bytes. If these bytes do not show whether a field claims to be ours, the
//!   field is removed. If they do not show that a line is a field, the line counts as text.

mod line;

use crate::writer::Writer;

use line::{Classifier, HELD_BYTES_MAX, HeaderLine};

pub use line::{Origin, Reviser};

/// The most bytes that are added: an address, the date, an identifier with a host's name, an empty
/// line.
const ADDED_BYTES_MAX: usize = 384 + "From: \r\n".len() + AUTHOR_BYTES_MAX;
/// The longest address for which a `From` field is added (RFC 5321 section 4.5.3.1).
const AUTHOR_BYTES_MAX: usize = 320;
const BUFFER_BYTES: usize = HELD_BYTES_MAX + ADDED_BYTES_MAX;

/// The state of a message's header while the message passes.
#[derive(Clone, Debug)]
pub struct Revision {
    origin: Origin,
    state: HeaderState,
    /// The held bytes: the beginning of a line, or bytes to pass on next.
    buffer: [u8; BUFFER_BYTES],
    held_from: u16,
    held_to: u16,
    /// Whether the held bytes must be passed on before further bytes are examined.
    is_released: bool,
}

/// The state after the part of the header that has passed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct HeaderState {
    at: At,
    fields: u16,
    /// Whether the current line may be a field, which counts once it has a colon.
    awaits_colon: bool,
    hops: u16,
    has_author: bool,
    has_date: bool,
    has_identifier: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum At {
    /// At the start of a line. The value says how the field with the previous line was handled.
    LineStart(FieldDisposition),
    /// Within a line. The value says how the line is handled.
    Within(FieldDisposition),
    /// After the header.
    Body,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum FieldDisposition {
    Kept,
    Dropped,
}

impl HeaderState {
    /// Counts the field that begins with this line, if it is one. A line of the kind
    /// [`HeaderLine::OtherField`] counts only once it has a colon.
    fn note(&mut self, line: HeaderLine) {
        let is_field = !matches!(
            line,
            HeaderLine::Unknown
                | HeaderLine::Folded
                | HeaderLine::Empty
                | HeaderLine::Text
                | HeaderLine::OtherField
        );
        self.fields = self.fields.saturating_add(u16::from(is_field));
        self.awaits_colon = line == HeaderLine::OtherField;
        self.hops = self.hops.saturating_add(u16::from(line == HeaderLine::Received));
        self.has_author |= line == HeaderLine::Author;
        self.has_date |= line == HeaderLine::Date;
        self.has_identifier |= line == HeaderLine::Identifier;
    }

    /// More bytes of a line pass: counts the line as a field if these bytes have the awaited colon.
    fn look_for_colon(&mut self, more: &[u8]) {
        if self.awaits_colon && memchr::memchr(b':', more).is_some() {
            self.awaits_colon = false;
            self.fields = self.fields.saturating_add(1);
        }
    }
}

impl Revision {
    /// The state at the beginning of a message.
    pub fn new(origin: Origin) -> Revision {
        Revision {
            origin,
            state: HeaderState {
                at: At::LineStart(FieldDisposition::Kept),
                fields: 0,
                awaits_colon: false,
                hops: 0,
                has_author: false,
                has_date: false,
                has_identifier: false,
            },
            buffer: [0; BUFFER_BYTES],
            held_from: 0,
            held_to: 0,
            is_released: false,
        }
    }

    /// The number of `Received:` fields so far, at most 65,535.
    pub fn hops(&self) -> u16 {
        self.state.hops
    }

    /// The number of header fields so far, including removed ones, at most 65,535.
    pub fn fields(&self) -> u16 {
        self.state.fields
    }

    /// Takes the next bytes of the message, and passes on the bytes that are not removed. `to`
    /// receives them, and returns the number of bytes that it took. If it does not take all, the
    /// call ends, and the next call offers the rest again. Returns the number of `bytes` taken.
    ///
    /// Errors: those of `to`.
    pub fn pass<E>(
        &mut self,
        bytes: &[u8],
        own: &Reviser<'_>,
        mut to: impl FnMut(&[u8]) -> Result<usize, E>,
    ) -> Result<usize, E> {
        let mut taken = 0;
        loop {
            if !self.release(&mut to)? {
                return Ok(taken);
            }
            let rest = bytes.get(taken..).unwrap_or_default();
            if rest.is_empty() {
                return Ok(taken);
            }
            if !self.held().is_empty() {
                taken += self.held_line_arrived(rest, own);
                continue;
            }
            let (run, state) = self.scan(rest, rest.len(), own);
            if run == 0 {
                taken += self.change(rest, own);
                continue;
            }
            let passed = to(rest.get(..run).unwrap_or(rest))?;
            self.state = if passed < run { self.scan(rest, passed, own).1 } else { state };
            taken += passed;
            if passed < run {
                return Ok(taken);
            }
        }
    }

    /// The message is complete: passes on the rest. Returns whether `to` took all of it.
    ///
    /// Errors: those of `to`.
    pub fn end<E>(
        &mut self,
        own: &Reviser<'_>,
        mut to: impl FnMut(&[u8]) -> Result<usize, E>,
    ) -> Result<bool, E> {
        if self.state.at != At::Body {
            let is_cut = match self.held() {
                [] => self.state.at == At::Within(FieldDisposition::Kept),
                held => !held.ends_with(b"\n"),
            };
            if !self.is_released {
                self.note_held(HeaderLine::OtherField);
            }
            self.is_released = true;
            if !self.release(&mut to)? {
                return Ok(false);
            }
            let line_end: &[u8] =
                if is_cut && self.lacks_fields(self.state) { b"\r\n" } else { b"" };
            self.complete(line_end, b"", own);
        }
        self.release(&mut to)
    }

    /// Counts the held bytes as the beginning of a line of this kind.
    fn note_held(&mut self, line: HeaderLine) {
        let mut state = self.state;
        state.note(line);
        state.look_for_colon(self.held());
        state.awaits_colon &= !self.held().ends_with(b"\n");
        self.state = state;
    }

    fn held(&self) -> &[u8] {
        self.buffer.get(usize::from(self.held_from)..usize::from(self.held_to)).unwrap_or_default()
    }

    /// Passes on the held bytes if they are released. Returns whether none is left.
    fn release<E>(&mut self, to: &mut impl FnMut(&[u8]) -> Result<usize, E>) -> Result<bool, E> {
        if self.is_released {
            if !self.held().is_empty() {
                self.held_from += to(self.held())? as u16;
            }
            if !self.held().is_empty() {
                return Ok(false);
            }
            self.forget();
        }
        Ok(true)
    }

    /// Drops the held bytes.
    fn forget(&mut self) {
        (self.held_from, self.held_to, self.is_released) = (0, 0, false);
    }

    /// Returns how many of the first `limit` bytes pass unchanged, and the state after them.
    fn scan(&self, bytes: &[u8], limit: usize, own: &Reviser<'_>) -> (usize, HeaderState) {
        let mut state = self.state;
        let mut at = 0;
        while at < limit {
            let rest = bytes.get(at..).unwrap_or_default();
            match state.at {
                At::Body => at = limit,
                At::Within(FieldDisposition::Dropped) => break,
                At::Within(FieldDisposition::Kept) => match memchr::memchr(b'\n', rest) {
                    Some(line_end) if at + line_end < limit => {
                        state.look_for_colon(rest.get(..line_end).unwrap_or_default());
                        state.awaits_colon = false;
                        at += line_end + 1;
                        state.at = At::LineStart(FieldDisposition::Kept);
                    }
                    _ => {
                        state.look_for_colon(rest.get(..limit - at).unwrap_or_default());
                        at = limit;
                    }
                },
                At::LineStart(before) => {
                    match self.line(rest, own) {
                        HeaderLine::Folded if before == FieldDisposition::Kept => {}
                        line @ (HeaderLine::Received
                        | HeaderLine::Author
                        | HeaderLine::Date
                        | HeaderLine::Identifier
                        | HeaderLine::OtherField) => state.note(line),
                        HeaderLine::Empty if !self.lacks_fields(state) => {
                            state.at = At::Body;
                            continue;
                        }
                        HeaderLine::Unknown
                        | HeaderLine::Folded
                        | HeaderLine::Unwanted
                        | HeaderLine::Empty
                        | HeaderLine::Text => break,
                    }
                    state.at = At::Within(FieldDisposition::Kept);
                }
            }
        }
        (at, state)
    }

    /// Handles bytes that do not pass unchanged. Returns the number of bytes taken.
    fn change(&mut self, bytes: &[u8], own: &Reviser<'_>) -> usize {
        if self.state.at == At::Within(FieldDisposition::Dropped) {
            let line_end = memchr::memchr(b'\n', bytes);
            if line_end.is_some() {
                self.state.at = At::LineStart(FieldDisposition::Dropped);
            }
            return line_end.map_or(bytes.len(), |line_end| line_end + 1);
        }
        match self.line(bytes, own) {
            HeaderLine::Unknown => return self.hold(bytes),
            line @ (HeaderLine::Folded | HeaderLine::Unwanted) => {
                self.state.note(line);
                self.state.at = At::Within(FieldDisposition::Dropped);
            }
            HeaderLine::Text => self.complete(b"", b"\r\n", own),
            // The empty line. Lines that pass unchanged are never handled here.
            _ => self.complete(b"", b"", own),
        }
        0
    }

    /// Holds bytes back. Returns their number, which is not 0 while the kind of the line is
    /// unknown.
    fn hold(&mut self, bytes: &[u8]) -> usize {
        let from = usize::from(self.held_to);
        let count = bytes.len().min(HELD_BYTES_MAX.saturating_sub(from));
        if let (Some(place), Some(bytes)) =
            (self.buffer.get_mut(from..from + count), bytes.get(..count))
        {
            place.copy_from_slice(bytes);
        }
        self.held_to += count as u16;
        count
    }

    /// Takes more bytes of a line with a held beginning, and handles the line if its kind is known
    /// now. Returns the number of bytes taken.
    fn held_line_arrived(&mut self, bytes: &[u8], own: &Reviser<'_>) -> usize {
        let before = self.held_to;
        let more = self.hold(bytes);
        let line = self.line(self.held(), own);
        if line == HeaderLine::Unknown {
            return more;
        }
        self.held_to = before;
        let ends_here = self.held().ends_with(b"\n");
        let goes_on = |fate| if ends_here { At::LineStart(fate) } else { At::Within(fate) };
        match line {
            HeaderLine::Unwanted => {
                self.state.note(line);
                self.state.at = goes_on(FieldDisposition::Dropped);
                self.forget();
            }
            HeaderLine::Text => self.complete(b"", b"\r\n", own),
            HeaderLine::Empty => self.complete(b"", b"", own),
            field => {
                self.note_held(field);
                self.state.at = goes_on(FieldDisposition::Kept);
                self.is_released = true;
            }
        }
        0
    }

    /// Whether the message is submitted and lacks a field that must be added.
    fn lacks_fields(&self, state: HeaderState) -> bool {
        self.origin == Origin::Submitted
            && !(state.has_author && state.has_date && state.has_identifier)
    }

    /// Ends the header. The missing fields will be passed on, between `line_end` and `empty_line`,
    /// and then the held bytes.
    fn complete(&mut self, line_end: &[u8], empty_line: &[u8], own: &Reviser<'_>) {
        let is_submitted = self.origin == Origin::Submitted;
        let mut place = [0; BUFFER_BYTES];
        let mut out = Writer::new(&mut place);
        out.put(line_end);
        if is_submitted && !self.state.has_author && own.author.len() <= AUTHOR_BYTES_MAX {
            out.put(b"From: ");
            out.put(own.author.as_bytes());
            out.put(b"\r\n");
        }
        if is_submitted && !self.state.has_date {
            out.put(b"Date: ");
            out.put(own.now);
            out.put(b"\r\n");
        }
        if is_submitted && !self.state.has_identifier {
            out.put(b"Message-ID: <");
            out.put(own.identifier);
            out.put(b"@");
            out.put(own.hostname.as_bytes());
            out.put(b">\r\n");
        }
        out.put(empty_line);
        out.put(self.held());
        // The buffer is large enough for all these bytes.
        let length = out.finish().unwrap_or(0);
        (self.buffer, self.held_from, self.held_to, self.is_released) =
            (place, 0, length as u16, true);
        self.state.at = At::Body;
    }

    /// The kind of the line at the start of `bytes`. `bytes`: all available bytes of the line, and
    /// any bytes after it.
    #[inline]
    fn line(&self, bytes: &[u8], own: &Reviser<'_>) -> HeaderLine {
        Classifier { origin: self.origin, fields_before: self.state.fields, own }.line(bytes)
    }
}
