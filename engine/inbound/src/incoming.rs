//! A message on its way into the store: first our trace fields, then the bytes of the message. If
//! the message will be signed, its bytes are hashed as they are stored.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use filter::FilterQuery;
use machine::UnixTime;
use message::{LongLines, Reviser, Revision};
use relay::QueueId;
use shards::{DeliveryHandle, ShardedStore};
use signing::Signing;
use smtp::MessageRefusal;
use store::{Closing, HeadSize, JUNK, Refusal};
use tasks::Continuation;

use super::context::SmtpContext;
use super::dmarc_check::DmarcCheck;
use super::trace::Trace;

/// A message on its way into the store.
pub(super) struct IncomingMessage {
    pub(super) delivery: DeliveryHandle,
    /// The bytes that the store has taken.
    pub(super) octets: u64,
    /// The bytes above the message that are not in the store yet.
    pub(super) head: Vec<u8>,
    pub(super) queue_id: QueueId,
    /// The address of the account that submits the message. Empty: the client has not logged in.
    pub(super) author: String,
    pub(super) revision: Revision,
    /// Whether a submitted message has lines that are too long for other servers.
    pub(super) long_lines: LongLines,
    /// The field above the envelope that says that the message has long lines. It is empty for
    /// other messages, and before the end of the message is known.
    pub(super) long_lines_field: &'static [u8],
    /// The checks of an external message.
    pub(super) proof: Option<Box<DmarcCheck>>,
    /// The question to the filter, if the filter is asked about the message.
    pub(super) inquiry: Option<Box<FilterQuery>>,
    /// The signing of a submitted message.
    pub(super) signing: Option<Box<Signing>>,
    pub(super) ending: EndOfData,
}

impl IncomingMessage {
    /// Whether check results are written above the message.
    pub(super) fn inbound_policy_applies(&self) -> bool {
        self.proof.is_some() || self.inquiry.is_some()
    }

    /// Puts the next bytes of the message into the store. Returns the number of bytes taken.
    pub(super) fn put(
        &mut self,
        bytes: &[u8],
        trace: &mut Trace,
        cx: &mut SmtpContext<'_>,
        continuation: Continuation,
    ) -> Result<usize, MessageRefusal> {
        if !self.put_head(cx.store, continuation)? {
            return Ok(0);
        }
        self.revise((trace, cx), continuation, |revision, own, store| {
            revision.pass(bytes, own, store)
        })
    }

    /// Puts the bytes above the message into the store. Returns false if there was no space for all
    /// of them.
    fn put_head(
        &mut self,
        store: &mut ShardedStore,
        continuation: Continuation,
    ) -> Result<bool, MessageRefusal> {
        if !self.head.is_empty() {
            let taken =
                store.append(self.delivery, &self.head, continuation).map_err(message_refusal)?;
            self.head.drain(..taken);
            self.octets += taken as u64;
        }
        Ok(self.head.is_empty())
    }

    /// The message is complete: puts the remaining bytes into the store. Returns false if there was
    /// no space for all of them.
    pub(super) fn complete(
        &mut self,
        trace: &mut Trace,
        cx: &mut SmtpContext<'_>,
        continuation: Continuation,
    ) -> Result<bool, MessageRefusal> {
        Ok(self.put_head(cx.store, continuation)?
            && self.revise((trace, cx), continuation, |revision, own, store| {
                revision.end(own, store)
            })?)
    }

    fn revise<R>(
        &mut self,
        (trace, cx): (&mut Trace, &mut SmtpContext<'_>),
        continuation: Continuation,
        act: impl FnOnce(
            &mut Revision,
            &Reviser<'_>,
            &mut dyn FnMut(&[u8]) -> Result<usize, Refusal>,
        ) -> Result<R, Refusal>,
    ) -> Result<R, MessageRefusal> {
        let IncomingMessage {
            delivery,
            octets,
            queue_id,
            author,
            revision,
            long_lines,
            signing,
            ..
        } = self;
        let Trace { hostname, date_now, .. } = trace;
        let SmtpContext { store, turn, signer, .. } = cx;
        let own = Reviser {
            hostname,
            identifier: queue_id.as_bytes(),
            author,
            now: date_now.at(turn.wall),
        };
        let result = act(revision, &own, &mut |bytes| {
            let taken = store.append(*delivery, bytes, continuation)?;
            *octets += taken as u64;
            if let Some(signing) = signing {
                let bytes = bytes.get(..taken).unwrap_or_default();
                signing.arrived(bytes);
                long_lines.bytes_arrived(bytes);
            }
            Ok(taken)
        });
        let counted = signing.as_mut().map_or(Ok(()), |signing| signing.count(signer));
        result.and_then(|result| counted.map(|()| result)).map_err(message_refusal)
    }
}

/// The progress of a message after its last byte.
pub(super) enum EndOfData {
    /// More bytes of the message are expected.
    NotYet,
    /// The last bytes and missing fields are written into the store.
    Revising,
    /// The origin of the message is being checked.
    Proving,
    /// The filter is being asked.
    Asking,
    /// A signature is being computed.
    Signing,
    /// The final fields above the message are written into the store.
    FinalFields(FinalFields),
    Committed,
}

/// Trace fields and signatures on their way into the store.
pub(super) struct FinalFields {
    pub(super) fields: Vec<u8>,
    pub(super) taken: usize,
    pub(super) is_suspect: bool,
}

impl EndOfData {
    /// Whether the message waits for buffer space in the store, if it waits at all.
    pub(super) fn waits_for_room(&self) -> bool {
        matches!(self, EndOfData::Revising | EndOfData::FinalFields(_))
    }
}

impl FinalFields {
    pub(super) const NOTHING: FinalFields =
        FinalFields { fields: Vec::new(), taken: 0, is_suspect: false };

    pub(super) fn closing(&self, date: UnixTime) -> Closing {
        let head = HeadSize::of(self.fields.len()).unwrap_or(HeadSize::NONE);
        Closing { date, head, mailbox: self.is_suspect.then_some(JUNK) }
    }
}

/// The SMTP error for an error of the store.
pub(super) fn message_refusal(refusal: Refusal) -> MessageRefusal {
    match refusal {
        Refusal::DiskFull => MessageRefusal::StorageFull,
        Refusal::IndexFull => MessageRefusal::IndexFull,
        Refusal::TooLarge => MessageRefusal::TooBig,
        Refusal::OverQuota => MessageRefusal::MailboxFull,
        Refusal::LargerThanQuota => MessageRefusal::NeverFits,
        Refusal::ReadOnly | Refusal::WriteFailed => MessageRefusal::DiskFailed,
        _ => MessageRefusal::TryLater,
    }
}
