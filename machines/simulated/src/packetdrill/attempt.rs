//! Calls of the script: the result of one attempt, and a call that waits for another attempt.

use machine::Instant;

use super::script::SocketCall;

/// The result of an attempt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum CallAttempt {
    Value(i64),
    Error(&'static str),
    /// The call must wait, and is tried again later.
    Blocks,
}

/// A blocking call that has not returned.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct PendingCall {
    pub(super) line: usize,
    pub(super) call: SocketCall,
    /// The time at which the call returns, according to the script.
    pub(super) returns: Option<Instant>,
}
