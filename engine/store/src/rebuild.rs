//! Rebuilding shards whose journal is damaged from the chunks of bodies themselves. Section 9 of `docs/format.md`.
//!
//! Invariants:
//! - Only messages of which every chunk is sound come back, under the UID that their last chunk names, if it is free.
//! - UIDs that a lost record may have given are not given again.
//! - The segments that journals and compaction need stay free, because deleting needs them. So the
//!   newest messages are restored first.

use crate::account::Mailbox;
use crate::block::RECORDS_MAX;
use crate::chunk::{self, Header, chunks_of};
use crate::cleaning::pages_to_next;
use crate::layout::{PAGE_BYTES, PIECE_PAGES, Page, SegmentIndex, ShardId};
use crate::messages::{ENTRY_BYTES, Entry};
use crate::opening::{Damage, LANES, Piece};
use crate::segments::{COMPACTION_RESERVE, Owner};
use crate::store::Store;
use crate::types::AccountId;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

/// UIDs that are left out in a mailbox of a damaged shard.
const UIDS_SKIPPED: u32 = 1024;

/// The bits of a GUID number that count up in each shard.
const GUID_NUMBER: u64 = (1 << 42) - 1;

/// The chunks found of one message.
#[derive(Debug, Default)]
struct Found {
    last: Option<Header>,
    chunks: BTreeMap<u32, Page>,
}

/// The scan of all segments that are no journal's, each lane in one of its own.
#[derive(Debug, Default)]
pub(crate) struct Rebuild {
    /// The first segment that no lane has begun.
    next: u32,
    lanes: [Option<Cursor>; LANES],
    found: BTreeMap<(AccountId, u64), Found>,
}

/// Where a lane reads on.
#[derive(Clone, Copy, Debug)]
struct Cursor {
    segment: SegmentIndex,
    at: u32,
}

impl Store {
    /// All lanes begin to read.
    pub(crate) fn begin_rebuild(&mut self) {
        if let Some(opening) = &mut self.opening {
            opening.rebuild = Some(Rebuild::default());
        }
        for lane in 0..LANES as u8 {
            self.rebuild_next(lane);
        }
        self.end_rebuild_if_read();
    }

    /// A lane reads on, in its segment or in the next that none has begun.
    fn rebuild_next(&mut self, lane: u8) {
        let geometry = self.segments.geometry;
        let Some(rebuild) = self.opening.as_mut().and_then(|opening| opening.rebuild.as_mut()) else { return };
        let Some(cursor) = rebuild.lanes.get_mut(usize::from(lane)) else { return };
        *cursor = cursor.filter(|cursor| cursor.at < geometry.segment_pages);
        while cursor.is_none() && rebuild.next < geometry.segments() {
            let segment = SegmentIndex(rebuild.next);
            rebuild.next += 1;
            if !matches!(self.segments.owner(segment), Owner::Journal(_)) {
                *cursor = Some(Cursor { segment, at: 0 });
            }
        }
        if let Some(Cursor { segment, at }) = *cursor {
            let page = geometry.first_page(segment).plus(at);
            self.read_piece(lane, page, PIECE_PAGES.min(geometry.segment_pages - at));
        }
    }

    fn end_rebuild_if_read(&mut self) {
        let rebuild = self.opening.as_ref().and_then(|opening| opening.rebuild.as_ref());
        if rebuild.is_some_and(|rebuild| rebuild.lanes.iter().all(Option::is_none)) {
            self.rebuild_index();
            self.index_complete();
        }
    }

    /// A piece has been read.
    pub(crate) fn rebuild_piece(&mut self, lane: u8, piece: &Piece) {
        let Some(opening) = &mut self.opening else { return };
        let damaged = opening.damaged;
        let Some(rebuild) = opening.rebuild.as_mut() else { return };
        let (mut rest, mut page, mut taken) = (piece.bytes.as_ref(), piece.page, 0);
        while !rest.is_empty() {
            let pages = match chunk::parse(rest, &self.superblock.key, page) {
                Some(chunk) => {
                    rebuild.take_in(&chunk.header, page, damaged);
                    chunk.pages
                }
                // It may go on behind the piece.
                None if taken > 0 && chunk::may_begin(rest, page) => break,
                None => pages_to_next(rest, page),
            };
            rest = rest.get(pages as usize * PAGE_BYTES..).unwrap_or_default();
            page = page.plus(pages);
            taken += pages;
        }
        if let Some(Some(cursor)) = rebuild.lanes.get_mut(usize::from(lane)) {
            cursor.at += taken;
        }
        self.rebuild_next(lane);
        self.end_rebuild_if_read();
    }

    fn rebuild_index(&mut self) {
        let Some(opening) = &mut self.opening else { return };
        let damaged = opening.damaged;
        let found = opening.rebuild.take().map(|rebuild| rebuild.found).unwrap_or_default();
        let mut missing: Vec<_> =
            found.into_iter().filter(|((account, guid), found)| self.lacks(*account, *guid, found)).collect();
        missing.sort_unstable_by_key(|((_, guid), _)| core::cmp::Reverse(guid & GUID_NUMBER));
        let needs = self.segments_needed(damaged, missing.len() as u64);
        let mut free = self.segments.count(|owner| owner == Owner::Free);
        let (mut back, mut left_out) = ([0; crate::layout::SHARDS], 0);
        for ((account, guid), found) in missing {
            let segments: BTreeSet<_> =
                found.chunks.values().filter_map(|page| self.segments.unclaimed(*page)).collect();
            let unclaimed = segments.len() as u32;
            if unclaimed > 0 && free < needs + unclaimed {
                left_out += 1;
            } else if self.bring_back(account, guid, &found).is_some()
                && let Some(count) = back.get_mut(account.shard().index())
            {
                free -= unclaimed;
                *count += 1;
            }
        }
        if left_out > 0 {
            self.note(Page(0).sector(), Damage::LeftOut(left_out));
        }
        for (number, back) in ShardId::all().zip(back).filter(|(number, _)| damaged >> number.0 & 1 == 1) {
            let root = self.superblock.roots.get(number.index()).copied().flatten();
            let page = root.map_or(Page(0), |root| self.segments.geometry.first_page(root.segment));
            self.note(page.sector(), Damage::Rebuilt(back));
            let Some(shard) = self.shards.get_mut(number.index()) else { continue };
            let mailboxes = shard.index.accounts.values_mut().flat_map(|account| account.mailboxes.values_mut());
            for mailbox in mailboxes {
                mailbox.saw(mailbox.uid_next.saturating_add(UIDS_SKIPPED), mailbox.highest_modseq);
            }
        }
    }

    /// Free segments that are needed with `restored` more messages in the index: for the links and the
    /// checkpoints of damaged shards, and for compaction.
    fn segments_needed(&self, damaged: u64, restored: u64) -> u32 {
        let places = self.segments.geometry.places();
        let shards = self.shards.iter().zip(0..64).filter(|(_, number)| damaged >> number & 1 == 1);
        let known: u32 = shards.map(|(shard, _)| shard.index.checkpoint_blocks().div_ceil(places) + 1).sum();
        let more = (restored * ENTRY_BYTES as u64).div_ceil(RECORDS_MAX as u64) as u32;
        known + more.div_ceil(places) + COMPACTION_RESERVE
    }

    /// Whether all of a message was found, and the index does not have it.
    fn lacks(&self, account: AccountId, guid: u64, found: &Found) -> bool {
        let Some((header, last)) = found.last.and_then(|header| Some((header, header.last?))) else { return false };
        let Some(shard) = self.shard(account.shard()) else { return false };
        let known = shard.index.mailbox(account, header.mailbox);
        let taken = known.and_then(|mailbox: &Mailbox| mailbox.messages.find(last.uid));
        found.pages().is_some()
            && taken.is_none_or(|entry| entry.guid() != guid)
            && !shard.index.placed.contains_key(&guid)
    }

    /// Puts a message back that the index lacks.
    fn bring_back(&mut self, account: AccountId, guid: u64, found: &Found) -> Option<()> {
        let (header, pages) = (found.last?, found.pages()?);
        let last = header.last?;
        let number = account.shard();
        let shard = self.shards.get_mut(number.index())?;
        let known = shard.index.mailbox(account, header.mailbox);
        let taken = known.and_then(|mailbox: &Mailbox| mailbox.messages.find(last.uid));
        let uid = match (taken, known) {
            (Some(_), Some(mailbox)) => mailbox.uid_next,
            _ => last.uid,
        };
        let entry = Entry::new(uid, last.octets, *pages.first()?, last.date, last.modseq, guid);
        let entry = entry.in_conversation(header.conversation).with_head(last.head);
        if pages.len() > 1 {
            shard.index.announce(guid, 0, pages.iter().copied());
        }
        if !shard.index.insert(account, header.mailbox, header.uid_validity, entry) {
            return None;
        }
        for (page, pages) in shard.index.chunks(&entry) {
            self.segments.claim_body(page, pages, number);
        }
        Some(())
    }
}

impl Found {
    /// Where the chunks lie, if all are there.
    fn pages(&self) -> Option<Vec<u32>> {
        let header = self.last?;
        let chunks = chunks_of(header.last?.octets);
        let pages: Vec<u32> = (0..chunks).map_while(|index| self.chunks.get(&index)).map(|page| page.0).collect();
        (pages.len() == chunks as usize && header.index + 1 == chunks).then_some(pages)
    }
}

impl Rebuild {
    /// A chunk lies at `page`. Of two copies, of which compaction has written one, that counts which lies further back.
    fn take_in(&mut self, header: &Header, page: Page, damaged: u64) {
        if damaged >> header.account.shard().0 & 1 == 1 {
            let found = self.found.entry((header.account, header.guid)).or_default();
            let place = found.chunks.entry(header.index).or_insert(page);
            *place = page.max(*place);
            found.last = header.last.map(|_| *header).or(found.last);
        }
    }
}
