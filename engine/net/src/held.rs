//! The few packets that wait until a neighbour is resolved.
//!
//! Invariants:
//! - At most [`HELD_MAX`] packets wait, and at most [`HELD_FOR_ONE_MAX`] for one neighbour. Their
//!   buffers are allocated at construction.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// The most packets that wait, for all neighbours together.
pub(crate) const HELD_MAX: usize = 16;
/// The most packets that wait for one neighbour.
pub(crate) const HELD_FOR_ONE_MAX: usize = 3;

/// Frames, each with the neighbour that it waits for.
pub(crate) struct Held<A> {
    waiting: VecDeque<(A, Vec<u8>)>,
    spare: Vec<Vec<u8>>,
    /// Frames that were dropped since the counter was last read.
    pub(crate) dropped: u64,
}

impl<A: Copy + PartialEq> Held<A> {
    /// `frame_bytes`: the longest frame that may have to wait.
    pub(crate) fn new(frame_bytes: usize) -> Held<A> {
        Held {
            waiting: VecDeque::with_capacity(HELD_MAX),
            spare: (0..HELD_MAX).map(|_| Vec::with_capacity(frame_bytes)).collect(),
            dropped: 0,
        }
    }

    /// Keeps a frame until its neighbour is resolved. If too many frames wait, the new frame
    /// replaces the oldest frame for the same neighbour. If none waits for this neighbour, the new
    /// frame is dropped.
    pub(crate) fn hold(&mut self, next_hop: A, frame: &[u8]) {
        let waiting = self.waiting.iter().filter(|(address, _)| *address == next_hop).count();
        if waiting >= HELD_FOR_ONE_MAX || (self.spare.is_empty() && waiting > 0) {
            self.drop_first(next_hop);
        }
        match self.spare.pop() {
            Some(mut buffer) if frame.len() <= buffer.capacity() => {
                buffer.extend_from_slice(frame);
                self.waiting.push_back((next_hop, buffer));
            }
            Some(buffer) => {
                self.dropped += 1;
                self.put_back(buffer);
            }
            None => self.dropped += 1,
        }
    }

    /// Takes the oldest frame that waits for `next_hop`. The caller returns it with
    /// [`Held::put_back`].
    pub(crate) fn take(&mut self, next_hop: A) -> Option<Vec<u8>> {
        let at = self.waiting.iter().position(|(address, _)| *address == next_hop)?;
        self.waiting.remove(at).map(|(_, frame)| frame)
    }

    pub(crate) fn put_back(&mut self, mut buffer: Vec<u8>) {
        buffer.clear();
        self.spare.push(buffer);
    }

    /// Whether a frame waits for `next_hop`.
    pub(crate) fn is_awaited(&self, next_hop: A) -> bool {
        self.waiting.iter().any(|(address, _)| *address == next_hop)
    }

    /// Drops all frames that wait for `next_hop`.
    pub(crate) fn drop_all(&mut self, next_hop: A) {
        while self.drop_first(next_hop) {}
    }

    /// Drops all waiting frames.
    pub(crate) fn clear(&mut self) {
        while let Some((_, frame)) = self.waiting.pop_front() {
            self.dropped += 1;
            self.put_back(frame);
        }
    }

    /// The number of waiting frames.
    #[cfg(test)]
    pub(crate) fn waiting_count(&self) -> usize {
        self.waiting.len()
    }

    /// The number of buffers, used or not.
    #[cfg(test)]
    pub(crate) fn buffers(&self) -> usize {
        self.waiting.len() + self.spare.len()
    }

    fn drop_first(&mut self, next_hop: A) -> bool {
        let Some(frame) = self.take(next_hop) else { return false };
        self.dropped += 1;
        self.put_back(frame);
        true
    }
}
