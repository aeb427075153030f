//! Pictures that come along with HTML of a message and are meant to be seen within it: `cid:`.
//!
//! They are written into the document, as `data:`. An address of ours would not do: the document lies in a sandbox and has no origin, so with what it asks for a
//! browser sends no cookie that is `SameSite=Strict`; and whoever gave it addresses that need no cookie would give mail to everybody who learns one. So the
//! policy of the document names no host, ours included, and nothing is loaded because of it.
//!
//! Invariants:
//! - What is written is base64 of a picture, behind a type of [`TYPES`]: nothing that the message says of it stands in the document.
//! - Of a picture nothing is kept but where it lies: it is read where the document shows it. Of the document so much is held back as an address may be long.
//! - What is written of pictures has at most [`PICTURES_BYTES_MAX`] bytes, however often the document shows them: those that do not fit are missing.
//!
//! Answers to: RFC 2392, RFC 2397.

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;

use base64ct::{Base64, Encoding as _};
use message::BodyDecoder;
use message::structure::{Encoding, Part, TEXT_BYTES_MAX};

/// Bytes of all pictures in a document, as they stand there.
pub(crate) const PICTURES_BYTES_MAX: usize = 8 << 20;

/// Pictures of a message.
const PICTURES_MAX: usize = 100;

/// The longest address of a part: each byte of it may be written as three.
const ID_BYTES_MAX: usize = 3 * TEXT_BYTES_MAX;

/// An address and what ends it are not longer.
const REFERENCE_BYTES_MAX: usize = "cid:".len() + ID_BYTES_MAX + "\"".len();

/// What is shown as a picture. What programs there are in an SVG would not run, but nobody needs one here.
const TYPES: [&str; 6] =
    ["image/png", "image/jpeg", "image/gif", "image/webp", "image/avif", "image/bmp"];

/// A document on its way out, and the pictures that belong into it.
#[derive(Debug)]
pub(crate) struct Illustrated {
    known: Vec<Picture>,
    /// What has come of the document and is not written yet.
    text: String,
    has_ended: bool,
    /// The one that is being written.
    writing: Option<Writing>,
    /// How many bytes may still be written of pictures.
    left: usize,
}

/// A picture, and where it lies.
#[derive(Clone, Debug)]
struct Picture {
    id: String,
    media_type: &'static str,
    encoding: Encoding,
    place: Range<u64>,
}

/// A picture that is written while it is read.
#[derive(Debug)]
struct Writing {
    decoder: BodyDecoder,
    /// What was decoded and is not written: after each piece fewer bytes than base64 takes together.
    bytes: Vec<u8>,
}

impl Illustrated {
    /// A document that begins, of a message that is made of these parts.
    pub(crate) fn of(parts: &[Part]) -> Illustrated {
        let known = parts.iter().filter_map(Picture::of).take(PICTURES_MAX).collect();
        Illustrated {
            known,
            text: String::new(),
            has_ended: false,
            writing: None,
            left: PICTURES_BYTES_MAX,
        }
    }

    /// More of the document.
    pub(crate) fn text_arrived(&mut self, text: &str) {
        self.text.push_str(text);
    }

    /// That was all of it.
    pub(crate) fn text_ended(&mut self) {
        self.has_ended = true;
    }

    /// Writes what can be written. Returns where a picture lies that belongs there; before it has been told, nothing more is written.
    pub(crate) fn write(&mut self, out: &mut Vec<u8>) -> Option<Range<u64>> {
        let text = core::mem::take(&mut self.text);
        let mut rest = text.as_str();
        while let Some((before, id, after)) = next_reference(rest) {
            let known = self
                .known
                .iter()
                .find(|picture| picture.id == id)
                .filter(|picture| picture.bytes() <= self.left);
            if let Some(picture) = known {
                out.extend_from_slice(before.as_bytes());
                [b"data:", picture.media_type.as_bytes(), b";base64,"]
                    .iter()
                    .for_each(|words| out.extend_from_slice(words));
                self.left -= picture.bytes();
                self.writing = Some(Writing {
                    decoder: BodyDecoder::new(picture.encoding),
                    bytes: Vec::new(),
                });
                self.text.push_str(after);
                return Some(picture.place.clone());
            }
            // As it was: it leads to nothing. What ends it may begin the next one.
            let (passed, behind) =
                rest.split_at_checked(rest.len() - after.len()).unwrap_or((rest, ""));
            out.extend_from_slice(passed.as_bytes());
            rest = behind;
        }
        let held_back = if self.has_ended { 0 } else { REFERENCE_BYTES_MAX };
        let end = rest.floor_char_boundary(rest.len().saturating_sub(held_back));
        let (written, kept) = rest.split_at_checked(end).unwrap_or((rest, ""));
        out.extend_from_slice(written.as_bytes());
        self.text.push_str(kept);
        None
    }

    /// More of the picture that belongs there, as it travels.
    pub(crate) fn picture_arrived(&mut self, octets: &[u8], out: &mut Vec<u8>) {
        if let Some(writing) = &mut self.writing {
            writing.decoder.bytes_arrived(octets, &mut writing.bytes);
            let whole = writing.bytes.len() / 3 * 3;
            let rest = writing.bytes.split_off(whole);
            encode(&core::mem::replace(&mut writing.bytes, rest), out);
        }
    }

    /// That was all of it.
    pub(crate) fn picture_ended(&mut self, out: &mut Vec<u8>) {
        if let Some(mut writing) = self.writing.take() {
            writing.decoder.body_ended(&mut writing.bytes);
            encode(&writing.bytes, out);
        }
    }
}

impl Picture {
    fn of(part: &Part) -> Option<Picture> {
        let media_type = TYPES.into_iter().find(|known| *known == part.media_type)?;
        let (id, encoding, place) = (part.content_id.clone()?, part.encoding, part.body.clone());
        Some(Picture { id, media_type, encoding, place })
    }

    /// As many as it takes in a document, or more.
    fn bytes(&self) -> usize {
        let octets =
            usize::try_from(self.place.end.saturating_sub(self.place.start)).unwrap_or(usize::MAX);
        (octets / 3).saturating_add(1).saturating_mul(4)
    }
}

/// In base64, some at a time: but for the last, as many as go together.
fn encode(bytes: &[u8], out: &mut Vec<u8>) {
    let mut room = [0; 4096];
    for bytes in bytes.chunks(3 * 1024) {
        out.extend_from_slice(Base64::encode(bytes, &mut room).unwrap_or_default().as_bytes());
    }
}

/// What stands before the next address of a part, which part it means, and what follows.
fn next_reference(html: &str) -> Option<(&str, Cow<'_, str>, &str)> {
    for (colon, _) in html.match_indices(':') {
        let Some(start) = colon.checked_sub(3) else { continue };
        let is_scheme =
            html.get(start..colon).is_some_and(|scheme| scheme.eq_ignore_ascii_case("cid"));
        let begins =
            |letter: char| matches!(letter, '"' | '\'' | '=' | '(') || letter.is_ascii_whitespace();
        if !is_scheme || !html.get(..start)?.chars().next_back().is_some_and(begins) {
            continue;
        }
        let tail = html.get(colon + 1..)?;
        let ends = |letter: char| {
            matches!(letter, '"' | '\'' | '(' | ')' | '<' | '>') || letter.is_ascii_whitespace()
        };
        let Some(end) = tail.find(ends).filter(|end| (1..=ID_BYTES_MAX).contains(end)) else {
            continue;
        };
        let (id, after) = tail.split_at_checked(end)?;
        return Some((html.get(..start)?, decoded(id), after));
    }
    None
}

/// An identifier in an address, as it stands in the part's own header (RFC 2392 section 2).
fn decoded(id: &str) -> Cow<'_, str> {
    if !id.contains(['%', '&']) {
        return Cow::Borrowed(id);
    }
    let id = id.replace("&amp;", "&");
    let mut bytes = Vec::with_capacity(id.len());
    let mut rest = id.as_bytes();
    while let Some((byte, tail)) = rest.split_first() {
        let digits = tail.get(..2).and_then(|digits| core::str::from_utf8(digits).ok());
        match digits
            .filter(|_| *byte == b'%')
            .and_then(|digits| u8::from_str_radix(digits, 16).ok())
        {
            Some(byte) => {
                bytes.push(byte);
                rest = tail.get(2..).unwrap_or_default();
            }
            None => {
                bytes.push(*byte);
                rest = tail;
            }
        }
    }
    Cow::Owned(String::from_utf8_lossy(&bytes).into_owned())
}
