//! Reads of bodies: one chunk at a time, verified before any octet of it is returned.
//!
//! Invariants:
//! - A segment is not freed while a read from it is in flight.
//! - A chunk counts as damaged only if two reads of it have returned wrong data, or if the index
//!   names an impossible place for it. One wrong read may be an error on the way from the disk.
//! - Reads of large messages that find no buffer wait in the order of arrival. A read that needs
//!   only one page may start before them.

use crate::backing::{Backing, DiskPurpose};
use crate::body::Body;
use crate::chunk::{self, CHUNK_OCTETS, HEADER_BYTES, pages_of_chunk};
use crate::finding::{Damage, Finding};
use crate::indexes::Indexes;
use crate::layout::Page;
use crate::outcome::{Outcome, Refusal, Wakes};
use crate::parts::StoreParts;
use crate::pool::Pool;
use crate::types::{AccountId, MailboxId, Uid};
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use sometimes::buggify;
use tasks::{Continuation, FrameId, FrameTable};

/// A read in progress.
#[derive(Clone, Copy, Debug)]
struct Read {
    continuation: Continuation,
    account: AccountId,
    mailbox: u32,
    uid: u32,
    part: ReadPart,
    attempt: ReadAttempt,
    place: Option<ChunkRange>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ReadAttempt {
    First,
    /// The first read has returned wrong data.
    Second,
}

impl Read {
    fn new(
        (account, MailboxId(mailbox), Uid(uid)): Message,
        part: ReadPart,
        continuation: Continuation,
    ) -> Read {
        let attempt = ReadAttempt::First;
        Read { continuation, account, mailbox, uid, part, attempt, place: None }
    }
}

/// The part of a message to read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ReadPart {
    /// The octets from this offset to the end of the chunk.
    From(u32),
    Summary,
}

/// The place to read from, and the identity of the chunk that must be at this place.
#[derive(Clone, Copy, Debug)]
struct ChunkRange {
    page: Page,
    pages: u32,
    guid: u64,
    index: u32,
    /// Octets of the body in the chunk.
    length: u32,
    /// The range of these octets to return.
    start: usize,
    end: usize,
}

impl ChunkRange {
    /// The end of the octets to return: the end of all contiguous octets. In simulations it is
    /// sometimes earlier.
    fn first_end(&self) -> usize {
        let together = self.end.saturating_sub(self.start);
        if together > 1 && buggify!(ShortRead) {
            // Fibonacci hashing chooses the end. It may be anywhere, but is the same for each read
            // of the same part.
            let number =
                (self.guid ^ (self.start as u64) << 32).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            return self.start + 1 + (number >> 32) as usize % (together - 1);
        }
        self.end
    }
}

/// All reads of bodies in progress.
pub(crate) struct Reads {
    table: FrameTable<Read>,
    /// Reads that wait for a buffer.
    waiting: VecDeque<FrameId>,
    /// Bodies that were handed out and not given back.
    bodies_lent: usize,
    /// Messages that readers could not get, until [`Reads::next_fault`] returns them.
    faults: VecDeque<Finding>,
    /// The number of further such messages.
    faults_left_out: u32,
}

/// The most read faults that are kept. Further ones are only counted.
const FAULTS_MAX: usize = 16;

/// A message to read.
pub(crate) type Message = (AccountId, MailboxId, Uid);

impl Reads {
    /// Space for `reads` reads at a time, including bodies that were not given back.
    pub(crate) fn new(reads: usize) -> Reads {
        Reads {
            table: FrameTable::with_capacity(reads),
            waiting: VecDeque::with_capacity(reads),
            bodies_lent: 0,
            faults: VecDeque::new(),
            faults_left_out: 0,
        }
    }

    pub(crate) fn has_faults(&self) -> bool {
        !self.faults.is_empty()
    }

    pub(crate) fn next_fault(&mut self) -> Option<Finding> {
        self.faults.pop_front()
    }

    pub(crate) fn take_left_out(&mut self) -> u32 {
        core::mem::take(&mut self.faults_left_out)
    }

    /// Ends a read that cannot return its octets, and notes the fault for the administrator.
    fn fail(&mut self, id: FrameId, refusal: Refusal, page: Page, wakes: &mut Wakes) {
        let Some(read) = self.table.get(id) else { unreachable!("a read that has ended") };
        let (account, mailbox, uid) = (read.account, MailboxId(read.mailbox), Uid(read.uid));
        if self.faults.len() < FAULTS_MAX {
            let damage = match refusal {
                Refusal::Unreadable => Damage::Unreadable(account, mailbox, uid),
                _ => Damage::Body(account, mailbox, uid),
            };
            self.faults.push_back(Finding { sector: page.sector(), damage });
        } else {
            self.faults_left_out = self.faults_left_out.saturating_add(1);
        }
        self.end(id, wakes, Outcome::Refused(refusal));
    }

    /// The number of reads in progress and of bodies that were not given back.
    pub(crate) fn len(&self) -> usize {
        self.table.len() + self.bodies_lent
    }

    /// Whether no read is in progress.
    pub(crate) fn is_idle(&self) -> bool {
        self.table.is_empty()
    }

    /// The number of reads that may still begin.
    pub(crate) fn to_come(&self) -> usize {
        let Some(to_come) = self.table.capacity().checked_sub(self.len()) else {
            unreachable!("more reads than there may be")
        };
        to_come
    }

    /// Whether a read waits for a buffer.
    pub(crate) fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Reads octets of a message: see [`crate::Store::read`].
    pub(crate) fn read(
        &mut self,
        message: Message,
        offset: u32,
        continuation: Continuation,
        parts: &mut StoreParts,
    ) -> Result<(), Refusal> {
        let octets = octets_of(message, &parts.indexes)?;
        if offset >= octets && (octets > 0 || offset > 0) {
            return Err(Refusal::PastEnd);
        }
        // The read of a small message takes a single page, and the pool has a page for every read.
        // So this read need not wait for reads of large messages.
        self.begin(
            Read::new(message, ReadPart::From(offset), continuation),
            pages_of_chunk(octets, 0) == 1,
            parts,
        )
    }

    /// Reads the summary of a message: see [`crate::Store::read_summary`].
    pub(crate) fn read_summary(
        &mut self,
        message: Message,
        continuation: Continuation,
        parts: &mut StoreParts,
    ) -> Result<(), Refusal> {
        octets_of(message, &parts.indexes)?;
        self.begin(Read::new(message, ReadPart::Summary, continuation), true, parts)
    }

    fn begin(&mut self, read: Read, is_small: bool, parts: &mut StoreParts) -> Result<(), Refusal> {
        if self.to_come() == 0 || buggify!(NoRead) {
            return Err(Refusal::Busy);
        }
        let id = self.table.insert(read).map_err(|_| Refusal::Busy)?;
        if !(self.waiting.is_empty() || is_small) || !self.start(id, parts) {
            self.waiting.push_back(id);
        }
        Ok(())
    }

    /// Takes back the buffer of a body.
    pub(crate) fn give_back(&mut self, body: Body, pool: &mut Pool) {
        assert!(self.bodies_lent > 0, "a body that was not lent");
        self.bodies_lent -= 1;
        pool.give(body.into_buffer());
    }

    /// Starts waiting reads in their order, as long as buffers are free.
    pub(crate) fn start_waiting(&mut self, parts: &mut StoreParts) {
        while let Some(read) = self.waiting.front().copied() {
            if !self.start(read, parts) {
                break;
            }
            self.waiting.pop_front();
        }
    }

    /// Starts a read. Returns false if no buffer is free.
    fn start(&mut self, id: FrameId, parts: &mut StoreParts) -> bool {
        let Some(read) = self.table.get(id).copied() else { unreachable!("a read that has ended") };
        let index = parts.indexes.of(read.account.shard());
        let place = index.mailbox(read.account, read.mailbox).and_then(|mailbox| {
            let entry = mailbox.messages().find(read.uid)?;
            let (position, end) = match read.part {
                ReadPart::From(offset) => entry.position_of(offset),
                // The last chunk always has the summary. An earlier chunk may have been written
                // before the end of the header was known.
                ReadPart::Summary => (entry.octets.saturating_sub(1), 0),
            };
            let number = position / CHUNK_OCTETS as u32;
            let (page, pages) = index.chunk(entry, number)?;
            let pages = if read.part == ReadPart::Summary { 1 } else { pages };
            let begins = number * CHUNK_OCTETS as u32;
            let length = entry.octets.saturating_sub(begins).min(CHUNK_OCTETS as u32);
            let (start, end) = (position - begins, end.saturating_sub(begins).min(length));
            let (start, end) = (start as usize, end as usize);
            Some(ChunkRange { page, pages, guid: entry.guid(), index: number, length, start, end })
        });
        let Some(place) = place else {
            self.end(id, &mut parts.wakes, Outcome::Refused(Refusal::NoSuchMessage));
            return true;
        };
        if !parts.segments.geometry().holds(place.page, place.pages) {
            self.fail(id, Refusal::Damaged, place.page, &mut parts.wakes);
            return true;
        }
        let Some(buffer) = parts.pool.take_sparing(place.pages) else { return false };
        let Some(read) = self.table.get_mut(id) else { unreachable!("a read that has ended") };
        read.place = Some(place);
        parts.segments.read_began(place.page);
        parts.backing.read(place.page, buffer, DiskPurpose::Body(id));
        true
    }

    /// Ends the read of a chunk: verifies the chunk, and wakes the caller.
    pub(crate) fn body_read(
        &mut self,
        id: FrameId,
        ok: bool,
        buffer: Box<[u8]>,
        parts: &mut StoreParts,
    ) {
        let Some(read) = self.table.get(id).copied() else { unreachable!("a read that has ended") };
        let Some(place) = read.place else { unreachable!("a read that has not begun") };
        let parse = if read.part == ReadPart::Summary { chunk::parse_head } else { chunk::parse };
        let sound = parse(&buffer, &parts.superblock.key, place.page).filter(|chunk| {
            let header = chunk.header;
            let is_meant = header.account == read.account
                && header.guid == place.guid
                && header.index == place.index;
            // A caller continues its read at the end of a chunk. With a shorter chunk, it would
            // never reach the end of the body.
            ok && is_meant && header.length == place.length
        });
        if sound.is_none() && ok && read.attempt == ReadAttempt::First {
            return self.read_again(id, place.page, buffer, parts);
        }
        parts.segments.read_ended(place.page);
        match sound {
            Some(chunk) => {
                let range = match read.part {
                    ReadPart::Summary => chunk.summary(),
                    ReadPart::From(_) => {
                        HEADER_BYTES + place.start..HEADER_BYTES + place.first_end()
                    }
                };
                self.bodies_lent += 1;
                let message = (read.account, MailboxId(read.mailbox), Uid(read.uid));
                self.end(id, &mut parts.wakes, Outcome::Body(Body::new(message, buffer, range)));
            }
            None => {
                let refusal = if ok { Refusal::Damaged } else { Refusal::Unreadable };
                self.fail(id, refusal, place.page, &mut parts.wakes);
                parts.pool.give(buffer);
            }
        }
    }

    #[cold]
    fn read_again(&mut self, id: FrameId, page: Page, buffer: Box<[u8]>, parts: &mut StoreParts) {
        let Some(read) = self.table.get_mut(id) else { unreachable!("a read that has ended") };
        read.attempt = ReadAttempt::Second;
        parts.backing.read(page, buffer, DiskPurpose::Body(id));
    }

    fn end(&mut self, id: FrameId, wakes: &mut Wakes, outcome: Outcome) {
        let Some(read) = self.table.remove(id) else { unreachable!("a read that has ended") };
        wakes.wake(read.continuation, outcome);
    }
}

/// The number of octets of a message.
///
/// Errors: `NoSuchMailbox`, `NoSuchMessage`.
fn octets_of(
    (account, MailboxId(mailbox), Uid(uid)): Message,
    indexes: &Indexes,
) -> Result<u32, Refusal> {
    let mailbox =
        indexes.of(account.shard()).mailbox(account, mailbox).ok_or(Refusal::NoSuchMailbox)?;
    Ok(mailbox.messages().find(uid).ok_or(Refusal::NoSuchMessage)?.octets)
}
