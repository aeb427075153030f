//! Facts of the disk format that the room needs to read a disk directly: `docs/format.md`, section
//! 5.

/// The sectors of a page, the unit in which the store writes.
pub(super) const PAGE: u64 = 8;
/// The bytes of a page.
pub(super) const PAGE_BYTES: usize = 4_096;
/// The offset at which the octets of a body chunk begin.
pub(super) const OCTETS_FROM: usize = 512;
/// The octets in a full body chunk.
pub(super) const CHUNK_OCTETS: usize = 8 * PAGE_BYTES - OCTETS_FROM;
