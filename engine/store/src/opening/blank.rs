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

use crate::block;
use crate::chunk;
use crate::layout::{Page, SegmentStarts};
use crate::opening::{LANES, Phase};
use crate::outcome::Reason;
use crate::store::Store;

/// The look at a disk that may be blank.
pub(super) struct Look {
    starts: SegmentStarts,
    used: Option<Reason>,
}

impl Store {
    /// Reads the first pages of segments, one in each lane.
    pub(super) fn look_for_use(&mut self) {
        let Some(opening) = &mut self.opening else { return };
        opening.phase = Phase::LookingForUse;
        opening.left = LANES as u32;
        opening.look = Some(Look { starts: SegmentStarts::of_disk(opening.disk_pages), used: None });
        for lane in 0..LANES as u8 {
            self.look_at_next(lane);
        }
    }

    /// A lane has read its page.
    pub(super) fn looked(&mut self, lane: u8) {
        let Some(opening) = &mut self.opening else { return };
        let piece = opening.lanes.get_mut(usize::from(lane)).and_then(|lane| lane.piece.take());
        if let (Some(look), Some(piece)) = (&mut opening.look, piece) {
            look.used = look.used.or(piece.page(piece.page).and_then(|bytes| use_of(bytes, piece.page)));
        }
        self.look_at_next(lane);
    }

    /// Goes on with a lane; the last one to find nothing more to look at ends the look.
    fn look_at_next(&mut self, lane: u8) {
        let Some(opening) = &mut self.opening else { return };
        let Some(look) = &mut opening.look else { return };
        if look.used.is_none()
            && let Some(page) = look.starts.next()
        {
            return self.read_piece(lane, page, 1);
        }
        opening.left -= 1;
        if opening.left > 0 {
            return;
        }
        match look.used {
            Some(reason) => self.refuse(reason),
            None => self.blank(),
        }
    }

    fn blank(&mut self) {
        if self.opening.as_ref().is_some_and(|opening| opening.inspect) {
            return self.refuse(Reason::Blank);
        }
        self.format_first();
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
