//! Reading bodies: one chunk at a time, verified before anybody sees an octet of it.
//!
//! Invariants:
//! - A segment that is read from is not freed before the read has ended.
//! - Reads that find no buffer wait their turn; nobody overtakes them.

use crate::backing::{Backing, Purpose};
use crate::chunk::{self, CHUNK_OCTETS, HEADER_BYTES, pages_of_chunk};
use crate::index::AccountId;
use crate::layout::Page;
use crate::store::Store;
use crate::types::{MailboxId, MailboxInfo, MessageInfo, Outcome, Refusal, State, Uid};
use alloc::boxed::Box;
use core::fmt;
use sometimes::buggify;
use tasks::{Continuation, FrameId};

/// A verified part of a body, in a buffer of the store's: give it back with [`Store::give_back`].
pub struct Body {
    account: AccountId,
    buffer: Box<[u8]>,
    start: usize,
    end: usize,
}

impl Body {
    /// Whose it is.
    pub fn account(&self) -> AccountId {
        self.account
    }

    /// The octets, from the offset that was asked for to the end of the chunk; at most 32,672, none at the end of an empty body.
    pub fn bytes(&self) -> &[u8] {
        self.buffer.get(self.start..self.end).unwrap_or_default()
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Body of {} octets", self.bytes().len())
    }
}

/// A read under way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Read {
    continuation: Continuation,
    account: AccountId,
    mailbox: u32,
    uid: u32,
    offset: u32,
    place: Option<Place>,
}

/// Where a read reads, and what it must find there.
#[derive(Clone, Copy, Debug)]
struct Place {
    page: Page,
    pages: u32,
    guid: u64,
    index: u32,
    /// Octets of the body in the chunk.
    length: u32,
}

impl Store {
    /// What is known of a mailbox.
    pub fn mailbox(&self, account: AccountId, mailbox: MailboxId) -> Option<MailboxInfo> {
        self.known(account, mailbox).map(MailboxInfo::of)
    }

    /// The message at `index`, counted from 0 at the lowest UID.
    pub fn message_at(&self, account: AccountId, mailbox: MailboxId, index: usize) -> Option<MessageInfo> {
        let entry = self.known(account, mailbox)?.messages.nth(index)?;
        Some(MessageInfo::of(entry, self.guid_prefix()))
    }

    /// The message with this UID.
    pub fn message(&self, account: AccountId, mailbox: MailboxId, uid: Uid) -> Option<MessageInfo> {
        let entry = self.known(account, mailbox)?.messages.find(uid.0)?;
        Some(MessageInfo::of(entry, self.guid_prefix()))
    }

    /// All messages of a mailbox, ascending by UID; none when there is no such mailbox.
    pub fn messages(&self, account: AccountId, mailbox: MailboxId) -> impl Iterator<Item = MessageInfo> {
        let prefix = self.guid_prefix();
        self.known(account, mailbox)
            .into_iter()
            .flat_map(|mailbox| mailbox.messages.iter())
            .map(move |entry| MessageInfo::of(entry, prefix))
    }

    /// Asks for the octets of a message from `offset` on, to the end of the chunk that `offset` lies in. `continuation` is
    /// woken with [`Outcome::Body`], or with [`Outcome::Refused`]: `Damaged`, `NoSuchMessage`.
    ///
    /// Errors: `NotServing`, `NoSuchMailbox`, `NoSuchMessage`, `PastEnd`, `Busy` for too many reads.
    pub fn read(
        &mut self,
        account: AccountId,
        mailbox: MailboxId,
        uid: Uid,
        offset: u32,
        continuation: Continuation,
    ) -> Result<(), Refusal> {
        if matches!(self.state, State::Opening | State::Refused(_)) {
            return Err(Refusal::NotServing);
        }
        let messages = &self.known(account, mailbox).ok_or(Refusal::NoSuchMailbox)?.messages;
        let octets = messages.find(uid.0).ok_or(Refusal::NoSuchMessage)?.octets;
        if offset >= octets && (octets > 0 || offset > 0) {
            return Err(Refusal::PastEnd);
        }
        if self.reads.len() + self.bodies_lent >= self.limits.reads || buggify!(NoRead) {
            return Err(Refusal::Busy);
        }
        let read = Read { continuation, account, mailbox: mailbox.0, uid: uid.0, offset, place: None };
        let id = self.reads.insert(read).map_err(|_| Refusal::Busy)?;
        // Small messages take single pages, of which there are enough for all: they need not wait behind large ones.
        let is_small = pages_of_chunk(octets, 0) == 1;
        if !(self.waiting_reads.is_empty() || is_small) || !self.start_read(id) {
            self.waiting_reads.push_back(id);
        }
        Ok(())
    }

    /// Takes back the buffer of a body.
    pub fn give_back(&mut self, body: Body) {
        self.bodies_lent = self.bodies_lent.saturating_sub(1);
        self.give(body.buffer);
    }

    /// Starts a read, unless there is no buffer for it; false in that case.
    pub(crate) fn start_read(&mut self, id: FrameId) -> bool {
        let Some(read) = self.reads.get(id).copied() else { return true };
        let index = read.offset / CHUNK_OCTETS as u32;
        let place = self.shard(read.account.shard()).and_then(|shard| {
            let entry = shard.index.mailbox(read.account, read.mailbox)?.messages.find(read.uid)?;
            let (page, pages) = shard.index.chunk(entry, index)?;
            let length = entry.octets.saturating_sub(read.offset / CHUNK_OCTETS as u32 * CHUNK_OCTETS as u32);
            Some(Place { page, pages, guid: entry.guid(), index, length: length.min(CHUNK_OCTETS as u32) })
        });
        let Some(place) = place else {
            self.end_read(id, Outcome::Refused(Refusal::NoSuchMessage));
            return true;
        };
        if !self.segments.geometry.holds(place.page, place.pages) {
            self.end_read(id, Outcome::Refused(Refusal::Damaged));
            return true;
        }
        let Some(buffer) = self.pool.take_sparing(place.pages) else { return false };
        if let Some(read) = self.reads.get_mut(id) {
            read.place = Some(place);
        }
        self.segments.read_began(place.page);
        self.backing.read(place.page, buffer, Purpose::Body(id));
        true
    }

    /// A chunk has been read.
    pub(crate) fn body_read(&mut self, id: FrameId, ok: bool, buffer: Box<[u8]>) {
        let Some(read) = self.reads.get(id).copied() else { return };
        let Some(place) = read.place else { return };
        self.segments.read_ended(place.page);
        let sound = chunk::parse(&buffer, &self.superblock.key, place.page).filter(|chunk| {
            let header = chunk.header;
            let is_meant = header.account == read.account && header.guid == place.guid && header.index == place.index;
            // Who reads on from where a shorter chunk ends would never come to the end.
            ok && is_meant && header.length == place.length
        });
        match sound {
            Some(chunk) => {
                let start = HEADER_BYTES + read.offset as usize % CHUNK_OCTETS;
                let end = HEADER_BYTES + chunk.header.length as usize;
                self.bodies_lent += 1;
                self.end_read(id, Outcome::Body(Body { account: read.account, buffer, start: start.min(end), end }));
            }
            None => {
                self.end_read(id, Outcome::Refused(Refusal::Damaged));
                self.give(buffer);
            }
        }
    }

    fn end_read(&mut self, id: FrameId, outcome: Outcome) {
        if let Some(read) = self.reads.remove(id) {
            self.wake(read.continuation, outcome);
        }
    }

    fn known(&self, account: AccountId, mailbox: MailboxId) -> Option<&crate::index::Mailbox> {
        self.shard(account.shard())?.index.mailbox(account, mailbox.0)
    }

    pub(crate) fn guid_prefix(&self) -> u64 {
        let [a, b, c, d, e, f, g, h, ..] = self.superblock.id;
        u64::from_be_bytes([a, b, c, d, e, f, g, h])
    }
}
