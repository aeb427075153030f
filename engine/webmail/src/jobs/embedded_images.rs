//! Embedded images: images of a message that its HTML refers to by `cid:`.
//!
//! The images are written into the document as `data:` addresses. With addresses on our host, the
//! document would have to load something from our host with the cookie of its reader, and then it
//! could load any page. So its policy names no host, not even ours, and it loads nothing.
//!
//! Invariants:
//! - Only a type in [`TYPES`] and the base64 of the image are written. No other text from the
//!   image's part is written to the document.
//! - The memory has only the places of images in the message, not the images. An image is read when
//!   the document is written up to it. At most the length of the longest reference is held back
//!   from the end of the document.
//! - All images of a document together have at most [`IMAGES_BYTES_MAX`] bytes, and a repeated
//!   image counts each time. Further images are missing.
//!
//! Implements: RFC 2392, RFC 2397.

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;

use base64ct::{Base64, Encoding as _};
use message::BodyDecoder;
use message::structure::{Encoding, Part, TEXT_BYTES_MAX};

/// The maximum number of bytes of all images in a document, in base64.
pub(crate) const IMAGES_BYTES_MAX: usize = 8 << 20;

/// The maximum number of images of a message.
const IMAGES_MAX: usize = 100;

/// The longest content identifier in an address, in bytes. Each byte may be percent-encoded as
/// three bytes.
const ID_BYTES_MAX: usize = 3 * TEXT_BYTES_MAX;

/// The longest reference with its delimiter, in bytes.
const REFERENCE_BYTES_MAX: usize = "cid:".len() + ID_BYTES_MAX + "\"".len();

/// The media types that count as images: as a part declares each, and as the document names it. SVG
/// is left out, since mail rarely embeds it, although its scripts would not run.
const TYPES: [(&str, &str); 10] = [
    ("image/png", "image/png"),
    ("image/jpeg", "image/jpeg"),
    ("image/gif", "image/gif"),
    ("image/webp", "image/webp"),
    ("image/avif", "image/avif"),
    ("image/bmp", "image/bmp"),
    ("image/jpg", "image/jpeg"),
    ("image/pjpeg", "image/jpeg"),
    ("image/x-png", "image/png"),
    ("image/x-ms-bmp", "image/bmp"),
];

/// The attributes with an address of an image that is drawn.
const DRAWING_ATTRIBUTES: [&str; 5] = ["src", "srcset", "background", "poster", "xlink:href"];

/// A document while it is sent, and its images.
#[derive(Debug)]
pub(crate) struct ImageEmbedder {
    known: Vec<EmbeddedImage>,
    /// The text of the document that has arrived and is not written yet.
    text: String,
    has_ended: bool,
    /// The image that is being written.
    writing: Option<ImageWriter>,
    /// The number of bytes of images that may still be written.
    left: usize,
}

/// An image, and its place in the message.
#[derive(Clone, Debug)]
struct EmbeddedImage {
    /// The index of the image's part.
    part: usize,
    id: String,
    /// `id`, decoded as in an address. Some programs encode the identifier in the part's header,
    /// too.
    decoded_id: String,
    media_type: &'static str,
    encoding: Encoding,
    place: Range<u64>,
}

/// An image that is written while it is read.
#[derive(Debug)]
struct ImageWriter {
    decoder: BodyDecoder,
    /// Decoded bytes that are not written yet. At most two bytes remain after each piece, since a
    /// base64 group has three.
    bytes: Vec<u8>,
}

impl ImageEmbedder {
    /// The embedder for the document of a message with these parts.
    pub(crate) fn of(parts: &[Part]) -> ImageEmbedder {
        let known = (0..parts.len()).filter_map(|part| EmbeddedImage::of(part, parts));
        ImageEmbedder {
            known: known.take(IMAGES_MAX).collect(),
            text: String::new(),
            has_ended: false,
            writing: None,
            left: IMAGES_BYTES_MAX,
        }
    }

    /// Adds the next text of the document.
    pub(crate) fn text_arrived(&mut self, text: &str) {
        self.text.push_str(text);
    }

    /// Records that the document has ended.
    pub(crate) fn text_ended(&mut self) {
        self.has_ended = true;
    }

    /// Writes the document up to the next image, and returns the place of that image. The caller
    /// must pass the whole image before the next call.
    pub(crate) fn write(&mut self, out: &mut Vec<u8>) -> Option<Range<u64>> {
        let text = core::mem::take(&mut self.text);
        let mut rest = text.as_str();
        while let Some((before, id, after)) = next_reference(rest) {
            if let Some(image) = self.take(&id) {
                out.extend_from_slice(before.as_bytes());
                [b"data:", image.media_type.as_bytes(), b";base64,"]
                    .iter()
                    .for_each(|words| out.extend_from_slice(words));
                self.writing = Some(ImageWriter {
                    decoder: BodyDecoder::new(image.encoding),
                    bytes: Vec::new(),
                });
                self.text.push_str(after);
                return Some(image.place);
            }
            // No image has this identifier, so the reference is written unchanged. Its delimiter
            // may begin the next reference.
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

    /// The image with this identifier, if it may still be written into the document.
    fn take(&mut self, id: &str) -> Option<EmbeddedImage> {
        let has_id = |image: &&EmbeddedImage| image.id == id || image.decoded_id == id;
        let image = self.known.iter().find(has_id).filter(|image| image.bytes() <= self.left)?;
        self.left -= image.bytes();
        Some(image.clone())
    }

    /// Writes the next octets of the image, which are in its transfer encoding.
    pub(crate) fn image_arrived(&mut self, octets: &[u8], out: &mut Vec<u8>) {
        if let Some(writing) = &mut self.writing {
            writing.decoder.bytes_arrived(octets, &mut writing.bytes);
            let whole = writing.bytes.len() / 3 * 3;
            let rest = writing.bytes.split_off(whole);
            encode(&core::mem::replace(&mut writing.bytes, rest), out);
        }
    }

    /// Writes the rest of the image, since it has ended.
    pub(crate) fn image_ended(&mut self, out: &mut Vec<u8>) {
        if let Some(mut writing) = self.writing.take() {
            writing.decoder.body_ended(&mut writing.bytes);
            encode(&writing.bytes, out);
        }
    }
}

/// The indices of the images that a document with this HTML draws: it refers to them in an
/// attribute or a style that draws, outside of comments.
pub(crate) fn drawn_in(html: &str, parts: &[Part]) -> Vec<usize> {
    let mut embedder = ImageEmbedder::of(parts);
    let (mut drawn, mut is_comment, mut rest) = (Vec::new(), false, html);
    if embedder.known.is_empty() {
        return drawn;
    }
    while let Some((before, id, after)) = next_reference(rest) {
        is_comment = match (before.rfind("<!--"), before.rfind("-->")) {
            (None, None) => is_comment,
            (begin, end) => begin > end,
        };
        if let Some(image) = embedder.take(&id).filter(|_| !is_comment && draws(before)) {
            drawn.push(image.part);
        }
        rest = after;
    }
    drawn
}

/// Whether HTML that ends here draws the image to which it refers next.
fn draws(html: &str) -> bool {
    let html = html.trim_end().trim_end_matches(['"', '\'']).trim_end();
    let is_style = html
        .len()
        .checked_sub(4)
        .and_then(|at| html.get(at..))
        .is_some_and(|end| end.eq_ignore_ascii_case("url("));
    let name = html.strip_suffix('=').map(str::trim_end).unwrap_or_default();
    let start = name.rfind(|character: char| character.is_ascii_whitespace());
    let name = name.get(start.map_or(0, |start| start + 1)..).unwrap_or_default();
    is_style || DRAWING_ATTRIBUTES.iter().any(|drawing| name.eq_ignore_ascii_case(drawing))
}

impl EmbeddedImage {
    /// The image in the part with this index. `None`: the part is not an image that a document can
    /// refer to. An empty image shows nothing, and an attached message has its own images.
    fn of(index: usize, parts: &[Part]) -> Option<EmbeddedImage> {
        let part = parts.get(index)?;
        let declared = |(declared, _): &(&str, &str)| *declared == part.media_type;
        let (_, media_type) = TYPES.into_iter().find(declared)?;
        if part.body.is_empty() || part.is_enclosed(parts) {
            return None;
        }
        let id = part.content_id.clone()?;
        let decoded_id = decoded(&id).into_owned();
        let (encoding, place) = (part.encoding, part.body.clone());
        Some(EmbeddedImage { part: index, id, decoded_id, media_type, encoding, place })
    }

    /// The maximum number of bytes of the image in the document.
    fn bytes(&self) -> usize {
        let octets =
            usize::try_from(self.place.end.saturating_sub(self.place.start)).unwrap_or(usize::MAX);
        (octets / 3).saturating_add(1).saturating_mul(4)
    }
}

/// Appends `bytes` in base64. Their number must be a multiple of three, except at the end of an
/// image.
fn encode(bytes: &[u8], out: &mut Vec<u8>) {
    let mut room = [0; 4096];
    for bytes in bytes.chunks(3 * 1024) {
        out.extend_from_slice(Base64::encode(bytes, &mut room).unwrap_or_default().as_bytes());
    }
}

/// The text before the next reference to a part, the part's identifier, and the rest.
///
/// The time is linear in the length of `html`.
fn next_reference(html: &str) -> Option<(&str, Cow<'_, str>, &str)> {
    let ends = |character: char| {
        matches!(character, '"' | '\'' | '(' | ')' | '<' | '>') || character.is_ascii_whitespace()
    };
    // The first position after an earlier colon that ends an identifier without quotes.
    let mut end = 0;
    for (colon, _) in html.match_indices(':') {
        let Some(start) = colon.checked_sub(3) else { continue };
        let is_scheme =
            html.get(start..colon).is_some_and(|scheme| scheme.eq_ignore_ascii_case("cid"));
        let begins = |character: char| {
            matches!(character, '"' | '\'' | '=' | '(') || character.is_ascii_whitespace()
        };
        let before = html.get(..start)?.chars().next_back().filter(|_| is_scheme);
        let Some(before) = before.filter(|before| begins(*before)) else { continue };
        let tail = html.get(colon + 1..)?;
        let length = if matches!(before, '"' | '\'') {
            // Between quotes, an identifier may have spaces.
            let near = tail.get(..tail.floor_char_boundary(ID_BYTES_MAX + 1)).unwrap_or(tail);
            match near.find(before) {
                Some(length) => length,
                None if near.len() == tail.len() => return None,
                None => continue,
            }
        } else {
            if end <= colon {
                end = colon + 1 + tail.find(ends)?;
            }
            end - colon - 1
        };
        if !(1..=ID_BYTES_MAX).contains(&length) {
            continue;
        }
        let (id, after) = tail.split_at_checked(length)?;
        return Some((html.get(..start)?, decoded(id), after));
    }
    None
}

/// Decodes a content identifier in an address to the form in a part's header (RFC 2392 section 2).
fn decoded(id: &str) -> Cow<'_, str> {
    let id = id.trim();
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
    Cow::Owned(String::from_utf8_lossy(&bytes).trim().into())
}
