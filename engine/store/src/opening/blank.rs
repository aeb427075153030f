//! Whether a disk without superblocks was ever used: looked at before it is formatted. Section 3 of
//! `docs/format.md`.
//!
//! A store writes the first page of a segment before any other page of it, whether the segment is a
//! journal's or holds bodies. So one page of each segment tells. The disk may have had another size
//! when it was formatted, and then other segments: the pages looked at are the first ones of every
//! segment of every size that a store has had which reached so far.
//!
//! Invariants:
//! - Only a disk on which all of these pages were read, and are zero, is blank.
//! - At most 8192 pages are looked at for each doubling of a segment's size, and one for each 8 MiB
//!   beyond.

use crate::backing::DiskQueue;
use crate::block;
use crate::chunk;
use crate::lanes::{LANES, Lanes, Patience};
use crate::layout::{Page, SegmentStarts};
use crate::outcome::Reason;

/// The look at a disk that may be blank.
pub(super) struct Look {
    starts: SegmentStarts,
    used: Option<Reason>,
    patience: Patience,
    /// Lanes that look at a page.
    left: usize,
}

impl Look {
    pub(super) fn at(disk_pages: u32, patience: Patience) -> Look {
        Look { starts: SegmentStarts::of_disk(disk_pages), used: None, patience, left: LANES }
    }

    /// A lane has read its page.
    pub(super) fn arrived(&mut self, lane: u8, lanes: &mut Lanes) {
        if let Some(piece) = lanes.take(lane) {
            self.used = self
                .used
                .or(piece.page(piece.first()).and_then(|bytes| use_of(bytes, piece.first())));
        }
    }

    /// A lane looks at the next page. Where the last lane finds nothing more to look at: whether
    /// the disk is blank, or why it is not.
    pub(super) fn next(
        &mut self,
        lane: u8,
        lanes: &mut Lanes,
        backing: &mut DiskQueue,
    ) -> Option<Result<(), Reason>> {
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

/// What a page says of the disk; `None` when it is zero. One that cannot be read may be anything.
fn use_of(page: Result<&[u8], ()>, number: Page) -> Option<Reason> {
    let Ok(bytes) = page else { return Some(Reason::Unreadable) };
    if chunk::may_begin(bytes, number) || block::may_begin(bytes, number) {
        return Some(Reason::SuperblocksLost);
    }
    bytes.iter().any(|byte| *byte != 0).then_some(Reason::NotOurs)
}
