//! Finds the current superblock, or the reason why the disk has none.

use crate::lanes::Lanes;
use crate::layout::{CRASH_PAGE, PAGE_SECTORS, PIECE_PAGES, Page, slots, superblock_pieces};
use crate::outcome::OpenRefusal;
use crate::superblock::{Format, SlotContent, Superblock};
use alloc::boxed::Box;
use alloc::vec::Vec;

/// The content of the pages outside of the segments.
pub(super) enum DiskContent {
    /// A store with this current superblock.
    Store {
        superblock: Box<Superblock>,
        damaged: Vec<Page>,
        /// Another version of the superblock on the disk has other roots of journals than this
        /// version.
        has_other_roots: bool,
        /// All four slots have the format of the current version.
        is_of_one_format: bool,
        /// A slot has an earlier format: a conversion was interrupted.
        is_partly_converted: bool,
    },
    /// Only zeros: the disk may be blank.
    Nothing,
}

/// The content that the lanes have read from a disk of `pages` pages.
///
/// Errors: the reason why the disk is refused. Nothing is written to it.
pub(super) fn content(lanes: &Lanes, pages: u32) -> Result<DiskContent, OpenRefusal> {
    let mut newest: Option<Box<Superblock>> = None;
    let (mut damaged, mut other, mut versions) = (Vec::new(), None, Vec::new());
    for page in slots(pages) {
        match slot(lanes, page) {
            SlotContent::Valid(one) => {
                versions.push((one.format, one.journals()));
                if newest.as_ref().is_none_or(|newest| newest.sequence < one.sequence) {
                    newest = Some(one);
                }
                continue;
            }
            SlotContent::OtherFormat(version) => other = Some(version),
            SlotContent::Zero | SlotContent::Unknown => {}
        }
        damaged.push(page);
    }
    let Some(superblock) = newest else {
        return match other {
            Some(version) => Err(OpenRefusal::OtherFormat(version)),
            None if is_partly_unreadable(lanes, pages) => Err(OpenRefusal::Unreadable),
            None if !is_blank(lanes, pages) => Err(OpenRefusal::NotOurs),
            None => Ok(DiskContent::Nothing),
        };
    };
    let needs = superblock.geometry.pages;
    if needs > pages {
        let sectors = |pages: u32| u64::from(pages) * PAGE_SECTORS;
        return Err(OpenRefusal::Shrunk { needs: sectors(needs), has: sectors(pages) });
    }
    let has_other_roots = versions.iter().any(|(_, journals)| *journals != superblock.journals());
    let of_format = versions.iter().filter(|(format, _)| *format == superblock.format).count();
    let is_of_one_format = of_format == slots(pages).len();
    let is_partly_converted = superblock.format == Format::Four && of_format < versions.len();
    Ok(DiskContent::Store {
        superblock,
        damaged,
        has_other_roots,
        is_of_one_format,
        is_partly_converted,
    })
}

fn slot(lanes: &Lanes, page: Page) -> SlotContent {
    match lanes.page(page) {
        Some(Ok(bytes)) => Superblock::parse(bytes, page),
        _ => SlotContent::Unknown,
    }
}

/// Whether a part of the pages around the segments cannot be read.
fn is_partly_unreadable(lanes: &Lanes, pages: u32) -> bool {
    around(pages).any(|page| lanes.page(page).is_none_or(|bytes| bytes.is_err()))
}

/// Whether everything around the segments is zero.
fn is_blank(lanes: &Lanes, pages: u32) -> bool {
    let zero =
        |bytes: Result<&[u8], ()>| bytes.is_ok_and(|bytes| bytes.iter().all(|byte| *byte == 0));
    around(pages).all(|page| lanes.page(page).is_some_and(zero))
}

/// The pages outside of the segments, without the crash area and without the slot that formatting
/// writes first.
fn around(disk_pages: u32) -> impl Iterator<Item = Page> {
    let [.., first_written] = slots(disk_pages);
    let pieces = superblock_pieces(disk_pages).into_iter();
    let pages = pieces.flat_map(|piece| (0..PIECE_PAGES).map(move |number| piece.plus(number)));
    pages.filter(move |page| page.0 != CRASH_PAGE && *page != first_written)
}
