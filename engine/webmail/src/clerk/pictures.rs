//! Pictures that come along with HTML of a message and are meant to be seen within it: `cid:`.
//!
//! They are written into the document, as `data:`. An address of ours would not do: the document lies in a sandbox and has no origin, so with what it asks for a
//! browser sends no cookie that is `SameSite=Strict`; and whoever gave it addresses that need no cookie would give mail to everybody who learns one. So the
//! policy of the document names no host, ours included, and nothing is loaded because of it.
//!
//! Invariants:
//! - What is written is base64 of a picture, behind a type of [`TYPES`]: nothing that the message says of it stands in the document.
//! - Pictures that are kept have [`PICTURES_BYTES_MAX`] bytes together, and a document with them at most as many as it is told.
//!
//! Answers to: RFC 2392, RFC 2397.

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;

use base64ct::{Base64, Encoding as _};
use message::BodyDecoder;
use message::structure::{Part, TEXT_BYTES_MAX};

/// Bytes of all pictures that are kept of a message.
pub(crate) const PICTURES_BYTES_MAX: usize = 4 << 20;

/// Pictures of a message.
const PICTURES_MAX: usize = 100;

/// What is shown as a picture. What programs there are in an SVG would not run, but nobody needs one here.
const TYPES: [&str; 6] = ["image/png", "image/jpeg", "image/gif", "image/webp", "image/avif", "image/bmp"];

/// The pictures of a message, as they go by.
#[derive(Debug, Default)]
pub(crate) struct Pictures {
    known: Vec<Picture>,
    /// Bytes of all of them.
    bytes: usize,
    decoder: Option<BodyDecoder>,
}

#[derive(Debug)]
struct Picture {
    id: String,
    media_type: &'static str,
    bytes: Vec<u8>,
}

impl Pictures {
    /// A part begins. Whether it is a picture that may be shown within others.
    pub(crate) fn began(&mut self, part: &Part) -> bool {
        let media_type = TYPES.into_iter().find(|known| *known == part.media_type);
        let (Some(media_type), Some(id)) = (media_type, &part.content_id) else { return false };
        if self.known.len() >= PICTURES_MAX {
            return false;
        }
        self.known.push(Picture { id: id.clone(), media_type, bytes: Vec::new() });
        self.decoder = Some(BodyDecoder::new(part.encoding));
        true
    }

    /// More of it.
    pub(crate) fn arrived(&mut self, octets: &[u8]) {
        let (Some(decoder), Some(picture)) = (&mut self.decoder, self.known.last_mut()) else { return };
        let before = picture.bytes.len();
        decoder.bytes_arrived(octets, &mut picture.bytes);
        self.bytes += picture.bytes.len() - before;
        if self.bytes > PICTURES_BYTES_MAX {
            // Half a picture is none.
            self.bytes -= picture.bytes.len();
            self.known.pop();
            self.decoder = None;
        }
    }

    /// It ends.
    pub(crate) fn ended(&mut self) {
        if let (Some(mut decoder), Some(picture)) = (self.decoder.take(), self.known.last_mut()) {
            decoder.body_ended(&mut picture.bytes);
        }
    }

    /// The document with its pictures in it, of at most `most` bytes: those that do not fit are missing.
    pub(crate) fn within(&self, html: String, most: usize) -> String {
        if self.known.is_empty() {
            return html;
        }
        let mut out = String::with_capacity(html.len());
        let mut rest = html.as_str();
        while let Some((before, id, after)) = next_reference(rest) {
            out.push_str(before);
            let fits = |picture: &&Picture| out.len() + rest.len() + picture.bytes.len() / 3 * 4 + 64 <= most;
            match self.known.iter().find(|picture| picture.id == id).filter(fits) {
                Some(picture) => {
                    out.push_str("data:");
                    out.push_str(picture.media_type);
                    out.push_str(";base64,");
                    picture.write(&mut out);
                }
                // As it was: it leads to nothing.
                None => out.push_str(rest.get(before.len()..rest.len() - after.len()).unwrap_or_default()),
            }
            rest = after;
        }
        out.push_str(rest);
        out
    }
}

impl Picture {
    /// In base64, some at a time.
    fn write(&self, out: &mut String) {
        let mut room = [0; 4096];
        for bytes in self.bytes.chunks(3 * 1024) {
            out.push_str(Base64::encode(bytes, &mut room).unwrap_or_default());
        }
    }
}

/// What stands before the next address of a part, which part it means, and what follows.
fn next_reference(html: &str) -> Option<(&str, Cow<'_, str>, &str)> {
    for (colon, _) in html.match_indices(':') {
        let Some(start) = colon.checked_sub(3) else { continue };
        let is_scheme = html.get(start..colon).is_some_and(|scheme| scheme.eq_ignore_ascii_case("cid"));
        let begins = |letter: char| matches!(letter, '"' | '\'' | '=' | '(') || letter.is_ascii_whitespace();
        if !is_scheme || !html.get(..start)?.chars().next_back().is_some_and(begins) {
            continue;
        }
        let tail = html.get(colon + 1..)?;
        let ends = |letter: char| matches!(letter, '"' | '\'' | '(' | ')' | '<' | '>') || letter.is_ascii_whitespace();
        let Some(end) = tail.find(ends).filter(|end| (1..=3 * TEXT_BYTES_MAX).contains(end)) else { continue };
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
        match digits.filter(|_| *byte == b'%').and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
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
