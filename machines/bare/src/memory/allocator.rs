//! The allocator: blocks of fixed sizes from free lists, and longer runs.
//!
//! Blocks up to 32 KiB come from one free list a size ([`Class`]): taking one and giving it back are a handful of instructions
//! and never search. A list that is empty takes a slab from the allocator for runs and cuts it up as blocks are asked for, so that
//! no memory is touched before it is used. What is longer than 32 KiB goes to `talc`, whose cost does not grow with the
//! number of runs; the engine asks for such runs when it starts.
//!
//! Invariants:
//! - A block on a free list belongs to nobody; its first 8 bytes link it to the next.
//! - A slab keeps its size for ever: memory moves from runs to blocks and never back, so that blocks never fragment.
//! - One core allocates, and no interrupt runs code: the state needs no lock.

use super::classes::{CLASSES, Class};
use core::alloc::{GlobalAlloc, Layout};
use core::cell::UnsafeCell;
use core::ops::Range;
use core::ptr::{NonNull, null_mut};
use talc::base::Talc;
use talc::base::binning::DefaultBinning;
use talc::source::Manual;

/// Bytes of a slab, unless eight blocks need more.
const SLAB_BYTES: usize = 64 << 10;
const SLAB_BLOCKS_MIN: usize = 8;
const SLAB_ALIGN: usize = 4096;

/// How much memory there is for the allocator, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Memory {
    /// Given to the allocator at boot.
    pub total: usize,
    /// Of it, what is neither in a run nor in a slab.
    pub free: usize,
}

/// The global allocator of the image.
pub struct Allocator(UnsafeCell<State>);

// SAFETY: 1. one core runs this machine's code; 2. no interrupt runs code; 3. no method calls out while it holds the state.
unsafe impl Sync for Allocator {}

pub(crate) struct State {
    pools: [Pool; CLASSES],
    runs: Talc<Manual, DefaultBinning>,
    total: usize,
    free: usize,
}

/// One class: its free blocks, and what is not yet cut up of its newest slab.
struct Pool {
    free: *mut Link,
    uncut: Range<usize>,
}

/// The start of a free block.
struct Link {
    next: *mut Link,
}

impl Allocator {
    /// An allocator without memory.
    pub const fn new() -> Allocator {
        Allocator(UnsafeCell::new(State::new()))
    }

    /// Gives the allocator memory.
    ///
    /// # Safety
    /// The range is mapped, writable, and nobody else's, for ever.
    pub(crate) unsafe fn add(&self, range: Range<u64>) {
        // SAFETY: 1. nobody else holds the state (`Sync`'s conditions); 2. the caller's condition is `State::add`'s.
        unsafe { (*self.0.get()).add(range.start as *mut u8, (range.end - range.start) as usize) };
    }

    /// How much memory there is.
    pub fn memory(&self) -> Memory {
        // SAFETY: nobody else holds the state (`Sync`'s conditions).
        let state = unsafe { &*self.0.get() };
        Memory { total: state.total, free: state.free }
    }
}

impl Default for Allocator {
    fn default() -> Allocator {
        Allocator::new()
    }
}

// SAFETY: 1. a block is handed out once until it comes back, and is as long and as aligned as its class (`Class::of`) or its
// run; 2. `realloc` keeps the contents; 3. nothing here unwinds.
unsafe impl GlobalAlloc for Allocator {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: nobody else holds the state (`Sync`'s conditions).
        unsafe { (*self.0.get()).take(layout) }
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: 1. nobody else holds the state; 2. the caller gives back what `alloc` handed out for the same layout.
        unsafe { (*self.0.get()).give_back(block, layout) };
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        let Ok(wanted) = Layout::from_size_align(bytes, layout.align()) else { return null_mut() };
        // SAFETY: 1. nobody else holds the state; 2. the caller's block has this layout.
        if unsafe { (*self.0.get()).resize_in_place(block, layout, wanted) } {
            return block;
        }
        // SAFETY: 1. both blocks hold the smaller size and differ; 2. the old one is the caller's to give back.
        unsafe {
            let new = self.alloc(wanted);
            if !new.is_null() {
                new.copy_from_nonoverlapping(block, layout.size().min(bytes));
                self.dealloc(block, layout);
            }
            new
        }
    }
}

impl State {
    const fn new() -> State {
        State {
            pools: [const { Pool { free: null_mut(), uncut: 0..0 } }; CLASSES],
            runs: Talc::new(Manual),
            total: 0,
            free: 0,
        }
    }

    /// # Safety
    /// The memory is mapped, writable, and nobody else's, for ever.
    unsafe fn add(&mut self, base: *mut u8, bytes: usize) {
        // SAFETY: the caller's condition.
        if unsafe { self.runs.claim(base, bytes) }.is_some() {
            self.total += bytes;
            self.free += bytes;
        }
    }

    /// A block for `layout`, or null.
    #[inline]
    fn take(&mut self, layout: Layout) -> *mut u8 {
        let Some(class) = Class::of(layout) else { return self.take_run(layout) };
        let Some(pool) = self.pools.get_mut(class.index()) else { return null_mut() };
        let block = pool.free;
        if block.is_null() {
            return self.cut(class);
        }
        // SAFETY: a block on the free list is ours, and begins with its link.
        pool.free = unsafe { (*block).next };
        block.cast()
    }

    /// # Safety
    /// `block` came from `take` for an equal layout, and nobody uses it any more.
    #[inline]
    unsafe fn give_back(&mut self, block: *mut u8, layout: Layout) {
        let Some(class) = Class::of(layout) else {
            self.free += layout.size();
            // SAFETY: the caller's condition.
            return unsafe { self.runs.deallocate(block, layout) };
        };
        if let Some(pool) = self.pools.get_mut(class.index()) {
            let block = block.cast::<Link>();
            // SAFETY: 1. the block is ours again; 2. every class is at least a link long and as aligned.
            unsafe { block.write(Link { next: pool.free }) };
            pool.free = block;
        }
    }

    /// Whether the block serves `wanted` as well, where it lies.
    ///
    /// # Safety
    /// `block` came from `take` for `layout`, whose alignment is `wanted`'s.
    unsafe fn resize_in_place(&mut self, block: *mut u8, layout: Layout, wanted: Layout) -> bool {
        match (Class::of(layout), Class::of(wanted)) {
            (Some(one), Some(other)) => one == other,
            (None, None) => {
                // SAFETY: the caller's condition; the size is not zero, since it is a run's.
                let done = unsafe { self.runs.try_realloc_in_place(block, layout, wanted.size()) };
                if done {
                    self.free = self.free.saturating_add(layout.size()).saturating_sub(wanted.size());
                }
                done
            }
            _ => false,
        }
    }

    #[cold]
    fn take_run(&mut self, layout: Layout) -> *mut u8 {
        // SAFETY: a layout that has no class is longer than zero bytes, or is made so: `talc` refuses none but zero.
        let run = unsafe { self.runs.allocate(layout) };
        if run.is_some() {
            self.free = self.free.saturating_sub(layout.size());
        }
        run.map_or(null_mut(), NonNull::as_ptr)
    }

    /// The next block of the class's newest slab, or of a new one.
    #[cold]
    fn cut(&mut self, class: Class) -> *mut u8 {
        let bytes = class.bytes();
        let is_empty = self.pools.get(class.index()).is_none_or(|pool| pool.uncut.len() < bytes);
        if is_empty {
            let slab_bytes = SLAB_BYTES.max(bytes * SLAB_BLOCKS_MIN);
            let Ok(layout) = Layout::from_size_align(slab_bytes, SLAB_ALIGN) else { return null_mut() };
            let slab = self.take_run(layout);
            if slab.is_null() {
                return null_mut();
            }
            if let Some(pool) = self.pools.get_mut(class.index()) {
                pool.uncut = slab as usize..slab as usize + slab_bytes;
            }
        }
        let Some(pool) = self.pools.get_mut(class.index()) else { return null_mut() };
        let block = pool.uncut.start;
        pool.uncut.start += bytes;
        block as *mut u8
    }
}

#[cfg(test)]
mod tests;
