//! The identifiers for `References` of a reply: RFC 5322 section 3.6.4.
//!
//! The identifiers are read from the message that the draft answers. If that message no longer
//! exists, they are read from the draft, which has the references of its last save.

use alloc::vec::Vec;

use message::header::Header;
use store::{AccountId, Body, CHUNK_OCTETS, DRAFTS, PartialMessage, Refusal};

use crate::MessageKey;
use crate::context::JobContext;

use super::draft::Draft;

/// The references of a reply.
#[derive(Debug, Default)]
pub(super) struct ReplyReferences {
    /// The message from which the references are read.
    read: Option<ReferencedMessage>,
    /// The identifiers, the latest last.
    references: Vec<Vec<u8>>,
}

/// The part of a message that was read so far.
#[derive(Debug)]
struct ReferencedMessage {
    key: MessageKey,
    octets: u32,
    beginning: PartialMessage,
}

impl ReplyReferences {
    /// Asks the store for the next piece of the message with the references. Returns the number of
    /// requests, which is 0 if no such message exists. Errors: [`Refusal::Busy`].
    pub(super) fn ask(
        &mut self,
        draft: &Draft,
        account: AccountId,
        cx: &mut JobContext<'_, '_>,
    ) -> Result<usize, Refusal> {
        // If the key in `draft` is outside of Drafts, it is the key of a message to forward. Such a
        // message is not answered.
        let own = draft.draft.filter(|key| key.mailbox == DRAFTS.0);
        for key in [draft.answers, own].into_iter().flatten() {
            let (continuation, (mailbox, uid)) = (cx.continuation(), key.in_store());
            let Some(info) = cx.store().message(account, mailbox, uid) else { continue };
            let known = self.read.take().filter(|known| known.key == key);
            // The head with our trace and result fields is left out, since it precedes the
            // message's own header.
            let first = || ReferencedMessage {
                key,
                octets: info.octets,
                beginning: PartialMessage::from(info.head),
            };
            let read = known.unwrap_or_else(first);
            let from = read.beginning.next();
            self.read = Some(read);
            match cx.store_mut().read(account, mailbox, uid, from, continuation) {
                Ok(()) => return Ok(1),
                Err(Refusal::Busy) => return Err(Refusal::Busy),
                // The message may have been removed. The draft still has the references, and is
                // read next.
                Err(_) => {}
            }
        }
        Ok(0)
    }

    /// Processes the next piece of the message. `answers`: the message that the draft answers.
    /// Returns true if no more pieces are needed.
    pub(super) fn body_arrived(&mut self, body: &Body, answers: Option<MessageKey>) -> bool {
        let Some(read) = &mut self.read else {
            unreachable!("a body arrives only after a request")
        };
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
