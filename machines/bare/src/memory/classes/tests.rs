//! Tests of the size classes: every layout gets the smallest class that serves it.

use super::*;

fn class(size: usize, align: usize) -> Option<Class> {
    Class::of(Layout::from_size_align(size, align).unwrap())
}

#[test]
fn every_size_gets_the_smallest_fitting_class() {
    let all: Vec<usize> = (0..CLASSES as u8).map(|index| Class(index).bytes()).collect();
    assert!(all.is_sorted() && all.iter().all(|bytes| bytes % 16 == 0));
    assert_eq!(all.last(), Some(&CLASS_BYTES_MAX));
    for size in 0..=CLASS_BYTES_MAX {
        let expected = all.iter().position(|&bytes| bytes >= size).unwrap();
        assert_eq!(class(size, 8).unwrap().index(), expected, "size {size}");
    }
    assert_eq!(class(CLASS_BYTES_MAX + 1, 8), None);
}

#[test]
fn alignment_is_kept_by_powers_of_two() {
    for align in [32, 64, 4096] {
        for size in [1, 48, 100, 5000, 20000] {
            let bytes = class(size, align).unwrap().bytes();
            assert!(
                bytes >= size && bytes.is_multiple_of(align) && bytes.is_power_of_two(),
                "{size} {align}"
            );
        }
    }
    assert_eq!(class(16, 8192), None);
}
