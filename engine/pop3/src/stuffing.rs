//! Dot-stuffing of what is sent: which bytes go as they are, and where a dot goes in between.
//!
//! Invariants:
//! - What is written does not depend on how the message is cut into pieces.
//! - Only CRLF ends a line, as everywhere in a stored message.
//!
//! Answers to: RFC 1939 section 3 (multi-line responses).

/// What was sent last of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Position {
    /// Nothing yet, or a CRLF.
    #[default]
    LineStart,
    /// Something else than the others here.
    InLine,
    /// A CR.
    AfterCr,
}

impl Position {
    /// The position once `sent` follows.
    pub(crate) fn after(self, sent: &[u8]) -> Position {
        match sent {
            [] => self,
            [b'\n'] if self == Position::AfterCr => Position::LineStart,
            [.., b'\r', b'\n'] => Position::LineStart,
            [.., b'\r'] => Position::AfterCr,
            _ => Position::InLine,
        }
    }

    /// What must be sent so that a line of its own can follow.
    pub(crate) fn line_end(self) -> &'static [u8] {
        match self {
            Position::LineStart => b"",
            Position::InLine | Position::AfterCr => b"\r\n",
        }
    }
}

/// How many of `bytes`, which follow `position`, come before the next dot at the start of a line; all of them when there
/// is none. Zero when the first is such a dot.
pub(crate) fn bytes_before_dot(position: Position, bytes: &[u8]) -> usize {
    if position == Position::LineStart && bytes.first() == Some(&b'.') {
        return 0;
    }
    for line_end in memchr::memchr_iter(b'\n', bytes) {
        let follows_cr = match line_end.checked_sub(1) {
            Some(before) => bytes.get(before) == Some(&b'\r'),
            None => position == Position::AfterCr,
        };
        if follows_cr && bytes.get(line_end + 1) == Some(&b'.') {
            return line_end + 1;
        }
    }
    bytes.len()
}
