//! The output of the client: lines, and messages with dot stuffing.
//!
//! Invariants:
//! - Each line that is sent ends in CRLF: a lone CR or LF becomes CRLF. So no message contains an
//!   end of data that another server might recognise.
//! - The output does not depend on how the bytes of a message are split.
//!
//! Implements: RFC 5321 sections 2.3.8, 4.1.1.4 and 4.5.2.

use alloc::vec::Vec;

/// The most bytes of a message that wait to be sent, approximately.
pub const BODY_ROOM_BYTES: usize = 16 * 1024;

/// The bytes that wait to be sent.
#[derive(Default, Debug)]
pub(super) struct OutputBuffer {
    bytes: Vec<u8>,
    /// The number of bytes in `bytes` that were sent already.
    start: usize,
    /// The number of bytes that were sent before the first byte of `bytes`.
    before: u64,
    position_in_line: LinePosition,
}

/// The position of a message's next byte in its line.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
enum LinePosition {
    #[default]
    LineStart,
    InLine,
    AfterCr,
}

impl OutputBuffer {
    /// The bytes that wait to be sent.
    pub(super) fn bytes(&self) -> &[u8] {
        self.bytes.get(self.start..).unwrap_or_default()
    }

    /// The number of bytes that were sent in total.
    pub(super) fn position(&self) -> u64 {
        self.before + self.start as u64
    }

    /// The position at which all of the output will have been sent.
    pub(super) fn end(&self) -> u64 {
        self.before + self.bytes.len() as u64
    }

    /// Removes `count` bytes, which were sent.
    pub(super) fn remove_sent(&mut self, count: usize) {
        self.start += count;
        assert!(self.start <= self.bytes.len(), "only bytes of the output are sent");
        // The buffer is compacted when half of it was sent, so the work is linear in the bytes that
        // were sent.
        if self.start >= self.bytes.len() / 2 {
            self.before += self.start as u64;
            self.bytes.drain(..self.start);
            self.start = 0;
        }
    }

    /// Drops the bytes that were not sent.
    pub(super) fn clear(&mut self) {
        self.bytes.truncate(self.start);
    }

    /// Adds a line and its CRLF.
    pub(super) fn line(&mut self, line: &str) {
        self.bytes.extend_from_slice(line.as_bytes());
        self.bytes.extend_from_slice(b"\r\n");
    }

    /// Whether there is space for more of a message.
    pub(super) fn has_room(&self) -> bool {
        self.bytes.len() <= BODY_ROOM_BYTES / 2
    }

    /// Adds bytes of a message, as far as there is space. Returns the number of bytes added.
    pub(super) fn body(&mut self, octets: &[u8]) -> usize {
        let mut rest = octets;
        while let Some((&first, after)) = rest.split_first() {
            let room = BODY_ROOM_BYTES.saturating_sub(self.bytes.len());
            if room < 2 {
                break;
            }
            rest = match (self.position_in_line, first) {
                (LinePosition::AfterCr, b'\n') => self.put(b"\n", LinePosition::LineStart, after),
                (LinePosition::AfterCr, _) => self.put(b"\n", LinePosition::LineStart, rest),
                (_, b'\r') => self.put(b"\r", LinePosition::AfterCr, after),
                (_, b'\n') => self.put(b"\r\n", LinePosition::LineStart, after),
                (LinePosition::LineStart, b'.') => self.put(b"..", LinePosition::InLine, after),
                _ => {
                    let run = memchr::memchr2(b'\r', b'\n', rest).unwrap_or(rest.len()).min(room);
                    let (run, after) = rest.split_at_checked(run).unwrap_or((rest, &[]));
                    self.put(run, LinePosition::InLine, after)
                }
            };
        }
        octets.len() - rest.len()
    }

    /// Ends the message.
    pub(super) fn end_body(&mut self) {
        self.bytes.extend_from_slice(match self.position_in_line {
            LinePosition::LineStart => b".\r\n",
            LinePosition::InLine => b"\r\n.\r\n",
            LinePosition::AfterCr => b"\n.\r\n",
        });
        self.position_in_line = LinePosition::LineStart;
    }

    /// Adds bytes, and sets the position after them. Returns `rest`.
    fn put<'a>(
        &mut self,
        bytes: &[u8],
        position_in_line: LinePosition,
        rest: &'a [u8],
    ) -> &'a [u8] {
        self.bytes.extend_from_slice(bytes);
        self.position_in_line = position_in_line;
        rest
    }
}
