//! The receive queues of a card with several queues. All frames of a flow arrive in one queue,
//! except strays.
//!
//! The card selects the queue with a hash of the flow. After a change of the hash, later frames of
//! a flow may arrive in another queue than earlier ones.

use std::collections::VecDeque;

use machine::CoreId;

use crate::SimulatedMachine;

impl SimulatedMachine {
    /// Moves arrived frames into the queues, if the card has more than one.
    pub(crate) fn sort_frames(&mut self) {
        while self.queues > 1
            && let Some(frame) = self.to_engine.pop_front()
        {
            if let Some(queue) = self.queue_for(&frame) {
                queue.push_back(frame);
            }
        }
    }

    /// Queues a frame that arrives at the card. Each queue has space for `places` frames.
    ///
    /// Errors: the frame, if its queue is full.
    pub(crate) fn frame_arrived(&mut self, frame: Vec<u8>, places: usize) -> Result<(), Vec<u8>> {
        let queue =
            if self.queues == 1 { Some(&mut self.to_engine) } else { self.queue_for(&frame) };
        match queue {
            Some(queue) if queue.len() < places => queue.push_back(frame),
            _ => return Err(frame),
        }
        Ok(())
    }

    /// The number of frames in all queues.
    pub(crate) fn frames_waiting(&self) -> usize {
        self.to_engine.len() + self.queued.iter().map(VecDeque::len).sum::<usize>()
    }

    /// Whether the next turn of `core` finds a frame.
    pub(crate) fn has_frames_for(&self, core: CoreId) -> bool {
        let is_queued = self.queued.get(core.index()).is_some_and(|queue| !queue.is_empty());
        // A frame that is not sorted yet may belong to any core's queue.
        is_queued || !self.to_engine.is_empty() && (self.queues > 1 || core == CoreId::FIRST)
    }

    /// Changes the hash, so that each flow may arrive in another queue.
    pub(crate) fn spread_anew(&mut self) {
        self.spread = self.dice.roll();
    }

    fn queue_for(&mut self, frame: &[u8]) -> Option<&mut VecDeque<Vec<u8>>> {
        let queues = u64::from(self.queues);
        self.queued.resize_with(usize::from(self.queues), VecDeque::new);
        let is_stray = self.dice.happens(self.strays);
        let place =
            if is_stray { self.dice.below(queues) } else { flow_of(frame, self.spread) % queues };
        self.queued.get_mut(place as usize)
    }
}

/// The hash of a TCP segment's flow: its addresses and ports. Zero for all other frames, and for
/// segments behind IPv6 extension headers.
fn flow_of(frame: &[u8], spread: u64) -> u64 {
    let names = match (frame.get(12..14), frame.get(23), frame.get(20)) {
        (Some([0x08, 0x00]), Some(6), _) => frame.get(26..38),
        (Some([0x86, 0xdd]), _, Some(6)) => frame.get(22..58),
        _ => None,
    };
    let mix = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    names.map_or(0, |names| names.iter().fold(0xcbf2_9ce4_8422_2325 ^ spread, mix) >> 32)
}
