//! What is read of an entry: at first its beginning, where signatures, the envelope and the letter's header are, and then the letter, part by part.
//!
//! What signs a letter was known when all of it was there, and stands above its envelope, which others do not see: to them it is the beginning of the letter.
//!
//! Invariants:
//! - One part is asked for at a time. One that nobody wants any more comes all the same, and wakes nobody.

use alloc::vec::Vec;

use accounts::entries;
use relay::envelope::Unreadable;
use sometimes::sometimes;
use store::{Beginning, Body, OUTBOX, Outcome, Packing, Refusal};

use super::Point;
use super::attempt::AttemptCx;
use super::courier::Courier;
use super::entry::{self, Entry, Nature};
use super::head::{self, EntryHead};
use super::stages::{Stage, Wanted, Way};

/// Bytes of a letter's header that a report shows at most.
const HEADER_BYTES_MAX: usize = 8 * 1024;

impl Courier {
    /// A part of the entry has come that he has asked for, or cannot be read.
    pub(super) fn part_arrived(&mut self, outcome: Outcome, cx: &mut AttemptCx<'_, '_>) -> Way {
        let wanted = self.reader.reading.take();
        let is_wanted = wanted == Some(Wanted::Yes);
        match outcome {
            Outcome::Body(body) => {
                if is_wanted {
                    self.body_arrived(&body, cx);
                }
                cx.parts.store.give_back(body);
            }
            Outcome::Refused(refusal) if is_wanted => self.refused(refusal, cx),
            _ => {}
        }
        // He may wait for something else by now.
        self.wait.is_waiting &= wanted == Some(Wanted::No);
        self.go_on(cx)
    }

    /// What is being read is not wanted any more.
    pub(super) fn want_no_part(&mut self) {
        self.reader.reading = self.reader.reading.map(|_| Wanted::No);
    }

    /// Octets of the letter.
    pub(super) fn letter_octets(&self, cx: &AttemptCx<'_, '_>) -> Result<u32, Refusal> {
        Ok(self.info(cx)?.octets.saturating_sub(self.letter_at()) + self.reader.signatures.len() as u32)
    }

    fn letter_at(&self) -> u32 {
        self.entry.as_ref().map_or(0, |entry| entry.letter_at)
    }

    /// The letter is to be read from its beginning.
    pub(super) fn rewind(&mut self) {
        self.reader.offset = self.letter_at();
        self.reader.rest.clone_from(&self.reader.signatures);
    }

    /// Reads on, if there is more of it. False: there is none.
    pub(super) fn read_on(&mut self, cx: &mut AttemptCx<'_, '_>) -> Result<bool, Refusal> {
        let is_more = self.reader.offset < self.info(cx)?.octets;
        if is_more {
            self.read(self.reader.offset, cx)?;
        }
        Ok(is_more)
    }

    pub(super) fn read(&mut self, offset: u32, cx: &mut AttemptCx<'_, '_>) -> Result<(), Refusal> {
        if self.reader.reading == Some(Wanted::No) {
            self.reader.reading = Some(Wanted::Another);
        } else if self.reader.reading.is_none() {
            let ((account, uid), continuation) = (self.place, cx.continuation(Point::AttemptRead));
            cx.parts.store.own.store.read(account, OUTBOX, uid, offset, continuation)?;
            self.reader.reading = Some(Wanted::Yes);
        }
        self.wait.is_waiting = true;
        Ok(())
    }

    /// A part of the entry: at first of its beginning, and then what is handed on.
    fn body_arrived(&mut self, body: &Body, cx: &mut AttemptCx<'_, '_>) {
        if self.stage == Stage::Opened {
            self.reader.beginning.arrived(body.bytes());
            let octets = self.info(cx).map_or(0, |info| info.octets);
            let is_all = self.reader.beginning.is_all_of(octets);
            return self.look_at_beginning(is_all, cx);
        }
        self.reader.rest = body.bytes().to_vec();
        self.reader.offset = self.reader.offset.saturating_add(body.bytes().len() as u32);
    }

    /// Whether its recipients are known, though more of its beginning is wanted.
    pub(super) fn has_head(&self, cx: &AttemptCx<'_, '_>) -> bool {
        !entry::is_arriving(self.record(cx)) && head::read(self.reader.beginning.octets(), false).is_ok()
    }

    /// Opens the entry, if enough of its beginning is there. `is_all`: no more of it comes.
    pub(super) fn look_at_beginning(&mut self, is_all: bool, cx: &mut AttemptCx<'_, '_>) {
        if entry::is_arriving(self.record(cx)) {
            return self.arrival_read(is_all, cx);
        }
        let beginning = self.reader.beginning.octets();
        let EntryHead { signatures, envelope, message_at } = match head::read(beginning, is_all) {
            Ok(head) => head,
            Err(Unreadable::Partial) => {
                sometimes!(EntryHeadInParts);
                return;
            }
            Err(Unreadable::Malformed) => return self.is_unreadable(cx),
        };
        let message = beginning.get(message_at..).unwrap_or_default();
        if !is_all && !has_shown_header(message) {
            return;
        }
        let first = self.record(cx).map_or(0, |record| record.first());
        let together = entries::together(&envelope, first);
        if together == 0 {
            // Its record names a recipient that the envelope does not have.
            return self.is_unreadable(cx);
        }
        let header = shown_header(message);
        self.reader.signatures = beginning.get(..signatures).unwrap_or_default().to_vec();
        self.reader.beginning = Beginning::default();
        let wanted = ((1u32 << together) - 1) as u16;
        let packing = envelope.recipients.get(first).map_or(Packing::Done, entries::packing_of);
        let domain = envelope.recipients.get(first).map(|first| entries::domain_of(&first.address));
        cx.queue.is_for(self.place, &domain.unwrap_or_default(), &cx.parts.store.own.store);
        let (nature, letter_at) = (Nature::Posted, message_at as u32);
        self.entry = Some(Entry { envelope, nature, letter_at, first, wanted, packing, header });
        self.stage = Stage::Sorted;
    }
}

/// Whether a message that begins so shows as much of its header as a report does.
fn has_shown_header(message: &[u8]) -> bool {
    message.len() >= HEADER_BYTES_MAX || memchr::memmem::find(message, b"\r\n\r\n").is_some()
}

/// As much of a letter's header as a report shows: whole lines.
pub(super) fn shown_header(letter: &[u8]) -> Vec<u8> {
    let end = memchr::memmem::find(letter, b"\r\n\r\n").map_or(letter.len(), |at| at + 2);
    let header = letter.get(..end.min(HEADER_BYTES_MAX)).unwrap_or_default();
    header.get(..memchr::memrchr(b'\n', header).map_or(0, |at| at + 1)).unwrap_or_default().to_vec()
}
