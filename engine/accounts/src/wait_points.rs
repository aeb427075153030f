//! The wait points of the setup of accounts.

use tasks::{Continuation, FrameId, Subsystem};

tasks::points! {
    /// The wait points of the setup of accounts.
    pub(crate) enum SetupWaitPoint of Subsystem::Accounts;
    /// An account has been created or changed.
    Changed,
    /// A configured password has been hashed or checked. The setup takes the result in its turn.
    PasswordHashed,
    /// A password hash has been stored.
    PasswordSet,
}

/// A frame that does not exist: the engine itself waits.
pub(crate) const NO_FRAME: FrameId = FrameId::new(u32::MAX, 0);

/// The continuation of the change with this number among those in flight.
pub(crate) fn changed(number: usize) -> Continuation {
    Continuation { frame: FrameId::new(number as u32, 0), entry: SetupWaitPoint::Changed.entry() }
}

/// The continuation of a hash.
pub(crate) fn password_hashed() -> Continuation {
    Continuation { frame: NO_FRAME, entry: SetupWaitPoint::PasswordHashed.entry() }
}

/// The continuation of a stored password.
pub(crate) fn password_set() -> Continuation {
    Continuation { frame: NO_FRAME, entry: SetupWaitPoint::PasswordSet.entry() }
}
