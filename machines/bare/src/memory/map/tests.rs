//! Tests of the memory map: it contains only whole pages that are free.

#![expect(clippy::single_range_in_vec_init, reason = "lists of ranges, some with one")]

use super::*;

fn ranges_of(parts: &[Range<u64>]) -> Ranges {
    let mut ranges = Ranges::new();
    parts.iter().for_each(|part| ranges.add(part.clone()));
    ranges
}

fn listed(ranges: &Ranges) -> Vec<Range<u64>> {
    ranges.iter().cloned().collect()
}

#[test]
fn only_whole_pages_of_a_range_count() {
    let ranges = ranges_of(&[0x1001..0x4FFF, 0x5001..0x5FFF, 0x7000..0x8000]);
    assert_eq!(listed(&ranges), [0x2000..0x4000, 0x7000..0x8000]);
    assert_eq!(ranges.bytes(), 0x3000);
}

#[test]
fn touched_pages_are_removed_from_the_map() {
    let mut ranges = ranges_of(&[0x1000..0x9000]);
    ranges.remove(0x2FFF..0x4001);
    assert_eq!(listed(&ranges), [0x1000..0x2000, 0x5000..0x9000]);
    ranges.remove(0..0x1001);
    assert_eq!(listed(&ranges), [0x5000..0x9000]);
    ranges.remove(0x8000..0x20000);
    assert_eq!(listed(&ranges), [0x5000..0x8000]);
    ranges.remove(0x6000..0x6000);
    assert_eq!(listed(&ranges), [0x5000..0x8000]);
}

#[test]
fn memory_is_taken_from_the_lowest_fitting_range() {
    let mut ranges = ranges_of(&[0x100000..0x200000, 0x1000..0x3000]);
    assert_eq!(ranges.take(0x2000, 1 << 30), Some(0x1000..0x3000));
    assert_eq!(ranges.take(1, 1 << 30), Some(0x100000..0x101000));
    assert_eq!(ranges.take(0x1000, 0x101000), None);
    assert_eq!(ranges.take(1 << 30, u64::MAX), None);
}

#[test]
fn map_with_too_many_ranges_is_truncated() {
    let parts: Vec<_> = (0..100).map(|i| i * 0x2000..i * 0x2000 + 0x1000).collect();
    assert_eq!(ranges_of(&parts).iter().count(), RANGES_MAX);
}
