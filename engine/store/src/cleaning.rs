//! Compaction: reads the segment with the fewest live pages, writes its live chunks elsewhere, and
//! frees the segment. Section 8 of `docs/format.md`.
//!
//! Invariants:
//! - A chunk is moved only if its hash is right. So damaged data never gets a new, valid hash.
//! - The `moved` record is gathered only after a flush has made the new copy durable. The old copy
//!   stays until that record is durable.
//! - At most one chunk is moved per turn.

use crate::backing::{Backing, DiskPurpose};
use crate::chunk::{self, Chunk, chunks_of, pages_to_next};
use crate::indexes::Indexes;
use crate::layout::{PAGE_BYTES, PIECE_PAGES, Page, SegmentIndex, ShardId};
use crate::parts::StoreParts;
use crate::pending::{Awaiting, Pending};
use crate::record::{self, Move};
use crate::segment::SegmentOwner;
use crate::segments::{Segments, Want};
use crate::types::Place;
use crate::writing::allocate;
use alloc::boxed::Box;
use sometimes::{buggify, sometimes};
use tasks::{FrameId, FrameTable};

/// The most chunks that are being moved at a time.
const MOVES_MAX: usize = 64;

/// The segment that is being emptied.
#[derive(Clone, Copy, Debug)]
struct CleaningJob {
    victim: SegmentIndex,
    shard: ShardId,
    /// The next page to read, counted from the first page of the segment.
    at: u32,
    reading: bool,
}

pub(crate) struct Cleaner {
    job: Option<CleaningJob>,
    moves: FrameTable<Move>,
    /// False until the shards have been shared out among the cores.
    is_on: bool,
}

impl Cleaner {
    pub(crate) fn new(is_on: bool) -> Cleaner {
        Cleaner { job: None, moves: FrameTable::with_capacity(MOVES_MAX), is_on }
    }

    pub(crate) fn turn_on(&mut self) {
        self.is_on = true;
    }

    #[cfg(test)]
    pub(crate) fn turn_off(&mut self) {
        self.is_on = false;
    }

    /// Takes one step of the compaction if free segments are scarce.
    pub(crate) fn clean(&mut self, parts: &mut StoreParts) {
        if !self.is_on {
            return;
        }
        let geometry = parts.segments.geometry();
        let job = loop {
            if self.job.is_none() {
                self.job = choose_victim(&mut parts.segments);
            }
            let Some(job) = self.job else { return };
            if job.at < geometry.segment_pages {
                break job;
            }
            if job.reading || !self.moves.is_empty() {
                return;
            }
            // The next segment must begin in this turn, because there may be no event that causes
            // another turn.
            self.end_job(job, &mut parts.segments);
        };
        if job.reading || self.moves.len() == self.moves.capacity() {
            return;
        }
        let pages = PIECE_PAGES.min(geometry.segment_pages - job.at);
        let Some(buffer) = parts.pool.take(pages) else { return };
        let page = geometry.first_page(job.victim).plus(job.at);
        self.job = Some(CleaningJob { reading: true, ..job });
        parts.segments.read_began(page);
        parts.backing.read(page, buffer, DiskPurpose::Victim);
    }

    /// Ends the job when all chunks that can be moved have been moved. Live pages that remain
    /// cannot be read.
    fn end_job(&mut self, job: CleaningJob, segments: &mut Segments) {
        if segments.owner(job.victim) == SegmentOwner::Body(job.shard)
            && segments.live_in(job.victim) > 0
        {
            segments.damaged(job.victim);
        }
        sometimes!(SegmentCleaned);
        self.job = None;
    }

    /// Handles a piece of the segment that is being emptied. `pages_to_leave`: the number of single
    /// pages that other operations may still need.
    pub(crate) fn victim_read(
        &mut self,
        ok: bool,
        buffer: Box<[u8]>,
        pages_to_leave: usize,
        parts: &mut StoreParts,
    ) {
        let Some(job) = self.job.as_mut() else {
            unreachable!("a segment that is not being emptied")
        };
        job.reading = false;
        let job = *job;
        let page = parts.segments.geometry().first_page(job.victim).plus(job.at);
        parts.segments.read_ended(page);
        let sound = if ok { chunk::parse(&buffer, &parts.superblock.key, page) } else { None };
        let pages_read = (buffer.len() / PAGE_BYTES) as u32;
        let step = match sound.filter(|chunk| chunk.pages <= pages_read) {
            Some(chunk) => match living(&parts.indexes, &chunk, page) {
                Some(moved) => {
                    return self.move_chunk(job, (&chunk, moved), buffer, pages_to_leave, parts);
                }
                None => chunk.pages,
            },
            None if ok => pages_to_next(&buffer, page),
            None => 1,
        };
        parts.pool.give(buffer);
        self.job = Some(CleaningJob { at: job.at + step, ..job });
    }

    fn move_chunk(
        &mut self,
        job: CleaningJob,
        (chunk, moved): (&Chunk, Move),
        buffer: Box<[u8]>,
        pages_to_leave: usize,
        parts: &mut StoreParts,
    ) {
        let pages_read = (buffer.len() / PAGE_BYTES) as u32;
        let mut copy = buffer;
        if chunk.pages != pages_read {
            let exact = parts.pool.take_for_copy(chunk.pages, pages_to_leave);
            let whole = core::mem::take(&mut copy);
            if let Some(mut exact) = exact {
                let Some(octets) = whole.get(..exact.len()) else {
                    unreachable!("a chunk of more pages than were read")
                };
                exact.copy_from_slice(octets);
                copy = exact;
            }
            parts.pool.give(whole);
        }
        if copy.is_empty() {
            return;
        }
        let Some(to) = allocate(parts, moved.account.shard(), chunk.pages, Want::Compaction) else {
            // No segment is free for the copy. None becomes free until more pages die.
            self.job = None;
            parts.segments.suspend_search();
            return parts.pool.give(copy);
        };
        let moved = Move { to, ..moved };
        chunk::readdress(&mut copy, &parts.superblock.key, to, chunk);
        let Ok(number) = self.moves.insert(moved) else {
            unreachable!("a piece read without a place for its move")
        };
        sometimes!(ChunkMoved);
        self.job = Some(CleaningJob { at: job.at + chunk.pages, ..job });
        parts.backing.write(to, copy, DiskPurpose::Moved { number });
    }

    /// Handles the end of the write of a new copy. If the write failed, the move is dropped.
    pub(crate) fn move_written(&mut self, number: FrameId, ok: bool, parts: &mut StoreParts) {
        if ok {
            parts.commit.await_flush(Awaiting::Move(number));
        } else {
            self.move_applied(number, &mut parts.segments);
        }
    }

    /// Gathers the record that names the new copy, which is durable now.
    pub(crate) fn move_flushed(&mut self, number: FrameId, parts: &mut StoreParts) {
        let Some(moved) = self.moves.get(number) else { unreachable!("a move that has ended") };
        let shard = moved.account.shard();
        if !parts.journals.has_room_for(shard, 64) {
            return parts.commit.await_flush(Awaiting::Move(number));
        }
        record::put_moved(parts.journals.gather(shard), moved);
        parts.journals.wait(shard, Pending::Move(number));
    }

    /// Drops all moves, because the disk has failed.
    pub(crate) fn give_up(&mut self, segments: &mut Segments) {
        self.job = None;
        for slot in 0..self.moves.capacity() {
            if let Some(number) = self.moves.id_at(slot) {
                self.move_applied(number, segments);
            }
        }
    }

    /// Ends a move that the index has, or that has failed. No other write to these pages follows.
    pub(crate) fn move_applied(&mut self, number: FrameId, segments: &mut Segments) {
        let Some(moved) = self.moves.remove(number) else { unreachable!("a move that has ended") };
        segments.unpin(moved.to, moved.pages);
    }
}

fn choose_victim(segments: &mut Segments) -> Option<CleaningJob> {
    if !segments.are_scarce() && !buggify!(CompactionEarly) {
        return None;
    }
    let part = if segments.may_take(Want::Delivery) { 4 } else { 8 };
    let dead_min = segments.geometry().segment_pages / part;
    if !segments.is_worth_a_look(dead_min) {
        return None;
    }
    segments.emptiest(dead_min).map(|(victim, shard)| CleaningJob {
        victim,
        shard,
        at: 0,
        reading: false,
    })
}

/// The move for `chunk`, if the index refers to the chunk at `page`.
pub(crate) fn living(indexes: &Indexes, chunk: &Chunk, page: Page) -> Option<Move> {
    let header = &chunk.header;
    let index = indexes.of(header.account.shard());
    let found = match (header.last, index.placed(header.guid)) {
        (_, Some(placed)) => {
            let known = *placed.pages.get(header.index as usize)?;
            (placed.account == header.account && known == page.0).then_some(placed.place)
        }
        (Some(last), None) => {
            let entry = index.mailbox(header.account, header.mailbox)?.messages().find(last.uid)?;
            let same =
                entry.guid() == header.guid && entry.page == page.0 && chunks_of(entry.octets) == 1;
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
