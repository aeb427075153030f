//! Runs: memory longer than a block of any class, and the slabs from which blocks are cut.
//!
//! All cores share this allocator, behind a lock. They use it rarely: the engine requests runs when
//! it starts, and a core usually keeps a slab that it has taken.

use super::allocator::Memory;
use core::alloc::Layout;
use core::ptr::{NonNull, null_mut};
use talc::base::Talc;
use talc::base::binning::DefaultBinning;
use talc::source::Manual;

/// The most bytes that a run for `layout` may take, including alignment and bookkeeping.
fn cost(layout: Layout) -> usize {
    layout.size() + layout.align().max(NOTED_BYTES)
}

/// The number of bytes of bookkeeping of a run.
const NOTED_BYTES: usize = 16;

pub(crate) struct Runs {
    runs: Talc<Manual, DefaultBinning>,
    memory: Memory,
}

// SAFETY: its pointers point into the allocator's memory, which every core can access. The lock
// around it lets one core at a time use it.
unsafe impl Send for Runs {}

impl Runs {
    pub(crate) const fn new() -> Runs {
        Runs { runs: Talc::new(Manual), memory: Memory { total: 0, free: 0 } }
    }

    pub(crate) fn memory(&self) -> Memory {
        self.memory
    }

    /// # Safety
    /// The memory is mapped and writable for ever, and no other code uses it.
    pub(crate) unsafe fn add(&mut self, base: *mut u8, bytes: usize) {
        // SAFETY: the caller's condition.
        if unsafe { self.runs.claim(base, bytes) }.is_some() {
            self.memory.total += bytes;
            self.memory.free += bytes;
        }
    }

    /// A run for `layout`, or null.
    pub(crate) fn take(&mut self, layout: Layout) -> *mut u8 {
        // SAFETY: the layout is not empty, as `talc` requires: a layout without a class and the
        // layout of a slab are longer than zero bytes.
        let run = unsafe { self.runs.allocate(layout) };
        if run.is_some() {
            self.memory.free = self.memory.free.saturating_sub(cost(layout));
        }
        run.map_or(null_mut(), NonNull::as_ptr)
    }

    /// # Safety
    /// `run` came from `take` for an equal layout, and has no user.
    pub(crate) unsafe fn give_back(&mut self, run: *mut u8, layout: Layout) {
        self.memory.free += cost(layout);
        // SAFETY: the caller's condition.
        unsafe { self.runs.deallocate(run, layout) };
    }

    /// Resizes the run in its place. Returns whether that was possible.
    ///
    /// # Safety
    /// `run` came from `take` for `layout`; `bytes` is not zero.
    pub(crate) unsafe fn resize_in_place(
        &mut self,
        run: *mut u8,
        layout: Layout,
        bytes: usize,
    ) -> bool {
        // SAFETY: the caller's condition.
        let is_done = unsafe { self.runs.try_realloc_in_place(run, layout, bytes) };
        if is_done {
            self.memory.free = self.memory.free.saturating_add(layout.size()).saturating_sub(bytes);
        }
        is_done
    }
}
