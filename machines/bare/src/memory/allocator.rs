//! The allocator. Small memory comes in blocks of fixed sizes, from an arena for each core. Larger
//! memory comes in runs.
//!
//! Blocks up to 32 KiB come from free lists, one for each size ([`Class`]) of the calling core.
//! Taking or freeing a block is about ten instructions, without a search. If a list is empty, the
//! arena takes a slab from the allocator for runs, and cuts it up as blocks are requested. So no
//! memory is touched before it is used. Memory of more than 32 KiB comes from `talc`, with a cost
//! that does not grow with the number of runs. The engine requests such runs when it starts. A lock
//! protects runs and new slabs, but not blocks.
//!
//! A block that another core frees returns to its owner. The other core pushes it onto a list of
//! the owner. The owner takes the whole list when it would otherwise need more memory. Neither core
//! ever waits for the other.
//!
//! A part of the memory is a reserve. After an allocation has used it, [`Allocator::is_low`]
//! returns true until the reserve is full again. Until then the engine ends connections, and slabs
//! without a block in use become runs again. Such slabs also become runs when memory is exhausted.
//!
//! Invariants:
//! - A block on a free list has no user. Its first 8 bytes link it to the next block. While it is
//!   on the list of its owner, its next 8 bytes have its class.
//! - A slab keeps its size and its core until none of its blocks is in use. After that, it may
//!   become a run again (`reclaim.rs`).
//! - Only the core itself uses its free lists, and no interrupt runs code. So the free lists need
//!   no lock.

use super::classes::{CLASSES, Class};
use super::map::Ranges;
use super::runs::Runs;
use crate::cpu::cores::{self, CORES_MAX};
use crate::shared::Lock;
use core::alloc::{GlobalAlloc, Layout};
use core::cell::UnsafeCell;
use core::ops::Range;
use core::ptr::null_mut;
use core::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU8, AtomicU16, AtomicUsize, Ordering::Acquire, Ordering::Relaxed,
    Ordering::Release,
};

/// The number of bytes of a slab, unless [`SLAB_BLOCKS_MIN`] blocks need more.
const SLAB_BYTES: usize = 64 << 10;
const SLAB_BLOCKS_MIN: usize = 8;

/// The size of a granule. A slab begins at a multiple of this size, and its own size is a multiple
/// of it. So each granule belongs to at most one core.
const GRANULE_BYTES: usize = 4096;

/// The reserve is the memory divided by this number.
const RESERVE_ONE_IN: usize = 32;

/// The allocator's memory, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Memory {
    /// The memory that the allocator got at boot.
    pub total: usize,
    /// The part that is neither in a run nor in a slab.
    pub free: usize,
}

/// The global allocator of the image.
pub struct Allocator {
    arenas: [Arena; CORES_MAX],
    runs: Lock<Runs>,
    owners: Owners,
    /// Whether an allocation has used a part of the reserve. This stays true until a check finds
    /// the reserve full again.
    is_low: AtomicBool,
}

// SAFETY: 1. only the core of an arena touches its pools, and no interrupt runs code there; 2. all
// other fields are atomic or behind the lock.
unsafe impl Sync for Allocator {}

/// The blocks of one core.
#[repr(align(128))]
struct Arena {
    pools: UnsafeCell<[Pool; CLASSES]>,
    /// The list of blocks that other cores freed.
    returned: AtomicPtr<Returned>,
}

/// The pool of one class: its free blocks, and the part of its newest slab that is not cut up yet.
struct Pool {
    free: *mut Link,
    uncut: Range<usize>,
}

/// The start of a free block.
struct Link {
    next: *mut Link,
}

/// The start of a block on the list of its owner.
struct Returned {
    next: *mut Returned,
    class: Class,
}

const _: () = assert!(size_of::<Returned>() <= 16, "it fits into the smallest block");

impl Allocator {
    /// An allocator without memory.
    pub const fn new() -> Allocator {
        const POOL: Pool = Pool { free: null_mut(), uncut: 0..0 };
        Allocator {
            arenas: [const {
                Arena {
                    pools: UnsafeCell::new([POOL; CLASSES]),
                    returned: AtomicPtr::new(null_mut()),
                }
            }; CORES_MAX],
            runs: Lock::new(Runs::new()),
            owners: Owners::new(),
            is_low: AtomicBool::new(false),
        }
    }

    /// Gives the allocator its memory, once, before another core runs.
    ///
    /// # Safety
    /// The ranges are mapped and writable for ever, and no other code uses them.
    pub(crate) unsafe fn add(&self, memory: &Ranges) {
        let start = memory.iter().map(|range| range.start).min().unwrap_or(0) as usize;
        let end = memory.iter().map(|range| range.end).max().unwrap_or(0) as usize;
        self.runs.with(|runs| {
            for range in memory.iter() {
                // SAFETY: the caller's condition.
                unsafe { runs.add(range.start as *mut u8, (range.end - range.start) as usize) };
            }
            self.owners.take_memory(start..end, runs);
        });
    }

    /// The size of the memory and of its free part.
    pub fn memory(&self) -> Memory {
        self.runs.with(|runs| runs.memory())
    }

    /// Whether the reserve is in use. If an allocation has used a part of it, this core first gives
    /// back its unused slabs.
    #[inline]
    pub(crate) fn is_low(&self) -> bool {
        self.is_low.load(Relaxed) && self.is_still_low()
    }

    #[cold]
    fn is_still_low(&self) -> bool {
        // SAFETY: no reference to a pool of this core is held here.
        unsafe { self.reclaim() };
        let is_low = self.memory().is_low();
        self.is_low.store(is_low, Relaxed);
        is_low
    }

    /// A run, or null. If no run is free, this core first gives its unused slabs back.
    ///
    /// # Safety
    /// No reference to a pool of this core is held.
    unsafe fn take_run(&self, layout: Layout) -> *mut u8 {
        let (mut run, memory) = self.runs.with(|runs| (runs.take(layout), runs.memory()));
        if run.is_null() {
            // SAFETY: the caller's condition.
            unsafe { self.reclaim() };
            run = self.runs.with(|runs| runs.take(layout));
        }
        if memory.is_low() || run.is_null() {
            self.is_low.store(true, Relaxed);
        }
        run
    }

    /// The calling core's pool of a class.
    ///
    /// # Safety
    /// The last result of this function on this core is not used after this call.
    #[expect(
        clippy::mut_from_ref,
        reason = "one core has one reference at a time, by the caller's condition"
    )]
    #[inline]
    unsafe fn pool(&self, class: Class) -> &mut Pool {
        // SAFETY: the pools are this core's, and by the caller's condition no other reference to
        // them exists.
        let pools = unsafe { &mut *self.own_arena().pools.get() };
        #[expect(clippy::indexing_slicing, reason = "every class has a pool")]
        &mut pools[class.index()]
    }

    #[inline]
    fn own_arena(&self) -> &Arena {
        self.arena(cores::this())
    }

    #[inline]
    fn arena(&self, core: usize) -> &Arena {
        #[expect(clippy::indexing_slicing, reason = "every core has an arena")]
        &self.arenas[core % CORES_MAX]
    }

    /// A block of `class`, for which the core's free list is empty. Null if no memory is left.
    #[cold]
    fn refill(&self, class: Class) -> *mut u8 {
        self.take_in();
        // SAFETY: no reference to a pool is held here.
        let pool = unsafe { self.pool(class) };
        let block = pool.take();
        if !block.is_null() {
            return block;
        }
        if pool.uncut.len() < class.bytes() {
            let Some(layout) = slab_layout(class) else { return null_mut() };
            // SAFETY: the reference to the pool above is not used after this.
            let slab = unsafe { self.take_run(layout) };
            if slab.is_null() {
                return null_mut();
            }
            let slab = slab as usize..slab as usize + layout.size();
            self.owners.set(slab.clone(), cores::this());
            // SAFETY: no reference to a pool is held here.
            let pool = unsafe { self.pool(class) };
            pool.uncut = slab;
        }
        // SAFETY: no other reference to a pool is held here.
        let pool = unsafe { self.pool(class) };
        let block = pool.uncut.start;
        pool.uncut.start += class.bytes();
        block as *mut u8
    }

    /// Puts the blocks that other cores freed onto the free lists.
    fn take_in(&self) {
        let mut returned = self.own_arena().returned.swap(null_mut(), Acquire);
        while !returned.is_null() {
            // SAFETY: the core that pushed the block wrote this value at its start, and does not
            // use the block.
            let Returned { next, class } = unsafe { returned.read() };
            // SAFETY: 1. no reference to a pool is held here; 2. the block is of this class, of
            // this core, and has no user.
            unsafe { self.pool(class).give_back(returned.cast()) };
            returned = next;
        }
    }

    /// Gives a block back to the core that it came from.
    ///
    /// # Safety
    /// The block is of this class, from `owner`'s arena, and has no user.
    #[cold]
    unsafe fn send_home(&self, block: *mut u8, class: Class, owner: usize) {
        let (home, block) = (&self.arena(owner).returned, block.cast::<Returned>());
        let mut first = home.load(Relaxed);
        loop {
            // SAFETY: 1. the block is ours until it is pushed; 2. blocks of every class are long
            // enough and aligned enough for `Returned`.
            unsafe { block.write(Returned { next: first, class }) };
            match home.compare_exchange_weak(first, block, Release, Relaxed) {
                Ok(_) => return,
                Err(other) => first = other,
            }
        }
    }

    /// Resizes the block in its place. Returns whether the block can serve `wanted` now.
    ///
    /// # Safety
    /// `block` came from `alloc` for `layout`, with the alignment of `wanted`.
    unsafe fn resize_in_place(&self, block: *mut u8, layout: Layout, wanted: Layout) -> bool {
        match (Class::of(layout), Class::of(wanted)) {
            (Some(one), Some(other)) => one == other,
            // SAFETY: the caller's condition; both layouts are those of runs.
            (None, None) => {
                self.runs.with(|runs| unsafe { runs.resize_in_place(block, layout, wanted.size()) })
            }
            _ => false,
        }
    }
}

impl Memory {
    /// The number of bytes of the reserve in a memory of `total` bytes.
    pub const fn reserve(total: usize) -> usize {
        total / RESERVE_ONE_IN
    }

    /// Whether less than the reserve is free.
    fn is_low(&self) -> bool {
        self.free < Memory::reserve(self.total)
    }
}

/// The layout of a slab of a class.
fn slab_layout(class: Class) -> Option<Layout> {
    let bytes = SLAB_BYTES.max(class.bytes() * SLAB_BLOCKS_MIN).next_multiple_of(GRANULE_BYTES);
    Layout::from_size_align(bytes, GRANULE_BYTES).ok()
}

impl Default for Allocator {
    fn default() -> Allocator {
        Allocator::new()
    }
}

// SAFETY: 1. a block that is handed out is not handed out again until it is freed, and is as long
// and as aligned as its class (`Class::of`) or its run; 2. `realloc` keeps the contents; 3. no
// function here unwinds.
unsafe impl GlobalAlloc for Allocator {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: no reference to a pool is held here.
        let Some(class) = Class::of(layout) else { return unsafe { self.take_run(layout) } };
        // SAFETY: no reference to a pool is held here.
        let block = unsafe { self.pool(class) }.take();
        if block.is_null() { self.refill(class) } else { block }
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        let Some(class) = Class::of(layout) else {
            // SAFETY: the caller gives back what `alloc` handed out for the same layout, a run.
            return self.runs.with(|runs| unsafe { runs.give_back(block, layout) });
        };
        // SAFETY: the block has a class, so it is in a slab.
        let owner = unsafe { self.owners.of(block as usize) };
        if owner == cores::this() {
            // SAFETY: 1. no reference to a pool is held here; 2. the block is of this class and
            // this core, and the caller does not use it after this call.
            unsafe { self.pool(class).give_back(block) };
        } else {
            // SAFETY: the block is of this class, its slab belongs to `owner`, and the caller does
            // not use it after this call.
            unsafe { self.send_home(block, class, owner) };
        }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        let Ok(wanted) = Layout::from_size_align(bytes, layout.align()) else { return null_mut() };
        // SAFETY: the caller's block has this layout.
        if unsafe { self.resize_in_place(block, layout, wanted) } {
            return block;
        }
        // SAFETY: 1. both blocks have at least the smaller size, and do not overlap; 2. the caller
        // passed the old block to be freed.
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

impl Pool {
    /// A free block, or null.
    #[inline]
    fn take(&mut self) -> *mut u8 {
        let block = self.free;
        if !block.is_null() {
            // SAFETY: a block on the free list is ours, and begins with its link.
            self.free = unsafe { (*block).next };
        }
        block.cast()
    }

    /// # Safety
    /// The block is of the pool's class and core, and has no user.
    #[inline]
    unsafe fn give_back(&mut self, block: *mut u8) {
        let block = block.cast::<Link>();
        // SAFETY: 1. the block is ours again; 2. blocks of every class are long enough and aligned
        // enough for a `Link`.
        unsafe { block.write(Link { next: self.free }) };
        self.free = block;
    }
}

/// The table of granules of memory. An entry has a meaning only if the granule is in a slab.
struct Owners {
    start: AtomicUsize,
    table: AtomicPtr<Granule>,
}

struct Granule {
    /// The core that owns the slab.
    core: AtomicU8,
    /// The number of granules between the start of the slab and this granule.
    place: AtomicU8,
    /// The number of free blocks of the slab. Zero except in the first granule of a slab while its
    /// core is reclaiming.
    free: AtomicU16,
}

impl Owners {
    const fn new() -> Owners {
        Owners { start: AtomicUsize::new(0), table: AtomicPtr::new(null_mut()) }
    }

    /// Takes memory for the table from `runs`. `memory`: the range that contains all slabs.
    fn take_memory(&self, memory: Range<usize>, runs: &mut Runs) {
        let granules =
            (memory.end / GRANULE_BYTES + 1).saturating_sub(memory.start / GRANULE_BYTES);
        if let Ok(layout) = Layout::array::<Granule>(granules) {
            self.start.store(memory.start / GRANULE_BYTES, Relaxed);
            let table = runs.take(layout);
            assert!(!table.is_null(), "the memory has no space for the table of granules");
            // SAFETY: the run has that length, and has no other user; a granule may be all zeros.
            unsafe { table.write_bytes(0, layout.size()) };
            self.table.store(table.cast(), Relaxed);
        }
    }

    fn set(&self, slab: Range<usize>, core: usize) {
        for (place, address) in slab.step_by(GRANULE_BYTES).enumerate() {
            // SAFETY: a slab is in the memory that has granules.
            let granule = unsafe { self.granule(address) };
            granule.core.store(core as u8, Relaxed);
            granule.place.store(place as u8, Relaxed);
        }
    }

    /// # Safety
    /// The block at `address` is in a slab.
    #[inline]
    unsafe fn of(&self, address: usize) -> usize {
        // SAFETY: a slab is in the memory that has granules.
        usize::from(unsafe { self.granule(address) }.core.load(Relaxed))
    }

    /// The start of the slab.
    ///
    /// # Safety
    /// The block at `address` is in a slab.
    unsafe fn slab_of(&self, address: usize) -> usize {
        // SAFETY: a slab is in the memory that has granules.
        let place = unsafe { self.granule(address) }.place.load(Relaxed);
        (address / GRANULE_BYTES - usize::from(place)) * GRANULE_BYTES
    }

    /// # Safety
    /// `address` is in the memory that was passed to `take_memory`.
    #[inline]
    unsafe fn granule(&self, address: usize) -> &Granule {
        let number = address / GRANULE_BYTES - self.start.load(Relaxed);
        // SAFETY: the table has an entry for each granule, was filled with zeros, and lives for
        // ever.
        unsafe { &*self.table.load(Relaxed).add(number) }
    }
}

mod reclaim;
#[cfg(test)]
mod tests;
