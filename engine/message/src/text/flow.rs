//! Joins the lines of a text with `format=flowed`.
//!
//! The output has each paragraph on one line. A quoted paragraph has its quote marks and a space
//! before it.
//!
//! Invariants:
//! - Only lines of the same quote depth are joined. The line with the two dashes of a signature is
//!   never joined to another line.
//! - A line without an end is passed on after [`LINE_BYTES_MAX`] bytes.
//!
//! Implements: RFC 3676 section 4.

use alloc::string::String;

use crate::structure::TextFlow;

/// The most bytes of a line that are kept until it ends.
const LINE_BYTES_MAX: usize = 16 * 1_024;

/// Joins lines to paragraphs.
#[derive(Debug)]
pub(super) struct Joining {
    keeps_space: bool,
    /// The beginning of a line.
    line: String,
    /// The end of the text so far.
    before: Before,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Before {
    /// No text, or a whole paragraph.
    Whole,
    /// A line of this quote depth that continues in the next line.
    Open { depth: usize },
    /// Part of a line of this quote depth.
    Line { depth: usize },
}

impl Joining {
    /// `None`: the lines of the text are not joined.
    pub(super) fn new(flow: TextFlow) -> Option<Joining> {
        let keeps_space = match flow {
            TextFlow::Fixed => return None,
            TextFlow::Flowed => true,
            TextFlow::FlowedWithoutSpace => false,
        };
        Some(Joining { keeps_space, line: String::new(), before: Before::Whole })
    }

    pub(super) fn text_arrived(&mut self, text: &str, out: &mut String) {
        for mut piece in text.split_inclusive('\n') {
            while !piece.is_empty() {
                let room =
                    piece.floor_char_boundary(LINE_BYTES_MAX.saturating_sub(self.line.len()));
                let (taken, rest) = piece.split_at_checked(room).unwrap_or((piece, ""));
                self.line.push_str(taken);
                if taken.ends_with('\n') || !rest.is_empty() {
                    let mut line = core::mem::take(&mut self.line);
                    self.line_arrived(&line, out);
                    line.clear();
                    self.line = line;
                }
                piece = rest;
            }
        }
    }

    pub(super) fn text_ended(&mut self, out: &mut String) {
        let line = core::mem::take(&mut self.line);
        if !line.is_empty() {
            self.line_arrived(&line, out);
        }
    }

    fn line_arrived(&mut self, line: &str, out: &mut String) {
        let content = line.strip_suffix('\n').map(|line| line.strip_suffix('\r').unwrap_or(line));
        let (content, is_whole) = content.map_or((line, false), |content| (content, true));
        let (depth, content) = match self.before {
            Before::Line { depth } => (depth, content),
            _ => {
                let unquoted = content.trim_start_matches('>');
                let depth = content.len() - unquoted.len();
                // A space may protect the beginning of the line (section 4.4).
                (depth, unquoted.strip_prefix(' ').unwrap_or(unquoted))
            }
        };
        let is_signature = content == "-- ";
        let goes_on = match self.before {
            Before::Line { .. } => true,
            Before::Open { depth: open } => open == depth && !is_signature,
            Before::Whole => false,
        };
        if !goes_on {
            if matches!(self.before, Before::Open { .. }) {
                out.push('\n');
            }
            push_marks(out, depth);
        }
        let is_open = content.ends_with(' ') && !is_signature;
        let is_joined = is_whole && is_open && !self.keeps_space;
        out.push_str(if is_joined {
            content.strip_suffix(' ').unwrap_or(content)
        } else {
            content
        });
        self.before = match (is_whole, is_open) {
            (false, _) => Before::Line { depth },
            (true, true) => Before::Open { depth },
            (true, false) => {
                out.push('\n');
                Before::Whole
            }
        };
    }
}

fn push_marks(out: &mut String, depth: usize) {
    if depth > 0 {
        out.extend(core::iter::repeat_n('>', depth));
        out.push(' ');
    }
}
