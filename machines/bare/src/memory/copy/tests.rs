//! Tests of the memory functions with every size around the limits of their code paths, and with
//! every small overlap.

use core::ffi::{c_int, c_void};

unsafe extern "C" {
    fn barepost_memcpy(to: *mut c_void, from: *const c_void, bytes: usize) -> *mut c_void;
    fn barepost_memmove(to: *mut c_void, from: *const c_void, bytes: usize) -> *mut c_void;
    fn barepost_memset(to: *mut c_void, value: c_int, bytes: usize) -> *mut c_void;
    fn barepost_memcmp(one: *const c_void, other: *const c_void, bytes: usize) -> c_int;
    fn barepost_strlen(text: *const c_void) -> usize;
}

const MARGIN: usize = 80;
const SIZE_MAX: usize = 330;

fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 7 + i / 251 + 1) as u8).collect()
}

#[test]
fn memcpy_copies_each_byte_and_no_other() {
    for size in 0..SIZE_MAX {
        for shift in [0, 1, 7, 15] {
            let from = pattern(size + shift);
            let mut to = vec![0xEE_u8; size + 2 * MARGIN];
            // SAFETY: 1. both ranges are inside their vectors; 2. they are different vectors.
            let back = unsafe {
                barepost_memcpy(
                    to.as_mut_ptr().add(MARGIN).cast(),
                    from.as_ptr().add(shift).cast(),
                    size,
                )
            };
            assert_eq!(back as usize, to.as_ptr() as usize + MARGIN);
            assert_eq!(&to[MARGIN..MARGIN + size], &from[shift..], "size {size}");
            assert!(
                to[..MARGIN].iter().chain(&to[MARGIN + size..]).all(|&byte| byte == 0xEE),
                "size {size}"
            );
        }
    }
}

#[test]
fn memmove_moves_overlapping_ranges_both_ways() {
    for size in 0..SIZE_MAX {
        for (from, to) in (0..=MARGIN)
            .flat_map(|distance| [(MARGIN, MARGIN - distance), (MARGIN - distance, MARGIN)])
        {
            let mut memory = pattern(size + 2 * MARGIN);
            let mut expected = memory.clone();
            expected.copy_within(from..from + size, to);
            // SAFETY: both ranges are inside the vector.
            unsafe {
                let base = memory.as_mut_ptr();
                barepost_memmove(base.add(to).cast(), base.add(from).cast(), size);
            }
            assert!(memory == expected, "size {size}, from {from} to {to}");
        }
    }
}

#[test]
fn memset_sets_each_byte_and_no_other() {
    for size in 0..SIZE_MAX {
        let mut memory = vec![0xEE_u8; size + 2 * MARGIN];
        // SAFETY: the range is inside the vector.
        unsafe { barepost_memset(memory.as_mut_ptr().add(MARGIN).cast(), 0x1A5, size) };
        assert!(memory[MARGIN..MARGIN + size].iter().all(|&byte| byte == 0xA5), "size {size}");
        assert!(
            memory[..MARGIN].iter().chain(&memory[MARGIN + size..]).all(|&byte| byte == 0xEE),
            "size {size}"
        );
    }
}

#[test]
fn memcmp_orders_by_the_first_byte_that_differs() {
    for size in 0..SIZE_MAX / 2 {
        let one = pattern(size);
        let mut other = one.clone();
        let compare = |one: &[u8], other: &[u8]| {
            // SAFETY: both ranges are the slices' own.
            unsafe { barepost_memcmp(one.as_ptr().cast(), other.as_ptr().cast(), size) }
        };
        assert_eq!(compare(&one, &other), 0, "size {size}");
        for place in 0..size {
            for value in [0, 0x7F, 0x80, 0xFF] {
                other[place] = value;
                let after = size - 1;
                other[after] = if place == after { value } else { !one[after] };
                assert_eq!(
                    compare(&one, &other).signum(),
                    one.cmp(&other) as c_int,
                    "size {size}, place {place}"
                );
                other.copy_from_slice(&one);
            }
        }
    }
}

#[test]
fn strlen_counts_up_to_the_nul() {
    for (text, length) in [(&b"\0"[..], 0), (b"a\0b\0", 1), (b"barepost\0", 8)] {
        // SAFETY: the text ends with a NUL.
        assert_eq!(unsafe { barepost_strlen(text.as_ptr().cast()) }, length);
    }
}
