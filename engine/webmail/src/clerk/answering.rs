//! What a message answers, by the identifiers of that: RFC 5322 section 3.6.4.
//!
//! They are read of the message that is answered. If it is gone, they are read of the draft, which
//! answers what it answered when it was saved.

use alloc::vec::Vec;

use message::header::Header;
use store::{AccountId, Beginning, Body, CHUNK_OCTETS, DRAFTS, Refusal};

use crate::Key;
use crate::context::JobContext;

use super::draft::Draft;

/// The identifiers of what a message answers.
#[derive(Debug, Default)]
pub(super) struct Answering {
    /// The message of which they are read.
    read: Option<Read>,
    /// The latest last.
    references: Vec<Vec<u8>>,
}

/// A message, as far as it was read.
#[derive(Debug)]
struct Read {
    key: Key,
    octets: u32,
    beginning: Beginning,
}

impl Answering {
    /// Asks for a part of the message of which they are read. Returns how much was asked for: of
    /// what is gone, nothing. Errors: [`Refusal::Busy`].
    pub(super) fn ask(
        &mut self,
        draft: &Draft,
        account: AccountId,
        cx: &mut JobContext<'_, '_>,
    ) -> Result<usize, Refusal> {
        // What is sent on is not answered.
        let own = draft.draft.filter(|key| key.mailbox == DRAFTS.0);
        for key in [draft.answers, own].into_iter().flatten() {
            let (continuation, (mailbox, uid)) = (cx.continuation(), key.in_store());
            let Some(info) = cx.store().message(account, mailbox, uid) else { continue };
            let known = self.read.take().filter(|known| known.key == key);
            // What was found out about its sender stands above all that it says.
            let first = || Read { key, octets: info.octets, beginning: Beginning::from(info.head) };
            let read = known.unwrap_or_else(first);
            let from = read.beginning.next();
            self.read = Some(read);
            match cx.store_mut().read(account, mailbox, uid, from, continuation) {
                Ok(()) => return Ok(1),
                Err(Refusal::Busy) => return Err(Refusal::Busy),
                // It may be gone, and a draft still knows what it answered.
                Err(_) => {}
            }
        }
        Ok(0)
    }

    /// A part of the message has come. `answers`: as the draft says. Returns whether that was
    /// enough.
    pub(super) fn body_arrived(&mut self, body: &Body, answers: Option<Key>) -> bool {
        let Some(read) = &mut self.read else { unreachable!("no part was asked for") };
        read.beginning.arrived(body.bytes());
        let octets = read.beginning.octets();
        let has_header =
            octets.len() >= CHUNK_OCTETS || memchr::memmem::find(octets, b"\r\n\r\n").is_some();
        if !has_header && !read.beginning.is_all_of(read.octets) {
            return false;
        }
        let header = Header::new(octets);
        let identifiers =
            |name| header.field(name).into_iter().flat_map(|field| field.identifiers());
        let own = identifiers("Message-ID").filter(|_| Some(read.key) == answers);
        self.references = identifiers("References").chain(own).map(<[u8]>::to_vec).collect();
        true
    }

    /// The identifiers, the latest last.
    pub(super) fn references(&self) -> Vec<&[u8]> {
        self.references.iter().map(Vec::as_slice).collect()
    }
}
