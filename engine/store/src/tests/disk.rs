//! A disk in memory with a volatile cache, as hostile as section 1 of `docs/format.md` allows.
//!
//! Invariant: a write is durable only after the completion of a flush that was queued after the
//! write completed.

use crate::fsck::{ReadSectors, UnreadableSectors};
use crate::layout::{PAGE_BYTES, PAGE_SECTORS};
use crate::superblock::Format;
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use chance::Dice;
use core::ops::Range;
use machine::{Disk, DiskCompletion, DiskError, DiskOperation, DiskRequest, SECTOR_BYTES, Sector};

type SectorBytes = [u8; SECTOR_BYTES];

/// A durable sector. If the words of a sector count up by one, only the first word is stored. With
/// bodies of such octets, a disk of many gigabytes fits into memory.
#[derive(Clone)]
enum Durable {
    Counting(u64),
    Bytes(Box<SectorBytes>),
}

impl Durable {
    fn of(bytes: &[u8]) -> Durable {
        let word = |at: usize| bytes[at..at + 8].try_into().map(u64::from_le_bytes).unwrap();
        let first = word(0);
        match (8..SECTOR_BYTES).step_by(8).all(|at| word(at) == first.wrapping_add(at as u64 / 8)) {
            true => Durable::Counting(first),
            false => Durable::Bytes(Box::new(bytes.try_into().unwrap())),
        }
    }

    fn bytes(&self) -> SectorBytes {
        match self {
            Durable::Bytes(bytes) => **bytes,
            Durable::Counting(first) => {
                let mut bytes = [0; SECTOR_BYTES];
                for (word, number) in bytes.chunks_mut(8).zip(0..) {
                    word.copy_from_slice(&first.wrapping_add(number).to_le_bytes());
                }
                bytes
            }
        }
    }
}

/// A write that is not durable: its sectors, and the time of its completion.
#[derive(Clone)]
struct Volatile {
    sector: u64,
    bytes: Box<[u8]>,
    completed: Option<u64>,
    /// The time at which the device reported a failure of the write. A cut may still bring the
    /// write back, until durable data replaces it.
    failed: Option<u64>,
}

/// The effect of a power cut on unflushed data.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Cut {
    /// Dice decide for every sector: old, any version written, or garbage. Garbage may hit the
    /// whole page.
    Dice,
    /// This number of first writes reached the disk, the other writes did not.
    Prefix(usize),
    /// As `Prefix`. Of the next write, this sector is garbage, and the sectors before it are new.
    TornAt(usize, usize),
    /// Only these sectors reached the disk: of the write with each number, the sectors in the
    /// range.
    Only(&'static [(usize, Range<usize>)]),
}

/// The effect of a power cut on an unflushed sector.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum CutEffect {
    Old,
    New,
    Garbage,
}

#[derive(Clone)]
pub(crate) struct TestDisk {
    durable: BTreeMap<u64, Durable>,
    sectors: u64,
    volatile: Vec<Volatile>,
    queue: Vec<(DiskRequestCopy, u64)>,
    clock: u64,
    seed: u64,
    /// The format that a store gives to the disk if the disk is blank.
    pub(crate) format: Format,
    /// A store that opens the disk must convert it to the newest format.
    pub(crate) is_to_be_converted: bool,
    pub(crate) dice: Dice,
    pub(crate) unreadable: BTreeSet<u64>,
    pub(crate) hold_reads: bool,
    pub(crate) fail_reads: bool,
    /// The next read of this sector returns wrong data, once.
    pub(crate) wrong_once: Option<u64>,
    /// After that read, all reads fail.
    pub(crate) fails_after_wrong: bool,
    pub(crate) fail_writes: bool,
    pub(crate) fail_flushes: bool,
    pub(crate) writes: u64,
    pub(crate) reads: u64,
    pub(crate) sectors_read: u64,
    pub(crate) flushes: u64,
    pub(crate) requests_most: usize,
    /// The sectors that were read since a test last cleared this set.
    pub(crate) looked_at: BTreeSet<u64>,
}

#[derive(Clone)]
struct DiskRequestCopy {
    token: machine::DiskToken,
    operation: DiskOperation,
    sector: Sector,
    buffer: Box<[u8]>,
}

impl TestDisk {
    /// The random seed for a store that opens this disk.
    pub(crate) fn store_seed(&self) -> [u8; 32] {
        [self.seed.wrapping_add(self.writes) as u8; 32]
    }

    pub(crate) fn new(bytes: u64, seed: u64) -> TestDisk {
        TestDisk {
            durable: BTreeMap::new(),
            sectors: bytes / SECTOR_BYTES as u64,
            volatile: Vec::new(),
            queue: Vec::new(),
            clock: 0,
            seed,
            format: Format::Four,
            is_to_be_converted: false,
            dice: Dice::new(seed),
            unreadable: BTreeSet::new(),
            hold_reads: false,
            fail_reads: false,
            wrong_once: None,
            fails_after_wrong: false,
            fail_writes: false,
            fail_flushes: false,
            writes: 0,
            reads: 0,
            sectors_read: 0,
            flushes: 0,
            requests_most: 0,
            looked_at: BTreeSet::new(),
        }
    }

    /// This disk, with the format that a store gives it if it is blank.
    pub(crate) fn of_format(self, format: Format) -> TestDisk {
        TestDisk { format, ..self }
    }

    pub(crate) fn disk(&self) -> Disk {
        Disk { sectors: self.sectors, durable: true }
    }

    pub(crate) fn request(&mut self, request: DiskRequest) {
        let DiskRequest { token, operation, sector, buffer } = request;
        if operation == DiskOperation::Write {
            self.volatile.push(Volatile {
                sector: sector.0,
                bytes: buffer.clone(),
                completed: None,
                failed: None,
            });
        }
        self.queue.push((DiskRequestCopy { token, operation, sector, buffer }, self.clock));
        self.requests_most = self.requests_most.max(self.queue.len());
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.queue
            .iter()
            .all(|(request, _)| self.hold_reads && request.operation == DiskOperation::Read)
    }

    /// Completes one of the queued requests, chosen at random.
    pub(crate) fn complete(&mut self) -> Option<DiskCompletion> {
        let held =
            |request: &DiskRequestCopy| self.hold_reads && request.operation == DiskOperation::Read;
        let free: Vec<usize> =
            (0..self.queue.len()).filter(|number| !held(&self.queue[*number].0)).collect();
        if free.is_empty() {
            return None;
        }
        let chosen = free[self.dice.below(free.len() as u64) as usize];
        let (request, queued) = self.queue.swap_remove(chosen);
        let DiskRequestCopy { token, operation, sector, mut buffer } = request;
        self.clock += 1;
        let result = match operation {
            DiskOperation::Read => self.read_now(sector.0, &mut buffer),
            DiskOperation::Write => self.write_now(sector.0, &buffer),
            DiskOperation::Flush => self.flush_now(queued),
        };
        Some(DiskCompletion { token, operation, result, buffer })
    }

    fn read_now(&mut self, sector: u64, buffer: &mut [u8]) -> Result<(), DiskError> {
        self.reads += 1;
        self.sectors_read += (buffer.len() / SECTOR_BYTES) as u64;
        for (bytes, number) in buffer.chunks_mut(SECTOR_BYTES).zip(sector..) {
            self.looked_at.insert(number);
            if self.fail_reads || self.unreadable.contains(&number) {
                return Err(DiskError::Failed);
            }
            if number >= self.sectors {
                return Err(DiskError::OutOfRange);
            }
            bytes.copy_from_slice(&self.sector_seen(number));
            if self.wrong_once == Some(number) {
                self.wrong_once = None;
                bytes[7] ^= 1;
                self.fail_reads = self.fails_after_wrong;
            }
        }
        Ok(())
    }

    fn write_now(&mut self, sector: u64, buffer: &[u8]) -> Result<(), DiskError> {
        self.writes += 1;
        assert!(
            sector + (buffer.len() / SECTOR_BYTES) as u64 <= self.sectors,
            "a write past the end"
        );
        assert!(
            sector.is_multiple_of(PAGE_SECTORS) && buffer.len().is_multiple_of(PAGE_BYTES),
            "not whole pages"
        );
        let write = self
            .volatile
            .iter_mut()
            .find(|write| {
                write.completed.is_none()
                    && write.failed.is_none()
                    && write.sector == sector
                    && *write.bytes == *buffer
            })
            .unwrap();
        if self.fail_writes {
            write.failed = Some(self.clock);
            self.fail_by_dice();
            return Err(DiskError::Failed);
        }
        write.completed = Some(self.clock);
        for number in sector..sector + (buffer.len() / SECTOR_BYTES) as u64 {
            self.unreadable.remove(&number);
        }
        Ok(())
    }

    fn flush_now(&mut self, queued: u64) -> Result<(), DiskError> {
        self.flushes += 1;
        if self.fail_flushes {
            let clock = self.clock;
            for write in &mut self.volatile {
                write.failed = write.completed.take().map(|_| clock).or(write.failed);
            }
            self.fail_by_dice();
            return Err(DiskError::Failed);
        }
        let (mut done, left): (Vec<_>, Vec<_>) = self
            .volatile
            .drain(..)
            .partition(|write| write.completed.is_some_and(|completed| completed <= queued));
        self.volatile = left;
        done.sort_by_key(|write| write.completed);
        for write in done {
            for (bytes, number) in write.bytes.chunks(SECTOR_BYTES).zip(write.sector..) {
                self.durable.insert(number, Durable::of(bytes));
            }
            let sectors = (write.bytes.len() / SECTOR_BYTES) as u64;
            self.volatile.retain(|other| {
                let is_over = other.failed.is_some_and(|failed| Some(failed) <= write.completed);
                !(is_over && (write.sector..write.sector + sectors).contains(&other.sector))
            });
        }
        Ok(())
    }

    /// Decides the effect of failed writes, sector by sector: a sector may be in the device's
    /// cache, be on the disk, be lost, or reappear at a later cut.
    fn fail_by_dice(&mut self) {
        let (failed, left): (Vec<_>, Vec<_>) = self
            .volatile
            .drain(..)
            .partition(|write| write.failed.is_some() && write.bytes.len() > SECTOR_BYTES);
        self.volatile = left;
        for write in failed {
            let mood = self.dice.below(5);
            for (bytes, number) in write.bytes.chunks(SECTOR_BYTES).zip(write.sector..) {
                let (completed, failed) = match if mood == 4 { self.dice.below(4) } else { mood } {
                    0 => (write.failed, None),
                    1 => (None, write.failed),
                    2 => {
                        self.durable.insert(number, Durable::of(bytes));
                        continue;
                    }
                    _ => continue,
                };
                self.volatile.push(Volatile {
                    sector: number,
                    bytes: bytes.into(),
                    completed,
                    failed,
                });
            }
        }
    }

    /// The bytes that the device returns now: the newest completed write.
    fn sector_seen(&self, number: u64) -> SectorBytes {
        let newest = self
            .volatile
            .iter()
            .filter(|write| write.completed.is_some() && write.covers(number))
            .max_by_key(|write| write.completed);
        match newest {
            Some(write) => write.at(number),
            None => self.peek(number),
        }
    }

    /// Restarts the machine, while the device keeps its power and its cache.
    pub(crate) fn forget_requests(&mut self) {
        self.queue.clear();
        self.volatile.retain(|write| write.completed.is_some());
    }

    /// The newest unflushed write to this sector.
    pub(crate) fn newest(&self, number: u64) -> Option<SectorBytes> {
        self.volatile.iter().rev().find(|write| write.covers(number)).map(|write| write.at(number))
    }

    /// The number of writes that a cut could undo now.
    pub(crate) fn volatile_writes(&self) -> usize {
        self.volatile.len()
    }

    /// The sectors that a cut could undo now.
    pub(crate) fn unflushed(&self) -> Vec<u64> {
        let sectors = |write: &Volatile| {
            write.sector..write.sector + (write.bytes.len() / SECTOR_BYTES) as u64
        };
        self.volatile.iter().flat_map(sectors).collect::<BTreeSet<u64>>().into_iter().collect()
    }

    /// The unflushed sectors that a cut would change, in order.
    pub(crate) fn changing(&self) -> Vec<u64> {
        let newest = |sector| self.volatile.iter().rev().find(|write| write.covers(sector));
        let changes = |sector: &u64| {
            newest(*sector).is_some_and(|write| write.at(*sector) != self.peek(*sector))
        };
        self.unflushed().into_iter().filter(changes).collect()
    }

    /// Cuts the power. `fate` decides for each unflushed sector. `New` is its newest version.
    pub(crate) fn cut_each(&mut self, fate: impl Fn(u64) -> CutEffect) {
        self.queue.clear();
        for write in core::mem::take(&mut self.volatile) {
            for (bytes, number) in write.bytes.chunks(SECTOR_BYTES).zip(write.sector..) {
                let bytes = match fate(number) {
                    CutEffect::Old => continue,
                    CutEffect::New => Durable::of(bytes),
                    CutEffect::Garbage => Durable::of(&self.garbage()),
                };
                self.durable.insert(number, bytes);
            }
        }
    }

    /// Cuts the power. All requests are gone, and `cut` decides the fate of unflushed data.
    pub(crate) fn cut(&mut self, cut: Cut) {
        self.queue.clear();
        let volatile = core::mem::take(&mut self.volatile);
        match cut {
            Cut::Dice => self.cut_by_dice(&volatile),
            Cut::Prefix(count) => {
                volatile.iter().take(count).for_each(|write| self.arrive(write, usize::MAX))
            }
            Cut::Only(arrived) => {
                for (number, sectors) in arrived {
                    self.arrive_in(&volatile[*number], sectors.clone());
                }
            }
            Cut::TornAt(count, sector) => {
                volatile.iter().take(count).for_each(|write| self.arrive(write, usize::MAX));
                if let Some(torn) = volatile.get(count) {
                    self.arrive(torn, sector);
                    let garbage = self.garbage();
                    let sectors = torn.bytes.len() / SECTOR_BYTES;
                    self.durable
                        .insert(torn.sector + (sector % sectors) as u64, Durable::of(&garbage));
                }
            }
        }
    }

    fn arrive(&mut self, write: &Volatile, sectors: usize) {
        self.arrive_in(write, 0..sectors);
    }

    fn arrive_in(&mut self, write: &Volatile, sectors: Range<usize>) {
        let all = write.bytes.chunks(SECTOR_BYTES).zip(write.sector..);
        for (bytes, number) in all.skip(sectors.start).take(sectors.len()) {
            self.durable.insert(number, Durable::of(bytes));
        }
    }

    fn cut_by_dice(&mut self, volatile: &[Volatile]) {
        let mut versions: BTreeMap<u64, Vec<SectorBytes>> = BTreeMap::new();
        for write in volatile {
            for (bytes, number) in write.bytes.chunks(SECTOR_BYTES).zip(write.sector..) {
                versions.entry(number).or_default().push(bytes.try_into().unwrap());
            }
        }
        // This cut loses almost nothing or almost everything, or it tears writes.
        let mood = self.dice.below(4);
        for (number, versions) in versions {
            let version = versions[self.dice.below(versions.len() as u64) as usize];
            let last = *versions.last().unwrap();
            match (mood, self.dice.below(8)) {
                (0, 0..=6) | (2, 0..=3) => {}
                (1, 0..=6) => self.poke(number, last),
                (2 | 3, 4..=5) => self.poke(number, version),
                (3, 0..=3) => self.poke(number, last),
                (3, 6) => {
                    let page = number / PAGE_SECTORS * PAGE_SECTORS;
                    for neighbour in page..page + PAGE_SECTORS {
                        let garbage = self.garbage();
                        self.poke(neighbour, garbage);
                    }
                }
                _ => {
                    let garbage = self.garbage();
                    self.poke(number, garbage);
                }
            }
        }
    }

    fn garbage(&mut self) -> SectorBytes {
        let mut bytes = [0; SECTOR_BYTES];
        for word in bytes.chunks_mut(8) {
            word.copy_from_slice(&self.dice.roll().to_le_bytes());
        }
        bytes
    }

    /// The sectors that have durable data.
    pub(crate) fn used_sectors(&self) -> Vec<u64> {
        self.durable.keys().copied().collect()
    }

    pub(crate) fn peek(&self, sector: u64) -> SectorBytes {
        self.durable.get(&sector).map_or([0; SECTOR_BYTES], Durable::bytes)
    }

    pub(crate) fn poke(&mut self, sector: u64, bytes: SectorBytes) {
        self.durable.insert(sector, Durable::of(&bytes));
    }

    /// Flips one bit of a durable sector.
    pub(crate) fn rot(&mut self, sector: u64) {
        let at = self.dice.below(SECTOR_BYTES as u64) as usize;
        self.rot_at(sector, at);
    }

    pub(crate) fn rot_at(&mut self, sector: u64, at: usize) {
        let mut bytes = self.peek(sector);
        bytes[at] ^= 1 << self.dice.below(8);
        self.poke(sector, bytes);
    }

    pub(crate) fn same_as(&self, other: &TestDisk) -> bool {
        let sectors: BTreeSet<u64> =
            self.durable.keys().chain(other.durable.keys()).copied().collect();
        self.volatile.is_empty()
            && sectors.into_iter().all(|sector| self.peek(sector) == other.peek(sector))
    }

    pub(crate) fn resize(&mut self, bytes: u64) {
        self.sectors = bytes / SECTOR_BYTES as u64;
    }
}

impl Volatile {
    fn covers(&self, number: u64) -> bool {
        (self.sector..self.sector + (self.bytes.len() / SECTOR_BYTES) as u64).contains(&number)
    }

    fn at(&self, number: u64) -> SectorBytes {
        let start = (number - self.sector) as usize * SECTOR_BYTES;
        self.bytes[start..start + SECTOR_BYTES].try_into().unwrap()
    }
}

impl ReadSectors for TestDisk {
    fn sectors(&self) -> u64 {
        self.sectors
    }

    fn read(&mut self, sector: Sector, bytes: &mut [u8]) -> Result<(), UnreadableSectors> {
        self.read_now(sector.0, bytes).map_err(|_| UnreadableSectors)
    }
}
