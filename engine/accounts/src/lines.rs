//! Console lines about many accounts: the first few, and then the number of the others.

use alloc::string::String;
use alloc::vec::Vec;

use machine::ConsoleLines;
use store::Refusal;

/// The most lines that are printed of one kind.
const LINES_MAX: usize = 10;

/// Lines of one kind.
#[derive(Default)]
pub(crate) struct Lines {
    /// The lines that were not printed yet.
    next: Vec<String>,
    added: usize,
}

impl Lines {
    /// Adds a line. `line` makes its text, if it is to be printed.
    pub(crate) fn add(&mut self, line: impl FnOnce() -> String) {
        if self.added < LINES_MAX {
            self.next.push(line());
        }
        self.added += 1;
    }

    /// Prints the lines that were added.
    pub(crate) fn print(&mut self, console: &mut ConsoleLines) {
        console.extend(self.next.drain(..));
    }

    /// Prints the last lines. `others`: what further lines would have been about.
    pub(crate) fn end(mut self, others: &str, console: &mut ConsoleLines) {
        self.print(console);
        if self.rest() > 0 {
            console.print(format_args!("accounts: and {} more {others}, not listed", self.rest()));
        }
    }

    /// The number of lines that are not printed.
    fn rest(&self) -> usize {
        self.added.saturating_sub(LINES_MAX)
    }
}

/// The reason for a refusal of the store, and what to do about it.
pub(crate) fn why(refusal: Refusal) -> &'static str {
    match refusal {
        Refusal::DiskFull => "the disk is full; delete messages, or use a larger disk",
        Refusal::AddressTaken => "one of its addresses belongs to another account",
        Refusal::TooLarge => "its address and aliases are too long; configure fewer aliases",
        Refusal::ReadOnly | Refusal::WriteFailed => "the disk has failed; check it",
        _ => "the store is busy",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;

    #[test]
    fn console_lines_beyond_the_limit_are_counted() {
        let mut lines = Lines::default();
        let mut console = ConsoleLines::default();
        (0..8).for_each(|number| lines.add(|| format!("line {number}")));
        lines.print(&mut console);
        (8..4096).for_each(|number| lines.add(|| format!("line {number}")));
        assert_eq!(lines.next, ["line 8", "line 9"]);
        assert_eq!(lines.rest(), 4086);
    }
}
