//! Compaction: the segment in which least lives is read, what lives in it is written again, and it becomes free.
//! Section 8 of `docs/format.md`.
//!
//! Invariants:
//! - A chunk is moved only if its hash is right: damage is never given a fresh hash.
//! - The record `moved` is gathered after a flush has covered the new copy; the old one is untouched until that record is
//!   durable.
//! - One chunk a turn.

use crate::backing::{Backing, Purpose};
use crate::chunk::{self, Chunk, chunks_of};
use crate::group::{Awaiting, Pending};
use crate::layout::{PAGE_BYTES, PIECE_PAGES, Page, SegmentIndex, ShardId};
use crate::record::{self, Move};
use crate::segments::{Owner, Reason as Want};
use crate::store::Store;
use crate::types::Place;
use alloc::boxed::Box;
use sometimes::{buggify, sometimes};
use tasks::{FrameId, FrameTable};

/// Chunks on their way at a time.
const MOVES_MAX: usize = 64;

/// The segment being emptied.
#[derive(Clone, Copy, Debug)]
struct Job {
    victim: SegmentIndex,
    shard: ShardId,
    /// The next page of it, counted from its first.
    at: u32,
    reading: bool,
}

pub(crate) struct Cleaner {
    job: Option<Job>,
    moves: FrameTable<Move>,
}

impl Cleaner {
    pub(crate) fn new() -> Cleaner {
        Cleaner { job: None, moves: FrameTable::with_capacity(MOVES_MAX) }
    }
}

impl Store {
    /// One step, if space is getting scarce.
    pub(crate) fn clean(&mut self) {
        if !self.cleans {
            return;
        }
        let geometry = self.segments.geometry;
        let job = loop {
            if self.cleaner.job.is_none() {
                self.choose_victim();
            }
            let Some(job) = self.cleaner.job else { return };
            if job.at < geometry.segment_pages {
                break job;
            }
            if job.reading || !self.cleaner.moves.is_empty() {
                return;
            }
            // The next one is begun at once: nobody may ever ask for another turn.
            self.end_job(job);
        };
        if job.reading || self.cleaner.moves.len() == self.cleaner.moves.capacity() {
            return;
        }
        let pages = PIECE_PAGES.min(geometry.segment_pages - job.at);
        let Some(buffer) = self.pool.take(pages) else { return };
        let page = geometry.first_page(job.victim).plus(job.at);
        self.cleaner.job = Some(Job { reading: true, ..job });
        self.segments.read_began(page);
        self.backing.read(page, buffer, Purpose::Victim);
    }

    fn choose_victim(&mut self) {
        if !self.segments.are_scarce() && !buggify!(CompactionEarly) {
            return;
        }
        let part = if self.segments.may_take(Want::Delivery) { 4 } else { 8 };
        let dead_min = self.segments.geometry.segment_pages / part;
        if !self.segments.is_worth_a_look(dead_min) {
            return;
        }
        self.cleaner.job =
            self.segments.emptiest(dead_min).map(|(victim, shard)| Job { victim, shard, at: 0, reading: false });
    }

    /// All that could be moved was. What lives on here cannot be read.
    fn end_job(&mut self, job: Job) {
        if self.segments.owner(job.victim) == Owner::Body(job.shard) && self.segments.live_in(job.victim) > 0 {
            self.segments.damaged(job.victim);
        }
        sometimes!(SegmentCleaned);
        self.cleaner.job = None;
    }

    /// A piece of the victim has been read.
    pub(crate) fn victim_read(&mut self, ok: bool, buffer: Box<[u8]>) {
        let Some(job) = self.cleaner.job.as_mut() else { return self.give(buffer) };
        job.reading = false;
        let job = *job;
        let page = self.segments.geometry.first_page(job.victim).plus(job.at);
        self.segments.read_ended(page);
        let sound = if ok { chunk::parse(&buffer, &self.superblock.key, page) } else { None };
        let pages_read = (buffer.len() / PAGE_BYTES) as u32;
        let step = match sound.filter(|chunk| chunk.pages <= pages_read) {
            Some(chunk) => match self.living(&chunk, page) {
                Some(moved) => return self.move_chunk(job, &chunk, moved, buffer),
                None => chunk.pages,
            },
            None if ok => pages_to_next(&buffer, page),
            None => 1,
        };
        self.give(buffer);
        self.cleaner.job = Some(Job { at: job.at + step, ..job });
    }

    /// Whether the index knows a chunk at this page; if so, the move that it is about to make.
    fn living(&self, chunk: &Chunk, page: Page) -> Option<Move> {
        let header = &chunk.header;
        let index = &self.shard(header.account.shard())?.index;
        let found = match (header.last, index.placed.get(&header.guid)) {
            (_, Some(placed)) => {
                let known = *placed.pages.get(header.index as usize)?;
                (placed.account == header.account && known == page.0).then_some(placed.place)
            }
            (Some(last), None) => {
                let entry = index.mailbox(header.account, header.mailbox)?.messages.find(last.uid)?;
                let same = entry.guid() == header.guid && entry.page == page.0 && chunks_of(entry.octets) == 1;
                same.then_some(Place { mailbox: header.mailbox, uid: last.uid })
            }
            (None, None) => None,
        };
        let Place { mailbox, uid } = found?;
        Some(Move {
            account: header.account,
            mailbox,
            uid,
            guid: header.guid,
            index: header.index,
            from: page,
            to: page,
            pages: chunk.pages,
        })
    }

    fn move_chunk(&mut self, job: Job, chunk: &Chunk, moved: Move, buffer: Box<[u8]>) {
        let pages_read = (buffer.len() / PAGE_BYTES) as u32;
        let mut copy = buffer;
        if chunk.pages != pages_read {
            let exact = self.pool.take_for_copy(chunk.pages, self.pages_to_leave());
            let whole = core::mem::take(&mut copy);
            if let Some(mut exact) = exact {
                let length = exact.len();
                exact.copy_from_slice(whole.get(..length).unwrap_or_default());
                copy = exact;
            }
            self.give(whole);
        }
        if copy.is_empty() {
            return;
        }
        let Some(to) = self.allocate(moved.account.shard(), chunk.pages, Want::Compaction) else {
            // No segment can be had for it: the same would come of it until something dies.
            self.cleaner.job = None;
            self.segments.look_no_more();
            return self.give(copy);
        };
        let moved = Move { to, ..moved };
        chunk::readdress(&mut copy, &self.superblock.key, to, chunk);
        match self.cleaner.moves.insert(moved) {
            Ok(number) => {
                sometimes!(ChunkMoved);
                self.cleaner.job = Some(Job { at: job.at + chunk.pages, ..job });
                self.backing.write(to, copy, Purpose::Moved { number });
            }
            Err(_) => {
                self.segments.unpin(to, chunk.pages);
                self.give(copy);
            }
        }
    }

    /// The new copy was written.
    pub(crate) fn move_written(&mut self, number: FrameId, ok: bool) {
        if ok {
            self.awaiting.push(Awaiting::Move(number));
        } else {
            self.move_applied(number);
        }
    }

    /// The new copy is durable: the record that names it may be gathered.
    pub(crate) fn move_flushed(&mut self, number: FrameId) {
        let Some(moved) = self.cleaner.moves.get(number) else { return };
        let shard = moved.account.shard();
        let Some(known) = self.shards.get_mut(shard.index()) else { return };
        if !known.has_room_for(64) {
            return self.awaiting.push(Awaiting::Move(number));
        }
        record::put_moved(&mut known.gathered, moved);
        known.pending.push(Pending::Move(number));
        self.dirty |= 1 << shard.0;
    }

    /// Nothing comes of any move: the disk has failed.
    pub(crate) fn give_up_moves(&mut self) {
        self.cleaner.job = None;
        for slot in 0..self.cleaner.moves.capacity() {
            if let Some(number) = self.cleaner.moves.id_at(slot) {
                self.move_applied(number);
            }
        }
    }

    /// The move is in the index, or has failed; either way nobody else will write these pages.
    pub(crate) fn move_applied(&mut self, number: FrameId) {
        if let Some(moved) = self.cleaner.moves.remove(number) {
            self.segments.unpin(moved.to, moved.pages);
        }
    }
}

/// How many pages to go on to where a chunk might begin.
pub(crate) fn pages_to_next(bytes: &[u8], page: Page) -> u32 {
    let pages = bytes.chunks_exact(PAGE_BYTES).zip(0u32..).skip(1);
    let next = pages.into_iter().find(|(bytes, number)| chunk::may_begin(bytes, page.plus(*number)));
    next.map_or((bytes.len() / PAGE_BYTES) as u32, |(_, number)| number)
}
