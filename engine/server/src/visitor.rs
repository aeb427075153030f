//! What has asked a core for something: a session for its client, or a request handler.

use machine::CoreId;
use tasks::FrameId;

/// The frame that waits for an answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Visitor {
    /// None: it is one of this core's.
    pub(crate) core: Option<CoreId>,
    pub(crate) frame: FrameId,
}
