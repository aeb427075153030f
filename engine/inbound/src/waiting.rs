//! The events that SMTP sessions wait for.

use tasks::{Continuation, FrameId, Subsystem};

tasks::points! {
    /// The events of an SMTP session.
    pub(crate) enum InboundWaitPoint of Subsystem::Inbound;
    /// There is buffer space for more of the session's message.
    Room,
    /// The session's message is on the disk, or was refused.
    Stored,
    /// A signature of the session's message is computed.
    Signed,
    /// Name servers have answered a question of the session.
    NameKnown,
    /// The owner of an account has replied.
    Replied,
}

/// The continuation of a session in this frame that waits for an answer of name servers.
pub(super) fn name_known_at(session: FrameId) -> Continuation {
    Continuation { frame: session, entry: InboundWaitPoint::NameKnown.entry() }
}

/// The continuation of a session in this frame that waits for a signature.
pub(super) fn signed(session: FrameId) -> Continuation {
    Continuation { frame: session, entry: InboundWaitPoint::Signed.entry() }
}

/// The continuation of a session in this frame that waits for a reply of another core.
pub(super) fn replied_at(session: FrameId) -> Continuation {
    Continuation { frame: session, entry: InboundWaitPoint::Replied.entry() }
}
