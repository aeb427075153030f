//! Tests of the allocator: blocks and runs do not overlap, are reused, and keep their contents.

use super::*;
use crate::cpu::cores::tests::THIS;

const REGION_BYTES: usize = 8 << 20;

fn allocator() -> Allocator {
    allocator_over(REGION_BYTES)
}

fn allocator_over(bytes: usize) -> Allocator {
    let region = Box::leak(vec![0_u8; bytes].into_boxed_slice()).as_mut_ptr() as u64;
    let allocator = Allocator::new();
    let mut memory = Ranges::new();
    memory.add(region..region + bytes as u64);
    // SAFETY: the region is leaked for this allocator alone.
    unsafe { allocator.add(&memory) };
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
fn last_freed_block_is_allocated_first() {
    let allocator = allocator();
    // SAFETY: the layouts are not empty, and the block is given back with its own.
    unsafe {
        let one = allocator.alloc(layout(100, 8));
        allocator.dealloc(one, layout(100, 8));
        assert_eq!(allocator.alloc(layout(112, 8)), one);
    }
}

#[test]
fn growing_keeps_contents_and_address_within_the_class() {
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
fn exhausted_memory_returns_null_and_recovers() {
    let allocator = allocator();
    let Memory { total, free } = allocator.memory();
    assert!((REGION_BYTES - 8192..=REGION_BYTES).contains(&total));
    let run = layout(3 << 20, 4096);
    // SAFETY: the layouts are not empty, and blocks are given back with their own.
    unsafe {
        let runs = [allocator.alloc(run), allocator.alloc(run)];
        assert!(runs.iter().all(|run| !run.is_null()));
        assert!(allocator.alloc(run).is_null());
        assert!(allocator.memory().free <= 2 << 20);
        runs.iter().for_each(|&block| allocator.dealloc(block, run));
        assert_eq!(allocator.memory().free, free);
        assert!(!allocator.alloc(layout(7 << 20, 4096)).is_null());
    }
}

#[test]
fn block_freed_by_another_core_returns_to_its_owner() {
    let allocator = allocator();
    let layout = layout(1000, 8);
    // SAFETY: the layout is not empty, and each block is given back once, with its own.
    unsafe {
        THIS.set(1);
        let blocks: Vec<usize> = (0..40).map(|_| allocator.alloc(layout) as usize).collect();
        THIS.set(2);
        let own = allocator.alloc(layout);
        blocks.iter().for_each(|&block| allocator.dealloc(block as *mut u8, layout));
        let others: Vec<usize> = (0..40).map(|_| allocator.alloc(layout) as usize).collect();
        assert!(
            others.iter().all(|block| !blocks.contains(block)),
            "a block of another core was handed out"
        );
        THIS.set(1);
        let free = allocator.memory().free;
        let again: Vec<usize> = (0..64).map(|_| allocator.alloc(layout) as usize).collect();
        assert!(blocks.iter().all(|block| again.contains(block)), "a block got lost");
        assert_eq!(allocator.memory().free, free, "memory was taken although blocks were free");
        allocator.dealloc(own, layout);
    }
    THIS.set(0);
}

/// Four cores pass blocks to each other. Each receiver checks and frees its blocks.
#[test]
fn blocks_passed_among_cores_keep_contents_and_are_reused() {
    const CORES: usize = 4;
    const ROUNDS: usize = 20_000;
    // At any time a few hundred blocks of each of twenty classes are in use. In the whole test
    // there are almost a hundred thousand blocks.
    let allocator = allocator_over(24 << 20);
    let (senders, receivers): (Vec<_>, Vec<_>) =
        (0..CORES).map(|_| std::sync::mpsc::sync_channel(64)).unzip();
    let allocator = &allocator;
    std::thread::scope(|scope| {
        for (core, receiver) in receivers.into_iter().enumerate() {
            let next = senders[(core + 1) % CORES].clone();
            scope.spawn(move || {
                THIS.set(core);
                let mut seed = core + 1;
                let check = |(block, layout, mark): (usize, Layout, u8)| {
                    // SAFETY: the sender does not use the block after sending it; the block is
                    // given back with its own layout.
                    unsafe {
                        let bytes = core::slice::from_raw_parts(block as *const u8, layout.size());
                        assert!(bytes.iter().all(|byte| *byte == mark));
                        allocator.dealloc(block as *mut u8, layout);
                    }
                };
                for _ in 0..ROUNDS {
                    seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    let layout = layout(1 + (seed >> 40) % 600, 1 << ((seed >> 33) % 6));
                    // SAFETY: the layout is not empty.
                    let block = unsafe { allocator.alloc(layout) };
                    assert!(!block.is_null(), "out of memory: blocks got lost");
                    let mark = (seed >> 20) as u8;
                    // SAFETY: the block has that length, and no other user.
                    unsafe { block.write_bytes(mark, layout.size()) };
                    let mut parcel = (block as usize, layout, mark);
                    while let Err(std::sync::mpsc::TrySendError::Full(back)) = next.try_send(parcel)
                    {
                        parcel = back;
                        receiver.try_iter().for_each(check);
                        std::thread::yield_now();
                    }
                    receiver.try_iter().for_each(check);
                }
                drop(next);
                receiver.try_iter().for_each(check);
            });
        }
        drop(senders);
    });
}

/// Fills the memory with blocks of one size, and gives them back. Returns the number of bytes of
/// all blocks.
fn fill_and_give_back(allocator: &Allocator, bytes: usize) -> usize {
    let layout = layout(bytes, 8);
    let mut blocks = Vec::new();
    // SAFETY: the layout is not empty, and each block is given back once, with its own.
    unsafe {
        loop {
            let block = allocator.alloc(layout);
            if block.is_null() {
                break;
            }
            block.write_bytes(0xA5, bytes);
            blocks.push(block as usize);
        }
        // The blocks are freed in an order that differs from the order of allocation.
        let (even, odd): (Vec<_>, Vec<_>) =
            blocks.iter().enumerate().partition(|(number, _)| number % 2 == 0);
        for (_, block) in odd.into_iter().chain(even) {
            allocator.dealloc(*block as *mut u8, layout);
        }
    }
    blocks.len() * bytes
}

#[test]
fn freed_memory_of_one_class_serves_every_other() {
    let allocator = allocator();
    let total = allocator.memory().total;
    let mut sizes = [16, 48, 100, 500, 1000, 4096, 5000, 8192, 20_000, 32_768, 40_000, 1 << 20];
    for _ in 0..3 {
        for bytes in sizes {
            let served = fill_and_give_back(&allocator, bytes);
            assert!(
                served > total * 3 / 4 || bytes > 32_768 && served > total / 2,
                "{served} bytes in blocks of {bytes}"
            );
        }
        sizes.reverse();
    }
}

#[test]
fn slab_with_a_block_in_use_is_kept_unchanged() {
    let allocator = allocator();
    let small = layout(64, 8);
    // SAFETY: the layout is not empty, and each block is given back once, with its own.
    unsafe {
        let blocks: Vec<usize> = (0..10_000).map(|_| allocator.alloc(small) as usize).collect();
        let (held, given): (Vec<_>, Vec<_>) =
            blocks.iter().enumerate().partition(|(number, _)| number % 500 == 7);
        held.iter().for_each(|(_, block)| (**block as *mut u8).write_bytes(0x5A, 64));
        given.iter().for_each(|(_, block)| allocator.dealloc(**block as *mut u8, small));
        fill_and_give_back(&allocator, 3000);
        fill_and_give_back(&allocator, 100_000);
        for (_, block) in held {
            let bytes = core::slice::from_raw_parts(*block as *const u8, 64);
            assert!(bytes.iter().all(|byte| *byte == 0x5A), "a block in use was handed out");
            allocator.dealloc(*block as *mut u8, small);
        }
    }
}

#[test]
fn touched_reserve_is_reported_until_it_is_refilled() {
    let allocator = allocator();
    let (total, layout) = (allocator.memory().total, layout(1000, 8));
    let mut blocks = Vec::new();
    // SAFETY: the layout is not empty, and each block is given back once, with its own.
    unsafe {
        while !allocator.is_low() {
            let block = allocator.alloc(layout);
            assert!(!block.is_null(), "memory is exhausted without a warning");
            blocks.push(block);
        }
        let taken = blocks.len() * 1000;
        assert!(taken > total * 4 / 5 && taken < total, "{taken} of {total}");
        assert!(!allocator.alloc(layout).is_null(), "the reserve cannot be used");
        for block in blocks.drain(..) {
            assert!(!block.is_null());
            allocator.dealloc(block, layout);
        }
    }
    assert!(!allocator.is_low(), "slabs without a block in use do not count as free");
}
