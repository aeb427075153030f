//! Opening a disk: reads the superblocks, replays the journals, and makes a last flush. A blank
//! disk is formatted. Sections 3, 4 and 9 of `docs/format.md`.
//!
//! Invariants:
//! - A disk without a superblock of a known format is written only if it is blank.
//! - Formatting writes slot 3 first. So after a power cut the disk is blank or has a valid slot.
//! - Opening twice gives the same result. The changes of opening are gathered and written as a
//!   group like other changes. Only the superblock may be written before that, after a flush has
//!   made durable the version that was read. If the last life ended without a power cut, that
//!   version may be only in the device's cache.

mod blank;
mod superblocks;

use crate::backing::{Backing, DiskPurpose};
use crate::finding::{Damage, Findings};
use crate::index::Index;
use crate::lanes::{LANES, Lanes, Patience};
use crate::layout::{PAGE_BYTES, PIECE_PAGES, Page, ShardId, pages_of, superblock_pieces};
use crate::outcome::{OpenRefusal, State, WhyReadOnly};
use crate::parts::StoreParts;
use crate::rebuild::Rebuild;
use crate::replay::{Dropped, Replay, Replayed};
use crate::segments::Segments;
use crate::shards::ShardSet;
use crate::superblock::{Format, Root, Superblock};
use crate::types::Uid;
use crate::writing::refresh_reserve;
use alloc::boxed::Box;
use alloc::vec::Vec;
use blank::BlankCheck;
use machine::Sector;
use sometimes::sometimes;
use superblocks::DiskContent;

/// The number of versions that must be written until each of the four slots has a new version.
const RENEWALS_OF_ALL_SLOTS: u8 = 2;

enum Phase {
    /// The number of pieces that have not been read yet.
    Superblocks(usize),
    LookingForUse(BlankCheck),
    /// The number of slots that have not been written yet, and whether they are the last slots.
    Formatting(usize, bool),
    /// The number of lanes that still replay journals.
    Replaying(usize),
    Rebuilding(Rebuild),
    /// The number of slots of another superblock version that have not been written yet.
    Renewing(u8),
    LastFlush,
    /// Opening is over, and the store has this state.
    Ended(State),
}

/// The state of opening a disk.
pub(crate) struct DiskOpening {
    phase: Phase,
    /// The disk is only inspected.
    inspect: bool,
    /// The disk was blank.
    is_new: bool,
    /// The number of pages of the disk, or of a smaller store that was found on the disk.
    disk_pages: u32,
    lanes: Lanes,
    replays: [Option<Box<Replay>>; LANES],
    /// A probe is in flight: the read of a random page, which shows whether the disk works.
    is_probing: bool,
    next_shard: u8,
    /// Shards to rebuild.
    damaged: ShardSet,
    dropped: Vec<Dropped>,
    /// The number of superblock versions to write before the store serves.
    renewals: u8,
    /// The disk has an earlier format, and must be converted to the newest format.
    wants_newest_format: bool,
    /// This life converts the disk, or completes an interrupted conversion.
    is_converted: bool,
}

impl DiskOpening {
    /// Begins to read a disk. `inspect`: the disk is only inspected.
    pub(crate) fn begin(sectors: u64, inspect: bool, parts: &mut StoreParts) -> DiskOpening {
        let disk_pages = pages_of(sectors);
        let mut opening = DiskOpening {
            phase: Phase::Superblocks(0),
            inspect,
            is_new: false,
            disk_pages,
            lanes: Lanes::default(),
            replays: Default::default(),
            is_probing: false,
            next_shard: 0,
            damaged: ShardSet::EMPTY,
            dropped: Vec::new(),
            renewals: 0,
            wants_newest_format: false,
            is_converted: false,
        };
        opening.read_superblocks(parts);
        opening
    }

    /// Reads the pages outside of the segments: the superblock slots and their surroundings.
    fn read_superblocks(&mut self, parts: &mut StoreParts) {
        let (pieces, patience) = (superblock_pieces(self.disk_pages), self.patience());
        self.phase = Phase::Superblocks(pieces.len());
        for (lane, page) in Lanes::all().zip(pieces) {
            self.lanes.read(lane, (page, PIECE_PAGES), patience, &mut parts.backing);
        }
    }

    /// The final state, once the disk is open or opening has failed.
    pub(crate) fn ended(&self) -> Option<State> {
        match self.phase {
            Phase::Ended(state) => Some(state),
            _ => None,
        }
    }

    /// Requests the conversion of a disk of an earlier format to the newest format.
    pub(crate) fn convert(&mut self) {
        self.wants_newest_format = true;
    }

    /// Whether the disk had an earlier format and has the newest format now.
    pub(crate) fn is_converted(&self) -> bool {
        self.is_converted
    }

    /// Whether the disk was blank and was formatted.
    pub(crate) fn is_new(&self) -> bool {
        self.is_new
    }

    /// The first sector that opening waits for, because the disk could not read it.
    pub(crate) fn unreadable(&self) -> Option<Sector> {
        self.lanes.unreadable()
    }

    #[cfg(test)]
    pub(crate) fn is_rebuilding(&self) -> bool {
        matches!(self.phase, Phase::Rebuilding(_))
    }

    /// Reads a random page. If the disk can read it, the unreadable pages are read again.
    pub(crate) fn read_again(&mut self, parts: &mut StoreParts) {
        if self.is_probing || self.unreadable().is_none() {
            return;
        }
        self.is_probing = true;
        // Each probe reads another page. A fixed page may be bad itself, or may come from a cache
        // while the disk fails.
        let page = Page((parts.random.number() % u64::from(self.disk_pages)) as u32);
        parts.backing.read(page, alloc::vec![0; PAGE_BYTES].into_boxed_slice(), DiskPurpose::Probe);
    }

    /// Takes in the result of a probe, the read of a random page.
    pub(crate) fn probe_read(&mut self, ok: bool, parts: &mut StoreParts, findings: &mut Findings) {
        self.is_probing = false;
        for lane in Lanes::all() {
            if self.lanes.probe_read(lane, ok, &mut parts.backing) {
                self.piece_arrived(lane, parts, findings);
            }
        }
    }

    /// Takes in the result of reading a lane's piece, or one page of it.
    pub(crate) fn piece_read(
        &mut self,
        (lane, page): (u8, Option<u8>),
        result: Result<Box<[u8]>, Box<[u8]>>,
        parts: &mut StoreParts,
        findings: &mut Findings,
    ) {
        if self.lanes.arrived(lane, page, result, &mut parts.backing) {
            self.piece_arrived(lane, parts, findings);
        }
    }

    /// Processes the end of a slot's write.
    pub(crate) fn slot_written(&mut self, ok: bool, parts: &mut StoreParts) {
        if let Phase::Renewing(left) = self.phase {
            return self.renewed(ok, left - 1, parts);
        }
        let Phase::Formatting(left, _) = &mut self.phase else {
            unreachable!("a disk that is not formatted")
        };
        *left -= 1;
        if !ok {
            self.refuse(OpenRefusal::FormatFailed);
        } else if *left == 0 {
            parts.backing.flush();
        }
    }

    fn renewed(&mut self, ok: bool, left: u8, parts: &mut StoreParts) {
        match left {
            // After a failed flush it is unknown what the slots contain.
            _ if !ok => self.phase = Phase::Ended(State::ReadOnly(WhyReadOnly::LastFlushFailed)),
            0 => self.flush_last(parts),
            left => self.phase = Phase::Renewing(left),
        }
    }

    /// Processes the end of a flush.
    pub(crate) fn flushed(&mut self, ok: bool, parts: &mut StoreParts, findings: &mut Findings) {
        match self.phase {
            Phase::LastFlush if ok && self.renewals > 0 => self.renew(parts),
            Phase::LastFlush => {
                let state =
                    if ok { State::Serving } else { State::ReadOnly(WhyReadOnly::LastFlushFailed) };
                self.phase = Phase::Ended(state);
            }
            _ if !ok => self.refuse(OpenRefusal::FormatFailed),
            Phase::Formatting(_, false) => {
                let [first, second, third, _] = parts.superblock.geometry.slots();
                self.format_slots(&[first, second, third], true, parts);
            }
            _ => {
                self.is_new = true;
                parts.segments = Segments::new(parts.superblock.geometry);
                self.begin_replay(parts, findings);
            }
        }
    }

    fn patience(&self) -> Patience {
        match self.phase {
            _ if self.inspect => Patience::Once,
            Phase::Rebuilding(_) => Patience::Rebuild,
            _ => Patience::Sure,
        }
    }

    fn refuse(&mut self, reason: OpenRefusal) {
        self.phase = Phase::Ended(State::Refused(reason));
    }

    fn piece_arrived(&mut self, lane: u8, parts: &mut StoreParts, findings: &mut Findings) {
        match &mut self.phase {
            Phase::Superblocks(left) => {
                *left -= 1;
                if *left == 0 {
                    self.superblocks_read(parts, findings);
                }
            }
            Phase::LookingForUse(check) => {
                check.arrived(lane, &mut self.lanes);
                self.look_at_next(lane, parts);
            }
            Phase::Replaying(_) => self.replay(lane, parts, findings),
            Phase::Rebuilding(rebuild) => {
                rebuild.piece_read(lane, &mut self.lanes, parts);
                self.end_rebuild_if_read(parts, findings);
            }
            Phase::Formatting(..) | Phase::Renewing(_) | Phase::LastFlush | Phase::Ended(_) => {}
        }
    }

    fn superblocks_read(&mut self, parts: &mut StoreParts, findings: &mut Findings) {
        match superblocks::content(&self.lanes, self.disk_pages) {
            // The disk has grown since it was formatted: slots 2 and 3 are at the former end of the
            // disk.
            Ok(DiskContent::Store { superblock, .. })
                if superblock.geometry.pages < self.disk_pages =>
            {
                self.disk_pages = superblock.geometry.pages;
                self.read_superblocks(parts);
            }
            Ok(DiskContent::Store {
                superblock,
                damaged,
                has_other_roots,
                is_of_one_format,
                is_partly_converted,
            }) => {
                self.renewals = match superblock.format {
                    // A power cut may have interrupted a conversion. All slots must get format 4.
                    Format::Four if !is_of_one_format => RENEWALS_OF_ALL_SLOTS,
                    Format::Three | Format::Four => u8::from(has_other_roots),
                };
                self.is_converted = is_partly_converted;
                for page in damaged {
                    findings.note(page.sector(), Damage::Superblock);
                    parts.commit.superblock_is_due();
                }
                parts.superblock = *superblock;
                parts.segments = Segments::new(parts.superblock.geometry);
                self.begin_replay(parts, findings);
            }
            Ok(DiskContent::Nothing) => {
                self.phase = Phase::LookingForUse(BlankCheck::at(self.disk_pages, self.patience()));
                Lanes::all().for_each(|lane| self.look_at_next(lane, parts));
            }
            Err(reason) => self.refuse(reason),
        }
    }

    fn look_at_next(&mut self, lane: u8, parts: &mut StoreParts) {
        let Phase::LookingForUse(check) = &mut self.phase else {
            unreachable!("a lane that looks too late")
        };
        match check.next(lane, &mut self.lanes, &mut parts.backing) {
            Some(Ok(())) if self.inspect => self.refuse(OpenRefusal::Blank),
            Some(Ok(())) => {
                parts.superblock.sequence = 1;
                let [.., last] = parts.superblock.geometry.slots();
                self.format_slots(&[last], false, parts);
            }
            Some(Err(reason)) => self.refuse(reason),
            None => {}
        }
    }

    fn format_slots(&mut self, slots: &[Page], are_last: bool, parts: &mut StoreParts) {
        self.phase = Phase::Formatting(slots.len(), are_last);
        let stamp = parts.random.number();
        for page in slots {
            parts.backing.write(*page, parts.superblock.emit(*page, stamp), DiskPurpose::Format);
        }
    }

    fn begin_replay(&mut self, parts: &mut StoreParts, findings: &mut Findings) {
        parts.indexes.begin();
        self.phase = Phase::Replaying(LANES);
        Lanes::all().for_each(|lane| self.replay(lane, parts, findings));
    }

    /// Lets a lane continue its replay, or begin the replay of the next shard's journal.
    fn replay(&mut self, lane: u8, parts: &mut StoreParts, findings: &mut Findings) {
        while self.ended().is_none() {
            let mut replay = match self.replay_of(lane).take() {
                Some(replay) => replay,
                None => {
                    let Some((shard, root)) = self.next_root(&parts.superblock) else {
                        return self.lane_replayed(parts, findings);
                    };
                    self.lanes.take(lane);
                    Box::new(Replay::new(
                        shard,
                        root,
                        parts.superblock.format,
                        parts.indexes.swap(shard, Index::default()),
                    ))
                }
            };
            let (key, geometry) = (&parts.superblock.key, parts.superblock.geometry);
            match replay.step(self.lanes.piece(lane), key, geometry) {
                Some(wanted) => {
                    *self.replay_of(lane) = Some(replay);
                    return self.lanes.read(lane, wanted, self.patience(), &mut parts.backing);
                }
                None => self.shard_replayed(replay.into_replayed(), parts, findings),
            }
        }
    }

    /// The journal that a lane replays.
    fn replay_of(&mut self, lane: u8) -> &mut Option<Box<Replay>> {
        match self.replays.get_mut(usize::from(lane)) {
            Some(replay) => replay,
            None => unreachable!("a lane above the last one"),
        }
    }

    fn next_root(&mut self, superblock: &Superblock) -> Option<(ShardId, Root)> {
        let (shard, root) = ShardId::all()
            .skip(usize::from(self.next_shard))
            .find_map(|shard| superblock.root(shard).map(|root| (shard, root)))?;
        self.next_shard = shard.0 + 1;
        Some((shard, root))
    }

    fn shard_replayed(
        &mut self,
        replayed: Replayed,
        parts: &mut StoreParts,
        findings: &mut Findings,
    ) {
        let Replayed { shard, index, mut journal, heal, damaged, .. } = replayed;
        let Replayed { findings: found, dropped, unknown, .. } = replayed;
        if let Some((kind, page)) = unknown {
            return self.refuse(OpenRefusal::UnknownRecord { kind, sector: page.sector().0 });
        }
        found.into_iter().for_each(|finding| findings.note(finding.sector, finding.damage));
        self.dropped.extend(dropped);
        if damaged {
            self.damaged.insert(shard);
        }
        if heal {
            parts.journals.needs_mending(shard);
        }
        journal.check_checkpoint(&index);
        parts.indexes.swap(shard, index);
        parts.journals.begin(shard, journal);
    }

    /// Ends the work of a lane that has no journal left. After the last lane, segments get owners.
    fn lane_replayed(&mut self, parts: &mut StoreParts, findings: &mut Findings) {
        let Phase::Replaying(left) = &mut self.phase else {
            unreachable!("a lane that replays too late")
        };
        *left -= 1;
        if *left > 0 {
            return;
        }
        for (shard, journal) in parts.journals.iter() {
            for segment in journal.chain() {
                parts.segments.claim_journal(*segment, shard);
            }
        }
        ShardId::all().for_each(|shard| claim_bodies(shard, parts, findings));
        if self.damaged.is_empty() {
            return self.index_complete(parts, findings);
        }
        self.phase = Phase::Rebuilding(Rebuild::new(self.damaged, self.inspect));
        if let Phase::Rebuilding(rebuild) = &mut self.phase {
            rebuild.begin(&mut self.lanes, parts);
        }
        self.end_rebuild_if_read(parts, findings);
    }

    fn end_rebuild_if_read(&mut self, parts: &mut StoreParts, findings: &mut Findings) {
        if let Phase::Rebuilding(rebuild) = &mut self.phase
            && rebuild.is_read()
        {
            rebuild.complete_index(parts, findings);
            self.index_complete(parts, findings);
        }
    }

    /// Prepares the complete index for serving.
    fn index_complete(&mut self, parts: &mut StoreParts, findings: &mut Findings) {
        drop_torn(core::mem::take(&mut self.dropped), parts);
        parts.indexes.opened(&mut parts.random, findings);
        parts.segments.opened();
        refresh_reserve(parts);
        if self.inspect {
            self.phase = Phase::Ended(State::Serving);
            return;
        }
        if self.wants_newest_format && parts.superblock.format == Format::Three {
            parts.superblock.format = Format::Four;
            (self.renewals, self.is_converted) = (RENEWALS_OF_ALL_SLOTS, true);
        }
        self.flush_last(parts);
    }

    fn flush_last(&mut self, parts: &mut StoreParts) {
        self.phase = Phase::LastFlush;
        parts.backing.flush();
    }

    /// Writes the superblock again, into the slots of the previous version. The previous version
    /// refers to segments that will be reused, or has an earlier format.
    fn renew(&mut self, parts: &mut StoreParts) {
        self.renewals -= 1;
        let StoreParts { superblock, random, backing, .. } = parts;
        superblock.sequence += 1;
        let (slots, stamp) = (superblock.geometry.slots(), random.number());
        let numbers = superblock.slot_numbers();
        self.phase = Phase::Renewing(numbers.len() as u8);
        for number in numbers {
            let Some(page) = slots.get(number) else { unreachable!("a slot above the last one") };
            backing.write(*page, superblock.emit(*page, stamp), DiskPurpose::Format);
        }
    }
}

fn claim_bodies(shard: ShardId, parts: &mut StoreParts, findings: &mut Findings) {
    let StoreParts { indexes, segments, .. } = parts;
    let index = indexes.of(shard);
    let mut misplaced = Vec::new();
    for account in index.accounts() {
        for entry in account.mailboxes().flat_map(|mailbox| mailbox.messages().iter()) {
            for (page, pages) in index.chunks(entry) {
                if !segments.claim_body(page, pages, shard) {
                    misplaced.push((page, account.id(), entry.uid));
                }
            }
        }
    }
    for (page, account, uid) in misplaced {
        findings.note(page.sector(), Damage::Misplaced(account, Uid(uid)));
    }
}

/// Journals the removal of torn messages. A later group would make them look acknowledged, so the
/// removal precedes it. Until the removal is durable, their pages are not free. If the disk
/// returned wrong bytes only for a while, the next opening may find the messages intact.
fn drop_torn(dropped: Vec<Dropped>, parts: &mut StoreParts) {
    for mut torn in dropped {
        sometimes!(TornMessageDropped);
        let shard = torn.account.shard();
        torn.pages.retain(|(page, count)| parts.segments.claim_pinned(*page, *count, shard));
        parts.journals.drop_torn(shard, torn);
    }
    parts.journals.gather_drops(&mut parts.indexes);
}
