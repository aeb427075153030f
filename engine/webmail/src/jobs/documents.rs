//! Raw documents: a message as it arrived, or a decoded part of a message.
//!
//! A file is sent while it is read ([`crate::stream`]), so its size does not matter. The source
//! page is read up to its limit before the reply begins.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use http::{Reply, ReplyEnd};
use message::BodyDecoder;
use message::header::Header;
use message::structure::{Listener, Part, StructureReader};
use message::tnef::TnefReader;
use store::{AccountId, Body, Refusal};

use crate::answer;
use crate::answer::Title;
use crate::context::JobContext;
use crate::layout::{AuthenticatedClient, PageLayout};
use crate::source::SourcePage;
use crate::step::{JobProgress, why};
use crate::stream::{PIECE_BYTES, StreamStage};
use crate::{MessageKey, WebPage};

use super::attachments::last_name;
use super::piece_reader::Pieces;

/// The number of bytes after which no more chunks are read for a source page. The page shows the
/// last chunk in full.
const SOURCE_BYTES_MAX: usize = 256 * 1024;

/// The part of a message that is sent, and its form.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum DocumentKind {
    /// The whole message, as a page with its source.
    Source,
    /// The whole message, as a file.
    Message,
    /// The part with this index, as a file.
    Part(u16),
    /// A file in a part that is a container: the index of the part, and the index of the file in
    /// it.
    Inner(u16, u16),
}

/// A document that is being read.
#[derive(Debug)]
pub(crate) struct DocumentJob {
    pieces: Pieces,
    document: DocumentKind,
    offset: u32,
    reader: StructureReader,
    extracted: Extracted,
    /// Whether the parser was told that the message has ended.
    has_ended: bool,
    sent: StreamStage,
}

/// The number of bytes that are held back at the end of an attached message, since they may belong
/// to the delimiter after the message. It is also the maximum length of a delimiter.
const DELIMITER_BYTES_MAX: usize = 512;

/// The data that is extracted while the message is parsed.
#[derive(Debug, Default)]
struct Extracted {
    wanted: Option<usize>,
    /// The reader of the wanted part, if it is a container, and the index of the wanted file.
    container: Option<(TnefReader, usize)>,
    decoder: Option<BodyDecoder>,
    /// The name of the wanted part, if the part was found. The name of a file in a container is
    /// left empty, since it may follow the content. The browser then takes the name from the link
    /// to the file.
    name: Option<String>,
    bytes: Vec<u8>,
    /// The decoded bytes of the container that have arrived last.
    decoded: Vec<u8>,
    /// The number of bytes that were sent before `bytes`.
    bytes_sent: u64,
}

impl DocumentJob {
    pub(super) fn new(key: MessageKey, document: DocumentKind) -> DocumentJob {
        let mut extracted = Extracted::default();
        if let DocumentKind::Part(part) | DocumentKind::Inner(part, _) = document {
            extracted.wanted = Some(usize::from(part));
        }
        if let DocumentKind::Inner(_, file) = document {
            extracted.container = Some((TnefReader::default(), usize::from(file)));
        }
        let (reader, sent) = (StructureReader::new(), StreamStage::Nothing);
        DocumentJob {
            pieces: Pieces::of(key),
            document,
            offset: 0,
            reader,
            extracted,
            has_ended: false,
            sent,
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
        let is_seen_in_part =
            self.document == DocumentKind::Source && self.extracted.bytes.len() >= SOURCE_BYTES_MAX;
        if self.offset >= octets || is_seen_in_part || self.has_enough() {
            return JobProgress::Waiting;
        }
        self.pieces.ask(self.offset, account, under_way, cx)
    }

    pub(super) fn body_arrived(&mut self, body: &Body) {
        let begin = u64::from(self.offset);
        self.offset = self.offset.saturating_add(body.bytes().len() as u32);
        if self.extracted.wanted.is_some() {
            self.reader.bytes_arrived(body.bytes(), &mut self.extracted);
            self.extracted.octets_went_by(begin, body.bytes(), self.reader.parts());
        } else {
            self.extracted.bytes.extend_from_slice(body.bytes());
        }
    }

    pub(super) fn refused(&mut self, refusal: Refusal) {
        self.pieces.refused = Some(refusal);
    }

    /// Whether enough bytes were read for a piece.
    fn has_enough(&self) -> bool {
        match self.document {
            DocumentKind::Message | DocumentKind::Part(_) | DocumentKind::Inner(..) => {
                self.extracted.bytes.len() >= PIECE_BYTES + self.held_back()
            }
            DocumentKind::Source => false,
        }
    }

    /// The number of bytes at the end that must not be sent yet.
    fn held_back(&self) -> usize {
        let may_be_delimiter =
            !self.has_ended && self.extracted.message_within(self.reader.parts()).is_some();
        if may_be_delimiter { DELIMITER_BYTES_MAX } else { 0 }
    }

    /// The next piece of the reply.
    pub(super) fn next(
        &mut self,
        client: &AuthenticatedClient,
        cx: &JobContext<'_, '_>,
    ) -> JobProgress {
        let is_over = self.pieces.refused.is_some()
            || self.pieces.octets.is_none_or(|octets| self.offset >= octets);
        if self.extracted.wanted.is_some() && is_over && !self.has_ended {
            let structure = core::mem::take(&mut self.reader).message_ended(&mut self.extracted);
            self.extracted.message_within_ended(&structure.parts);
            self.has_ended = true;
        }
        let is_file = match (self.document, &self.extracted.name, self.pieces.refused) {
            (
                DocumentKind::Message | DocumentKind::Part(_) | DocumentKind::Inner(..),
                _,
                Some(_),
            ) => self.sent == StreamStage::Begun,
            (DocumentKind::Message, ..)
            | (DocumentKind::Part(_) | DocumentKind::Inner(..), Some(_), None) => true,
            _ => false,
        };
        if !is_file {
            return JobProgress::Reply(self.answer(client, cx));
        }
        let held_back = self
            .extracted
            .bytes
            .split_off(self.extracted.bytes.len().saturating_sub(self.held_back()));
        let bytes = core::mem::replace(&mut self.extracted.bytes, held_back);
        self.extracted.bytes_sent += bytes.len() as u64;
        let end = match self.pieces.refused {
            Some(_) => Some(ReplyEnd::Cut),
            None => is_over.then_some(ReplyEnd::Whole),
        };
        let (extracted, key, octets) = (&self.extracted, self.pieces.key, self.pieces.octets);
        self.sent.next(bytes, end, || match &extracted.name {
            Some(name) => Title::File {
                name: name.clone(),
                media_type: "application/octet-stream",
                length: None,
            },
            None => Title::File {
                name: format!("message-{key}.eml"),
                media_type: "application/octet-stream",
                length: octets.map(u64::from),
            },
        })
    }

    /// The reply if no file is sent.
    fn answer(&mut self, client: &AuthenticatedClient, cx: &JobContext<'_, '_>) -> Reply {
        if let Some(refusal) = self.pieces.refused {
            return answer::refused(refusal, why(refusal));
        }
        match self.document {
            DocumentKind::Source => self.source(&self.extracted.bytes, client, cx),
            DocumentKind::Message | DocumentKind::Part(_) | DocumentKind::Inner(..) => {
                answer::not_found()
            }
        }
    }
}

impl DocumentJob {
    /// The page with a message's source.
    fn source(
        &self,
        octets: &[u8],
        client: &AuthenticatedClient,
        cx: &JobContext<'_, '_>,
    ) -> Reply {
        let (mailbox, _) = self.pieces.key.in_store();
        let layout = PageLayout::of(client, cx.store(), Some(mailbox));
        let subject =
            Header::new(octets).field("Subject").map_or_else(String::new, |field| field.text());
        answer::page(&SourcePage {
            frame: layout.frame(client, &layout.links()),
            subject: &subject,
            back: &WebPage::Read(self.pieces.key).to_string(),
            download: &WebPage::Download(self.pieces.key).to_string(),
            octets: &String::from_utf8_lossy(octets),
            is_cut: self.pieces.octets.is_some_and(|all| (octets.len() as u64) < u64::from(all)),
        })
    }
}

impl Extracted {
    /// The wanted part, if it is an attached message and its header has ended. The header has ended
    /// when the first part within the message has begun. The parser descends into an attached
    /// message, and does not report its octets as one body.
    fn message_within<'a>(&self, parts: &'a [Part]) -> Option<&'a Part> {
        let index = self.wanted.filter(|_| self.container.is_none())?;
        parts.get(index + 1).and_then(|_| parts.get(index)).filter(|part| part.holds_message())
    }

    /// Extracts the octets of the wanted attached message. The parser has just processed `octets`
    /// of the whole message, which begin at the offset `begin`, and knows `parts`.
    fn octets_went_by(&mut self, begin: u64, octets: &[u8], parts: &[Part]) {
        let Some(part) = self.message_within(parts) else { return };
        let has_ended = part.body.end > part.body.start;
        let within = |at: u64| {
            usize::try_from(at.saturating_sub(begin)).unwrap_or(usize::MAX).min(octets.len())
        };
        let end = if has_ended { within(part.body.end) } else { octets.len() };
        self.bytes.extend_from_slice(octets.get(within(part.body.start)..end).unwrap_or_default());
        self.message_was_found(parts);
    }

    /// Drops the bytes after the end of the wanted attached message. That end is known when all
    /// parts are known.
    fn message_within_ended(&mut self, parts: &[Part]) {
        if let Some(part) = self.message_within(parts) {
            let left = (part.body.end - part.body.start).saturating_sub(self.bytes_sent);
            self.bytes.truncate(usize::try_from(left).unwrap_or(usize::MAX));
            self.message_was_found(parts);
        }
    }

    /// Extracts the wanted file from the next bytes of its container.
    fn bytes_of_container_arrived(&mut self) {
        let Some((container, file)) = &mut self.container else { return };
        container.bytes_arrived(&self.decoded, Some(*file), &mut self.bytes);
        let found = container.files().get(*file).filter(|file| file.bytes.is_some());
        self.name = found.map(|_| String::new());
    }

    /// Keeps the name of the wanted attached message.
    fn message_was_found(&mut self, parts: &[Part]) {
        if self.name.is_none() {
            let until = self.wanted.and_then(|index| parts.get(..=index));
            self.name = until.map(last_name);
        }
    }
}

impl Listener for Extracted {
    fn body_began(&mut self, parts: &[Part]) -> bool {
        let Some(part) = parts.last() else { return false };
        if self.wanted != Some(parts.len() - 1) {
            return false;
        }
        self.decoder = Some(BodyDecoder::new(part.encoding));
        if self.container.is_none() {
            self.name = Some(last_name(parts));
        }
        true
    }

    fn body_arrived(&mut self, bytes: &[u8]) {
        let Some(decoder) = &mut self.decoder else { return };
        if self.container.is_none() {
            return decoder.bytes_arrived(bytes, &mut self.bytes);
        }
        self.decoded.clear();
        decoder.bytes_arrived(bytes, &mut self.decoded);
        self.bytes_of_container_arrived();
    }

    fn body_ended(&mut self) {
        let Some(mut decoder) = self.decoder.take() else { return };
        if self.container.is_none() {
            return decoder.body_ended(&mut self.bytes);
        }
        self.decoded.clear();
        decoder.body_ended(&mut self.decoded);
        self.bytes_of_container_arrived();
    }
}
