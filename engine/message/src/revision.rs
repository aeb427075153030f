//! What a server changes in the header of a message while it streams by.
//!
//! - `Authentication-Results:` fields that claim to be this server's own are left out, whoever sends them: only it may say what it has found (RFC 8601
//!   section 5).
//! - `Return-Path:` fields are left out: the server that delivers a message writes it (RFC 5321
//!   section 4.4).
//! - From hosts outside of our networks, fields that only this server writes are left out:
//!   `X-Barepost-*`, `Delivered-To:`, and what a reader could take for its own
//!   `Authentication-Results:`, with a dot behind the name or in an encoding.
//! - Of a message that an account submits (RFC 6409 section 8) `Bcc:` is left out, and a line of a
//!   mailbox file above the header (`From ada@…`). `From:`, `Date:` and `Message-ID:` are added
//!   where they are missing. Where a text begins without the empty line that should come before it,
//!   the line is added.
//! - `Received:` fields are counted: many of them mean that a message runs in circles (RFC 5321
//!   section 6.3). So are all fields, whatever becomes of them.
//!
//! Everything else passes as it is, in runs as long as they come.
//!
//! Invariants:
//! - What comes out does not depend on how the message is cut into pieces, nor on how much is taken at a time.
//! - The beginning of a line is held back only as long as it cannot be told what becomes of it, and [`HELD_BYTES_MAX`] bytes at most: a field that claims to be
//!   ours so late is left out, a line that isn't a field by then is text.

mod line;

use crate::writer::Writer;

use line::{Classifier, HELD_BYTES_MAX, Line};

pub use line::{Origin, Reviser};

/// Bytes that are added at most: an address, the date, an identifier at a host's name, an empty
/// line.
const ADDED_BYTES_MAX: usize = 384 + "From: \r\n".len() + AUTHOR_BYTES_MAX;
/// The longest address that a `From` field is added for (RFC 5321 section 4.5.3.1).
const AUTHOR_BYTES_MAX: usize = 320;
const PLACE_BYTES: usize = HELD_BYTES_MAX + ADDED_BYTES_MAX;

/// A message's header on its way through.
#[derive(Clone, Debug)]
pub struct Revision {
    origin: Origin,
    known: Known,
    /// The beginning of a line, or what goes out next.
    place: [u8; PLACE_BYTES],
    held_from: u16,
    held_to: u16,
    /// What is held goes out before anything else is looked at.
    is_released: bool,
}

/// What is known once some of the header is through.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Known {
    at: At,
    fields: u16,
    /// Within a line that is a field, and counts, once it has a colon.
    awaits_colon: bool,
    hops: u16,
    has_author: bool,
    has_date: bool,
    has_identifier: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum At {
    /// The start of a line, behind one of a field with that fate.
    LineStart(Fate),
    /// Within a line.
    Within(Fate),
    /// Behind the header.
    Body,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fate {
    Kept,
    Dropped,
}

impl Known {
    /// Counts the field that begins with this line. What is said of a line that others leave as it
    /// is may be no field.
    fn note(&mut self, line: Line) {
        let is_field = !matches!(
            line,
            Line::Unknown | Line::Folded | Line::Empty | Line::Text | Line::OtherField
        );
        self.fields = self.fields.saturating_add(u16::from(is_field));
        self.awaits_colon = line == Line::OtherField;
        self.hops = self.hops.saturating_add(u16::from(line == Line::Received));
        self.has_author |= line == Line::Author;
        self.has_date |= line == Line::Date;
        self.has_identifier |= line == Line::Identifier;
    }

    /// More of a line passes.
    fn look_for_colon(&mut self, more: &[u8]) {
        if self.awaits_colon && memchr::memchr(b':', more).is_some() {
            self.awaits_colon = false;
            self.fields = self.fields.saturating_add(1);
        }
    }
}

impl Revision {
    /// Of a message that begins now.
    pub fn new(origin: Origin) -> Revision {
        Revision {
            origin,
            known: Known {
                at: At::LineStart(Fate::Kept),
                fields: 0,
                awaits_colon: false,
                hops: 0,
                has_author: false,
                has_date: false,
                has_identifier: false,
            },
            place: [0; PLACE_BYTES],
            held_from: 0,
            held_to: 0,
            is_released: false,
        }
    }

    /// How many `Received:` fields there were so far; 65,535 stands for that and more.
    pub fn hops(&self) -> u16 {
        self.known.hops
    }

    /// How many header fields there were so far, those left out included; 65,535 stands for that
    /// and more.
    pub fn fields(&self) -> u16 {
        self.known.fields
    }

    /// Takes the next bytes of the message, and hands on what stays of them. `to` says how many it took of what it is given; as soon as that is less, the call ends,
    /// and what was not taken is offered again. Returns how many of `bytes` were taken.
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
                taken += self.look_again(rest, own);
                continue;
            }
            let (run, known) = self.scan(rest, rest.len(), own);
            if run == 0 {
                taken += self.change(rest, own);
                continue;
            }
            let passed = to(rest.get(..run).unwrap_or(rest))?;
            self.known = if passed < run { self.scan(rest, passed, own).1 } else { known };
            taken += passed;
            if passed < run {
                return Ok(taken);
            }
        }
    }

    /// The message is over: what is still to be said about it goes out, and whether `to` took all of it.
    ///
    /// Errors: those of `to`.
    pub fn end<E>(
        &mut self,
        own: &Reviser<'_>,
        mut to: impl FnMut(&[u8]) -> Result<usize, E>,
    ) -> Result<bool, E> {
        if self.known.at != At::Body {
            let is_cut = match self.held() {
                [] => self.known.at == At::Within(Fate::Kept),
                held => !held.ends_with(b"\n"),
            };
            if !self.is_released {
                self.note_held(Line::OtherField);
            }
            self.is_released = true;
            if !self.release(&mut to)? {
                return Ok(false);
            }
            let line_end: &[u8] =
                if is_cut && self.lacks_anything(self.known) { b"\r\n" } else { b"" };
            self.complete(line_end, b"", own);
        }
        self.release(&mut to)
    }

    /// What is held is the beginning of this line.
    fn note_held(&mut self, line: Line) {
        let mut known = self.known;
        known.note(line);
        known.look_for_colon(self.held());
        known.awaits_colon &= !self.held().ends_with(b"\n");
        self.known = known;
    }

    fn held(&self) -> &[u8] {
        self.place.get(usize::from(self.held_from)..usize::from(self.held_to)).unwrap_or_default()
    }

    /// Whether all that was to go out did.
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

    /// Nothing is held any more.
    fn forget(&mut self) {
        (self.held_from, self.held_to, self.is_released) = (0, 0, false);
    }

    /// How many of these bytes, of which no more than `limit` count, pass as they are, and what is known then.
    fn scan(&self, bytes: &[u8], limit: usize, own: &Reviser<'_>) -> (usize, Known) {
        let mut known = self.known;
        let mut at = 0;
        while at < limit {
            let rest = bytes.get(at..).unwrap_or_default();
            match known.at {
                At::Body => at = limit,
                At::Within(Fate::Dropped) => break,
                At::Within(Fate::Kept) => match memchr::memchr(b'\n', rest) {
                    Some(line_end) if at + line_end < limit => {
                        known.look_for_colon(rest.get(..line_end).unwrap_or_default());
                        known.awaits_colon = false;
                        at += line_end + 1;
                        known.at = At::LineStart(Fate::Kept);
                    }
                    _ => {
                        known.look_for_colon(rest.get(..limit - at).unwrap_or_default());
                        at = limit;
                    }
                },
                At::LineStart(before) => {
                    match self.line(rest, own) {
                        Line::Folded if before == Fate::Kept => {}
                        line @ (Line::Received
                        | Line::Author
                        | Line::Date
                        | Line::Identifier
                        | Line::OtherField) => known.note(line),
                        Line::Empty if !self.lacks_anything(known) => {
                            known.at = At::Body;
                            continue;
                        }
                        Line::Unknown
                        | Line::Folded
                        | Line::Unwanted
                        | Line::Empty
                        | Line::Text => break,
                    }
                    known.at = At::Within(Fate::Kept);
                }
            }
        }
        (at, known)
    }

    /// Does what is to be done about bytes that do not pass as they are. Returns how many of them were taken.
    fn change(&mut self, bytes: &[u8], own: &Reviser<'_>) -> usize {
        if self.known.at == At::Within(Fate::Dropped) {
            let line_end = memchr::memchr(b'\n', bytes);
            if line_end.is_some() {
                self.known.at = At::LineStart(Fate::Dropped);
            }
            return line_end.map_or(bytes.len(), |line_end| line_end + 1);
        }
        match self.line(bytes, own) {
            Line::Unknown => return self.hold(bytes),
            line @ (Line::Folded | Line::Unwanted) => {
                self.known.note(line);
                self.known.at = At::Within(Fate::Dropped);
            }
            Line::Text => self.complete(b"", b"\r\n", own),
            // What passes was looked for before.
            _ => self.complete(b"", b"", own),
        }
        0
    }

    /// Holds bytes back. Returns how many, which is not 0 as long as nothing can be said about the line.
    fn hold(&mut self, bytes: &[u8]) -> usize {
        let from = usize::from(self.held_to);
        let count = bytes.len().min(HELD_BYTES_MAX.saturating_sub(from));
        if let (Some(place), Some(bytes)) =
            (self.place.get_mut(from..from + count), bytes.get(..count))
        {
            place.copy_from_slice(bytes);
        }
        self.held_to += count as u16;
        count
    }

    /// There is more of a line whose beginning is held: perhaps it can be told now what it is. Returns how many bytes were taken.
    fn look_again(&mut self, bytes: &[u8], own: &Reviser<'_>) -> usize {
        let before = self.held_to;
        let more = self.hold(bytes);
        let line = self.line(self.held(), own);
        if line == Line::Unknown {
            return more;
        }
        self.held_to = before;
        let ends_here = self.held().ends_with(b"\n");
        let goes_on = |fate| if ends_here { At::LineStart(fate) } else { At::Within(fate) };
        match line {
            Line::Unwanted => {
                self.known.note(line);
                self.known.at = goes_on(Fate::Dropped);
                self.forget();
            }
            Line::Text => self.complete(b"", b"\r\n", own),
            Line::Empty => self.complete(b"", b"", own),
            field => {
                self.note_held(field);
                self.known.at = goes_on(Fate::Kept);
                self.is_released = true;
            }
        }
        0
    }

    fn lacks_anything(&self, known: Known) -> bool {
        self.origin == Origin::Submitted
            && !(known.has_author && known.has_date && known.has_identifier)
    }

    /// The header is over: what it lacks goes out, with an end of line before it and an empty line behind it where there is none, and then what is held.
    fn complete(&mut self, line_end: &[u8], empty_line: &[u8], own: &Reviser<'_>) {
        let is_submitted = self.origin == Origin::Submitted;
        let mut place = [0; PLACE_BYTES];
        let mut out = Writer::new(&mut place);
        out.put(line_end);
        if is_submitted && !self.known.has_author && own.author.len() <= AUTHOR_BYTES_MAX {
            out.put(b"From: ");
            out.put(own.author.as_bytes());
            out.put(b"\r\n");
        }
        if is_submitted && !self.known.has_date {
            out.put(b"Date: ");
            out.put(own.now);
            out.put(b"\r\n");
        }
        if is_submitted && !self.known.has_identifier {
            out.put(b"Message-ID: <");
            out.put(own.identifier);
            out.put(b"@");
            out.put(own.hostname.as_bytes());
            out.put(b">\r\n");
        }
        out.put(empty_line);
        out.put(self.held());
        // There is room for all of that.
        let length = out.finish().unwrap_or(0);
        (self.place, self.held_from, self.held_to, self.is_released) =
            (place, 0, length as u16, true);
        self.known.at = At::Body;
    }

    /// What the line is that begins here. `bytes`: as much as there is of it, and of what follows
    /// it.
    #[inline]
    fn line(&self, bytes: &[u8], own: &Reviser<'_>) -> Line {
        Classifier { origin: self.origin, fields_before: self.known.fields, own }.line(bytes)
    }
}
