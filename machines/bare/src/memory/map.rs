//! The memory map: the addresses of unused memory.
//!
//! Invariants:
//! - Ranges are whole pages, do not overlap, and none is empty.
//! - The map never contains memory that the boot loader reserves or does not mention.

use super::PAGE_BYTES;
use core::ops::Range;

/// The maximum number of ranges. Memory of further ranges is not used.
pub(crate) const RANGES_MAX: usize = 64;

/// Free memory, as ranges of physical addresses.
pub(crate) struct Ranges {
    ranges: [Range<u64>; RANGES_MAX],
    count: usize,
}

impl Ranges {
    pub(crate) const fn new() -> Ranges {
        Ranges { ranges: [const { 0..0 }; RANGES_MAX], count: 0 }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Range<u64>> {
        self.ranges.iter().take(self.count)
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.iter().map(|range| range.end - range.start).sum()
    }

    /// Adds the whole pages inside of `range`.
    pub(crate) fn add(&mut self, range: Range<u64>) {
        let inside = range.start.next_multiple_of(PAGE_BYTES)..range.end / PAGE_BYTES * PAGE_BYTES;
        if !inside.is_empty()
            && let Some(place) = self.ranges.get_mut(self.count)
        {
            *place = inside;
            self.count += 1;
        }
    }

    /// Removes every page that `taken` touches.
    pub(crate) fn remove(&mut self, taken: Range<u64>) {
        let taken = taken.start / PAGE_BYTES * PAGE_BYTES..taken.end.next_multiple_of(PAGE_BYTES);
        let before = core::mem::replace(self, Ranges::new());
        for range in before.iter() {
            self.add(range.start..range.end.min(taken.start));
            self.add(range.start.max(taken.end)..range.end);
        }
        if taken.is_empty() {
            *self = before;
        }
    }

    /// Takes `bytes` bytes, as whole pages, from the lowest range that is large enough. `None` if
    /// no such range below `limit` exists.
    pub(crate) fn take(&mut self, bytes: u64, limit: u64) -> Option<Range<u64>> {
        let bytes = bytes.next_multiple_of(PAGE_BYTES);
        let start = self
            .iter()
            .filter(|range| range.end - range.start >= bytes && range.start + bytes <= limit)
            .map(|range| range.start)
            .min()?;
        self.remove(start..start + bytes);
        Some(start..start + bytes)
    }
}

#[cfg(test)]
mod tests;
