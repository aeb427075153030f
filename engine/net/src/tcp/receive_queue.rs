//! Receive queue.
use super::pools::BlockPool;

/// Kept bytes.
#[derive(Default)]
pub(super) struct ReceiveQueue {}

impl ReceiveQueue {
    pub(super) fn clear(&mut self, _blocks: &mut BlockPool) {}
}
