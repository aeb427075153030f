//! The resume queue: frames that are ready to run, first come first served.
//!
//! Invariants:
//! - The ring cannot overflow: it holds each slot's index at most once, and has a place for each
//!   slot. A frame that is resumed twice before it runs is run once.
//! - A turn runs only the frames that were ready when it began. A frame that resumes itself runs in
//!   the next turn. So every turn ends.
//! - A new frame in a slot gets its wake-up even if an earlier frame of the slot is still in the
//!   ring. The queue keeps the id that was resumed last.

use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;

use crate::FrameId;

/// The ready frames, with one place for each slot of the frame table that it serves.
#[derive(Debug)]
pub struct ResumeQueue {
    ring: VecDeque<u32>,
    resumed: Vec<Option<FrameId>>,
    left_this_turn: usize,
}

impl ResumeQueue {
    /// Bytes of memory for each slot.
    pub const SLOT_BYTES: usize = size_of::<u32>() + size_of::<Option<FrameId>>();

    /// A queue for the frames of a table of `capacity` slots.
    pub fn with_capacity(capacity: usize) -> ResumeQueue {
        ResumeQueue {
            ring: VecDeque::with_capacity(capacity),
            resumed: vec![None; capacity],
            left_this_turn: 0,
        }
    }

    /// Makes `frame` ready. Does nothing if it is ready already.
    pub fn resume(&mut self, frame: FrameId) {
        let Some(resumed) = self.resumed.get_mut(frame.index()) else { return };
        if resumed.is_none() {
            assert!(
                self.ring.len() < self.ring.capacity(),
                "each slot is in the ring at most once"
            );
            self.ring.push_back(frame.index() as u32);
        }
        *resumed = Some(frame);
    }

    /// Begins a turn, which runs all frames that are ready now.
    pub fn begin_turn(&mut self) {
        self.left_this_turn = self.ring.len();
    }

    /// The next frame to run in this turn.
    pub fn next_ready(&mut self) -> Option<FrameId> {
        self.left_this_turn = self.left_this_turn.checked_sub(1)?;
        let index = self.ring.pop_front()?;
        self.resumed.get_mut(index as usize)?.take()
    }

    /// The number of ready frames.
    pub fn len(&self) -> usize {
        self.ring.len()
    }

    /// Whether no frame is ready.
    pub fn is_empty(&self) -> bool {
        self.ring.is_empty()
    }
}
