//! Copies files of a draft into a new message while the draft is read. So a file is never in memory
//! as a whole.
//!
//! The draft is read once for its structure. After that, only its files are read again.

use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;

use message::BodyDecoder;
use message::compose::{AttachedFile, Composer};
use message::structure::{Encoding, Part, StructureReader};
use store::{AccountId, Body, Refusal};

use crate::MessageKey;
use crate::context::JobContext;

use super::attachments::names;
use super::piece_reader::in_store;

/// Files that are being copied.
#[derive(Debug)]
pub(super) struct AttachmentCopy {
    draft: MessageKey,
    /// The indices of the parts to copy, in ascending order.
    wanted: Vec<usize>,
    stage: CopyStage,
    composer: Composer,
}

#[derive(Debug)]
enum CopyStage {
    /// The structure of the draft is being read, and the next read begins at this octet.
    Structure(StructureReader, u32),
    /// The files are being copied: the open file, and the files after it, the last one first.
    Files(Option<OpenFile>, Vec<DraftFile>),
}

/// A file of the draft.
#[derive(Debug)]
struct DraftFile {
    name: String,
    media_type: String,
    encoding: Encoding,
    place: Range<u64>,
}

/// A file that is being copied.
#[derive(Debug)]
struct OpenFile {
    decoder: BodyDecoder,
    /// The range of octets that are not read yet.
    rest: Range<u32>,
}

impl AttachmentCopy {
    /// `composer`: the writer of the new message. It has written the message's own files already.
    pub(super) fn new(
        draft: MessageKey,
        mut wanted: Vec<usize>,
        composer: Composer,
    ) -> AttachmentCopy {
        wanted.sort_unstable();
        wanted.dedup();
        let stage = CopyStage::Structure(StructureReader::new(), 0);
        AttachmentCopy { draft, wanted, stage, composer }
    }

    /// Asks the store for the next piece of the draft. Returns false if all files were copied to
    /// `out`.
    pub(super) fn ask(
        &mut self,
        account: AccountId,
        cx: &mut JobContext<'_, '_>,
        out: &mut Vec<u8>,
    ) -> Result<bool, Refusal> {
        let (mailbox, uid) = self.draft.in_store();
        let info = cx.store().message(account, mailbox, uid).ok_or(Refusal::NoSuchMessage)?;
        let Some(offset) = self.next_octet(info.octets, out) else { return Ok(false) };
        let continuation = cx.continuation();
        cx.store_mut().read(account, mailbox, uid, offset, continuation)?;
        Ok(true)
    }

    /// The offset of the next read. `None`: all files were copied.
    fn next_octet(&mut self, octets: u32, out: &mut Vec<u8>) -> Option<u32> {
        loop {
            match &mut self.stage {
                CopyStage::Structure(_, offset) if *offset < octets => return Some(*offset),
                CopyStage::Structure(reader, _) => {
                    let structure = core::mem::take(reader).message_ended(&mut ());
                    self.stage = CopyStage::Files(None, files(&structure.parts, &self.wanted));
                }
                CopyStage::Files(Some(open), _) if !open.rest.is_empty() => {
                    return Some(open.rest.start);
                }
                CopyStage::Files(open, files) => {
                    if let Some(mut ended) = open.take() {
                        let mut decoded = Vec::new();
                        ended.decoder.body_ended(&mut decoded);
                        self.composer.bytes_arrived(&decoded, out);
                        self.composer.file_ended(out);
                    }
                    let file = files.pop()?;
                    let (name, media_type) = (&*file.name, &*file.media_type);
                    self.composer.file_began(&AttachedFile { name, media_type }, out);
                    *open = Some(OpenFile {
                        decoder: BodyDecoder::new(file.encoding),
                        rest: in_store(&file.place),
                    });
                }
            }
        }
    }

    /// Takes the next piece of the draft, and appends the files in it to `out`.
    pub(super) fn body_arrived(&mut self, body: &Body, out: &mut Vec<u8>) {
        match &mut self.stage {
            CopyStage::Structure(reader, offset) => {
                *offset = offset.saturating_add(body.bytes().len() as u32);
                reader.bytes_arrived(body.bytes(), &mut ());
            }
            CopyStage::Files(Some(open), _) => {
                // The store may return more octets than the file has.
                let octets = body.bytes().get(..open.rest.len()).unwrap_or(body.bytes());
                open.rest.start = open.rest.start.saturating_add(octets.len() as u32);
                let mut decoded = Vec::with_capacity(octets.len());
                open.decoder.bytes_arrived(octets, &mut decoded);
                self.composer.bytes_arrived(&decoded, out);
            }
            CopyStage::Files(None, _) => {}
        }
    }

    /// Ends the new message, since all files were copied.
    pub(super) fn ended(self, out: &mut Vec<u8>) {
        self.composer.message_ended(out);
    }
}

/// The wanted files among the parts of a draft, the last one first.
fn files(parts: &[Part], wanted: &[usize]) -> Vec<DraftFile> {
    let mut names = names(parts);
    let files = wanted.iter().rev().filter_map(|index| {
        let part = parts.get(*index)?;
        Some(DraftFile {
            name: core::mem::take(names.get_mut(*index)?),
            media_type: part.media_type.clone(),
            encoding: part.encoding,
            place: part.body.clone(),
        })
    });
    files.collect()
}
