//! The end of TOP's response: the header, the empty line, and a number of lines of the body.
//!
//! Invariant: the end does not depend on how the message is cut into pieces.
//!
//! Implements: RFC 1939 section 7 (TOP).

/// The position in the message, and the number of body lines that remain for the response.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Cut {
    place: CutPlace,
    body_lines_left: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum CutPlace {
    /// At the start of a header line, or after a CR at the start.
    HeaderLineStart,
    InHeaderLine,
    Body,
    Done,
}

impl Cut {
    /// The response ends after the header and `body_lines` lines.
    pub(crate) fn after(body_lines: u32) -> Cut {
        Cut { place: CutPlace::HeaderLineStart, body_lines_left: body_lines }
    }

    /// Whether the response has ended.
    pub(crate) fn is_done(self) -> bool {
        self.place == CutPlace::Done
    }

    /// Returns the number of the next `bytes` that belong to the response, and the state after
    /// them.
    pub(crate) fn advance(mut self, bytes: &[u8]) -> (usize, Cut) {
        let mut line_start = 0;
        for line_end in memchr::memchr_iter(b'\n', bytes) {
            if self.is_done() {
                break;
            }
            self.line_arrived(bytes.get(line_start..line_end).unwrap_or_default());
            line_start = line_end + 1;
        }
        if self.is_done() {
            return (line_start, self);
        }
        let begun = bytes.get(line_start..).unwrap_or_default();
        if self.place == CutPlace::HeaderLineStart && !is_empty_line(begun) {
            self.place = CutPlace::InHeaderLine;
        }
        (bytes.len(), self)
    }

    fn line_arrived(&mut self, line: &[u8]) {
        let left = match self.place {
            CutPlace::HeaderLineStart if is_empty_line(line) => self.body_lines_left,
            CutPlace::HeaderLineStart | CutPlace::InHeaderLine => {
                self.place = CutPlace::HeaderLineStart;
                return;
            }
            CutPlace::Body => self.body_lines_left.saturating_sub(1),
            CutPlace::Done => return,
        };
        self.body_lines_left = left;
        self.place = if left == 0 { CutPlace::Done } else { CutPlace::Body };
    }
}

fn is_empty_line(line: &[u8]) -> bool {
    matches!(line, b"" | b"\r")
}
