//! Reads the entry of an attempt: first the beginning with the signatures, the envelope and the
//! message's header, then the message, part by part.
//!
//! A message is signed after all of it has arrived, so its signatures are above its envelope. The
//! envelope is not sent. For other servers the message begins with its signatures.
//!
//! Invariants:
//! - The reader requests one part at a time. A part that is no longer wanted still arrives. It
//!   wakes the attempt only if another part is wanted by then.
//! - Until the entry is opened, the parts that arrive are its beginning. Afterwards each part is
//!   the next of the message.

use alloc::vec::Vec;

use store::{OUTBOX, Outcome, PartialMessage, Refusal};

use super::OutboundWaitPoint;
use super::attempt_context::AttemptCx;
use super::head::EntryExtent;

/// The state of reading an entry.
pub(super) struct EntryReader {
    /// Whether the requested part is still wanted. `None`: no part is requested.
    requested: Option<Wanted>,
    /// The beginning of the entry, until it is opened.
    beginning: PartialMessage,
    /// The offset of the message, after its signatures and the envelope. `None`: the entry is not
    /// opened.
    message_at: Option<u32>,
    /// The signatures of the message, above the rest of the entry.
    signatures: Vec<u8>,
    /// The size of the entry in bytes.
    entry_octets: u32,
    /// The number of bytes of the entry that were read.
    offset: u32,
    /// Bytes that were read and are not used yet.
    octets: Vec<u8>,
}

/// Whether a requested part of the entry is still wanted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Wanted {
    Yes,
    No,
    /// Another part is wanted instead. It is requested when this part has arrived.
    Another,
}

/// The kind of a part that has arrived.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum PartArrival {
    /// More of the beginning.
    Beginning,
    /// More of the message.
    Message,
    /// The part cannot be read.
    Refused(Refusal),
    /// A part that is not wanted. The wanted part can be requested now.
    Another,
    /// A part that is not wanted.
    Unwanted,
}

impl EntryReader {
    /// A reader that has read nothing.
    pub(super) fn new() -> EntryReader {
        EntryReader {
            requested: None,
            beginning: PartialMessage::from(0),
            message_at: None,
            signatures: Vec::new(),
            entry_octets: 0,
            offset: 0,
            octets: Vec::new(),
        }
    }

    /// Takes the requested part, or the refusal to read it.
    pub(super) fn arrived(&mut self, outcome: Outcome, cx: &mut AttemptCx<'_, '_>) -> PartArrival {
        let arrival = match self.requested.take() {
            Some(Wanted::Yes) => match &outcome {
                Outcome::Body(body) => self.take_in(body.bytes()),
                Outcome::Refused(refusal) => PartArrival::Refused(*refusal),
                _ => unreachable!("a read gives a part of a message, or is refused"),
            },
            Some(Wanted::Another) => PartArrival::Another,
            Some(Wanted::No) => PartArrival::Unwanted,
            None => unreachable!("no part was asked for"),
        };
        cx.parts.store.forget(outcome);
        arrival
    }

    /// Takes the bytes of a part that was read.
    fn take_in(&mut self, octets: &[u8]) -> PartArrival {
        if self.message_at.is_none() {
            self.beginning.arrived(octets);
            return PartArrival::Beginning;
        }
        self.octets = octets.to_vec();
        self.offset = self.offset.saturating_add(octets.len() as u32);
        PartArrival::Message
    }

    /// Marks the requested part as unwanted.
    pub(super) fn want_nothing(&mut self) {
        self.requested = self.requested.map(|_| Wanted::No);
    }

    /// The bytes of the beginning that were read, while the entry is not opened.
    pub(super) fn beginning(&self) -> &[u8] {
        self.beginning.octets()
    }

    /// Whether the bytes of `beginning` are the whole entry.
    pub(super) fn extent(&self, cx: &AttemptCx<'_, '_>) -> EntryExtent {
        EntryExtent::of(&self.beginning, cx.info().map_or(0, |info| info.octets))
    }

    /// Reads more of the beginning.
    pub(super) fn read_beginning(&mut self, cx: &mut AttemptCx<'_, '_>) -> Result<(), Refusal> {
        self.read(self.beginning.next(), cx)
    }

    /// Notes that the entry, of `entry_octets` bytes, is opened. `signatures`: the number of bytes
    /// at its beginning that are the message's signatures. `message_at`: the offset of the rest of
    /// the message.
    pub(super) fn opened(&mut self, signatures: usize, message_at: u32, entry_octets: u32) {
        self.signatures = self.beginning.octets().get(..signatures).unwrap_or_default().to_vec();
        self.entry_octets = entry_octets;
        (self.beginning, self.message_at) = (PartialMessage::default(), Some(message_at));
    }

    fn message_at(&self) -> u32 {
        self.message_at.unwrap_or(0)
    }

    /// The size of the message in bytes.
    pub(super) fn message_octets(&self) -> u32 {
        self.entry_octets.saturating_sub(self.message_at()) + self.signatures.len() as u32
    }

    /// The signatures of the message.
    pub(super) fn signatures(&self) -> &[u8] {
        &self.signatures
    }

    /// Starts again at the beginning of the message.
    pub(super) fn rewind(&mut self) {
        self.offset = self.message_at();
        self.octets.clone_from(&self.signatures);
    }

    /// Starts again at the beginning of the message, with these bytes in place of its signatures.
    pub(super) fn rewind_behind(&mut self, octets: Vec<u8>) {
        self.offset = self.message_at();
        self.octets = octets;
    }

    /// Sets the bytes that are used next.
    pub(super) fn put(&mut self, octets: Vec<u8>) {
        self.octets = octets;
    }

    /// Bytes that were read and are not used yet.
    pub(super) fn octets(&self) -> &[u8] {
        &self.octets
    }

    /// Takes the bytes that were read and are not used yet.
    pub(super) fn take_octets(&mut self) -> Vec<u8> {
        core::mem::take(&mut self.octets)
    }

    /// Removes `count` bytes that were used.
    pub(super) fn used(&mut self, count: usize) {
        self.octets.drain(..count);
    }

    /// Requests the next part of the message. Returns false if there is none.
    pub(super) fn read_on(&mut self, cx: &mut AttemptCx<'_, '_>) -> Result<bool, Refusal> {
        let is_more = self.offset < self.entry_octets;
        if is_more {
            self.read(self.offset, cx)?;
        }
        Ok(is_more)
    }

    fn read(&mut self, offset: u32, cx: &mut AttemptCx<'_, '_>) -> Result<(), Refusal> {
        match self.requested {
            Some(Wanted::No) => self.requested = Some(Wanted::Another),
            Some(Wanted::Yes | Wanted::Another) => {}
            None => {
                let ((account, uid), continuation) =
                    (cx.place, cx.continuation(OutboundWaitPoint::AttemptRead));
                cx.parts.store.own.store.read(account, OUTBOX, uid, offset, continuation)?;
                self.requested = Some(Wanted::Yes);
            }
        }
        Ok(())
    }
}
