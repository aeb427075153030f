//! Send queue.
use super::pools::BlockPool;

/// Bytes to be sent.
#[derive(Default)]
pub(super) struct SendQueue {}

impl SendQueue {
    pub(super) fn clear(&mut self, _blocks: &mut BlockPool) {}
}
