//! Copies files of a draft into a new message while the draft is read. So a file is never in memory
//! as a whole.

use alloc::vec::Vec;

use message::BodyDecoder;
use message::compose::{AttachedFile, Composer};
use message::structure::{Listener, Part, StructureReader};
use store::{AccountId, Body, Refusal};

use crate::MessageKey;
use crate::context::JobContext;

use super::attachments::name_of;

/// Files that are being copied.
#[derive(Debug)]
pub(super) struct AttachmentCopy {
    draft: MessageKey,
    /// The indices of the parts to copy.
    wanted: Vec<usize>,
    offset: u32,
    reader: StructureReader,
    composer: Composer,
    decoder: Option<BodyDecoder>,
}

/// Writes the wanted parts while the draft is parsed.
struct Copier<'a> {
    wanted: &'a [usize],
    composer: &'a mut Composer,
    decoder: &'a mut Option<BodyDecoder>,
    out: &'a mut Vec<u8>,
}

impl AttachmentCopy {
    /// `composer`: the writer of the new message, after the message's own files.
    pub(super) fn new(draft: MessageKey, wanted: Vec<usize>, composer: Composer) -> AttachmentCopy {
        AttachmentCopy {
            draft,
            wanted,
            offset: 0,
            reader: StructureReader::new(),
            composer,
            decoder: None,
        }
    }

    /// Asks the store for the next piece of the draft. Returns false if the draft was read to its
    /// end.
    pub(super) fn ask(
        &self,
        account: AccountId,
        cx: &mut JobContext<'_, '_>,
    ) -> Result<bool, Refusal> {
        let (mailbox, uid) = self.draft.in_store();
        let info = cx.store().message(account, mailbox, uid).ok_or(Refusal::NoSuchMessage)?;
        if self.offset >= info.octets {
            return Ok(false);
        }
        let continuation = cx.continuation();
        cx.store_mut().read(account, mailbox, uid, self.offset, continuation)?;
        Ok(true)
    }

    /// Parses the next piece of the draft, and appends its wanted parts to `out`.
    pub(super) fn body_arrived(&mut self, body: &Body, out: &mut Vec<u8>) {
        let AttachmentCopy { wanted, offset, reader, composer, decoder, .. } = self;
        *offset = offset.saturating_add(body.bytes().len() as u32);
        reader.bytes_arrived(body.bytes(), &mut Copier { wanted, composer, decoder, out });
    }

    /// Ends the new message, since the draft was read to its end.
    pub(super) fn ended(self, out: &mut Vec<u8>) {
        let AttachmentCopy { wanted, reader, mut composer, mut decoder, .. } = self;
        let mut copier =
            Copier { wanted: &wanted, composer: &mut composer, decoder: &mut decoder, out };
        reader.message_ended(&mut copier);
        composer.message_ended(out);
    }
}

impl Listener for Copier<'_> {
    fn body_began(&mut self, parts: &[Part]) -> bool {
        let Some(part) = parts.last().filter(|_| self.wanted.contains(&(parts.len() - 1))) else {
            return false;
        };
        self.composer.file_began(
            &AttachedFile { name: &name_of(part), media_type: &part.media_type },
            self.out,
        );
        *self.decoder = Some(BodyDecoder::new(part.encoding));
        true
    }

    fn body_arrived(&mut self, bytes: &[u8]) {
        let Some(decoder) = self.decoder else { return };
        let mut decoded = Vec::with_capacity(bytes.len());
        decoder.bytes_arrived(bytes, &mut decoded);
        self.composer.bytes_arrived(&decoded, self.out);
    }

    fn body_ended(&mut self) {
        let Some(mut decoder) = self.decoder.take() else { return };
        let mut decoded = Vec::new();
        decoder.body_ended(&mut decoded);
        self.composer.bytes_arrived(&decoded, self.out);
        self.composer.file_ended(self.out);
    }
}
