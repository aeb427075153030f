//! The number of a message in a session's maildrop.

/// A message's number; the first is 1 (RFC 1939 section 5).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct MessageNumber(pub u32);

impl MessageNumber {
    /// The index of the message in a list that is counted from 0.
    pub const fn index(self) -> usize {
        self.0.saturating_sub(1) as usize
    }
}
