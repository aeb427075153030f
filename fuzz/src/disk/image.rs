//! Images of a small disk, page by page.

use std::ops::Range;

use machine::SECTOR_BYTES;
use store::PAGE_BYTES;

use super::rig::Rig;

/// The number of pages of the smallest disk.
pub(super) const PAGES: usize = 256;
pub(super) const SECTORS: u64 = (PAGES * PAGE_BYTES / SECTOR_BYTES) as u64;

/// The bytes of a disk, and the pages that need new checksums.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Image {
    bytes: Vec<u8>,
    /// The numbers of the pages that are in use.
    pub(super) used: Vec<usize>,
    /// The pages with changed fields that need new checksums.
    pub(super) to_renew: Vec<usize>,
}

impl Image {
    pub(super) fn blank() -> Image {
        Image { bytes: vec![0; PAGES * PAGE_BYTES], used: Vec::new(), to_renew: Vec::new() }
    }

    pub(super) fn filled(start: &[u8]) -> Image {
        let mut image = Image::blank();
        for page in 0..PAGES {
            image.page_mut(page)[..start.len()].copy_from_slice(start);
        }
        image
    }

    /// An image that a store has written. It has accounts, and small, empty and large messages.
    /// The store also removed a message and was restarted.
    pub(super) fn make() -> Image {
        let mut rig = Rig::open(Image::blank(), Vec::new(), 7);
        let ada = rig.account("ada@barepost.test").expect("there is room");
        let grace = rig.account("grace@barepost.test").expect("there is room");
        for (account, octets) in
            [(ada, 100), (ada, 0), (grace, 5_000), (ada, 70_000), (grace, 33_000)]
        {
            rig.deliver(account, &vec![b'x'; octets]).expect("there is room");
        }
        let first = rig.uids(ada).into_iter().next().expect("there is mail");
        rig.remove(ada, first);
        let (image, unreadable) = rig.power_off();
        let mut rig = Rig::open(image, unreadable, 8);
        rig.deliver(grace, b"after a restart").expect("there is room");
        let (mut image, _) = rig.power_off();
        image.used =
            (0..PAGES).filter(|page| image.page(*page).iter().any(|byte| *byte != 0)).collect();
        image
    }

    pub(super) fn page(&self, page: usize) -> &[u8] {
        &self.bytes[page * PAGE_BYTES..(page + 1) * PAGE_BYTES]
    }

    pub(super) fn page_mut(&mut self, page: usize) -> &mut [u8] {
        &mut self.bytes[page * PAGE_BYTES..(page + 1) * PAGE_BYTES]
    }

    /// At most `count` bytes from the start of a page, or up to the end of the disk.
    pub(super) fn run(&self, page: usize, count: usize) -> &[u8] {
        let start = page * PAGE_BYTES;
        &self.bytes[start..self.bytes.len().min(start + count)]
    }

    pub(super) fn sectors(&self, sectors: &Range<u64>) -> &[u8] {
        &self.bytes[sectors.start as usize * SECTOR_BYTES..sectors.end as usize * SECTOR_BYTES]
    }

    pub(super) fn sectors_mut(&mut self, sectors: &Range<u64>) -> &mut [u8] {
        &mut self.bytes[sectors.start as usize * SECTOR_BYTES..sectors.end as usize * SECTOR_BYTES]
    }

    /// The page that `choice` selects among the pages in use. If none is in use, among all pages.
    pub(super) fn chosen(&self, choice: u16) -> usize {
        let choice = usize::from(choice);
        choice.checked_rem(self.used.len()).map_or(choice % PAGES, |index| self.used[index])
    }
}
