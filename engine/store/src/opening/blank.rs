//! Checks whether a disk without superblocks was ever used, before it is formatted. Section 3 of
//! `docs/format.md`.
//!
//! In each segment, a store writes the first page before any other page. So it is enough to check
//! the first page of each segment. The disk may have had another size when it was formatted, and
//! therefore other segments. So the first page of every possible segment is read, for every size
//! that a store on this disk could have.
//!
//! Invariants:
//! - A disk is blank only if all of these pages were read and are zero.
//! - At most 8192 pages are read for each doubling of a segment's size. One page is read for each
//!   further 8 MiB.

use crate::backing::DiskQueue;
use crate::block;
use crate::chunk;
use crate::lanes::{LANES, Lanes, Patience};
use crate::layout::{Page, SegmentStarts};
use crate::outcome::OpenRefusal;

/// The check of a disk that may be blank.
pub(super) struct BlankCheck {
    starts: SegmentStarts,
    used: Option<OpenRefusal>,
    patience: Patience,
    /// The number of lanes that still read pages.
    left: usize,
}

impl BlankCheck {
    pub(super) fn at(disk_pages: u32, patience: Patience) -> BlankCheck {
        BlankCheck { starts: SegmentStarts::of_disk(disk_pages), used: None, patience, left: LANES }
    }

    /// Takes in the page that a lane has read.
    pub(super) fn arrived(&mut self, lane: u8, lanes: &mut Lanes) {
        if let Some(piece) = lanes.take(lane) {
            self.used = self
                .used
                .or(piece.page(piece.first()).and_then(|bytes| use_of(bytes, piece.first())));
        }
    }

    /// Lets a lane read the next page. When no lane has a page left, returns whether the disk is
    /// blank, or why it is not.
    pub(super) fn next(
        &mut self,
        lane: u8,
        lanes: &mut Lanes,
        backing: &mut DiskQueue,
    ) -> Option<Result<(), OpenRefusal>> {
        if self.used.is_none()
            && let Some(page) = self.starts.next()
        {
            lanes.read(lane, (page, 1), self.patience, backing);
            return None;
        }
        self.left -= 1;
        (self.left == 0).then(|| self.used.map_or(Ok(()), Err))
    }
}

/// The reason why this page shows that the disk is not blank. `None` if the page is zero. An
/// unreadable page counts as not blank, because its content is unknown.
fn use_of(page: Result<&[u8], ()>, number: Page) -> Option<OpenRefusal> {
    let Ok(bytes) = page else { return Some(OpenRefusal::Unreadable) };
    if chunk::may_begin(bytes, number) || block::may_begin(bytes, number) {
        return Some(OpenRefusal::SuperblocksLost);
    }
    bytes.iter().any(|byte| *byte != 0).then_some(OpenRefusal::NotOurs)
}
