//! The narrow interface between the shards and the device that stores their pages: [`Backing`].
//! [`DiskQueue`], the disk of the machine, implements it.
//!
//! Invariants:
//! - A request in flight has exactly one recorded purpose, which the token of its completion finds.
//! - The machine gets the requests in the order in which they were made. Completions come in any
//!   order.

use crate::layout::Page;
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use machine::{CoreId, DiskOperation, DiskRequest, DiskToken, Sector};
use tasks::{FrameId, FrameTable};

/// The operations that a shard needs from the device that keeps its journal and segments. Every
/// call is answered by a completion that returns the purpose and the buffer.
pub(crate) trait Backing {
    /// Fills the buffer with the pages from `page` on.
    fn read(&mut self, page: Page, buffer: Box<[u8]>, purpose: DiskPurpose);
    /// Writes the buffer to the pages from `page` on.
    fn write(&mut self, page: Page, buffer: Box<[u8]>, purpose: DiskPurpose);
    /// Makes durable all writes that completed before this call.
    fn flush(&mut self);
}

/// The purpose of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum DiskPurpose {
    /// A chunk of a delivery. The flush of `group` covers it.
    Chunk {
        delivery: FrameId,
        group: Parity,
    },
    /// A block of the group in flight, by its number in the group.
    Block {
        number: u32,
    },
    /// A link block. Its buffer is not used again.
    Fixed {
        group: Parity,
    },
    Flush,
    /// A slot of the superblock.
    Slot,
    /// A request forwarded by the store of another core, with its token in that store.
    ForClient {
        core: CoreId,
        token: DiskToken,
    },
    /// A piece of a body for a reader.
    Body(FrameId),
    /// A piece of the segment that compaction empties.
    Victim,
    /// A chunk that compaction rewrote.
    Moved {
        number: FrameId,
    },
    /// A piece that one of the lanes reads while opening. After a read error: one page of that
    /// piece.
    Piece {
        lane: u8,
        page: Option<u8>,
    },
    /// A random page, read while opening waits for unreadable pages. The read shows whether the
    /// disk works at all.
    Probe,
    /// A slot of the superblock, written while a disk is formatted or opened.
    Format,
}

/// Groups alternate between even and odd: at most one group is in flight while the next group
/// gathers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Parity {
    Even,
    Odd,
}

impl Parity {
    pub(crate) fn other(self) -> Parity {
        match self {
            Parity::Even => Parity::Odd,
            Parity::Odd => Parity::Even,
        }
    }
}

/// The machine's disk as the [`Backing`].
#[derive(Debug)]
pub(crate) struct DiskQueue {
    purposes: FrameTable<DiskPurpose>,
    outgoing: VecDeque<DiskRequest>,
}

impl DiskQueue {
    /// A queue for at most `requests` in flight.
    pub(crate) fn new(requests: usize) -> DiskQueue {
        DiskQueue {
            purposes: FrameTable::with_capacity(requests),
            outgoing: VecDeque::with_capacity(requests),
        }
    }

    /// The next request for the machine.
    pub(crate) fn next(&mut self) -> Option<DiskRequest> {
        self.outgoing.pop_front()
    }

    /// Puts back a request that the machine had no space for.
    pub(crate) fn refused(&mut self, request: DiskRequest) {
        self.outgoing.push_front(request);
    }

    /// The purpose of the request that completed; `None` if the token is unknown.
    pub(crate) fn completed(&mut self, token: DiskToken) -> Option<DiskPurpose> {
        self.purposes.remove(FrameId::from_bits(token.0))
    }

    /// Whether no request is in flight.
    pub(crate) fn is_idle(&self) -> bool {
        self.purposes.is_empty()
    }

    /// Whether `such` holds for all requests in flight.
    pub(crate) fn all_are(&self, such: impl Fn(DiskPurpose) -> bool) -> bool {
        self.purposes.iter().all(|(_, purpose)| such(*purpose))
    }

    /// Whether [`DiskQueue::next`] has a request to return.
    pub(crate) fn has_requests(&self) -> bool {
        !self.outgoing.is_empty()
    }

    pub(crate) fn push(
        &mut self,
        operation: DiskOperation,
        sector: Sector,
        buffer: Box<[u8]>,
        purpose: DiskPurpose,
    ) {
        let Ok(id) = self.purposes.insert(purpose) else {
            unreachable!("more requests in flight than there are buffers for")
        };
        self.outgoing.push_back(DiskRequest {
            token: DiskToken(id.to_bits()),
            operation,
            sector,
            buffer,
        });
    }
}

impl Backing for DiskQueue {
    fn read(&mut self, page: Page, buffer: Box<[u8]>, purpose: DiskPurpose) {
        self.push(DiskOperation::Read, page.sector(), buffer, purpose);
    }

    fn write(&mut self, page: Page, buffer: Box<[u8]>, purpose: DiskPurpose) {
        self.push(DiskOperation::Write, page.sector(), buffer, purpose);
    }

    fn flush(&mut self) {
        self.push(DiskOperation::Flush, Sector(0), Box::default(), DiskPurpose::Flush);
    }
}
