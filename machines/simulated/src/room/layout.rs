//! Facts of the disk format that the room uses when it reads a disk by itself: `docs/format.md`,
//! section 5.

/// Sectors of a page, the unit in which the store writes.
pub(super) const PAGE: u64 = 8;
/// Bytes of a page.
pub(super) const PAGE_BYTES: usize = 4_096;
/// Where the octets of a chunk of a body begin.
pub(super) const OCTETS_FROM: usize = 512;
/// Octets in a chunk of a body.
pub(super) const CHUNK_OCTETS: usize = 8 * PAGE_BYTES - OCTETS_FROM;
