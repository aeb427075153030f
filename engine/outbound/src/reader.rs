//! What an attempt reads of its entry: at first the beginning, where signatures, the envelope and
//! the message's header are, and then the message, part by part.
//!
//! A message was signed when all of it was there, so its signatures stand above its envelope, which
//! others do not see. To them they are the beginning of the message.
//!
//! Invariants:
//! - One part is asked for at a time. One that is not wanted any more comes all the same, and wakes
//!   nothing.
//! - Until the entry is opened, what comes is its beginning; from then on, it is the next part of
//!   the message.

use alloc::vec::Vec;

use store::{Beginning, OUTBOX, Outcome, Refusal};

use super::Point;
use super::attempt::AttemptCx;
use super::head::EntryExtent;

/// What is read of the entry.
pub(super) struct EntryReader {
    /// A part of the entry was asked for and has not come; whether it is still wanted.
    asked: Option<Wanted>,
    /// The beginning of the entry, until it is opened.
    beginning: Beginning,
    /// Where the message begins below its signatures. `None`: the entry is not opened.
    message_at: Option<u32>,
    /// The signatures of the message, above the rest of the entry.
    signatures: Vec<u8>,
    /// Octets of the entry.
    entry_octets: u32,
    /// How much of the entry was read.
    offset: u32,
    /// Octets that were read and are not used yet.
    octets: Vec<u8>,
}

/// Whether a part of the entry that was asked for is still wanted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Wanted {
    Yes,
    No,
    /// No, but another part is. It is asked for when this one has come.
    Another,
}

/// What a part of the entry is that has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum PartArrival {
    /// More of the beginning.
    Beginning,
    /// More of the message.
    Message,
    /// It cannot be read.
    Refused(Refusal),
    /// Nothing that is wanted. Another part is, which can be asked for now.
    Another,
    /// Nothing that is wanted.
    Unwanted,
}

impl EntryReader {
    /// Nothing was read.
    pub(super) fn new() -> EntryReader {
        EntryReader {
            asked: None,
            beginning: Beginning::from(0),
            message_at: None,
            signatures: Vec::new(),
            entry_octets: 0,
            offset: 0,
            octets: Vec::new(),
        }
    }

    /// The part that was asked for has come, or cannot be read.
    pub(super) fn arrived(&mut self, outcome: Outcome, cx: &mut AttemptCx<'_, '_>) -> PartArrival {
        let arrival = match self.asked.take() {
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

    fn take_in(&mut self, octets: &[u8]) -> PartArrival {
        if self.message_at.is_none() {
            self.beginning.arrived(octets);
            return PartArrival::Beginning;
        }
        self.octets = octets.to_vec();
        self.offset = self.offset.saturating_add(octets.len() as u32);
        PartArrival::Message
    }

    /// The part that was asked for is not wanted any more.
    pub(super) fn want_nothing(&mut self) {
        self.asked = self.asked.map(|_| Wanted::No);
    }

    /// What was read of the beginning of an entry that is not opened.
    pub(super) fn beginning(&self) -> &[u8] {
        self.beginning.octets()
    }

    /// How much of the entry that is.
    pub(super) fn extent(&self, cx: &AttemptCx<'_, '_>) -> EntryExtent {
        EntryExtent::of(&self.beginning, cx.info().map_or(0, |info| info.octets))
    }

    /// Reads more of the beginning.
    pub(super) fn read_beginning(&mut self, cx: &mut AttemptCx<'_, '_>) -> Result<(), Refusal> {
        self.read(self.beginning.next(), cx)
    }

    /// The entry, of so many octets, is opened. `signatures`: how many of them, at its beginning,
    /// are the message's signatures. `message_at`: where the rest of the message begins.
    pub(super) fn opened(&mut self, signatures: usize, message_at: u32, entry_octets: u32) {
        self.signatures = self.beginning.octets().get(..signatures).unwrap_or_default().to_vec();
        self.entry_octets = entry_octets;
        (self.beginning, self.message_at) = (Beginning::default(), Some(message_at));
    }

    fn message_at(&self) -> u32 {
        self.message_at.unwrap_or(0)
    }

    /// Octets of the message.
    pub(super) fn message_octets(&self) -> u32 {
        self.entry_octets.saturating_sub(self.message_at()) + self.signatures.len() as u32
    }

    /// The signatures of the message.
    pub(super) fn signatures(&self) -> &[u8] {
        &self.signatures
    }

    /// The message is to be read from its beginning.
    pub(super) fn rewind(&mut self) {
        self.offset = self.message_at();
        self.octets.clone_from(&self.signatures);
    }

    /// The same, where these octets stand in place of its signatures.
    pub(super) fn rewind_behind(&mut self, octets: Vec<u8>) {
        self.offset = self.message_at();
        self.octets = octets;
    }

    /// These octets are used next.
    pub(super) fn put(&mut self, octets: Vec<u8>) {
        self.octets = octets;
    }

    /// Octets that were read and are not used yet.
    pub(super) fn octets(&self) -> &[u8] {
        &self.octets
    }

    /// The same, which are used now.
    pub(super) fn take_octets(&mut self) -> Vec<u8> {
        core::mem::take(&mut self.octets)
    }

    /// So many of them were used.
    pub(super) fn used(&mut self, count: usize) {
        self.octets.drain(..count);
    }

    /// Reads on, if there is more of the message. False: there is none.
    pub(super) fn read_on(&mut self, cx: &mut AttemptCx<'_, '_>) -> Result<bool, Refusal> {
        let is_more = self.offset < self.entry_octets;
        if is_more {
            self.read(self.offset, cx)?;
        }
        Ok(is_more)
    }

    fn read(&mut self, offset: u32, cx: &mut AttemptCx<'_, '_>) -> Result<(), Refusal> {
        match self.asked {
            Some(Wanted::No) => self.asked = Some(Wanted::Another),
            Some(Wanted::Yes | Wanted::Another) => {}
            None => {
                let ((account, uid), continuation) =
                    (cx.place, cx.continuation(Point::AttemptRead));
                cx.parts.store.own.store.read(account, OUTBOX, uid, offset, continuation)?;
                self.asked = Some(Wanted::Yes);
            }
        }
        Ok(())
    }
}
