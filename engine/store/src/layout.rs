//! The layout of the disk: pages, segments, superblock slots. Section 2 of `docs/format.md`.
//!
//! Invariants:
//! - The number of any page inside the store fits 32 bits.
//! - Everything here follows from the number of pages and the number of pages in a segment. The
//!   superblock has both.

use machine::{SECTOR_BYTES, Sector};

/// Bytes in one page, the unit in which the store writes.
pub const PAGE_BYTES: usize = 4096;
/// Sectors in one page.
pub(crate) const PAGE_SECTORS: u64 = (PAGE_BYTES / SECTOR_BYTES) as u64;
/// The first sector of the crash area. The store never reads nor writes it.
pub const CRASH_SECTOR: Sector = Sector(32);
/// Sectors of the crash area.
pub const CRASH_SECTORS: u64 = 8;
/// Shards of a store.
pub const SHARDS: usize = 64;
/// The smallest disk, in pages.
pub(crate) const PAGES_MIN: u32 = 256;
/// Pages of a piece: the most that one request reads or writes, and the most in a chunk of a body.
pub(crate) const PIECE_PAGES: u32 = 8;
/// Bytes of a piece.
pub(crate) const PIECE_BYTES: usize = PIECE_PAGES as usize * PAGE_BYTES;

const FIRST_SEGMENT_PAGE: u32 = 24;
const TAIL_PAGES: u32 = 8;
const SEGMENT_PAGES_MIN: u32 = 16;
const SEGMENT_PAGES_MAX: u32 = 2048;
pub(crate) const CRASH_PAGE: u32 = 4;

/// The number of a page, counted from the start of the store.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Page(pub(crate) u32);

impl Page {
    pub(crate) fn sector(self) -> Sector {
        Sector(u64::from(self.0) * PAGE_SECTORS)
    }

    pub(crate) fn plus(self, pages: u32) -> Page {
        Page(self.0.saturating_add(pages))
    }
}

/// The number of a segment.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct SegmentIndex(pub(crate) u32);

/// The number of a shard, below [`SHARDS`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct ShardId(pub(crate) u8);

impl ShardId {
    pub(crate) fn all() -> impl Iterator<Item = ShardId> {
        (0..SHARDS as u8).map(ShardId)
    }

    pub(crate) fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// The geometry of one store.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Geometry {
    pub(crate) pages: u32,
    pub(crate) segment_pages: u32,
}

impl Geometry {
    /// The geometry for a blank disk of `sectors`; `None` if it is too small.
    pub(crate) fn for_disk(sectors: u64) -> Option<Geometry> {
        let pages = pages_of(sectors);
        Geometry { pages, segment_pages: segment_pages_of(pages) }.checked()
    }

    /// This geometry, if it is valid for a store.
    pub(crate) fn checked(self) -> Option<Geometry> {
        let sound = self.pages >= PAGES_MIN
            && self.segment_pages.is_power_of_two()
            && (SEGMENT_PAGES_MIN..=SEGMENT_PAGES_MAX).contains(&self.segment_pages);
        sound.then_some(self)
    }

    /// Bytes of the whole store.
    pub(crate) fn bytes(self) -> u64 {
        u64::from(self.pages) * PAGE_BYTES as u64
    }

    pub(crate) fn segments(self) -> u32 {
        (self.pages - FIRST_SEGMENT_PAGE - TAIL_PAGES) / self.segment_pages
    }

    pub(crate) fn first_page(self, segment: SegmentIndex) -> Page {
        Page(FIRST_SEGMENT_PAGE + segment.0 * self.segment_pages)
    }

    /// The segment that contains `page`, if any.
    pub(crate) fn segment_of(self, page: Page) -> Option<SegmentIndex> {
        let index = page.0.checked_sub(FIRST_SEGMENT_PAGE)? / self.segment_pages;
        (index < self.segments()).then_some(SegmentIndex(index))
    }

    /// Whether the `pages` pages from `page` on are in one segment, and no more than a piece.
    pub(crate) fn holds(self, page: Page, pages: u32) -> bool {
        pages > 0
            && self.segment_of(page).is_some()
            && self.segment_of(page) == self.segment_of(page.plus(pages - 1))
            && pages <= PIECE_PAGES
    }

    /// The number of places for journal blocks in a segment. The last place is for the link.
    pub(crate) fn places(self) -> u32 {
        self.segment_pages / 2
    }

    pub(crate) fn link_place(self) -> u32 {
        self.places() - 1
    }

    pub(crate) fn place_page(self, segment: SegmentIndex, place: u32) -> Page {
        self.first_page(segment).plus(place * 2)
    }

    /// The four slots of the superblock.
    pub(crate) fn slots(self) -> [Page; 4] {
        slots(self.pages)
    }
}

/// The number of pages of a segment in a store of `pages`.
fn segment_pages_of(pages: u32) -> u32 {
    let wanted = (pages / 4096).clamp(SEGMENT_PAGES_MIN, SEGMENT_PAGES_MAX);
    1 << wanted.ilog2()
}

/// The first pages of all segments that a store can have had on this disk, whatever size the disk
/// had when it was formatted. A store that reaches beyond a page has segments at least as large as
/// those of a store that ends at that page. Segment sizes are powers of two.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SegmentStarts {
    from_first: u32,
    disk_pages: u32,
}

impl SegmentStarts {
    pub(crate) fn of_disk(disk_pages: u32) -> SegmentStarts {
        SegmentStarts { from_first: 0, disk_pages }
    }
}

impl Iterator for SegmentStarts {
    type Item = Page;

    fn next(&mut self) -> Option<Page> {
        let page = self.from_first.checked_add(FIRST_SEGMENT_PAGE)?;
        if page >= self.disk_pages.saturating_sub(TAIL_PAGES) {
            return None;
        }
        self.from_first = self.from_first.saturating_add(segment_pages_of(self.from_first));
        Some(Page(page))
    }
}

/// The number of pages that a store on a disk of `sectors` uses.
pub(crate) fn pages_of(sectors: u64) -> u32 {
    u32::try_from(sectors / PAGE_SECTORS).unwrap_or(u32::MAX)
}

/// The superblock's slots on a store of `pages`.
pub(crate) fn slots(pages: u32) -> [Page; 4] {
    [Page(0), Page(8), Page(pages.saturating_sub(8)), Page(pages.saturating_sub(4))]
}

/// The pieces that contain everything around the segments: three at the start, one at the end.
pub(crate) fn superblock_pieces(pages: u32) -> [Page; 4] {
    [Page(0), Page(8), Page(16), Page(pages.saturating_sub(TAIL_PAGES))]
}
