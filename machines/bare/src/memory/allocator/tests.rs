//! Blocks and runs never overlap, come back, and keep what they hold.

use super::*;

const REGION_BYTES: usize = 8 << 20;

fn allocator() -> Allocator {
    let region = Box::leak(vec![0_u8; REGION_BYTES].into_boxed_slice()).as_mut_ptr() as u64;
    let allocator = Allocator::new();
    // SAFETY: the region is leaked for this allocator alone.
    unsafe { allocator.add(region..region + REGION_BYTES as u64) };
    allocator
}

fn layout(size: usize, align: usize) -> Layout {
    Layout::from_size_align(size, align).unwrap()
}

#[test]
fn blocks_in_use_never_overlap_and_are_aligned() {
    let allocator = allocator();
    let mut seed = 1_u64;
    let mut held: Vec<(usize, Layout)> = Vec::new();
    for _ in 0..20_000 {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let random = (seed >> 33) as usize;
        if held.len() > 60 || random.is_multiple_of(3) && !held.is_empty() {
            let (block, layout) = held.swap_remove(random % held.len());
            // SAFETY: the block came from this allocator with this layout.
            unsafe { allocator.dealloc(block as *mut u8, layout) };
            continue;
        }
        let size = 1 + random % [64, 2_000, 40_000][random / 7 % 3];
        let layout = layout(size, 1 << (random / 11 % 8));
        // SAFETY: the layout is not empty.
        let block = unsafe { allocator.alloc(layout) } as usize;
        assert!(block != 0 && block.is_multiple_of(layout.align()));
        assert!(held.iter().all(|(other, l)| block + size <= *other || other + l.size() <= block));
        held.push((block, layout));
    }
}

#[test]
fn the_block_given_back_last_is_taken_first() {
    let allocator = allocator();
    // SAFETY: the layouts are not empty, and the block is given back with its own.
    unsafe {
        let one = allocator.alloc(layout(100, 8));
        allocator.dealloc(one, layout(100, 8));
        assert_eq!(allocator.alloc(layout(112, 8)), one);
    }
}

#[test]
fn growing_keeps_the_contents_and_the_place_while_it_fits() {
    let allocator = allocator();
    // SAFETY: each block is used within its size and given back with its layout.
    unsafe {
        let block = allocator.alloc(layout(100, 8));
        block.write_bytes(0x5A, 100);
        assert_eq!(allocator.realloc(block, layout(100, 8), 112), block);
        let long = allocator.realloc(block, layout(112, 8), 100_000);
        let longer = allocator.realloc(long, layout(100_000, 8), 200_000);
        assert!((0..100).all(|i| longer.add(i).read() == 0x5A));
        allocator.dealloc(longer, layout(200_000, 8));
    }
}

#[test]
fn memory_that_is_used_up_answers_with_null_and_serves_again() {
    let allocator = allocator();
    assert_eq!(allocator.memory().total, REGION_BYTES);
    let run = layout(3 << 20, 4096);
    // SAFETY: the layouts are not empty, and blocks are given back with their own.
    unsafe {
        let runs = [allocator.alloc(run), allocator.alloc(run)];
        assert!(runs.iter().all(|run| !run.is_null()));
        assert!(allocator.alloc(run).is_null());
        assert!(allocator.memory().free <= 2 << 20);
        runs.iter().for_each(|&block| allocator.dealloc(block, run));
        assert_eq!(allocator.memory().free, REGION_BYTES);
        assert!(!allocator.alloc(layout(7 << 20, 4096)).is_null());
    }
}
