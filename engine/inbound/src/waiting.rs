//! The points at which SMTP sessions wait.

use tasks::{Continuation, FrameId, Subsystem};

tasks::points! {
    /// Where an SMTP session may wait for the store.
    pub(crate) enum Point of Subsystem::Inbound;
    /// There is room for more of its message.
    Room,
    /// Its message is on the disk.
    Stored,
    /// A signature under its message is computed.
    Signed,
    /// It is known what it has asked about a name.
    NameKnown,
    /// The owner of an account has replied.
    Replied,
}

/// The session of this frame waits for what is known of a name.
pub(super) fn name_known_at(session: FrameId) -> Continuation {
    Continuation { frame: session, entry: Point::NameKnown.entry() }
}

/// The session of this frame waits for a signature.
pub(super) fn signed(session: FrameId) -> Continuation {
    Continuation { frame: session, entry: Point::Signed.entry() }
}

/// The session of this frame waits for a reply of an account's owner.
pub(super) fn replied_at(session: FrameId) -> Continuation {
    Continuation { frame: session, entry: Point::Replied.entry() }
}
