//! Reclaiming: slabs without a block in use become runs again.
//!
//! A slab belongs to one class. Clients use blocks of different sizes at different times. Without
//! reclaiming, the memory of each size would be kept for ever, because it could not serve another
//! size. So when memory is nearly exhausted, each core searches its free lists for slabs with all
//! blocks free. The search takes three walks along each list. At other times reclaiming costs
//! nothing.
//!
//! Invariants:
//! - A slab is given back only after all of its blocks were on the free list and have been removed
//!   from it.
//! - The counts in the table of granules are zero except during reclaiming.

use super::{Allocator, CLASSES, Class, GRANULE_BYTES, Link, slab_layout};
use core::alloc::Layout;
use core::ptr::null_mut;
use core::sync::atomic::Ordering::Relaxed;

impl Allocator {
    /// Gives all slabs of this core without a block in use back to the runs.
    ///
    /// # Safety
    /// No reference to a pool of this core is held.
    #[cold]
    pub(super) unsafe fn reclaim(&self) {
        self.take_in();
        for class in (0..CLASSES).filter_map(Class::at) {
            let Some(layout) = slab_layout(class) else { continue };
            // SAFETY: the caller's condition.
            unsafe {
                self.drop_uncut(class, layout);
                self.count_free(class);
                self.give_slabs_back(class, layout);
            }
        }
    }

    /// Cuts up the rest of the class's newest slab, so that all of its free blocks are on the list.
    ///
    /// # Safety
    /// No reference to a pool of this core is held.
    unsafe fn drop_uncut(&self, class: Class, layout: Layout) {
        // SAFETY: the caller's condition.
        let pool = unsafe { self.pool(class) };
        if pool.uncut.is_empty() {
            return;
        }
        // SAFETY: the uncut part is in a slab.
        let slab = unsafe { self.owners.slab_of(pool.uncut.start) };
        debug_assert!(pool.uncut.end == slab + layout.size(), "the rest of a slab ends with it");
        while pool.uncut.len() >= class.bytes() {
            let block = pool.uncut.start;
            pool.uncut.start += class.bytes();
            // SAFETY: the block is in a slab of this class and core, and was never handed out.
            unsafe { pool.give_back(block as *mut u8) };
        }
        pool.uncut = 0..0;
    }

    /// Counts the free blocks of each slab.
    ///
    /// # Safety
    /// No reference to a pool of this core is held.
    unsafe fn count_free(&self, class: Class) {
        // SAFETY: the caller's condition; blocks on a free list are in slabs, and begin with their
        // links.
        unsafe {
            let mut block = self.pool(class).free;
            while !block.is_null() {
                self.owners.granule(self.owners.slab_of(block as usize)).free.fetch_add(1, Relaxed);
                block = (*block).next;
            }
        }
    }

    /// Removes the blocks of completely free slabs from the list, and gives these slabs back. Sets
    /// the counts to zero again.
    ///
    /// # Safety
    /// No reference to a pool of this core is held, and free blocks are counted.
    unsafe fn give_slabs_back(&self, class: Class, layout: Layout) {
        let blocks = layout.size() / class.bytes();
        let (mut kept, mut whole): (*mut Link, *mut Link) = (null_mut(), null_mut());
        // SAFETY: 1. the caller's conditions; 2. blocks on a free list are in slabs, begin with
        // their links, and have no user; 3. a slab is given back when no list contains any of its
        // blocks.
        unsafe {
            let mut block = core::mem::replace(&mut self.pool(class).free, null_mut());
            while !block.is_null() {
                let (slab, next) = (self.owners.slab_of(block as usize), (*block).next);
                let is_whole = usize::from(self.owners.granule(slab).free.load(Relaxed)) == blocks;
                if !is_whole {
                    (*block).next = kept;
                    kept = block;
                } else if block as usize == slab {
                    // Of each free slab only the block at its start is kept, to remember the slab.
                    (*block).next = whole;
                    whole = block;
                }
                block = next;
            }
            self.pool(class).free = kept;
            while !kept.is_null() {
                self.owners.granule(self.owners.slab_of(kept as usize)).free.store(0, Relaxed);
                kept = (*kept).next;
            }
            while !whole.is_null() {
                let (slab, next) = (whole as usize, (*whole).next);
                debug_assert!(slab.is_multiple_of(GRANULE_BYTES), "slabs begin on granules");
                self.owners.granule(slab).free.store(0, Relaxed);
                self.runs.with(|runs| runs.give_back(slab as *mut u8, layout));
                whole = next;
            }
        }
    }
}
