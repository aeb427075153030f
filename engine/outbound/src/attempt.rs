//! What an attempt works with: the queue, and the parts of the core.

use tasks::{Continuation, FrameId};

use super::Point;
use super::context::Context;
use super::state::Queue;

/// The queue and the parts of the core, lent to one attempt for one step.
pub(super) struct AttemptCx<'a, 'c> {
    pub(super) frame: FrameId,
    pub(super) queue: &'a mut Queue,
    pub(super) parts: &'a mut Context<'c>,
}

impl AttemptCx<'_, '_> {
    pub(super) fn continuation(&self, point: Point) -> Continuation {
        Continuation { frame: self.frame, entry: point.entry() }
    }
}
