//! Makes sectors go bad. It chooses sectors so that the store can survive the damage, and the model
//! records the harmed messages.
//!
//! A bad sector of a body harms only the message in that body. One of the two copies of a journal
//! block may go bad if both are sound and equal. A superblock at the start of the disk may go bad
//! if its twin at the end of the disk has the same contents. All other sectors stay good.

use std::ops::Range;
use std::sync::Arc;

use chance::Dice;
use machine::SECTOR_BYTES;

use super::layout::{OCTETS_FROM, PAGE};
use super::model::Model;
use super::scenario::Decay;
use crate::MemoryDisk;
use crate::disk::{Blemish, SectorBytes};

/// The longest chunk of a body, in pages.
const CHUNK_PAGES_MAX: u64 = 8;

/// The maximum number of random sectors that are examined to find one sector that may go bad.
const TRIES_PER_SECTOR: u64 = 20;

/// Makes up to `count` sectors bad, or fewer if it finds too few suitable ones. Returns the numbers
/// of the bad sectors.
pub(super) fn decay(
    disk: &mut MemoryDisk,
    model: &mut Model,
    how: Decay,
    count: u64,
    dice: &mut Dice,
) -> Vec<u64> {
    let mut spoilt = Vec::new();
    for _ in 0..count * TRIES_PER_SECTOR {
        if spoilt.len() as u64 == count {
            break;
        }
        let Some(sector) = disk.written_from(dice.below(disk.sectors())) else { continue };
        let Some(harmed) = harmed(disk, sector) else { continue };
        let blemish = blemish(disk, sector, how, dice);
        harmed.into_iter().for_each(|number| model.harm(number));
        disk.blemish(sector, blemish);
        spoilt.push(sector);
    }
    spoilt
}

fn blemish(disk: &MemoryDisk, sector: u64, how: Decay, dice: &mut Dice) -> Blemish {
    match how {
        Decay::Unreadable => Blemish::Unreadable,
        Decay::Rot => {
            let mut bytes: SectorBytes = *disk.held(sector);
            let at = dice.below(SECTOR_BYTES as u64) as usize;
            bytes[at] ^= 1 << dice.below(8);
            Blemish::ReadsAs(Arc::new(bytes))
        }
        Decay::LostWrite => Blemish::ReadsAs(disk.held_before(sector)),
        Decay::Misdirection => {
            // Of all other sectors, one at the same offset of another page is the most similar. So
            // its contents are the hardest to recognise as wrong.
            let other = dice.below(disk.sectors() / PAGE) * PAGE + sector % PAGE;
            let other = disk.written_from(other).unwrap_or(sector);
            Blemish::ReadsAs(disk.held(other))
        }
    }
}

/// The messages that the loss of this sector may destroy. `None` if the sector must stay good.
fn harmed(disk: &MemoryDisk, sector: u64) -> Option<Vec<usize>> {
    let page = sector / PAGE;
    let first = page_bytes(disk, page..page + 1);
    if first.get(16..20) == Some(b"JRNL") {
        let length = 64 + usize::from(u16::from_le_bytes([first[22], first[23]]));
        let twin = page ^ 1;
        let other = page_bytes(disk, twin..twin + 1);
        let is_survivable = !disk.is_blemished(twin * PAGE..(twin + 1) * PAGE)
            && first.get(..length) == other.get(..length);
        return is_survivable.then(Vec::new);
    }
    if first.starts_with(b"BAREPOST") {
        let pages = u64::from_le_bytes(first.get(72..80)?.try_into().ok()?);
        let twin = pages.checked_sub(8)? + page / 2;
        let other = page_bytes(disk, twin..twin + 1);
        return (matches!(page, 0 | 8) && first.get(40..2144) == other.get(40..2144))
            .then(Vec::new);
    }
    let chunk = chunk_around(disk, page)?;
    let mut bytes = page_bytes(disk, chunk);
    // Bytes after the octets are left over from earlier contents.
    let length = u32::from_le_bytes(bytes[52..56].try_into().ok()?) as usize;
    bytes.truncate(OCTETS_FROM + length);
    let numbers = numbers_in(&bytes);
    (!numbers.is_empty()).then_some(numbers)
}

/// The pages of the body chunk that contains this page.
fn chunk_around(disk: &MemoryDisk, page: u64) -> Option<Range<u64>> {
    (page.saturating_sub(CHUNK_PAGES_MAX - 1)..=page).rev().find_map(|first| {
        let bytes = page_bytes(disk, first..first + 1);
        let pages = u64::from(bytes[21]);
        (bytes.get(16..20) == Some(b"BODY") && first + pages > page).then_some(first..first + pages)
    })
}

fn page_bytes(disk: &MemoryDisk, pages: Range<u64>) -> Vec<u8> {
    (pages.start * PAGE..pages.end * PAGE).flat_map(|sector| *disk.held(sector)).collect()
}

/// The message numbers that these bytes contain.
fn numbers_in(bytes: &[u8]) -> Vec<usize> {
    let mut numbers: Vec<usize> = Vec::new();
    for opening in [b"<".as_slice(), b"Subject: "] {
        for at in 0..bytes.len() {
            let Some(rest) = bytes[at..].strip_prefix(opening) else { continue };
            let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
            let ends = matches!(rest.get(digits), Some(b'>' | b'\r'));
            let number: Option<usize> =
                std::str::from_utf8(&rest[..digits]).ok().and_then(|digits| digits.parse().ok());
            numbers.extend(number.filter(|_| ends));
        }
    }
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}
