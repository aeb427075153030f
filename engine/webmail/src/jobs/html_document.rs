//! The HTML of a message as a separate document in a sandbox: its beginning for the frame on a
//! page, or the whole HTML.
//!
//! The message is read once for its structure. After that, only its HTML and its embedded images
//! are read again. So the document is sent while it is read ([`crate::stream`]), and its size does
//! not matter.
//!
//! Invariant: the memory has little more than one piece of the document. For the beginning of the
//! HTML, a piece has up to [`BEGINNING_BYTES_MAX`]: a page may have many frames, and each frame
//! should need only one whole reply.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;

use http::ReplyEnd;
use message::TextDecoder;
use message::header::Field;
use message::structure::{Listener, Part, StructureReader};
use store::{AccountId, Body, Refusal};

use crate::answer::Title;
use crate::context::JobContext;
use crate::inert::Inert;
use crate::message_style;
use crate::remote_content::RemoteContent;
use crate::step::{JobProgress, why};
use crate::stream::{PIECE_BYTES, StreamStage};
use crate::{MessageKey, answer};

use super::embedded_images::ImageEmbedder;
use super::message_contents::{HTML_BYTES_MAX, mailboxes};
use super::piece_reader::{Pieces, in_store};
use super::trusted_senders::{VerifiedAuthor, is_trusted};

/// A beginning with at most this many bytes, including its images, is one whole reply.
const BEGINNING_BYTES_MAX: usize = 256 * 1024;

/// The part of the HTML that is sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Extent {
    /// The beginning that a page shows in its frame.
    Beginning,
    /// The whole HTML.
    Whole,
}

impl Extent {
    /// The maximum number of bytes of HTML.
    fn html_bytes(self) -> usize {
        match self {
            Extent::Beginning => HTML_BYTES_MAX,
            Extent::Whole => usize::MAX,
        }
    }

    /// The size of a piece in bytes.
    fn piece_bytes(self) -> usize {
        match self {
            Extent::Beginning => BEGINNING_BYTES_MAX,
            Extent::Whole => PIECE_BYTES,
        }
    }
}

/// A document that is being read.
#[derive(Debug)]
pub(crate) struct HtmlJob {
    pieces: Pieces,
    part: usize,
    /// Once the header was read: `Loaded` if the reader trusts the author.
    remote_content: RemoteContent,
    extent: Extent,
    stage: Stage,
    /// The author in the `From` field of the message.
    author: AuthorField,
    verified: VerifiedAuthor,
    written: Vec<u8>,
    sent: StreamStage,
}

#[derive(Debug)]
enum Stage {
    /// The structure of the message is being read, and the next read begins at this octet.
    Parts(Box<StructureReader>, u32),
    /// The document is being written.
    Document(Box<HtmlDocument>),
    /// The document was written.
    Over,
    /// The message has no HTML part with this index.
    Nothing,
}

/// A document that is being written.
#[derive(Debug)]
struct HtmlDocument {
    /// The range of HTML octets that are not read yet.
    html: Range<u32>,
    decoder: TextDecoder,
    text: String,
    /// The number of bytes of HTML that may still be written.
    left: usize,
    is_read: bool,
    inert: Inert,
    /// The output of `inert`.
    harmless: String,
    embedder: ImageEmbedder,
    /// The text after the HTML.
    end: [&'static str; 2],
    /// The range of octets of the current image that are not read yet.
    image: Option<Range<u32>>,
}

/// Extracts the author of a message.
#[derive(Debug, Default)]
struct AuthorField(Option<String>);

impl HtmlJob {
    pub(super) fn new(
        key: MessageKey,
        part: u16,
        remote_content: RemoteContent,
        extent: Extent,
    ) -> HtmlJob {
        HtmlJob {
            pieces: Pieces::of(key),
            part: usize::from(part),
            remote_content,
            extent,
            stage: Stage::Parts(Box::default(), 0),
            author: AuthorField::default(),
            verified: VerifiedAuthor::default(),
            written: Vec::new(),
            sent: StreamStage::Nothing,
        }
    }

    pub(super) fn ask(
        &mut self,
        account: AccountId,
        under_way: &mut usize,
        cx: &mut JobContext<'_, '_>,
    ) -> JobProgress {
        let Some(octets) = self.pieces.octets(account, *under_way, cx) else {
            return JobProgress::Waiting;
        };
        let is_trusted = |author: &str, verified: &VerifiedAuthor| {
            is_trusted(cx.store().account(account).as_ref(), author, verified)
        };
        match self.next_octet(octets, is_trusted) {
            Some(offset) => self.pieces.ask(offset, account, under_way, cx),
            None => JobProgress::Waiting,
        }
    }

    /// Processes the octets that have arrived. Returns the offset of the next read. `None`: no read
    /// is needed now, or the document is complete.
    fn next_octet(
        &mut self,
        octets: u32,
        is_trusted: impl Fn(&str, &VerifiedAuthor) -> bool,
    ) -> Option<u32> {
        loop {
            match &mut self.stage {
                Stage::Parts(_, offset) if *offset < octets => return Some(*offset),
                Stage::Parts(reader, _) => {
                    let structure = core::mem::take(reader).message_ended(&mut self.author);
                    let author = self.author.0.as_deref();
                    if author.is_some_and(|author| is_trusted(author, &self.verified)) {
                        self.remote_content = RemoteContent::Loaded;
                    }
                    let end = message_style::end(self.remote_content);
                    self.stage = HtmlDocument::of(&structure.parts, self.part, self.extent, end);
                }
                Stage::Document(_) if self.written.len() >= self.extent.piece_bytes() => {
                    return None;
                }
                Stage::Document(document) => match document.next_octet(&mut self.written) {
                    Some(offset) => return Some(offset),
                    None => self.stage = Stage::Over,
                },
                Stage::Over | Stage::Nothing => return None,
            }
        }
    }

    pub(super) fn body_arrived(&mut self, body: &Body) {
        match &mut self.stage {
            Stage::Parts(reader, offset) => {
                if *offset == 0 {
                    self.verified = VerifiedAuthor::of(body.bytes());
                }
                reader.bytes_arrived(body.bytes(), &mut self.author);
                *offset = offset.saturating_add(body.bytes().len() as u32);
            }
            Stage::Document(document) => document.octets_arrived(body.bytes(), &mut self.written),
            Stage::Over | Stage::Nothing => {}
        }
    }

    pub(super) fn refused(&mut self, refusal: Refusal) {
        self.pieces.refused = Some(refusal);
    }

    /// The next piece of the reply.
    pub(super) fn next(&mut self) -> JobProgress {
        let end = match (self.pieces.refused, &self.stage) {
            (Some(refusal), _) if self.sent == StreamStage::Nothing => {
                return JobProgress::Reply(answer::refused(refusal, why(refusal)));
            }
            (None, Stage::Nothing) => return JobProgress::Reply(answer::not_found()),
            (Some(_), _) => Some(ReplyEnd::Cut),
            (None, Stage::Over) => Some(ReplyEnd::Whole),
            (None, _) => None,
        };
        let remote_content = self.remote_content;
        self.sent.next(core::mem::take(&mut self.written), end, || Title::Html(remote_content))
    }
}

impl HtmlDocument {
    /// The document for the part with this index, if the part is HTML.
    fn of(parts: &[Part], part: usize, extent: Extent, end: [&'static str; 2]) -> Stage {
        let Some(part) = parts.get(part).filter(|part| part.media_type == "text/html") else {
            return Stage::Nothing;
        };
        Stage::Document(Box::new(HtmlDocument {
            html: in_store(&part.body),
            decoder: TextDecoder::new(part),
            text: String::new(),
            left: extent.html_bytes(),
            is_read: false,
            inert: Inert::default(),
            harmless: String::new(),
            embedder: ImageEmbedder::of(parts),
            end,
            image: None,
        }))
    }

    /// Writes as far as possible, and returns the offset of the next read. `None`: the whole
    /// document was written.
    fn next_octet(&mut self, out: &mut Vec<u8>) -> Option<u32> {
        loop {
            match &self.image {
                Some(image) if !image.is_empty() => return Some(image.start),
                Some(_) => {
                    self.embedder.image_ended(out);
                    self.write(out);
                }
                None if !self.html.is_empty() && self.left > 0 => return Some(self.html.start),
                None if self.is_read => return None,
                None => {
                    self.is_read = true;
                    if self.left > 0 {
                        self.decoder.body_ended(&mut self.text);
                        self.hand_on_text();
                    }
                    self.inert.text_ended(&mut self.harmless);
                    self.end.iter().for_each(|text| self.harmless.push_str(text));
                    self.embed_images();
                    self.embedder.text_ended();
                    self.write(out);
                }
            }
        }
    }

    /// Processes the octets from the offset of the last read. The store may return more octets than
    /// the current range has.
    fn octets_arrived(&mut self, octets: &[u8], out: &mut Vec<u8>) {
        let place = self.image.as_mut().unwrap_or(&mut self.html);
        let octets = octets.get(..place.len()).unwrap_or(octets);
        place.start = place.start.saturating_add(octets.len() as u32);
        if self.image.is_some() {
            self.embedder.image_arrived(octets, out);
        } else {
            self.decoder.bytes_arrived(octets, &mut self.text);
            self.hand_on_text();
            self.write(out);
        }
    }

    fn hand_on_text(&mut self) {
        let end = self.text.floor_char_boundary(self.left);
        self.left = if end < self.text.len() { 0 } else { self.left - end };
        self.inert.text_arrived(self.text.get(..end).unwrap_or_default(), &mut self.harmless);
        self.text.clear();
        self.embed_images();
    }

    fn embed_images(&mut self) {
        self.embedder.text_arrived(&self.harmless);
        self.harmless.clear();
    }

    /// Writes the document up to the next image.
    fn write(&mut self, out: &mut Vec<u8>) {
        self.image = self.embedder.write(out).map(|place| in_store(&place));
    }
}

impl Listener for AuthorField {
    fn wants_field(&mut self, part: &Part, name: &[u8]) -> bool {
        self.0.is_none() && part.depth == 0 && name.eq_ignore_ascii_case(b"From")
    }

    fn field_arrived(&mut self, field: &Field<'_>) {
        self.0 = mailboxes(field).next().map(|author| author.address);
    }
}
