//! The buffers: single pages, and runs of two to eight pages within one budget of bytes.
//!
//! Invariants:
//! - The bytes of all pages and runs, idle or lent, never exceed the limits given at construction.
//! - Every delivery finds a page for its first octets. Staging buffers (with the octets that
//!   arrive) can never take the buffers that are reserved for copies. So an operation that waits
//!   for a buffer waits for the disk, and never for another delivery.

use crate::layout::{PAGE_BYTES, PIECE_BYTES, PIECE_PAGES};
use alloc::boxed::Box;
use alloc::vec::Vec;

/// Bytes of runs that are reserved for copies. The buffer of a copy is free again when the disk has
/// written the copy.
const SPARE_BYTES: usize = 4 * PIECE_BYTES;

#[derive(Debug)]
pub(crate) struct Pool {
    pages: Vec<Box<[u8]>>,
    /// Idle buffers of 2 to 8 pages, by their number of pages.
    runs: [Vec<Box<[u8]>>; PIECE_PAGES as usize + 1],
    /// Bytes that may still be allocated for runs.
    unused_bytes: usize,
    idle_bytes: usize,
    /// Buffers of two pages for the journal, as many as the largest group has used so far.
    pairs: Vec<Box<[u8]>>,
    /// The number of buffers that have become available since the waiting operations were last
    /// served.
    returned: u32,
}

fn buffer(bytes: usize) -> Box<[u8]> {
    alloc::vec![0; bytes].into_boxed_slice()
}

impl Pool {
    /// A pool of `pages` single pages, and of `run_bytes` bytes for runs, at least eight pieces.
    pub(crate) fn new(pages: usize, run_bytes: usize) -> Pool {
        Pool {
            pages: (0..pages).map(|_| buffer(PAGE_BYTES)).collect(),
            runs: Default::default(),
            unused_bytes: run_bytes.max(8 * PIECE_BYTES),
            idle_bytes: 0,
            pairs: Vec::new(),
            returned: 0,
        }
    }

    /// A buffer of `pages` pages, 1 to 8.
    pub(crate) fn take(&mut self, pages: u32) -> Option<Box<[u8]>> {
        if pages == 1 {
            return self.pages.pop();
        }
        let bytes = pages as usize * PAGE_BYTES;
        if let Some(buffer) = self.runs_of(bytes).pop() {
            self.idle_bytes -= bytes;
            return Some(buffer);
        }
        self.make_room(bytes)?;
        self.unused_bytes -= bytes;
        Some(buffer(bytes))
    }

    /// As [`Pool::take`], for a copy on its way to the disk. Leaves `to_leave` single pages to
    /// other operations.
    pub(crate) fn take_for_copy(&mut self, pages: u32, to_leave: usize) -> Option<Box<[u8]>> {
        if pages == 1 && self.pages.len() <= to_leave { None } else { self.take(pages) }
    }

    /// As [`Pool::take`], for an operation that may keep the buffer for long. The runs that are
    /// reserved for copies are not taken.
    pub(crate) fn take_sparing(&mut self, pages: u32) -> Option<Box<[u8]>> {
        if self.has_sparing(pages) { self.take(pages) } else { None }
    }

    /// Whether [`Pool::take_sparing`] would find a buffer.
    pub(crate) fn has_sparing(&self, pages: u32) -> bool {
        match pages {
            1 => !self.pages.is_empty(),
            _ => self.unused_bytes + self.idle_bytes >= pages as usize * PAGE_BYTES + SPARE_BYTES,
        }
    }

    /// Takes a buffer back. Operations that wait for a buffer can be served afterwards.
    pub(crate) fn give(&mut self, buffer: Box<[u8]>) {
        self.put(buffer);
        self.note_room();
    }

    /// Takes back a buffer within the call that took it. No operation has been refused this buffer,
    /// so no waiting operation is served.
    pub(crate) fn put(&mut self, buffer: Box<[u8]>) {
        if buffer.len() == PAGE_BYTES {
            self.pages.push(buffer);
        } else {
            self.idle_bytes += buffer.len();
            self.runs_of(buffer.len()).push(buffer);
        }
    }

    /// The idle buffers of `bytes` bytes.
    fn runs_of(&mut self, bytes: usize) -> &mut Vec<Box<[u8]>> {
        match self.runs.get_mut(bytes / PAGE_BYTES) {
            Some(runs) => runs,
            None => unreachable!("a buffer of more pages than a piece"),
        }
    }

    /// Notes that a buffer may have become available.
    pub(crate) fn note_room(&mut self) {
        self.returned += 1;
    }

    /// The number of buffers that were returned since the last call.
    #[inline]
    pub(crate) fn take_returned(&mut self) -> u32 {
        core::mem::take(&mut self.returned)
    }

    /// A buffer for both copies of a journal's block.
    pub(crate) fn take_pair(&mut self) -> Box<[u8]> {
        self.pairs.pop().unwrap_or_else(|| buffer(2 * PAGE_BYTES))
    }

    pub(crate) fn give_pair(&mut self, pair: Box<[u8]>) {
        self.pairs.push(pair);
    }

    /// Frees idle buffers of other sizes until `bytes` bytes may be allocated.
    fn make_room(&mut self, bytes: usize) -> Option<()> {
        while self.unused_bytes < bytes {
            let idle = self.runs.iter_mut().rev().find_map(Vec::pop)?;
            self.idle_bytes -= idle.len();
            self.unused_bytes += idle.len();
        }
        Some(())
    }
}
