//! The receive queues of a card that has several: a flow's frames come into one of them, but for strays.
//!
//! By which one, the card decides: by a hash of what names the flow, until it changes its mind. Then all that was on its way comes
//! elsewhere than what came before it.

use std::collections::VecDeque;

use machine::CoreId;

use crate::SimulatedMachine;

impl SimulatedMachine {
    /// Puts what has arrived into the queues, if there are several.
    pub(crate) fn sort_frames(&mut self) {
        while self.queues > 1
            && let Some(frame) = self.to_engine.pop_front()
        {
            if let Some(queue) = self.queue_for(&frame) {
                queue.push_back(frame);
            }
        }
    }

    /// A frame arrives at a card whose queues have so many places.
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

    /// How many frames wait in all queues.
    pub(crate) fn frames_waiting(&self) -> usize {
        self.to_engine.len() + self.queued.iter().map(VecDeque::len).sum::<usize>()
    }

    /// Whether the next turn of `core` finds a frame.
    pub(crate) fn has_frames_for(&self, core: CoreId) -> bool {
        let is_queued = self.queued.get(core.index()).is_some_and(|queue| !queue.is_empty());
        // What is not sorted yet may be anybody's.
        is_queued || !self.to_engine.is_empty() && (self.queues > 1 || core == CoreId::FIRST)
    }

    /// From now on each flow's frames come into another queue, perhaps.
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

/// What names a frame's flow to a card: addresses and ports, if it is TCP without extension headers; nothing else does.
fn flow_of(frame: &[u8], spread: u64) -> u64 {
    let names = match (frame.get(12..14), frame.get(23), frame.get(20)) {
        (Some([0x08, 0x00]), Some(6), _) => frame.get(26..38),
        (Some([0x86, 0xdd]), _, Some(6)) => frame.get(22..58),
        _ => None,
    };
    let mix = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    names.map_or(0, |names| names.iter().fold(0xcbf2_9ce4_8422_2325 ^ spread, mix) >> 32)
}
