//! The superblocks: which one is in force, what else the disk may be, and formatting one that is blank.
//!
//! Invariant: only a blank disk is written to here, slot 3 first, so that a cut leaves a blank disk or a valid slot.

use crate::backing::{Backing, Purpose};
use crate::layout::{CRASH_PAGE, PAGE_SECTORS, PIECE_PAGES, Page, slots, superblock_pieces};
use crate::opening::{Damage, Opening, Phase};
use crate::outcome::{Reason, State};
use crate::segments::Segments;
use crate::store::Store;
use crate::superblock::{Slot, Superblock};
use alloc::vec::Vec;

impl Store {
    pub(super) fn superblocks_read(&mut self) {
        let Some(opening) = &mut self.opening else { return };
        let pages = opening.disk_pages;
        let found: Vec<(Page, Slot)> = slots(pages).into_iter().map(|page| (page, opening.slot(page))).collect();
        let (blank, unreadable) = (opening.is_blank(), opening.is_partly_unreadable());
        let mut newest: Option<&Superblock> = None;
        let mut other = None;
        for (_, slot) in &found {
            match slot {
                Slot::Valid(one) if newest.is_none_or(|newest| newest.sequence < one.sequence) => newest = Some(one),
                Slot::OtherFormat(version) => other = Some(*version),
                _ => {}
            }
        }
        let Some(superblock) = newest.cloned() else {
            return match other {
                Some(version) => self.refuse(Reason::OtherFormat(version)),
                None if unreadable => self.refuse(Reason::Unreadable),
                None if !blank => self.refuse(Reason::NotOurs),
                None => self.look_for_use(),
            };
        };
        let needs = superblock.geometry.pages;
        if needs > pages {
            let sectors = |pages: u32| u64::from(pages) * PAGE_SECTORS;
            return self.refuse(Reason::Shrunk { needs: sectors(needs), has: sectors(pages) });
        }
        for (page, slot) in &found {
            if !matches!(slot, Slot::Valid(_)) && (needs == pages || page.0 < PIECE_PAGES * 3) {
                self.note(page.sector(), Damage::Superblock);
                self.superblock_due = true;
            }
        }
        self.superblock = superblock;
        self.segments = Segments::new(self.superblock.geometry);
        self.begin_replay();
    }

    pub(super) fn refuse(&mut self, reason: Reason) {
        self.state = State::Refused(reason);
        self.opening = None;
    }

    pub(super) fn format_first(&mut self) {
        self.superblock.sequence = 1;
        let [.., last] = self.superblock.geometry.slots();
        self.format_slots(Phase::FormatFirst, &[last]);
    }

    pub(super) fn format_slots(&mut self, phase: Phase, slots: &[Page]) {
        let Some(opening) = &mut self.opening else { return };
        opening.phase = phase;
        opening.left = slots.len() as u32;
        let stamp = self.random.number();
        for page in slots {
            self.backing.write(*page, self.superblock.emit(*page, stamp), Purpose::Format);
        }
    }

    pub(crate) fn format_written(&mut self, ok: bool) {
        let Some(opening) = &mut self.opening else { return };
        if !ok {
            return self.refuse(Reason::FormatFailed);
        }
        opening.left -= 1;
        if opening.left == 0 {
            self.backing.flush();
        }
    }
}

impl Opening {
    fn slot(&self, page: Page) -> Slot {
        match self.page(page) {
            Some(Ok(bytes)) => Superblock::parse(bytes, page),
            _ => Slot::Unknown,
        }
    }

    fn page(&self, page: Page) -> Option<Result<&[u8], ()>> {
        self.lanes.iter().filter_map(|lane| lane.piece.as_ref()).find_map(|piece| piece.page(page))
    }

    /// Whether a part of what is around the segments cannot be read.
    fn is_partly_unreadable(&self) -> bool {
        self.around().any(|page| self.page(page).is_none_or(|bytes| bytes.is_err()))
    }

    /// Whether everything around the segments is zero.
    fn is_blank(&self) -> bool {
        let zero = |bytes: Result<&[u8], ()>| bytes.is_ok_and(|bytes| bytes.iter().all(|byte| *byte == 0));
        self.around().all(|page| self.page(page).is_some_and(zero))
    }

    /// The pages around the segments, without the slot that formatting writes first and the crash
    /// area.
    fn around(&self) -> impl Iterator<Item = Page> {
        let [.., first_written] = slots(self.disk_pages);
        let pieces = superblock_pieces(self.disk_pages).into_iter();
        let pages = pieces.flat_map(|piece| (0..PIECE_PAGES).map(move |number| piece.plus(number)));
        pages.filter(move |page| page.0 != CRASH_PAGE && *page != first_written)
    }
}
