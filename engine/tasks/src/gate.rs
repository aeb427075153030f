//! Gates: each the exclusive owner of one resource, first come first served.
//!
//! A frame that finds the gate taken is put into the gate's queue, and is woken when its turn
//! comes. It does not try again by itself. Self-continuation costs O(n²) for n contenders (CEFOS,
//! section 4.1), the queue costs O(n) (section 4.2).
//!
//! Invariants:
//! - A gate has at most one owner, and no queue while it has none.
//! - A frame waits at one gate at most. So all gates share one array of links, and no queue can
//!   overflow.

use alloc::vec;
use alloc::vec::Vec;

use crate::FrameId;
use crate::list::{List, ListLinks};

/// Identifies a gate by its index.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct GateId(pub u32);

/// The result of trying to pass a gate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub enum Passage {
    /// The frame owns the resource until it leaves.
    Entered,
    /// Another frame owns the resource. This frame is in the queue. The call of `leave` that makes
    /// this frame the owner returns its id.
    Queued,
}

#[derive(Clone, Copy, Debug)]
struct Gate {
    owner: Option<FrameId>,
    queue: List,
}

#[derive(Clone, Copy, Debug)]
struct GateWaiter {
    frame: FrameId,
    gate: GateId,
}

/// Several gates, for the frames of one table.
#[derive(Debug)]
pub struct Gates {
    gates: Vec<Gate>,
    links: ListLinks,
    waiting: Vec<Option<GateWaiter>>,
}

impl Gates {
    /// Bytes of memory for each slot of the frame table.
    pub const SLOT_BYTES: usize = size_of::<Option<GateWaiter>>() + ListLinks::SLOT_BYTES;

    /// `gates` free gates for the frames of a table of `capacity` slots.
    pub fn new(gates: usize, capacity: usize) -> Gates {
        Gates {
            gates: vec![Gate { owner: None, queue: List::EMPTY }; gates],
            links: ListLinks::with_capacity(capacity),
            waiting: vec![None; capacity],
        }
    }

    /// `frame`, which waits at no gate, asks for the resource of `gate`.
    pub fn enter(&mut self, gate: GateId, frame: FrameId) -> Passage {
        let Some(entry) = self.gates.get_mut(gate.0 as usize) else { return Passage::Queued };
        if entry.owner.is_none() {
            entry.owner = Some(frame);
            return Passage::Entered;
        }
        if let Some(waiting) = self.waiting.get_mut(frame.index()) {
            assert!(waiting.is_none(), "a frame waits at one gate at most");
            *waiting = Some(GateWaiter { frame, gate });
            self.links.push_back(&mut entry.queue, frame.index() as u32);
        }
        Passage::Queued
    }

    /// `frame`, the owner, releases the resource of `gate`. Resume the returned frame, which owns
    /// it now.
    pub fn leave(&mut self, gate: GateId, frame: FrameId) -> Option<FrameId> {
        let entry = self.gates.get_mut(gate.0 as usize)?;
        assert!(entry.owner == Some(frame), "only the owner leaves a gate");
        entry.owner = self
            .links
            .pop_front(&mut entry.queue)
            .and_then(|index| self.waiting.get_mut(index as usize))
            .and_then(Option::take)
            .map(|waiting| waiting.frame);
        entry.owner
    }

    /// Takes `frame` out of the queue that it waits in, if any. An owner must call `leave` instead.
    pub fn abandon(&mut self, frame: FrameId) {
        let Some(place) = self.waiting.get_mut(frame.index()) else { return };
        let Some(waiting) = place.take_if(|waiting| waiting.frame == frame) else { return };
        if let Some(entry) = self.gates.get_mut(waiting.gate.0 as usize) {
            self.links.remove(&mut entry.queue, frame.index() as u32);
        }
    }

    /// The owner of the resource of `gate`.
    pub fn owner(&self, gate: GateId) -> Option<FrameId> {
        self.gates.get(gate.0 as usize)?.owner
    }
}
