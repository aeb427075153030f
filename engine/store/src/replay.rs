//! The replay of one shard's journal, from its root to its end. Each block is stored twice, in the
//! two pages of a *place*. Section 4 of `docs/format.md`.
//!
//! Invariants:
//! - A group is applied completely and in order, or not at all.
//! - A missing block is damage if a later group proves that it was durable, if its place or the
//!   link to it is unreadable, or if it is the first block of a started journal. Otherwise it is
//!   the end. So the loss of a last group that has rotted in readable places is not noticed.
//! - Two valid copies of the next block differ if a later life wrote its fence over a group of an
//!   earlier life, and the write did not reach one copy. `accept_either` selects the right copy.
//! - A record of an unknown kind in a complete group ends the replay: the disk cannot be used.
//! - The replay requests pieces, and is called again with them. It holds at most one group.

mod last_group;

pub(crate) use last_group::Dropped;

use crate::block::{self, BlockHeader, GROUP_BLOCKS_MAX, JournalBlock};
use crate::finding::{Damage, Finding};
use crate::frame::Unread;
use crate::hash::HashKey;
use crate::index::Index;
use crate::journal::Journal;
use crate::lanes::DiskPiece;
use crate::layout::{Geometry, PIECE_PAGES, Page, SegmentIndex, ShardId};
use crate::record::{self, Record};
use crate::superblock::{Format, Root};
use crate::walk::WalkCursor;

use alloc::vec::Vec;
use last_group::Recent;
use sometimes::sometimes;

/// A piece to be read.
type MissingPiece = (Page, u32);

/// The present step of the replay.
#[derive(Clone, Copy, Debug)]
enum ReplayMode {
    /// The next block.
    Following,
    /// The link that leads to the next block.
    Link,
    /// A later group, to distinguish damage from the end.
    Ahead { place: u32, left: u32, next: Option<SegmentIndex>, jumped: bool },
    /// The last chunks of the messages in the last group.
    Verifying { number: usize },
}

/// A group with only some of its blocks read.
#[derive(Clone)]
struct Partial {
    first: u64,
    blocks: u32,
    records: Vec<u8>,
    /// The page of the first copy of the group's first block.
    page: Page,
    /// The position where the journal continues if the rest of the group is missing.
    before: Journal,
}

/// The position of the replay if the other copy of the last block is the right copy.
struct Rival {
    journal: Journal,
    partial: Option<Partial>,
}

/// The result of a replay.
pub(crate) struct Replayed {
    pub(crate) shard: ShardId,
    pub(crate) index: Index,
    pub(crate) journal: Journal,
    /// The journal has a damaged copy, or lost blocks: a checkpoint must replace it.
    pub(crate) heal: bool,
    /// Blocks of the journal are lost.
    pub(crate) damaged: bool,
    pub(crate) findings: Vec<Finding>,
    pub(crate) dropped: Vec<Dropped>,
    /// The kind of a record that this program cannot read, and the first page of its group.
    pub(crate) unknown: Option<(u8, Page)>,
}

pub(crate) struct Replay {
    shard: ShardId,
    format: Format,
    index: Index,
    journal: Journal,
    heal: bool,
    damaged: bool,
    findings: Vec<Finding>,
    dropped: Vec<Dropped>,
    unknown: Option<(u8, Page)>,
    /// The number of findings before the last group, and at its end.
    settled: [usize; 2],
    /// The unreadable place that may hold the next block or the link to it.
    unreadable: Option<Page>,
    root: Root,
    mode: ReplayMode,
    partial: Option<Partial>,
    rival: Option<Rival>,
    recent: Vec<Recent>,
}

/// The content of one place of a segment: two copies of one block, or blocks that different lives
/// left there.
struct BlockCopies<'a> {
    copies: [Option<JournalBlock<'a>>; 2],
    unreadable: bool,
}

/// The wanted block of a place: the result of [`BlockCopies::find`].
struct MatchingBlock<T> {
    block: T,
    /// The second copy, if it is wanted too and differs from the first.
    rival: Option<T>,
    /// Whether the two copies differ: only one copy fits, or both fit with different contents.
    differs: bool,
}

impl<'a> BlockCopies<'a> {
    /// The wanted block. An older block in the first copy must not hide the wanted block in the
    /// second. Otherwise the replay would end here, and a torn write of the next life could destroy
    /// only the older block. Then the next replay would apply the hidden block.
    fn find<T: PartialEq>(
        &self,
        wanted: impl Fn(JournalBlock<'a>) -> Option<T>,
    ) -> Option<MatchingBlock<T>> {
        let [first, second] = self.copies.map(|copy| copy.and_then(&wanted));
        let differs = first != second;
        let (block, rival) =
            if first.is_some() { (first, second.filter(|_| differs)) } else { (second, None) };
        block.map(|block| MatchingBlock { block, rival, differs })
    }
}

impl Replay {
    pub(crate) fn new(shard: ShardId, root: Root, format: Format, index: Index) -> Replay {
        Replay {
            shard,
            format,
            index,
            journal: Journal::at(root),
            heal: false,
            damaged: false,
            findings: Vec::new(),
            dropped: Vec::new(),
            unknown: None,
            settled: [0; 2],
            unreadable: None,
            root,
            mode: ReplayMode::Following,
            partial: None,
            rival: None,
            recent: Vec::new(),
        }
    }

    pub(crate) fn into_replayed(self) -> Replayed {
        let Replay { shard, index, journal, heal, damaged, findings, dropped, unknown, .. } = self;
        Replayed {
            shard,
            index,
            journal,
            heal: heal || damaged,
            damaged,
            findings,
            dropped,
            unknown,
        }
    }

    /// Continues with `piece`, which was requested last. Returns the next piece to read, `None` at
    /// the end.
    pub(crate) fn step(
        &mut self,
        piece: Option<&DiskPiece>,
        key: &HashKey,
        geometry: Geometry,
    ) -> Option<MissingPiece> {
        loop {
            let done = match self.mode {
                ReplayMode::Following => self.follow(piece, key, geometry),
                ReplayMode::Link => self.link(piece, key, geometry),
                ReplayMode::Ahead { place, left, next, jumped } => {
                    self.look_ahead(piece, key, geometry, (place, left, next, jumped))
                }
                ReplayMode::Verifying { number } => match self.recent.get(number).copied() {
                    Some(recent) => self.verify(piece, key, geometry, recent, number),
                    None => return None,
                },
            };
            if let Err(wanted) = done {
                return Some(wanted);
            }
            if self.unknown.is_some() {
                return None;
            }
        }
    }

    fn follow(
        &mut self,
        piece: Option<&DiskPiece>,
        key: &HashKey,
        geometry: Geometry,
    ) -> Result<(), MissingPiece> {
        if self.journal.place() == geometry.link_place() {
            self.mode = ReplayMode::Link;
            return Ok(());
        }
        let (segment, place) = (self.journal.segment(), self.journal.place());
        let copies = self.copies_at(piece, key, geometry, segment, place)?;
        let next = copies.find(|block| match block {
            JournalBlock::Records { header, hash, records } if self.continues(&header) => {
                Some((header, hash, records))
            }
            _ => None,
        });
        if let Some(MatchingBlock { block, rival, differs }) = next {
            let page = geometry.place_page(segment, place);
            self.note_difference(differs, page);
            self.accept_either(block, rival, page);
        } else {
            self.mode = ReplayMode::Link;
            self.unreadable = copies.unreadable.then(|| geometry.place_page(segment, place));
        }
        Ok(())
    }

    /// Whether a block with this header is the next block.
    fn continues(&self, header: &BlockHeader) -> bool {
        let group_fits = match &self.partial {
            Some(partial) => {
                header.group_first == partial.first && header.group_blocks == partial.blocks
            }
            None => {
                header.group_first == header.sequence
                    && (1..=GROUP_BLOCKS_MAX).contains(&header.group_blocks)
            }
        };
        group_fits && self.journal.continues_with(header)
    }

    /// Moves on after the right copy: `block`, or `rival`, the differing second copy. If only one
    /// is a fence, it is right: a later life wrote it over a failed group, which must not be
    /// applied. Otherwise takes `block`. If both are fences of groups with more blocks, also keeps
    /// the position after `rival`, because the blocks that follow tell which fence is right.
    fn accept_either(
        &mut self,
        block: (BlockHeader, u64, &[u8]),
        rival: Option<(BlockHeader, u64, &[u8])>,
        page: Page,
    ) {
        let is_fence = |one: &(BlockHeader, u64, &[u8])| record::is_fence(one.2);
        let (block, rival) = match rival {
            Some(rival) if is_fence(&rival) && !is_fence(&block) => (rival, None),
            rival => (block, rival.filter(is_fence)),
        };
        let both_have_more_blocks =
            |other: &(BlockHeader, u64, &[u8])| block.0.group_blocks.min(other.0.group_blocks) > 1;
        let rival = rival.filter(|other| self.partial.is_none() && both_have_more_blocks(other));
        self.rival = rival.map(|(header, hash, records)| {
            let before = Rival { journal: self.journal.clone(), partial: None };
            self.accept(&header, hash, records, page);
            self.go_over_to(before)
        });
        self.accept(&block.0, block.1, block.2, page);
    }

    /// Continues from another position. Returns the previous position.
    fn go_over_to(&mut self, Rival { journal, partial }: Rival) -> Rival {
        Rival {
            journal: core::mem::replace(&mut self.journal, journal),
            partial: core::mem::replace(&mut self.partial, partial),
        }
    }

    fn accept(&mut self, header: &BlockHeader, hash: u64, records: &[u8], page: Page) {
        let partial = self.partial.get_or_insert_with(|| Partial {
            first: header.group_first,
            blocks: header.group_blocks,
            records: Vec::new(),
            page,
            before: self.journal.clone(),
        });
        partial.records.extend_from_slice(records);
        let complete = header.sequence + 1 - partial.first == u64::from(partial.blocks);
        self.journal.block_follows(hash);
        if complete && let Some(partial) = self.partial.take() {
            self.apply(&partial);
            self.settled = [self.settled[1], self.findings.len()];
        }
    }

    /// Whether a disk of this format has records of this kind.
    fn knows(&self, kind: u8) -> bool {
        self.format == Format::Four || kind < record::QUEUED
    }

    fn apply(&mut self, Partial { records, page, before, .. }: &Partial) {
        let page = *page;
        self.recent.clear();
        for record in record::read(records) {
            let record = match record {
                Ok(record) => record,
                Err(Unread::Malformed(kind, bytes))
                    if self.knows(kind) && self.index.keep(bytes) =>
                {
                    let damage = Damage::Record(kind);
                    self.findings.push(Finding { sector: page.sector(), damage });
                    continue;
                }
                Err(Unread::Unknown(kind) | Unread::Malformed(kind, _)) => {
                    self.unknown = Some((kind, page));
                    return;
                }
            };
            if let Some(kind) = record.later_kind().filter(|kind| !self.knows(*kind)) {
                self.unknown = Some((kind, page));
                return;
            }
            self.index.apply(&record, &mut |_| {});
            match record {
                Record::Delivered { account, mailbox, entry, check, .. } => {
                    let (uid, guid) = (entry.uid, entry.guid());
                    self.recent.push(Recent { account, mailbox, uid, guid, check });
                }
                Record::Shard { .. } => self.journal.found_checkpoint(before),
                Record::Range { account, mailbox, last, .. } => {
                    self.journal.found_walk(WalkCursor::after(account, mailbox, last));
                }
                _ => {}
            }
        }
        self.index.group_ended();
    }

    /// Looks for the link at the end of the segment.
    fn link(
        &mut self,
        piece: Option<&DiskPiece>,
        key: &HashKey,
        geometry: Geometry,
    ) -> Result<(), MissingPiece> {
        let segment = self.journal.segment();
        let copies = self.copies_at(piece, key, geometry, segment, geometry.link_place())?;
        let sequence = self.journal.sequence();
        let leads_on = |wanted: &dyn Fn(&BlockHeader) -> bool| {
            copies
                .find(|block| match block {
                    JournalBlock::Link { header, hash, next }
                        if next.0 < geometry.segments() && wanted(&header) =>
                    {
                        Some((next, hash))
                    }
                    _ => None,
                })
                .filter(|fit| !self.journal.chain().contains(&fit.block.0))
        };
        let fits = leads_on(&|header| self.journal.continues_with(header));
        if let Some(MatchingBlock { block: (next, hash), differs, .. }) = fits {
            (self.rival, self.unreadable) = (None, None);
            self.journal.link_follows(next, hash);
            self.mode = ReplayMode::Following;
            self.note_difference(differs, geometry.place_page(segment, geometry.link_place()));
            return Ok(());
        }
        let next = leads_on(&|header| header.sequence > sequence).map(|fit| fit.block.0);
        // No block follows this copy: tries the other copy.
        if let Some(rival) = self.rival.take() {
            self.go_over_to(rival);
            self.unreadable = None;
            self.mode = ReplayMode::Following;
            return Ok(());
        }
        if copies.unreadable {
            self.unreadable.get_or_insert(geometry.place_page(segment, geometry.link_place()));
        }
        let place = self.journal.place() + 1;
        self.mode = ReplayMode::Ahead { place, left: GROUP_BLOCKS_MAX + 1, next, jumped: false };
        Ok(())
    }

    /// Looks for a later group, which proves that the missing block was durable.
    fn look_ahead(
        &mut self,
        piece: Option<&DiskPiece>,
        key: &HashKey,
        geometry: Geometry,
        (place, left, next, jumped): (u32, u32, Option<SegmentIndex>, bool),
    ) -> Result<(), MissingPiece> {
        if left == 0 || place >= geometry.link_place() {
            self.mode = match next {
                Some(next) => {
                    self.journal.looks_into(next);
                    ReplayMode::Ahead {
                        place: 0,
                        left: GROUP_BLOCKS_MAX + 1,
                        next: None,
                        jumped: true,
                    }
                }
                None => {
                    if jumped {
                        self.journal.looks_back();
                    }
                    self.end();
                    ReplayMode::Verifying { number: 0 }
                }
            };
            return Ok(());
        }
        let copies = self.copies_at(piece, key, geometry, self.journal.segment(), place)?;
        let missing = self.journal.sequence();
        let later = copies.find(|block| match block {
            JournalBlock::Records { header, .. }
                if header.sequence == header.group_first && header.sequence > missing =>
            {
                Some(header)
            }
            _ => None,
        });
        match later {
            Some(fit) => self.skip_hole(&fit.block, place, geometry),
            None => {
                self.mode = ReplayMode::Ahead { place: place + 1, left: left - 1, next, jumped }
            }
        }
        Ok(())
    }

    /// Continues after a block that was durable and is lost.
    fn skip_hole(&mut self, header: &BlockHeader, place: u32, geometry: Geometry) {
        let missing = geometry
            .place_page(self.journal.segment(), self.journal.place().min(geometry.link_place()));
        self.findings.push(Finding { sector: missing.sector(), damage: Damage::JournalBlock });
        self.damaged = true;
        self.partial = None;
        self.journal.continue_at(place, header);
        self.unreadable = None;
        self.mode = ReplayMode::Following;
    }

    /// Ends the replay, because no later block exists. Drops an incomplete group.
    fn end(&mut self) {
        if let Some(partial) = self.partial.take() {
            self.journal = partial.before;
        }
        for finding in self.findings.iter_mut().skip(self.settled[0]) {
            if finding.damage == Damage::JournalCopy {
                finding.damage = Damage::LastJournalCopy;
            }
        }
        let is_start_lost = self.root.started && self.journal.sequence() == self.root.sequence;
        let lost = match self.unreadable {
            _ if is_start_lost => Some((Page(0), Damage::JournalStart)),
            unreadable => unreadable.map(|page| (page, Damage::JournalBlock)),
        };
        if let Some((page, damage)) = lost {
            self.findings.push(Finding { sector: page.sector(), damage });
            self.damaged = true;
            // A lost group may have followed the last readable group and moved its chunks.
            self.recent.clear();
        }
        self.journal.has_ended(self.damaged);
    }

    /// The content of a place in a segment. Errors: the piece that must be read first.
    fn copies_at<'a>(
        &self,
        piece: Option<&'a DiskPiece>,
        key: &HashKey,
        geometry: Geometry,
        segment: SegmentIndex,
        place: u32,
    ) -> Result<BlockCopies<'a>, MissingPiece> {
        let page = geometry.place_page(segment, place);
        let aligned = geometry.first_page(segment).plus(place * 2 / PIECE_PAGES * PIECE_PAGES);
        let wanted = (aligned, PIECE_PAGES);
        let piece = piece.filter(|piece| piece.is_at(aligned, PIECE_PAGES)).ok_or(wanted)?;
        let (Some(first), Some(second)) = (piece.page(page), piece.page(page.plus(1))) else {
            unreachable!("a place outside of its piece")
        };
        let parse = |bytes: Result<&'a [u8], ()>| {
            bytes.ok().and_then(|bytes| block::parse(bytes, key, page, self.shard))
        };
        Ok(BlockCopies {
            copies: [parse(first), parse(second)],
            unreadable: first.is_err() && second.is_err(),
        })
    }

    fn note_difference(&mut self, differs: bool, page: Page) {
        if differs {
            sometimes!(CopyDamaged);
            self.heal = true;
            self.findings.push(Finding { sector: page.sector(), damage: Damage::JournalCopy });
        }
    }
}
