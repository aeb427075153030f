//! Gates. A gate gives one frame at a time the exclusive use of a resource, in the order of
//! arrival.
//!
//! A frame that finds the gate taken enters the gate's queue. When the owner leaves, the first
//! frame of the queue becomes the owner and is woken. So a waiting frame need not try again by
//! itself. With n contenders, trying again costs O(n²) (CEFOS, section 4.1), and the queue costs
//! O(n) (section 4.2).
//!
//! Invariants:
//! - A gate has at most one owner. Without an owner it has no queue.
//! - A frame waits at one gate at most. So all gates can share one array of links, and no queue can
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
    /// Another frame owns the resource. This frame is in the queue. When it becomes the owner, the
    /// call of `leave` by the previous owner returns its id.
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

    /// Requests the resource of `gate` for `frame`, which waits at no gate.
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

    /// Releases the resource of `gate`, which `frame` owns. Returns the next owner, if a frame
    /// waits. The caller must resume this frame.
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
