//! Memory: the map of free memory, the rights to pages, and the allocator.

pub(crate) mod allocator;
pub(crate) mod classes;
mod copy;
pub(crate) mod map;
pub(crate) mod paging;
pub(crate) mod runs;
pub(crate) mod stacks;

/// Bytes in the smallest page.
pub(crate) const PAGE_BYTES: u64 = 4096;
