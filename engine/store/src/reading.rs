//! Reading bodies: one chunk at a time, verified before anybody sees an octet of it.
//!
//! Invariants:
//! - A segment that is read from is not freed before the read has ended.
//! - Reads that find no buffer wait their turn; nobody overtakes them.

use crate::account::Mailbox;
use crate::backing::{Backing, Purpose};
use crate::body::Body;
use crate::chunk::{self, CHUNK_OCTETS, HEADER_BYTES, pages_of_chunk};
use crate::conversations::Conversations;
use crate::layout::Page;
use crate::outcome::{Outcome, Refusal, State};
use crate::store::Store;
use crate::types::{AccountId, DRAFTS, Flags, MailboxId, MailboxInfo, MessageInfo, Uid};
use alloc::boxed::Box;
use machine::UnixTime;
use sometimes::buggify;
use tasks::{Continuation, FrameId};

/// A read under way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Read {
    continuation: Continuation,
    account: AccountId,
    mailbox: u32,
    uid: u32,
    part: Part,
    place: Option<Place>,
}

/// What of a message is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Part {
    /// The octets from here to the end of their chunk.
    From(u32),
    Summary,
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
    /// From which of them on is read, and up to which.
    start: usize,
    end: usize,
}

impl Place {
    /// Where a read ends: with the octets that lie together, or before.
    fn first_end(&self) -> usize {
        let together = self.end.saturating_sub(self.start);
        if together > 1 && buggify!(ShortRead) {
            // Fibonacci hashing: the cut is anywhere, and the same whenever the same is read.
            let number = (self.guid ^ (self.start as u64) << 32).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            return self.start + 1 + (number >> 32) as usize % (together - 1);
        }
        self.end
    }
}

impl Store {
    /// What is known of a mailbox.
    pub fn mailbox(&self, account: AccountId, mailbox: MailboxId) -> Option<MailboxInfo> {
        self.known(account, mailbox).map(Mailbox::info)
    }

    /// The message at `index`, counted from 0 at the lowest UID.
    pub fn message_at(&self, account: AccountId, mailbox: MailboxId, index: usize) -> Option<MessageInfo> {
        let entry = self.known(account, mailbox)?.messages.nth(index)?;
        Some(entry.info(self.guid_prefix()))
    }

    /// The message with this UID.
    pub fn message(&self, account: AccountId, mailbox: MailboxId, uid: Uid) -> Option<MessageInfo> {
        let entry = self.known(account, mailbox)?.messages.find(uid.0)?;
        Some(entry.info(self.guid_prefix()))
    }

    /// All messages of a mailbox, ascending by UID; none when there is no such mailbox.
    pub fn messages(&self, account: AccountId, mailbox: MailboxId) -> impl Iterator<Item = MessageInfo> {
        let prefix = self.guid_prefix();
        self.known(account, mailbox)
            .into_iter()
            .flat_map(|mailbox| mailbox.messages.iter())
            .map(move |entry| entry.info(prefix))
    }

    /// The messages from `uid` on, ascending.
    pub fn messages_from(
        &self,
        account: AccountId,
        mailbox: MailboxId,
        Uid(uid): Uid,
    ) -> impl Iterator<Item = MessageInfo> {
        let prefix = self.guid_prefix();
        let entries = self.known(account, mailbox).into_iter().flat_map(move |mailbox| mailbox.messages.iter_from(uid));
        entries.map(move |entry| entry.info(prefix))
    }

    /// The messages below `uid`, or all, descending.
    pub fn messages_below(
        &self,
        account: AccountId,
        mailbox: MailboxId,
        uid: Option<Uid>,
    ) -> impl Iterator<Item = MessageInfo> {
        let prefix = self.guid_prefix();
        let known = self.known(account, mailbox).into_iter();
        let entries = known.flat_map(move |mailbox| mailbox.messages.iter_below(uid.map(|Uid(uid)| uid)));
        entries.map(move |entry| entry.info(prefix))
    }

    /// The messages of a conversation, by mailbox and UID.
    pub fn conversation(
        &self,
        account: AccountId,
        conversation: u64,
    ) -> impl DoubleEndedIterator<Item = (MailboxId, Uid)> {
        let places = self.conversed(account).map(|known| known.within(conversation, 0, u32::MAX));
        places.into_iter().flatten().map(|place| (MailboxId(place.mailbox), Uid(place.uid)))
    }

    /// The messages of a conversation that are in one mailbox, ascending.
    pub fn conversation_in(
        &self,
        account: AccountId,
        MailboxId(mailbox): MailboxId,
        conversation: u64,
    ) -> impl DoubleEndedIterator<Item = Uid> {
        let places = self.conversed(account).map(|known| known.within(conversation, mailbox, mailbox));
        places.into_iter().flatten().map(|place| Uid(place.uid))
    }

    fn conversed(&self, account: AccountId) -> Option<&Conversations> {
        Some(&self.shard(account.shard())?.index.accounts.get(&account)?.conversations)
    }

    /// When the newest of all messages came, those left aside that are to leave at their date.
    pub fn newest_date(&self) -> Option<UnixTime> {
        let accounts = self.shards.iter().flat_map(|shard| shard.index.accounts.values());
        let mailboxes = accounts.flat_map(|account| account.mailboxes.values());
        let entries = mailboxes.flat_map(|mailbox| mailbox.messages.iter().map(move |entry| (mailbox.id, entry)));
        let came =
            entries.filter(|(id, entry)| MailboxId(*id) != DRAFTS || !Flags(entry.flags()).contains(Flags::HELD));
        came.map(|(_, entry)| entry.date).max().map(|date| UnixTime::from_seconds(u64::from(date)))
    }

    /// How many messages have a lower UID.
    pub fn count_below(&self, account: AccountId, mailbox: MailboxId, Uid(uid): Uid) -> u32 {
        self.known(account, mailbox).map_or(0, |mailbox| mailbox.messages.count_below(uid))
    }

    /// Asks for octets of a message from `offset` on: at least one if there is one, and as many as
    /// lie together on the disk at most. `continuation` is woken with [`Outcome::Body`], or with
    /// [`Outcome::Refused`]: `Damaged`, `Unreadable`, `NoSuchMessage`.
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
        let read =
            Read { continuation, account, mailbox: mailbox.0, uid: uid.0, part: Part::From(offset), place: None };
        // Small messages take single pages, of which there are enough for all: they need not wait behind large ones.
        self.begin_read(read, pages_of_chunk(octets, 0) == 1)
    }

    /// Asks for a message's summary. `continuation` is woken as by [`Store::read`].
    ///
    /// Errors: `NotServing`, `NoSuchMailbox`, `NoSuchMessage`, `Busy` for too many reads.
    pub fn read_summary(
        &mut self,
        account: AccountId,
        mailbox: MailboxId,
        uid: Uid,
        continuation: Continuation,
    ) -> Result<(), Refusal> {
        if matches!(self.state, State::Opening | State::Refused(_)) {
            return Err(Refusal::NotServing);
        }
        let messages = &self.known(account, mailbox).ok_or(Refusal::NoSuchMailbox)?.messages;
        messages.find(uid.0).ok_or(Refusal::NoSuchMessage)?;
        self.begin_read(
            Read { continuation, account, mailbox: mailbox.0, uid: uid.0, part: Part::Summary, place: None },
            true,
        )
    }

    fn begin_read(&mut self, read: Read, is_small: bool) -> Result<(), Refusal> {
        if self.reads.len() + self.bodies_lent >= self.limits.reads || buggify!(NoRead) {
            return Err(Refusal::Busy);
        }
        let id = self.reads.insert(read).map_err(|_| Refusal::Busy)?;
        if !(self.waiting_reads.is_empty() || is_small) || !self.start_read(id) {
            self.waiting_reads.push_back(id);
        }
        Ok(())
    }

    /// Takes back the buffer of a body.
    pub fn give_back(&mut self, body: Body) {
        self.bodies_lent = self.bodies_lent.saturating_sub(1);
        self.give(body.into_buffer());
    }

    /// Starts a read, unless there is no buffer for it; false in that case.
    pub(crate) fn start_read(&mut self, id: FrameId) -> bool {
        let Some(read) = self.reads.get(id).copied() else { return true };
        let place = self.shard(read.account.shard()).and_then(|shard| {
            let entry = shard.index.mailbox(read.account, read.mailbox)?.messages.find(read.uid)?;
            let (position, end) = match read.part {
                Part::From(offset) => entry.stands_at(offset),
                Part::Summary => (0, 0),
            };
            let index = position / CHUNK_OCTETS as u32;
            let (page, pages) = shard.index.chunk(entry, index)?;
            let pages = if read.part == Part::Summary { 1 } else { pages };
            let begins = index * CHUNK_OCTETS as u32;
            let length = entry.octets.saturating_sub(begins).min(CHUNK_OCTETS as u32);
            let (start, end) = (position - begins, end.saturating_sub(begins).min(length));
            let (start, end) = (start as usize, end as usize);
            Some(Place { page, pages, guid: entry.guid(), index, length, start, end })
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
        let parse = if read.part == Part::Summary { chunk::parse_head } else { chunk::parse };
        let sound = parse(&buffer, &self.superblock.key, place.page).filter(|chunk| {
            let header = chunk.header;
            let is_meant = header.account == read.account && header.guid == place.guid && header.index == place.index;
            // Who reads on from where a shorter chunk ends would never come to the end.
            ok && is_meant && header.length == place.length
        });
        match sound {
            Some(chunk) => {
                let range = match read.part {
                    Part::Summary => chunk.summary(),
                    Part::From(_) => HEADER_BYTES + place.start..HEADER_BYTES + place.first_end(),
                };
                self.bodies_lent += 1;
                let message = (read.account, MailboxId(read.mailbox), Uid(read.uid));
                self.end_read(id, Outcome::Body(Body::new(message, buffer, range)));
            }
            None => {
                let refusal = if ok { Refusal::Damaged } else { Refusal::Unreadable };
                self.end_read(id, Outcome::Refused(refusal));
                self.give(buffer);
            }
        }
    }

    fn end_read(&mut self, id: FrameId, outcome: Outcome) {
        if let Some(read) = self.reads.remove(id) {
            self.wake(read.continuation, outcome);
        }
    }

    fn known(&self, account: AccountId, mailbox: MailboxId) -> Option<&Mailbox> {
        self.shard(account.shard())?.index.mailbox(account, mailbox.0)
    }

    pub(crate) fn guid_prefix(&self) -> u64 {
        let [a, b, c, d, e, f, g, h, ..] = self.superblock.id;
        u64::from_be_bytes([a, b, c, d, e, f, g, h])
    }
}
