//! A call of the script: the result of one attempt, and a call that waits for another one.

use machine::Instant;

use super::script::Call;

/// What became of a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Attempt {
    Value(i64),
    Error(&'static str),
    /// It waits.
    Blocks,
}

/// A call that has not returned.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Pending {
    pub(super) line: usize,
    pub(super) call: Call,
    /// When the script says that it returns.
    pub(super) returns: Option<Instant>,
}
