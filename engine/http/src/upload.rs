//! The body of a question whose sender was admitted.
//!
//! Invariant: it never takes more memory than was admitted.

use alloc::vec::Vec;

/// Bytes after which memory for them is asked for, when nobody knows how many there will be.
const BYTES_AT_FIRST: usize = 4096;

/// A body that comes.
#[derive(Debug)]
pub(crate) struct Upload {
    bytes: Vec<u8>,
    /// How many were admitted.
    limit: usize,
    is_too_large: bool,
}

impl Upload {
    /// `announced`: how many bytes it is to have, if that is known.
    pub(crate) fn begin(limit: usize, announced: Option<u64>) -> Upload {
        let announced = announced.map_or(0, |bytes| usize::try_from(bytes).unwrap_or(usize::MAX));
        let is_too_large = announced > limit;
        let bytes = if is_too_large { Vec::new() } else { Vec::with_capacity(announced) };
        Upload { bytes, limit, is_too_large }
    }

    /// Keeps a part of it, unless it goes beyond the limit.
    pub(crate) fn keep(&mut self, part: &[u8]) {
        let whole = self.bytes.len() + part.len();
        if self.is_too_large || whole > self.limit {
            (self.is_too_large, self.bytes) = (true, Vec::new());
            return;
        }
        if whole > self.bytes.capacity() {
            let wanted = whole.max(2 * self.bytes.capacity()).max(BYTES_AT_FIRST).min(self.limit);
            self.bytes.reserve_exact(wanted - self.bytes.len());
        }
        self.bytes.extend_from_slice(part);
    }

    /// Whether there is more of it than was admitted.
    pub(crate) fn is_too_large(&self) -> bool {
        self.is_too_large
    }

    /// How many bytes were admitted.
    pub(crate) fn limit(&self) -> usize {
        self.limit
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}
