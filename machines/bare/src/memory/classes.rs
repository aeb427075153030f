//! The size classes of small memory: steps of 16 bytes up to 128, then four steps to each doubling.
//!
//! At most a fifth of a block is wasted above 128 bytes.

use core::alloc::Layout;

/// The number of classes.
pub(crate) const CLASSES: usize = 40;

/// The largest class in bytes. Larger sizes go to the allocator for runs.
pub(crate) const CLASS_BYTES_MAX: usize = 32 << 10;

/// The largest alignment that a class can give: slabs begin at a multiple of this number.
const CLASS_ALIGN_MAX: usize = 4096;

/// The index of a class.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Class(u8);

impl Class {
    /// The class that serves `layout`. `None` if the allocator for runs serves it.
    #[inline]
    pub(crate) fn of(layout: Layout) -> Option<Class> {
        let mut bytes = layout.size();
        if layout.align() > 16 {
            if layout.align() > CLASS_ALIGN_MAX {
                return None;
            }
            // A power of two is a multiple of every alignment up to itself, and slabs begin on a
            // page.
            bytes = bytes.max(layout.align()).checked_next_power_of_two()?;
        }
        (bytes <= CLASS_BYTES_MAX).then(|| Class::of_bytes(bytes))
    }

    #[inline]
    fn of_bytes(bytes: usize) -> Class {
        let last = bytes.saturating_sub(1);
        if last < 128 {
            return Class((last >> 4) as u8);
        }
        let doubling = last.ilog2() as usize;
        Class((8 + 4 * (doubling - 7) + (last >> (doubling - 2) & 3)) as u8)
    }

    /// The class with this index.
    pub(crate) fn at(index: usize) -> Option<Class> {
        (index < CLASSES).then_some(Class(index as u8))
    }

    #[inline]
    pub(crate) fn index(self) -> usize {
        usize::from(self.0)
    }

    /// Bytes in a block of the class.
    #[inline]
    pub(crate) fn bytes(self) -> usize {
        let index = usize::from(self.0);
        if index < 8 {
            return 16 * (index + 1);
        }
        let (doubling, step) = (7 + (index - 8) / 4, (index - 8) % 4);
        (5 + step) << (doubling - 2)
    }
}

#[cfg(test)]
mod tests;
