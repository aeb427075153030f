//! The lanes that read a disk while it is opened: each lane reads one piece at a time.
//!
//! Invariants:
//! - The number of lanes limits the reads in flight. A piece with an unreadable page is read again
//!   page by page.
//! - A page counts as unreadable only after several failures, each between two successful probes. A
//!   probe is the read of a random page, which shows whether the disk works at all. So a disk that
//!   fails all reads for a while loses nothing.

use crate::backing::{Backing, DiskPurpose, DiskQueue};
use crate::layout::{PAGE_BYTES, Page};
use alloc::boxed::Box;
use machine::Sector;

/// The number of pieces that are read at the same time.
pub(crate) const LANES: usize = 8;
/// The number of failures after which a page counts as unreadable. Only failures between two
/// successful probes count.
const FAILURES_MAX: u8 = 10;

/// The number of failures after which a page counts as unreadable, by the purpose of the read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Patience {
    /// [`FAILURES_MAX`]: the result must be certain.
    Sure,
    /// Two: in a rebuild, an unreadable page costs at most one message.
    Rebuild,
    /// The first read decides: the disk is only inspected.
    Once,
}

impl Patience {
    /// The number of failures that are assumed before the first read, so that counting ends at
    /// [`FAILURES_MAX`] for every purpose.
    fn assumed_failures(self) -> u8 {
        match self {
            Patience::Sure => 0,
            Patience::Rebuild => FAILURES_MAX - 2,
            Patience::Once => FAILURES_MAX,
        }
    }
}

/// A piece of the disk in memory.
pub(crate) struct DiskPiece {
    page: Page,
    bytes: Box<[u8]>,
    /// Pages that could not be read, one bit each.
    unreadable: u8,
    /// The number of pages that are being read one by one.
    left: u8,
    /// The failures so far: the assumed failures, and each failure between two successful probes.
    failures: u8,
    /// The last probe was successful, and the unreadable pages were requested again after it.
    was_probe_read: bool,
}

impl DiskPiece {
    /// The first page of the piece.
    pub(crate) fn first(&self) -> Page {
        self.page
    }

    /// All bytes of the piece, with zeros in place of unreadable pages.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The bytes of a page. An error if it was unreadable, `None` if it is outside of the piece.
    pub(crate) fn page(&self, page: Page) -> Option<Result<&[u8], ()>> {
        let number = page.0.checked_sub(self.page.0)?;
        let start = number as usize * PAGE_BYTES;
        let bytes = self.bytes.get(start..start + PAGE_BYTES)?;
        Some(if self.unreadable >> number & 1 == 1 { Err(()) } else { Ok(bytes) })
    }

    /// Whether the piece begins at `page` and has `pages` pages.
    pub(crate) fn is_at(&self, page: Page, pages: u32) -> bool {
        self.page == page && self.bytes.len() == pages as usize * PAGE_BYTES
    }

    pub(crate) fn is_readable(&self) -> bool {
        self.unreadable == 0
    }

    /// Whether the piece has pages that could not be read but may be readable later.
    fn waits(&self) -> bool {
        self.unreadable != 0 && self.left == 0 && self.failures < FAILURES_MAX
    }

    /// Requests the unreadable pages of the piece again, one by one.
    fn read_pages(&mut self, lane: u8, backing: &mut DiskQueue) {
        let unreadable = core::mem::take(&mut self.unreadable);
        self.left = unreadable.count_ones() as u8;
        for number in (0..8).filter(|number| unreadable >> number & 1 == 1) {
            let single = alloc::vec![0; PAGE_BYTES].into_boxed_slice();
            let purpose = DiskPurpose::Piece { lane, page: Some(number) };
            backing.read(self.page.plus(u32::from(number)), single, purpose);
        }
    }

    /// Takes in the result of reading one page of the piece.
    fn page_read(&mut self, number: u8, ok: bool, bytes: &[u8]) {
        let start = usize::from(number) * PAGE_BYTES;
        let place = self.bytes.get_mut(start..start + PAGE_BYTES);
        let Some(place) = place else { unreachable!("a page outside of its piece") };
        match ok {
            true => place.copy_from_slice(bytes),
            false => self.unreadable |= 1 << number,
        }
        self.left -= 1;
    }
}

/// The pieces that the lanes have read, or are reading.
#[derive(Default)]
pub(crate) struct Lanes([Option<DiskPiece>; LANES]);

impl Lanes {
    pub(crate) fn all() -> impl Iterator<Item = u8> {
        0..LANES as u8
    }

    /// Begins to read pages into a lane.
    pub(crate) fn read(
        &mut self,
        lane: u8,
        (page, pages): (Page, u32),
        patience: Patience,
        backing: &mut DiskQueue,
    ) {
        let bytes = alloc::vec![0; pages as usize * PAGE_BYTES].into_boxed_slice();
        let piece = DiskPiece {
            page,
            bytes: Box::default(),
            unreadable: 0,
            left: 0,
            failures: patience.assumed_failures(),
            was_probe_read: false,
        };
        *self.of(lane) = Some(piece);
        backing.read(page, bytes, DiskPurpose::Piece { lane, page: None });
    }

    /// Takes in the result of reading a lane's piece, or one page of it. Returns whether the piece
    /// is complete, as far as it can be read.
    pub(crate) fn arrived(
        &mut self,
        lane: u8,
        page: Option<u8>,
        result: Result<Box<[u8]>, Box<[u8]>>,
        backing: &mut DiskQueue,
    ) -> bool {
        let Some(piece) = self.of(lane) else { unreachable!("a piece that is read by no lane") };
        match (page, result) {
            (None, Ok(bytes)) => piece.bytes = bytes,
            (None, Err(buffer)) => {
                // One bad sector fails the whole piece. Reading page by page finds it.
                piece.bytes = alloc::vec![0; buffer.len()].into_boxed_slice();
                piece.unreadable = (u16::MAX >> (16 - buffer.len() / PAGE_BYTES)) as u8;
                piece.read_pages(lane, backing);
                return false;
            }
            (Some(number), Ok(bytes)) => piece.page_read(number, true, &bytes),
            (Some(number), Err(buffer)) => piece.page_read(number, false, &buffer),
        }
        piece.left == 0 && !piece.waits()
    }

    /// The first sector that a lane waits for, because the disk could not read it.
    pub(crate) fn unreadable(&self) -> Option<Sector> {
        let piece = self.pieces().find(|piece| piece.waits())?;
        Some(piece.page.plus(piece.unreadable.trailing_zeros()).sector())
    }

    /// Takes in the result of a probe. After a successful probe, a lane that waits reads its
    /// unreadable pages again. If the probe before it was successful too, the pages have failed
    /// between the two probes, and this failure counts. Returns true if it was the last failure:
    /// the lane's piece is then complete.
    pub(crate) fn probe_read(&mut self, lane: u8, ok: bool, backing: &mut DiskQueue) -> bool {
        let Some(piece) = self.of(lane) else { return false };
        if !ok {
            piece.was_probe_read = false;
        } else if piece.waits() {
            piece.failures += u8::from(piece.was_probe_read);
            piece.was_probe_read = true;
            if !piece.waits() {
                return true;
            }
            piece.read_pages(lane, backing);
        }
        false
    }

    /// The piece that a lane has read.
    pub(crate) fn piece(&self, lane: u8) -> Option<&DiskPiece> {
        self.0.get(usize::from(lane))?.as_ref()
    }

    /// Takes out the piece that a lane has read.
    pub(crate) fn take(&mut self, lane: u8) -> Option<DiskPiece> {
        self.of(lane).take()
    }

    /// A page that one of the lanes has read. See [`DiskPiece::page`].
    pub(crate) fn page(&self, page: Page) -> Option<Result<&[u8], ()>> {
        self.pieces().find_map(|piece| piece.page(page))
    }

    fn pieces(&self) -> impl Iterator<Item = &DiskPiece> {
        self.0.iter().flatten()
    }

    fn of(&mut self, lane: u8) -> &mut Option<DiskPiece> {
        match self.0.get_mut(usize::from(lane)) {
            Some(piece) => piece,
            None => unreachable!("a lane above the last one"),
        }
    }
}
