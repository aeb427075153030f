//! The one narrow way from the shards to whatever keeps their pages: [`Backing`], and the disk behind it.
//!
//! Invariants:
//! - A request in flight has exactly one purpose on record, found by the token of its completion.
//! - Requests leave in the order in which they were made; their completions come in any order.

use crate::layout::Page;
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use machine::{CoreId, DiskOperation, DiskRequest, DiskToken, Sector};
use tasks::{FrameId, FrameTable};

/// What a shard needs of the place where its journal and segments are kept. Every call is answered by a completion that
/// brings back the purpose, and the buffer.
pub(crate) trait Backing {
    /// Fills the buffer from `page` on.
    fn read(&mut self, page: Page, buffer: Box<[u8]>, purpose: Purpose);
    /// Writes the buffer from `page` on.
    fn write(&mut self, page: Page, buffer: Box<[u8]>, purpose: Purpose);
    /// Makes all that was written before this call durable.
    fn flush(&mut self);
}

/// What a request is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Purpose {
    /// A chunk of a delivery; `group` tells which flush covers it.
    Chunk {
        delivery: FrameId,
        group: Parity,
    },
    /// A block of the group in flight, by its number in the group.
    Block {
        number: u32,
    },
    /// A link: nothing needs its buffer afterwards.
    Fixed {
        group: Parity,
    },
    Flush,
    /// A slot of the superblock.
    Slot,
    /// A request of another core's store, under the token that it has there.
    Errand {
        core: CoreId,
        token: DiskToken,
    },
    /// A piece of a body for somebody.
    Body(FrameId),
    /// What compaction reads.
    Victim,
    /// A chunk that compaction wrote again.
    Moved {
        number: FrameId,
    },
    /// What opening reads: a piece for one of its lanes, or, after that failed, one page of it.
    Piece {
        lane: u8,
        page: Option<u8>,
    },
    /// Any page, while opening waits for others: whether the disk reads at all.
    Proof,
    /// What formatting writes.
    Format,
}

/// Groups are told apart by being even or odd: at most one is in flight while the next one gathers.
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

/// The machine's disk as the backing.
#[derive(Debug)]
pub(crate) struct DiskQueue {
    purposes: FrameTable<Purpose>,
    outgoing: VecDeque<DiskRequest>,
}

impl DiskQueue {
    /// Room for `requests` in flight.
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

    /// Puts back a request for which the machine had no room.
    pub(crate) fn refused(&mut self, request: DiskRequest) {
        self.outgoing.push_front(request);
    }

    /// What the request that completed was for; `None` when there was none such.
    pub(crate) fn completed(&mut self, token: DiskToken) -> Option<Purpose> {
        self.purposes.remove(FrameId::from_bits(token.0))
    }

    /// Whether no request is under way.
    pub(crate) fn is_idle(&self) -> bool {
        self.purposes.is_empty()
    }

    /// Whether all requests under way are such.
    pub(crate) fn all_are(&self, such: impl Fn(Purpose) -> bool) -> bool {
        self.purposes.iter().all(|(_, purpose)| such(*purpose))
    }

    /// Whether there is a [`DiskQueue::next`].
    pub(crate) fn has_requests(&self) -> bool {
        !self.outgoing.is_empty()
    }

    pub(crate) fn push(
        &mut self,
        operation: DiskOperation,
        sector: Sector,
        buffer: Box<[u8]>,
        purpose: Purpose,
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
    fn read(&mut self, page: Page, buffer: Box<[u8]>, purpose: Purpose) {
        self.push(DiskOperation::Read, page.sector(), buffer, purpose);
    }

    fn write(&mut self, page: Page, buffer: Box<[u8]>, purpose: Purpose) {
        self.push(DiskOperation::Write, page.sector(), buffer, purpose);
    }

    fn flush(&mut self) {
        self.push(DiskOperation::Flush, Sector(0), Box::default(), Purpose::Flush);
    }
}
