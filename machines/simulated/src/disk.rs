//! A disk in memory with a volatile write cache.
//!
//! Invariants:
//! - A completed flush makes exactly those writes durable that completed before the flush was
//!   requested.
//! - Outstanding requests may be carried out in any order.
//! - The disk keeps the written contents. A fault of a sector only hides them until the sector is
//!   written again, so the true contents are always known.
//! - After a power cut each written and unflushed sector holds, independently of others, its
//!   durable version, one of the unflushed versions, or garbage.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use chance::Dice;
use machine::{Disk, DiskCompletion, DiskError, DiskOperation, DiskRequest, SECTOR_BYTES, Sector};

pub(crate) type SectorBytes = [u8; SECTOR_BYTES];

/// The most requests that the disk queues.
const QUEUE: usize = 128;

/// How the disk handles requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Mood {
    /// The disk carries out requests at once.
    #[default]
    Works,
    /// The disk carries out a request only when the test calls [`MemoryDisk::carry_out_next`] or
    /// [`MemoryDisk::carry_out_any`].
    Waits,
    /// The disk reports an error for each write. It writes nothing, or with
    /// [`MemoryDisk::carry_out_any`] a random part.
    FailsWrites,
    /// The disk reports an error for each flush. It makes nothing durable, or with
    /// [`MemoryDisk::carry_out_any`] a random part.
    FailsFlushes,
    /// The disk reports an error for each read.
    FailsReads,
    /// The disk reports an error for each request.
    FailsAll,
    /// The disk reports for each request that it is gone.
    IsGone,
}

/// A fault of a sector.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Blemish {
    /// A read of the sector fails.
    Unreadable,
    /// A read of the sector returns these bytes instead of the written ones.
    ReadsAs(Arc<SectorBytes>),
}

/// The disk: durable sectors, written sectors that are not durable yet, and outstanding requests.
#[derive(Default)]
pub struct MemoryDisk {
    /// How the disk handles requests from now on.
    pub mood: Mood,
    durable: BTreeMap<u64, Arc<SectorBytes>>,
    unflushed: BTreeMap<u64, Vec<UnflushedSector>>,
    /// The contents of sectors before their last write.
    before: BTreeMap<u64, Arc<SectorBytes>>,
    blemishes: BTreeMap<u64, Blemish>,
    sectors: u64,
    requested: VecDeque<OutstandingRequest>,
    /// The number of writes that have completed so far.
    writes: u64,
    completed: VecDeque<DiskCompletion>,
    /// The requests that were carried out: a digest of all, their number, the number of failures,
    /// and the last one, for the trace.
    digest: DefaultHasher,
    carried_out: u64,
    failed: u64,
    last: Option<(DiskOperation, Sector, usize)>,
}

/// The bytes of one sector, and the number of the write that wrote them.
struct UnflushedSector {
    number: u64,
    bytes: Arc<SectorBytes>,
}

/// A request, and the number of writes that had completed when it was requested.
struct OutstandingRequest {
    request: DiskRequest,
    writes_before: u64,
}

impl MemoryDisk {
    /// A blank disk of `bytes`, rounded down to whole sectors.
    pub fn blank(bytes: u64) -> MemoryDisk {
        MemoryDisk { sectors: bytes / SECTOR_BYTES as u64, ..MemoryDisk::default() }
    }

    /// The disk after a power cut. Each outstanding request may or may not have been carried out.
    pub fn power_cut(mut self, dice: &mut Dice) -> MemoryDisk {
        while !self.requested.is_empty() && !dice.one_in(3) {
            self.carry_out_any(dice);
        }
        for (sector, versions) in std::mem::take(&mut self.unflushed) {
            // A write ends an earlier fault of its sector.
            self.blemishes.remove(&sector);
            match dice.below(versions.len() as u64 + 2) as usize {
                0 => {}
                1 => {
                    let mut garbage = [0; SECTOR_BYTES];
                    dice.fill(&mut garbage);
                    self.durable.insert(sector, Arc::new(garbage));
                }
                version => {
                    if let Some(written) = versions.get(version - 2) {
                        self.durable.insert(sector, written.bytes.clone());
                    }
                }
            }
        }
        MemoryDisk {
            durable: self.durable,
            before: self.before,
            blemishes: self.blemishes,
            sectors: self.sectors,
            digest: self.digest,
            carried_out: self.carried_out,
            ..MemoryDisk::default()
        }
    }

    /// A copy of the durable contents, without faults, unflushed writes and requests.
    pub(crate) fn truth(&self) -> MemoryDisk {
        MemoryDisk { durable: self.durable.clone(), sectors: self.sectors, ..MemoryDisk::default() }
    }

    /// The durable contents, in the format that [`MemoryDisk::of_image`] reads: the number of
    /// sectors as u64, then for each nonzero sector its number as u64 and its 512 bytes. The
    /// numbers are little-endian.
    pub fn image(&self) -> Vec<u8> {
        let mut image = self.sectors.to_le_bytes().to_vec();
        for (sector, bytes) in
            self.durable.iter().filter(|(_, bytes)| ***bytes != [0; SECTOR_BYTES])
        {
            image.extend_from_slice(&sector.to_le_bytes());
            image.extend_from_slice(&**bytes);
        }
        image
    }

    /// The disk of an image. `None` if the image is malformed.
    pub fn of_image(image: &[u8]) -> Option<MemoryDisk> {
        let (sectors, rest) = image.split_first_chunk()?;
        let (records, rest) = rest.as_chunks::<{ 8 + SECTOR_BYTES }>();
        let sector = |record: &[u8; 8 + SECTOR_BYTES]| {
            let (number, bytes) = record.split_first_chunk()?;
            Some((u64::from_le_bytes(*number), Arc::new(bytes.try_into().ok()?)))
        };
        let durable =
            records.iter().map(sector).collect::<Option<_>>().filter(|_| rest.is_empty())?;
        Some(MemoryDisk { durable, sectors: u64::from_le_bytes(*sectors), ..MemoryDisk::default() })
    }

    /// The number of requests carried out so far, over all lives of the machine.
    pub(crate) fn carried_out(&self) -> u64 {
        self.carried_out
    }

    /// The number of requests that have failed in this life of the machine.
    pub(crate) fn failed(&self) -> u64 {
        self.failed
    }

    /// Describes the last request that was carried out, for the trace.
    pub(crate) fn last(&self) -> String {
        match self.last {
            None => "nothing yet".to_string(),
            Some((operation, sector, count)) => {
                format!("{operation:?} of {count} sectors from {}", sector.0)
            }
        }
    }

    /// A digest of all bytes that were ever read and written.
    pub(crate) fn digest(&self) -> u64 {
        self.digest.finish()
    }

    /// Corrupts the durable contents of a sector by inverting some bits, and drops its unflushed
    /// writes. A second call restores the durable contents, unless they have changed in between.
    pub fn spoil(&mut self, sector: Sector) {
        let bytes = self.durable.entry(sector.0).or_insert_with(|| Arc::new([0; SECTOR_BYTES]));
        Arc::make_mut(bytes).iter_mut().for_each(|byte| *byte ^= 0x5a);
        self.unflushed.remove(&sector.0);
    }

    /// Sets sectors to zero.
    pub fn erase(&mut self, sectors: core::ops::Range<u64>) {
        for sector in sectors {
            self.durable.remove(&sector);
            self.unflushed.remove(&sector);
        }
    }

    /// Corrupts all sectors that contain `text`. Returns their number.
    pub fn spoil_what_holds(&mut self, text: &[u8]) -> usize {
        let holds = |bytes: &SectorBytes| bytes.windows(text.len()).any(|window| window == text);
        let durable =
            self.durable.iter().filter(|(_, bytes)| holds(bytes)).map(|(sector, _)| *sector);
        let written =
            |versions: &Vec<UnflushedSector>| versions.iter().any(|written| holds(&written.bytes));
        let unflushed = self
            .unflushed
            .iter()
            .filter(|(_, versions)| written(versions))
            .map(|(sector, _)| *sector);
        let all: BTreeSet<u64> = durable.chain(unflushed).collect();
        all.iter().for_each(|sector| self.spoil(Sector(*sector)));
        all.len()
    }

    /// The number of writes that have completed in this life of the machine.
    pub fn writes(&self) -> u64 {
        self.writes
    }

    /// The number of outstanding requests.
    pub fn waiting(&self) -> usize {
        self.requested.len()
    }

    /// The number of outstanding requests other than reads.
    pub(crate) fn changes_waiting(&self) -> usize {
        self.requested.iter().filter(|one| one.request.operation != DiskOperation::Read).count()
    }

    /// Whether the machine has a completion to fetch.
    pub fn has_completions(&self) -> bool {
        !self.completed.is_empty()
    }

    pub(crate) fn describe(&self) -> Disk {
        Disk { sectors: self.sectors, durable: true }
    }

    pub(crate) fn request(&mut self, request: DiskRequest) -> Result<(), DiskRequest> {
        if self.requested.len() >= QUEUE {
            return Err(request);
        }
        self.requested.push_back(OutstandingRequest { request, writes_before: self.writes });
        Ok(())
    }

    pub(crate) fn completed(&mut self) -> Option<DiskCompletion> {
        self.completed.pop_front()
    }

    /// Carries out all outstanding requests, unless the disk waits for commands.
    pub(crate) fn work(&mut self) {
        while self.mood != Mood::Waits && !self.requested.is_empty() {
            self.carry_out_next();
        }
    }

    /// Carries out the oldest outstanding request, if any.
    pub fn carry_out_next(&mut self) {
        if let Some(next) = self.requested.pop_front() {
            self.carry_out(next);
        }
    }

    /// Carries out a random outstanding request, if any.
    pub fn carry_out_any(&mut self, dice: &mut Dice) {
        let any = dice.below(self.requested.len().max(1) as u64) as usize;
        if let Some(next) = self.requested.remove(any) {
            if self.mood.fails(next.request.operation) {
                self.half_do(&next.request, dice);
            }
            self.carry_out(next);
        }
    }

    fn carry_out(&mut self, OutstandingRequest { request, writes_before }: OutstandingRequest) {
        let DiskRequest { token, operation, sector, mut buffer } = request;
        let result = match operation {
            _ if self.mood == Mood::IsGone => Err(DiskError::Gone),
            _ if self.mood.fails(operation) => Err(DiskError::Failed),
            DiskOperation::Flush => {
                self.flush(writes_before);
                Ok(())
            }
            _ if !self.contains(sector, buffer.len()) => Err(DiskError::OutOfRange),
            DiskOperation::Read if self.is_unreadable(sector, buffer.len()) => {
                Err(DiskError::Failed)
            }
            DiskOperation::Read => {
                self.read(sector, &mut buffer);
                Ok(())
            }
            DiskOperation::Write => {
                self.write(sector, &buffer);
                Ok(())
            }
        };
        self.carried_out += 1;
        self.failed += u64::from(result.is_err());
        self.last = Some((operation, sector, buffer.len() / SECTOR_BYTES));
        (operation as u8, sector.0, result.is_ok(), &buffer).hash(&mut self.digest);
        self.completed.push_back(DiskCompletion { token, operation, result, buffer });
    }

    /// Whether these bytes are whole sectors, and all of them are within the disk.
    fn contains(&self, sector: Sector, bytes: usize) -> bool {
        let sectors = (bytes / SECTOR_BYTES) as u64;
        bytes.is_multiple_of(SECTOR_BYTES)
            && sector.0.checked_add(sectors).is_some_and(|end| end <= self.sectors)
    }

    /// Makes the results of the first `writes` writes durable.
    fn flush(&mut self, writes: u64) {
        for (sector, versions) in &mut self.unflushed {
            let flushed = versions.partition_point(|written| written.number < writes);
            if let Some(newest) = versions.drain(..flushed).next_back() {
                self.durable.insert(*sector, newest.bytes);
            }
        }
        self.unflushed.retain(|_, versions| !versions.is_empty());
    }

    /// Carries out a random part of a request that fails.
    fn half_do(&mut self, request: &DiskRequest, dice: &mut Dice) {
        match request.operation {
            DiskOperation::Read => {}
            DiskOperation::Write => {
                for (bytes, sector) in
                    request.buffer.chunks(SECTOR_BYTES).zip(request.sector.0..self.sectors)
                {
                    if dice.one_in(2) {
                        self.write(Sector(sector), bytes);
                    }
                }
            }
            DiskOperation::Flush => {
                let sectors: Vec<u64> =
                    self.unflushed.keys().copied().filter(|_| dice.one_in(2)).collect();
                for sector in sectors {
                    if let Some(newest) =
                        self.unflushed.remove(&sector).and_then(|mut versions| versions.pop())
                    {
                        self.durable.insert(sector, newest.bytes);
                    }
                }
            }
        }
    }

    /// Whether one of these sectors is unreadable.
    fn is_unreadable(&self, first: Sector, bytes: usize) -> bool {
        let sectors = first.0..first.0 + (bytes / SECTOR_BYTES) as u64;
        self.blemishes.range(sectors).any(|(_, blemish)| *blemish == Blemish::Unreadable)
    }

    fn read(&self, first: Sector, buffer: &mut [u8]) {
        for (bytes, sector) in buffer.chunks_mut(SECTOR_BYTES).zip(first.0..) {
            match self.blemishes.get(&sector) {
                Some(Blemish::ReadsAs(other)) => bytes.copy_from_slice(other.as_slice()),
                _ => bytes.copy_from_slice(self.held(sector).as_slice()),
            }
        }
    }

    /// The last contents that were written to a sector.
    pub(crate) fn held(&self, sector: u64) -> Arc<SectorBytes> {
        let newest = self
            .unflushed
            .get(&sector)
            .and_then(|versions| versions.last())
            .map(|written| &written.bytes);
        newest
            .or_else(|| self.durable.get(&sector))
            .cloned()
            .unwrap_or_else(|| Arc::new([0; SECTOR_BYTES]))
    }

    /// The contents of a sector before its last write.
    pub(crate) fn held_before(&self, sector: u64) -> Arc<SectorBytes> {
        self.before.get(&sector).cloned().unwrap_or_else(|| Arc::new([0; SECTOR_BYTES]))
    }

    /// The first sector from `from` on that is durable. If none follows, the first such sector of
    /// the disk.
    pub(crate) fn written_from(&self, from: u64) -> Option<u64> {
        let next = self.durable.range(from..).next().or_else(|| self.durable.range(..from).next());
        next.map(|(sector, _)| *sector)
    }

    /// Makes a sector faulty until it is written again.
    pub(crate) fn blemish(&mut self, sector: u64, blemish: Blemish) {
        self.blemishes.insert(sector, blemish);
    }

    /// Whether one of these sectors has a fault.
    pub(crate) fn is_blemished(&self, sectors: std::ops::Range<u64>) -> bool {
        self.blemishes.range(sectors).next().is_some()
    }

    /// Removes the faults of all sectors.
    pub(crate) fn heal(&mut self) {
        self.blemishes.clear();
    }

    /// The number of sectors of the disk.
    pub fn sectors(&self) -> u64 {
        self.sectors
    }

    fn write(&mut self, first: Sector, buffer: &[u8]) {
        let (sectors, _) = buffer.as_chunks::<SECTOR_BYTES>();
        for (bytes, sector) in sectors.iter().zip(first.0..) {
            self.before.insert(sector, self.held(sector));
            self.blemishes.remove(&sector);
            self.unflushed
                .entry(sector)
                .or_default()
                .push(UnflushedSector { number: self.writes, bytes: Arc::new(*bytes) });
        }
        self.writes += 1;
    }
}

impl Mood {
    /// Whether the disk reports an error for each such operation.
    fn fails(self, operation: DiskOperation) -> bool {
        match self {
            Mood::Works | Mood::Waits => false,
            Mood::FailsWrites => operation == DiskOperation::Write,
            Mood::FailsFlushes => operation == DiskOperation::Flush,
            Mood::FailsReads => operation == DiskOperation::Read,
            Mood::FailsAll | Mood::IsGone => true,
        }
    }
}
