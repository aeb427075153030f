//! The events that SMTP sessions wait for.

use tasks::{Continuation, FrameId, Subsystem};

tasks::points! {
    /// The events of an SMTP session.
    pub(crate) enum InboundWaitPoint of Subsystem::Inbound;
    /// There is buffer space for more of its message.
    Room,
    /// Its message is on the disk.
    Stored,
    /// A signature of its message is computed.
    Signed,
    /// The answer about a name has come.
    NameKnown,
    /// The owner of an account has replied.
    Replied,
}

/// The session of this frame waits for an answer about a name.
pub(super) fn name_known_at(session: FrameId) -> Continuation {
    Continuation { frame: session, entry: InboundWaitPoint::NameKnown.entry() }
}

/// The session of this frame waits for a signature.
pub(super) fn signed(session: FrameId) -> Continuation {
    Continuation { frame: session, entry: InboundWaitPoint::Signed.entry() }
}

/// The session of this frame waits for a reply of an account's owner.
pub(super) fn replied_at(session: FrameId) -> Continuation {
    Continuation { frame: session, entry: InboundWaitPoint::Replied.entry() }
}
