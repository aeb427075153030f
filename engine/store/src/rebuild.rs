//! Rebuilds shards with a damaged journal from the chunks of bodies. Section 9 of `docs/format.md`.
//!
//! Invariants:
//! - Only a message with all chunks valid is restored. The message gets the UID that its last
//!   chunk names, if that UID is free.
//! - A rebuild skips UIDs, so that a UID of a lost record is not used again.
//! - Enough segments stay free for journals and compaction. Without them, no message could be
//!   deleted. If the free segments do not suffice for all messages, the newest messages are
//!   restored.

use crate::block::RECORDS_MAX;
use crate::chunk::{self, ChunkHeader, chunks_of, pages_of_chunk, pages_to_next};
use crate::cleaning::living;
use crate::finding::{Damage, Findings};
use crate::index::Index;
use crate::lanes::{LANES, Lanes, Patience};
use crate::layout::{PAGE_BYTES, PIECE_PAGES, Page, SegmentIndex};
use crate::mailbox::Mailbox;
use crate::messages::{ENTRY_BYTES, MessageEntry};
use crate::parts::StoreParts;
use crate::record::Record;
use crate::segment::SegmentOwner;
use crate::segments::{COMPACTION_RESERVE, Segments};
use crate::shards::{PerShard, ShardSet};
use crate::types::{AccountId, Place, Uid};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

/// The number of UIDs that are skipped in each mailbox of a damaged shard: lost records may have
/// used them.
const UIDS_SKIPPED: u32 = 1024;

/// The bits of a GUID that hold a number. Each shard increments this number for each message.
const GUID_NUMBER: u64 = (1 << 42) - 1;

/// The chunks of one message that were found.
#[derive(Debug, Default)]
struct MessageChunks {
    last: Option<ChunkHeader>,
    chunks: BTreeMap<u32, ChunkCopy>,
}

/// A copy of a chunk. Compaction may have left several copies of a chunk. The greatest copy is
/// used: the copy at the place that the index knows, or else the copy at the highest page.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct ChunkCopy {
    is_at_known_place: bool,
    page: Page,
}

/// The scan of all segments outside of journals. Each lane scans a different segment.
#[derive(Debug)]
pub(crate) struct Rebuild {
    /// The shards to rebuild.
    damaged: ShardSet,
    patience: Patience,
    /// The first segment that no lane has started to scan.
    next: u32,
    cursors: [Option<LaneCursor>; LANES],
    found: BTreeMap<(AccountId, u64), MessageChunks>,
}

/// The next position of a lane.
#[derive(Clone, Copy, Debug)]
struct LaneCursor {
    segment: SegmentIndex,
    at: u32,
}

impl Rebuild {
    /// Begins a rebuild of the shards `damaged`. `inspect`: the disk is only inspected.
    pub(crate) fn new(damaged: ShardSet, inspect: bool) -> Rebuild {
        let patience = if inspect { Patience::Once } else { Patience::Rebuild };
        Rebuild { damaged, patience, next: 0, cursors: [None; LANES], found: BTreeMap::new() }
    }

    /// Lets all lanes begin to read.
    pub(crate) fn begin(&mut self, lanes: &mut Lanes, parts: &mut StoreParts) {
        Lanes::all().for_each(|lane| self.read_next(lane, lanes, parts));
    }

    /// Whether all lanes have finished.
    pub(crate) fn is_read(&self) -> bool {
        self.cursors.iter().all(Option::is_none)
    }

    /// Lets a lane continue to read: in its segment, or in the next segment that no lane has
    /// started.
    fn read_next(&mut self, lane: u8, lanes: &mut Lanes, parts: &mut StoreParts) {
        let geometry = parts.segments.geometry();
        let Some(cursor) = self.cursors.get_mut(usize::from(lane)) else {
            unreachable!("a lane above the last one")
        };
        *cursor = cursor.filter(|cursor| cursor.at < geometry.segment_pages);
        while cursor.is_none() && self.next < geometry.segments() {
            let segment = SegmentIndex(self.next);
            self.next += 1;
            if !matches!(parts.segments.owner(segment), SegmentOwner::Journal(_)) {
                *cursor = Some(LaneCursor { segment, at: 0 });
            }
        }
        if let Some(LaneCursor { segment, at }) = *cursor {
            let page = geometry.first_page(segment).plus(at);
            let pages = PIECE_PAGES.min(geometry.segment_pages - at);
            lanes.read(lane, (page, pages), self.patience, &mut parts.backing);
        }
    }

    /// Takes in the piece that a lane has read, and lets the lane read on.
    pub(crate) fn piece_read(&mut self, lane: u8, lanes: &mut Lanes, parts: &mut StoreParts) {
        let Some(piece) = lanes.take(lane) else { unreachable!("a lane that has read nothing") };
        let (mut rest, mut page, mut taken) = (piece.bytes(), piece.first(), 0);
        while !rest.is_empty() {
            let pages = match chunk::parse(rest, &parts.superblock.key, page) {
                Some(chunk) => {
                    let is_at_known_place = living(&parts.indexes, &chunk, page).is_some();
                    self.take_in(&chunk.header, ChunkCopy { is_at_known_place, page });
                    chunk.pages
                }
                // The next piece may have the rest of the chunk.
                None if taken > 0 && chunk::may_begin(rest, page) => break,
                None => pages_to_next(rest, page),
            };
            rest = rest.get(pages as usize * PAGE_BYTES..).unwrap_or_default();
            page = page.plus(pages);
            taken += pages;
        }
        let Some(Some(cursor)) = self.cursors.get_mut(usize::from(lane)) else {
            unreachable!("a lane that reads no segment")
        };
        cursor.at += taken;
        self.read_next(lane, lanes, parts);
    }

    /// Notes a copy of a chunk.
    fn take_in(&mut self, header: &ChunkHeader, copy: ChunkCopy) {
        if self.damaged.has(header.account.shard()) {
            let found = self.found.entry((header.account, header.guid)).or_default();
            let best = found.chunks.entry(header.index).or_insert(copy);
            *best = copy.max(*best);
            found.last = header.last.map(|_| *header).or(found.last);
        }
    }

    /// Adds the found messages that the index lacks to the index. Corrects the places of the found
    /// messages that the index has.
    pub(crate) fn complete_index(&mut self, parts: &mut StoreParts, findings: &mut Findings) {
        let (mut missing, known): (Vec<_>, Vec<_>) = core::mem::take(&mut self.found)
            .into_iter()
            .partition(|((account, guid), found)| lacks(parts, *account, *guid, found));
        missing.sort_unstable_by_key(|((_, guid), _)| core::cmp::Reverse(guid & GUID_NUMBER));
        let needs = self.segments_needed(parts, missing.len() as u64);
        let mut free = parts.segments.count(|owner| owner == SegmentOwner::Free);
        let (mut back, mut left_out, mut without_uid) = (PerShard::new(|_| 0), 0, 0);
        for ((account, guid), found) in known {
            if !correct_places(parts, account, guid, &found, Spare { free: &mut free, needs }) {
                left_out += 1;
            }
        }
        for ((account, guid), found) in missing {
            let unclaimed = found.unclaimed(&parts.segments);
            if unclaimed > 0 && free < needs + unclaimed {
                left_out += 1;
                continue;
            }
            match bring_back(parts, account, guid, &found) {
                Ok(()) => {
                    free -= unclaimed;
                    *back.of_mut(account.shard()) += 1;
                }
                Err(NotBack::NoUid) => without_uid += 1,
                Err(NotBack::Misplaced(page, uid)) => {
                    findings.note(page.sector(), Damage::Misplaced(account, uid))
                }
            }
        }
        if left_out > 0 {
            findings.note(Page(0).sector(), Damage::LeftOut(left_out));
        }
        if without_uid > 0 {
            findings.note(Page(0).sector(), Damage::NoUid(without_uid));
        }
        for shard in self.damaged.iter() {
            let root = parts.superblock.root(shard);
            let page =
                root.map_or(Page(0), |root| parts.segments.geometry().first_page(root.segment));
            findings.note(page.sector(), Damage::Rebuilt(*back.of(shard)));
            let accounts = parts.indexes.of_mut(shard).accounts_mut();
            for mailbox in accounts.flat_map(|account| account.mailboxes_mut()) {
                let (uid_next, modseq) = mailbox.counts();
                mailbox.raise_counters(uid_next.saturating_add(UIDS_SKIPPED), modseq);
            }
        }
    }

    /// The number of segments that must stay free with `restored` more messages in the index.
    /// Damaged shards need them for links and checkpoints, and compaction needs some.
    fn segments_needed(&self, parts: &StoreParts, restored: u64) -> u32 {
        let places = parts.segments.geometry().places();
        let blocks = |shard| parts.indexes.of(shard).checkpoint_blocks();
        let checkpoints = |shard| 2 * u32::div_ceil(blocks(shard), places) + 1;
        let known: u32 = self.damaged.iter().map(checkpoints).sum();
        let more = (restored * ENTRY_BYTES as u64).div_ceil(RECORDS_MAX as u64) as u32;
        known + more.div_ceil(places) + COMPACTION_RESERVE
    }
}

/// The number of free segments. A rebuild may take only some of them.
struct Spare<'a> {
    free: &'a mut u32,
    /// The number of segments that must stay free.
    needs: u32,
}

impl Spare<'_> {
    /// Takes a free segment, if more segments are free than must stay free.
    fn take(&mut self) -> bool {
        let may_take = *self.free > self.needs;
        *self.free -= u32::from(may_take);
        may_take
    }
}

/// Corrects the places of the chunks of a message that the index has. Compaction may have moved a
/// chunk, and the record of the move may be lost. Then another body may be at the place that the
/// index knows. If that place still has the chunk, it is kept. Returns false if a found chunk is in
/// a free segment that must stay free.
fn correct_places(
    parts: &mut StoreParts,
    account: AccountId,
    guid: u64,
    found: &MessageChunks,
    mut spare: Spare<'_>,
) -> bool {
    let shard = account.shard();
    let index = parts.indexes.of_mut(shard);
    let Some(Place { mailbox, uid }) = found.known_place(index, account, guid) else {
        return true;
    };
    for (number, copy) in found.chunks.iter().filter(|(_, copy)| !copy.is_at_known_place) {
        let to = copy.page;
        let known = index.mailbox(account, mailbox).and_then(|one| one.messages().find(uid));
        let Some(entry) = known.filter(|entry| entry.guid() == guid) else { return true };
        let Some((from, pages)) = index.chunk(entry, *number) else { continue };
        if !parts.segments.may_hold_body(to, pages) {
            continue;
        }
        if parts.segments.unclaimed(to).is_some() && !spare.take() {
            return false;
        }
        let moved = Record::Moved { account, mailbox, uid, guid, index: *number, from, to };
        index.apply(&moved, &mut |_| {});
        let is_claimed = parts.segments.claim_body(to, pages, shard);
        assert!(is_claimed, "pages that may hold a body and were not claimed");
        if parts.segments.may_hold_body(from, pages) {
            parts.segments.died(from, pages);
        }
    }
    true
}

/// Whether all chunks of a message were found, and the index lacks the message.
fn lacks(parts: &StoreParts, account: AccountId, guid: u64, found: &MessageChunks) -> bool {
    let Some((header, last)) = found.last.and_then(|header| Some((header, header.last?))) else {
        return false;
    };
    let index = parts.indexes.of(account.shard());
    let known = index.mailbox(account, header.mailbox);
    let taken = known.and_then(|mailbox: &Mailbox| mailbox.messages().find(last.uid));
    found.pages().is_some()
        && taken.is_none_or(|entry| entry.guid() != guid)
        && index.placed(guid).is_none()
}

/// The reason why a message is not restored.
enum NotBack {
    /// The mailbox of the message has no UID left.
    NoUid,
    /// A chunk of the message is at a page that cannot hold it. The values are the page and the UID
    /// of the message.
    Misplaced(Page, Uid),
}

/// Restores a message that is missing in the index.
fn bring_back(
    parts: &mut StoreParts,
    account: AccountId,
    guid: u64,
    found: &MessageChunks,
) -> Result<(), NotBack> {
    let last = found.last.and_then(|header| Some((header, header.last?)));
    let (Some((header, last)), Some(pages)) = (last, found.pages()) else {
        unreachable!("a message with a missing chunk")
    };
    let shard = account.shard();
    let index = parts.indexes.of_mut(shard);
    let known = index.mailbox(account, header.mailbox);
    let taken = known.and_then(|mailbox: &Mailbox| mailbox.messages().find(last.uid));
    let uid = match (taken, known) {
        (Some(_), Some(mailbox)) => mailbox.counts().0,
        _ => last.uid,
    };
    let chunks = || {
        pages.iter().zip(0..).map(|(page, index)| (Page(*page), pages_of_chunk(last.octets, index)))
    };
    if let Some((page, _)) =
        chunks().find(|(page, count)| !parts.segments.may_hold_body(*page, *count))
    {
        return Err(NotBack::Misplaced(page, Uid(uid)));
    }
    let Some(first) = pages.first() else { unreachable!("a message without a chunk") };
    let entry = MessageEntry::new(uid, last.octets, *first, last.date, last.modseq, guid);
    let entry = entry.in_conversation(header.conversation).with_head(last.head);
    // A later rebuild finds this message in the index by the UID in its last chunk, unless the
    // index has its places by GUID.
    if pages.len() > 1 || uid != last.uid {
        index.announce(guid, 0, pages.iter().copied());
    }
    if !index.insert(account, header.mailbox, header.uid_validity, entry) {
        return Err(NotBack::NoUid);
    }
    for (page, count) in chunks() {
        let is_claimed = parts.segments.claim_body(page, count, shard);
        assert!(is_claimed, "pages that may hold a body and were not claimed");
    }
    Ok(())
}

impl MessageChunks {
    /// The place of the message in the index, if the index has the message.
    fn known_place(&self, index: &Index, account: AccountId, guid: u64) -> Option<Place> {
        if let Some(placed) = index.placed(guid) {
            return (placed.account == account).then_some(placed.place);
        }
        let header = self.last?;
        Some(Place { mailbox: header.mailbox, uid: header.last?.uid })
    }

    /// The number of free segments that the copies of the chunks are in.
    fn unclaimed(&self, segments: &Segments) -> u32 {
        let copies = self.chunks.values();
        let free: BTreeSet<_> = copies.filter_map(|copy| segments.unclaimed(copy.page)).collect();
        free.len() as u32
    }

    /// The pages of the chunks, if all were found.
    fn pages(&self) -> Option<Vec<u32>> {
        let header = self.last?;
        let chunks = chunks_of(header.last?.octets);
        let pages: Vec<u32> = (0..chunks)
            .map_while(|index| self.chunks.get(&index))
            .map(|copy| copy.page.0)
            .collect();
        (pages.len() == chunks as usize && header.index + 1 == chunks).then_some(pages)
    }
}
