//! Embedded images: images of a message that its HTML refers to by `cid:`.
//!
//! They are written into the document as `data:`. Addresses of ours would not work: the sandboxed
//! document has no origin, so a browser sends no `SameSite=Strict` cookie with its requests.
//! Addresses that need no cookie would give mail to anyone with the address. So the document's
//! policy names no host, not even ours, and the document loads nothing.
//!
//! Invariants:
//! - Only base64 of an image is written, after a type in [`TYPES`]. No other part of the message's
//!   description of it enters the document.
//! - Of an image only its place is kept: it is read where the document shows it. The held-back end
//!   of the document is as long as the longest reference.
//! - All images of a document together have at most [`IMAGES_BYTES_MAX`] bytes, however often it
//!   shows them. Images beyond that are missing.
//!
//! Implements: RFC 2392, RFC 2397.

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;

use base64ct::{Base64, Encoding as _};
use message::BodyDecoder;
use message::structure::{Encoding, Part, TEXT_BYTES_MAX};

/// Bytes of all images in a document, in base64.
pub(crate) const IMAGES_BYTES_MAX: usize = 8 << 20;

/// Images of a message.
const IMAGES_MAX: usize = 100;

/// The longest content identifier in an address: each byte may be percent-encoded as three.
const ID_BYTES_MAX: usize = 3 * TEXT_BYTES_MAX;

/// The longest reference with its delimiter.
const REFERENCE_BYTES_MAX: usize = "cid:".len() + ID_BYTES_MAX + "\"".len();

/// The types that count as images. Scripts in an SVG would not run, but mail rarely embeds any.
const TYPES: [&str; 6] =
    ["image/png", "image/jpeg", "image/gif", "image/webp", "image/avif", "image/bmp"];

/// A document while it is sent, and its images.
#[derive(Debug)]
pub(crate) struct ImageEmbedder {
    known: Vec<EmbeddedImage>,
    /// The part of the document that has come and is not written yet.
    text: String,
    has_ended: bool,
    /// The image that is being written.
    writing: Option<ImageWriter>,
    /// How many bytes of images may still be written.
    left: usize,
}

/// An image, and its place in the message.
#[derive(Clone, Debug)]
struct EmbeddedImage {
    id: String,
    media_type: &'static str,
    encoding: Encoding,
    place: Range<u64>,
}

/// An image that is written while it is read.
#[derive(Debug)]
struct ImageWriter {
    decoder: BodyDecoder,
    /// Decoded bytes that are not written yet: after each piece fewer than the three of a base64
    /// group.
    bytes: Vec<u8>,
}

impl ImageEmbedder {
    /// The document of a message with these parts.
    pub(crate) fn of(parts: &[Part]) -> ImageEmbedder {
        let known = parts.iter().filter_map(EmbeddedImage::of).take(IMAGES_MAX).collect();
        ImageEmbedder {
            known,
            text: String::new(),
            has_ended: false,
            writing: None,
            left: IMAGES_BYTES_MAX,
        }
    }

    /// More of the document.
    pub(crate) fn text_arrived(&mut self, text: &str) {
        self.text.push_str(text);
    }

    /// The document has ended.
    pub(crate) fn text_ended(&mut self) {
        self.has_ended = true;
    }

    /// Writes as much as it can. Returns the place of the next image. The caller must deliver the
    /// image before anything more is written.
    pub(crate) fn write(&mut self, out: &mut Vec<u8>) -> Option<Range<u64>> {
        let text = core::mem::take(&mut self.text);
        let mut rest = text.as_str();
        while let Some((before, id, after)) = next_reference(rest) {
            let known = self
                .known
                .iter()
                .find(|image| image.id == id)
                .filter(|image| image.bytes() <= self.left);
            if let Some(image) = known {
                out.extend_from_slice(before.as_bytes());
                [b"data:", image.media_type.as_bytes(), b";base64,"]
                    .iter()
                    .for_each(|words| out.extend_from_slice(words));
                self.left -= image.bytes();
                self.writing = Some(ImageWriter {
                    decoder: BodyDecoder::new(image.encoding),
                    bytes: Vec::new(),
                });
                self.text.push_str(after);
                return Some(image.place.clone());
            }
            // The reference has no image and stays as it is. Its delimiter may begin the next
            // reference.
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

    /// More of the image, in its transfer encoding.
    pub(crate) fn image_arrived(&mut self, octets: &[u8], out: &mut Vec<u8>) {
        if let Some(writing) = &mut self.writing {
            writing.decoder.bytes_arrived(octets, &mut writing.bytes);
            let whole = writing.bytes.len() / 3 * 3;
            let rest = writing.bytes.split_off(whole);
            encode(&core::mem::replace(&mut writing.bytes, rest), out);
        }
    }

    /// The image has ended.
    pub(crate) fn image_ended(&mut self, out: &mut Vec<u8>) {
        if let Some(mut writing) = self.writing.take() {
            writing.decoder.body_ended(&mut writing.bytes);
            encode(&writing.bytes, out);
        }
    }
}

impl EmbeddedImage {
    fn of(part: &Part) -> Option<EmbeddedImage> {
        let media_type = TYPES.into_iter().find(|known| *known == part.media_type)?;
        let (id, encoding, place) = (part.content_id.clone()?, part.encoding, part.body.clone());
        Some(EmbeddedImage { id, media_type, encoding, place })
    }

    /// An upper bound of its bytes in the document.
    fn bytes(&self) -> usize {
        let octets =
            usize::try_from(self.place.end.saturating_sub(self.place.start)).unwrap_or(usize::MAX);
        (octets / 3).saturating_add(1).saturating_mul(4)
    }
}

/// Encodes bytes in base64, in groups of three except for the last.
fn encode(bytes: &[u8], out: &mut Vec<u8>) {
    let mut room = [0; 4096];
    for bytes in bytes.chunks(3 * 1024) {
        out.extend_from_slice(Base64::encode(bytes, &mut room).unwrap_or_default().as_bytes());
    }
}

/// The text before the next reference to a part, the part's identifier, and the rest.
fn next_reference(html: &str) -> Option<(&str, Cow<'_, str>, &str)> {
    for (colon, _) in html.match_indices(':') {
        let Some(start) = colon.checked_sub(3) else { continue };
        let is_scheme =
            html.get(start..colon).is_some_and(|scheme| scheme.eq_ignore_ascii_case("cid"));
        let begins = |character: char| {
            matches!(character, '"' | '\'' | '=' | '(') || character.is_ascii_whitespace()
        };
        if !is_scheme || !html.get(..start)?.chars().next_back().is_some_and(begins) {
            continue;
        }
        let tail = html.get(colon + 1..)?;
        let ends = |character: char| {
            matches!(character, '"' | '\'' | '(' | ')' | '<' | '>')
                || character.is_ascii_whitespace()
        };
        let Some(end) = tail.find(ends).filter(|end| (1..=ID_BYTES_MAX).contains(end)) else {
            continue;
        };
        let (id, after) = tail.split_at_checked(end)?;
        return Some((html.get(..start)?, decoded(id), after));
    }
    None
}

/// A content identifier in an address, decoded to its form in the part's header (RFC 2392 section
/// 2).
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
