//! Opening a disk: superblocks, journals, a last flush. Formatting a blank one. Sections 3, 4 and 9 of `docs/format.md`.
//!
//! Invariants:
//! - Nothing is written to a disk that is not blank and whose superblock is not of this format.
//! - Reads in flight are bounded by the lanes; a piece that cannot be read is read again page by page.
//! - A page counts as unreadable only after several failures, each between two reads of other pages
//!   that succeed. So a disk that is away for a while loses nothing.
//! - Opening twice gives the same: what must change is gathered, and written as a group like any other.

mod blank;
mod finding;
mod superblocks;

pub use finding::{Damage, Finding};

use crate::backing::{Backing, Purpose};
use crate::group::Pending;
use crate::index::Index;
use crate::layout::{PAGE_BYTES, PIECE_PAGES, Page, ShardId, pages_of, superblock_pieces};
use crate::outcome::{Reason, State, WhyReadOnly};
use crate::rebuild::Rebuild;
use crate::record;
use crate::replay::{Dropped, Replay};
use crate::segments::Segments;
use crate::store::{Shard, Store};
use crate::superblock::Superblock;
use crate::types::Uid;
use alloc::boxed::Box;
use alloc::vec::Vec;
use machine::Sector;
use sometimes::sometimes;

/// Pieces that are read at the same time.
pub(crate) const LANES: usize = 8;
/// The most findings that are kept; damage beyond that is mended or served around all the same.
const FINDINGS_MAX: usize = 1000;
/// Failures after which a page counts as unreadable. Only those count that lie between two successful
/// reads of other pages.
const TRIES: u8 = 10;
/// The same in a rebuild, where an unreadable page costs at most one message.
const TRIES_IN_REBUILD: u8 = 2;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    Superblocks,
    LookingForUse,
    FormatFirst,
    FormatRest,
    Replaying,
    Rebuilding,
    LastFlush,
}

/// A piece of the disk in memory.
pub(crate) struct Piece {
    pub(crate) page: Page,
    pub(crate) bytes: Box<[u8]>,
    /// Pages that could not be read, a bit each.
    unreadable: u8,
    /// Pages that are being read one by one.
    left: u8,
    /// How often they failed between two successful reads of other pages.
    tries: u8,
    /// A read of another page succeeded before they were requested last.
    was_proved: bool,
}

impl Piece {
    /// The page's bytes; an error when it was unreadable, `None` when it lies outside of the piece.
    pub(crate) fn page(&self, page: Page) -> Option<Result<&[u8], ()>> {
        let number = page.0.checked_sub(self.page.0)?;
        let start = number as usize * PAGE_BYTES;
        let bytes = self.bytes.get(start..start + PAGE_BYTES)?;
        Some(if self.unreadable >> number & 1 == 1 { Err(()) } else { Ok(bytes) })
    }

    pub(crate) fn is(&self, page: Page, pages: u32) -> bool {
        self.page == page && self.bytes.len() == pages as usize * PAGE_BYTES
    }

    pub(crate) fn is_readable(&self) -> bool {
        self.unreadable == 0
    }

    /// Whether pages could not be read that may be readable later.
    fn waits(&self) -> bool {
        self.unreadable != 0 && self.left == 0 && self.tries < TRIES
    }
}

#[derive(Default)]
struct Lane {
    piece: Option<Piece>,
    replay: Option<Box<Replay>>,
}

/// What is known while a disk is opened.
pub(crate) struct Opening {
    phase: Phase,
    pub(crate) inspect: bool,
    disk_pages: u32,
    look: Option<blank::Look>,
    lanes: Vec<Lane>,
    /// Another page is being read, to see whether the disk works.
    is_proving: bool,
    next_shard: usize,
    /// Requests of the phase that have not completed.
    left: u32,
    /// Shards to rebuild, a bit each.
    pub(crate) damaged: u64,
    dropped: Vec<Dropped>,
    pub(crate) rebuild: Option<Rebuild>,
}

impl Store {
    pub(crate) fn begin_opening(&mut self, sectors: u64, inspect: bool) {
        let disk_pages = pages_of(sectors);
        let lanes = (0..LANES).map(|_| Lane::default()).collect();
        let pieces = superblock_pieces(disk_pages);
        self.opening = Some(Box::new(Opening {
            phase: Phase::Superblocks,
            inspect,
            disk_pages,
            look: None,
            lanes,
            is_proving: false,
            next_shard: 0,
            left: pieces.len() as u32,
            damaged: 0,
            dropped: Vec::new(),
            rebuild: None,
        }));
        for (page, lane) in pieces.into_iter().zip(0..) {
            self.read_piece(lane, page, PIECE_PAGES);
        }
    }

    /// Reads pages for a lane, which goes on when they are there.
    pub(crate) fn read_piece(&mut self, lane: u8, page: Page, pages: u32) {
        let bytes = alloc::vec![0; pages as usize * PAGE_BYTES].into_boxed_slice();
        let Some(opening) = &mut self.opening else { return };
        let tries = match opening.phase {
            _ if opening.inspect => TRIES,
            Phase::Rebuilding => TRIES - TRIES_IN_REBUILD,
            _ => 0,
        };
        if let Some(known) = opening.lanes.get_mut(usize::from(lane)) {
            known.piece = Some(Piece { page, bytes: Box::default(), unreadable: 0, left: 0, tries, was_proved: false });
            self.backing.read(page, bytes, Purpose::Piece { lane, page: None });
        }
    }

    pub(crate) fn piece_read(&mut self, lane: u8, page: Option<u8>, ok: bool, buffer: Box<[u8]>) {
        let Some(opening) = &mut self.opening else { return };
        let Some(piece) = opening.lanes.get_mut(usize::from(lane)).and_then(|lane| lane.piece.as_mut()) else { return };
        match page {
            None if ok => piece.bytes = buffer,
            None => {
                // One bad sector fails the whole piece: find out which.
                piece.bytes = alloc::vec![0; buffer.len()].into_boxed_slice();
                piece.unreadable = (u16::MAX >> (16 - buffer.len() / PAGE_BYTES)) as u8;
                return self.read_pages(lane);
            }
            Some(number) => {
                let start = usize::from(number) * PAGE_BYTES;
                match piece.bytes.get_mut(start..start + PAGE_BYTES) {
                    Some(place) if ok && buffer.len() == PAGE_BYTES => place.copy_from_slice(&buffer),
                    _ => piece.unreadable |= 1 << number,
                }
                piece.left -= 1;
                if piece.left > 0 || piece.waits() {
                    return;
                }
            }
        }
        self.piece_arrived(lane);
    }

    /// Reads the pages of a lane's piece that could not be read.
    fn read_pages(&mut self, lane: u8) {
        let piece = self.opening.as_mut().and_then(|opening| opening.lanes.get_mut(usize::from(lane))?.piece.as_mut());
        let Some(piece) = piece else { return };
        let unreadable = core::mem::take(&mut piece.unreadable);
        piece.left = unreadable.count_ones() as u8;
        for number in (0..8).filter(|number| unreadable >> number & 1 == 1) {
            let single = alloc::vec![0; PAGE_BYTES].into_boxed_slice();
            let purpose = Purpose::Piece { lane, page: Some(number) };
            self.backing.read(piece.page.plus(u32::from(number)), single, purpose);
        }
    }

    /// The first sector that opening waits for, because the disk could not read it. Opening goes on
    /// when the disk can read it, or when [`Store::read_again`] was called often enough.
    pub fn unreadable(&self) -> Option<Sector> {
        let mut pieces = self.opening.iter().flat_map(|opening| &opening.lanes).filter_map(|lane| lane.piece.as_ref());
        let piece = pieces.find(|piece| piece.waits())?;
        Some(piece.page.plus(piece.unreadable.trailing_zeros()).sector())
    }

    /// Reads the pages that opening waits for again, if the disk can read another page. To be called
    /// about every second while there is an [`Store::unreadable`] sector.
    pub fn read_again(&mut self) {
        let waits = self.unreadable().is_some();
        let Some(opening) = self.opening.as_mut().filter(|opening| waits && !opening.is_proving) else { return };
        opening.is_proving = true;
        // Another page each time: one page may be bad itself, or come from a cache while the disk is
        // away.
        let page = Page((self.random.number() % u64::from(opening.disk_pages)) as u32);
        self.backing.read(page, alloc::vec![0; PAGE_BYTES].into_boxed_slice(), Purpose::Proof);
    }

    /// Whether the disk could read another page.
    pub(crate) fn proof_read(&mut self, ok: bool) {
        if let Some(opening) = &mut self.opening {
            opening.is_proving = false;
        }
        for lane in 0..LANES as u8 {
            let known = self.opening.as_mut().and_then(|opening| opening.lanes.get_mut(usize::from(lane)));
            let Some(piece) = known.and_then(|lane| lane.piece.as_mut()) else { continue };
            if !ok {
                piece.was_proved = false;
            } else if piece.waits() {
                piece.tries += u8::from(piece.was_proved);
                piece.was_proved = true;
                if piece.waits() { self.read_pages(lane) } else { self.piece_arrived(lane) }
            }
        }
    }

    fn piece_arrived(&mut self, lane: u8) {
        let Some(opening) = &mut self.opening else { return };
        match opening.phase {
            Phase::Superblocks => {
                opening.left -= 1;
                if opening.left == 0 {
                    self.superblocks_read();
                }
            }
            Phase::LookingForUse => self.looked(lane),
            Phase::Replaying => self.replay(lane),
            Phase::Rebuilding => {
                let piece = opening.lanes.get_mut(usize::from(lane)).and_then(|lane| lane.piece.take());
                if let Some(piece) = piece {
                    self.rebuild_piece(lane, &piece);
                }
            }
            Phase::FormatFirst | Phase::FormatRest | Phase::LastFlush => {}
        }
    }

    pub(crate) fn note(&mut self, sector: Sector, damage: Damage) {
        if self.findings.len() < FINDINGS_MAX {
            self.findings.push(Finding { sector, damage });
        }
    }

    pub(crate) fn opening_flushed(&mut self, ok: bool) {
        let Some(opening) = &self.opening else { return };
        match opening.phase {
            Phase::LastFlush => {
                self.opening = None;
                self.state = if ok { State::Serving } else { State::ReadOnly(WhyReadOnly::LastFlushFailed) };
            }
            _ if !ok => self.refuse(Reason::FormatFailed),
            Phase::FormatFirst => {
                let [first, second, third, _] = self.superblock.geometry.slots();
                self.format_slots(Phase::FormatRest, &[first, second, third]);
            }
            _ => {
                self.is_new = true;
                self.segments = Segments::new(self.superblock.geometry);
                self.begin_replay();
            }
        }
    }

    fn begin_replay(&mut self) {
        for number in ShardId::all() {
            let index = Index::of_shard(number);
            if let Some(shard) = self.shard_mut(number) {
                shard.index = index;
            }
        }
        if let Some(opening) = &mut self.opening {
            opening.phase = Phase::Replaying;
            opening.left = LANES as u32;
        }
        for lane in 0..LANES as u8 {
            self.replay(lane);
        }
    }

    /// Goes on with a lane: its shard's journal, or the next shard.
    fn replay(&mut self, number: u8) {
        loop {
            let Some(opening) = &mut self.opening else { return };
            let Some(lane) = opening.lanes.get_mut(usize::from(number)) else { return };
            let Some(mut replay) = lane.replay.take() else {
                let Some((shard, root)) = opening.next_root(&self.superblock) else {
                    opening.left -= 1;
                    if opening.left == 0 {
                        self.replayed();
                    }
                    return;
                };
                let index = self.shards.get_mut(shard.index()).map(|shard| core::mem::take(&mut shard.index));
                let replay = Replay::new(shard, root, index.unwrap_or_default());
                if let Some(lane) = opening.lanes.get_mut(usize::from(number)) {
                    lane.piece = None;
                    lane.replay = Some(Box::new(replay));
                }
                continue;
            };
            match replay.step(lane.piece.as_ref(), &self.superblock.key, self.superblock.geometry) {
                Some((page, pages)) => {
                    lane.replay = Some(replay);
                    return self.read_piece(number, page, pages);
                }
                None => self.shard_replayed(*replay),
            }
        }
    }

    fn shard_replayed(&mut self, replay: Replay) {
        let number = replay.shard;
        let bit = 1 << number.0;
        let (heal, damaged) = (replay.heal, replay.damaged);
        for finding in replay.findings {
            self.note(finding.sector, finding.damage);
        }
        if let Some(opening) = &mut self.opening {
            opening.damaged |= if damaged { bit } else { 0 };
            opening.dropped.extend(replay.dropped);
        }
        self.heal |= if heal || damaged { bit } else { 0 };
        if let Some(shard) = self.shards.get_mut(number.index()) {
            shard.index = replay.index;
            shard.journal = Some(replay.journal);
        }
    }

    /// All journals are read: whose is which segment?
    fn replayed(&mut self) {
        for (shard, number) in self.shards.iter().zip(0..) {
            for segment in shard.journal.iter().flat_map(|journal| &journal.chain) {
                self.segments.claim_journal(*segment, ShardId(number));
            }
        }
        for number in ShardId::all() {
            self.claim_bodies(number);
        }
        let Some(opening) = &mut self.opening else { return };
        if opening.damaged != 0 {
            opening.phase = Phase::Rebuilding;
            return self.begin_rebuild();
        }
        self.index_complete();
    }

    fn claim_bodies(&mut self, number: ShardId) {
        let Some(shard) = self.shards.get(number.index()) else { return };
        let mut misplaced = Vec::new();
        for account in shard.index.accounts.values() {
            for entry in account.mailboxes.values().flat_map(|mailbox| mailbox.messages.iter()) {
                for (page, pages) in shard.index.chunks(entry) {
                    if !self.segments.claim_body(page, pages, number) {
                        misplaced.push((page, account.id, entry.uid));
                    }
                }
            }
        }
        for (page, account, uid) in misplaced {
            self.note(page.sector(), Damage::Misplaced(account, Uid(uid)));
        }
    }

    /// The index is whole: makes it ready to be served.
    pub(crate) fn index_complete(&mut self) {
        let Some(opening) = &mut self.opening else { return };
        opening.phase = Phase::LastFlush;
        let inspect = opening.inspect;
        let dropped = core::mem::take(&mut opening.dropped);
        self.drop_torn(dropped);
        let mut nameless = Vec::new();
        for shard in &mut self.shards {
            shard.index.guid_next += 1 + (self.random.number() & 0xFFFF);
            self.resident_bytes += shard.index.resident_bytes();
            for account in shard.index.accounts.values() {
                if !account.is_named() {
                    nameless.push(account.id);
                }
                let names = core::iter::once(&account.address).chain(&account.aliases);
                self.directory.extend(names.filter(|name| !name.is_empty()).map(|name| (name.clone(), account.id)));
            }
        }
        for id in nameless {
            self.note(Sector(0), Damage::Nameless(id));
        }
        self.segments.opened();
        self.refresh_reserve();
        if inspect {
            self.opening = None;
            self.state = State::Serving;
        } else {
            self.backing.flush();
        }
    }

    /// Journals that torn messages are gone, before later groups make them look acknowledged. Until
    /// that is durable their pages are not free: if the disk returned wrong bytes for a while only, the
    /// next opening may find the messages whole.
    fn drop_torn(&mut self, dropped: Vec<Dropped>) {
        for mut torn in dropped {
            sometimes!(TornMessageDropped);
            let number = torn.account.shard();
            torn.pages.retain(|(page, count)| self.segments.claim_pinned(*page, *count, number));
            if let Some(shard) = self.shards.get_mut(number.index()) {
                shard.dropped.push(torn);
                self.dirty |= 1 << number.0;
            }
        }
        for shard in &mut self.shards {
            shard.gather_drops();
        }
    }
}

impl Shard {
    /// Gathers that the torn messages are gone; whether there are any.
    pub(crate) fn gather_drops(&mut self) -> bool {
        for Dropped { account, mailbox, uid, pages, arrival } in &self.dropped {
            let Some(known) = self.index.mailbox_mut(*account, *mailbox) else { continue };
            let modseq = known.next_modseq();
            record::put_removed(&mut self.gathered, *account, *mailbox, modseq, &[(*uid, *uid)]);
            if let Some(key) = arrival {
                record::put_note(&mut self.gathered, *account, key, &[]);
            }
            self.pending.extend(pages.iter().map(|(page, count)| Pending::Drop(*page, *count)));
        }
        !self.dropped.is_empty()
    }
}

impl Opening {
    fn next_root(&mut self, superblock: &Superblock) -> Option<(ShardId, crate::superblock::Root)> {
        loop {
            let number = self.next_shard;
            let root = superblock.roots.get(number)?;
            self.next_shard += 1;
            if let Some(root) = root {
                return Some((ShardId(number as u8), *root));
            }
        }
    }
}
