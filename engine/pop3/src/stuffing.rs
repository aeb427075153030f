//! Dot-stuffing: which bytes are sent unchanged, and where a dot is added.
//!
//! Invariants:
//! - The output does not depend on how the message is cut into pieces.
//! - Only CRLF ends a line, as in all stored messages.
//!
//! Implements: RFC 1939 section 3 (multi-line responses).

/// The end of the part of a message that was sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum StuffingPosition {
    /// No byte was sent, or the last two are CRLF.
    #[default]
    LineStart,
    /// Other bytes.
    InLine,
    /// A CR.
    AfterCr,
}

impl StuffingPosition {
    /// The position after `sent`.
    pub(crate) fn after(self, sent: &[u8]) -> StuffingPosition {
        match sent {
            [] => self,
            [b'\n'] if self == StuffingPosition::AfterCr => StuffingPosition::LineStart,
            [.., b'\r', b'\n'] => StuffingPosition::LineStart,
            [.., b'\r'] => StuffingPosition::AfterCr,
            _ => StuffingPosition::InLine,
        }
    }

    /// The line end that the last line of a message needs. Empty: the line has ended already.
    pub(crate) fn line_end(self) -> &'static [u8] {
        match self {
            StuffingPosition::LineStart => b"",
            StuffingPosition::InLine | StuffingPosition::AfterCr => b"\r\n",
        }
    }
}

/// The number of `bytes` before the next dot at the start of a line. `position` is the position
/// before `bytes`. Without such a dot, the result is the length of `bytes`.
pub(crate) fn bytes_before_dot(position: StuffingPosition, bytes: &[u8]) -> usize {
    if position == StuffingPosition::LineStart && bytes.first() == Some(&b'.') {
        return 0;
    }
    for line_end in memchr::memchr_iter(b'\n', bytes) {
        let follows_cr = match line_end.checked_sub(1) {
            Some(before) => bytes.get(before) == Some(&b'\r'),
            None => position == StuffingPosition::AfterCr,
        };
        if follows_cr && bytes.get(line_end + 1) == Some(&b'.') {
            return line_end + 1;
        }
    }
    bytes.len()
}
