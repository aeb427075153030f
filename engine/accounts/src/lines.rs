//! Console lines about many accounts: the first few, and then the number of the others.

use alloc::string::String;
use alloc::vec::Vec;

use machine::ConsoleLines;

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
            console.print(format_args!("accounts: the same for {} more {others}", self.rest()));
        }
    }

    /// The number of lines that are not printed.
    fn rest(&self) -> usize {
        self.added.saturating_sub(LINES_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;

    #[test]
    fn further_lines_are_counted() {
        let mut lines = Lines::default();
        let mut console = ConsoleLines::default();
        (0..8).for_each(|number| lines.add(|| format!("line {number}")));
        lines.print(&mut console);
        (8..4096).for_each(|number| lines.add(|| format!("line {number}")));
        assert_eq!(lines.next, ["line 8", "line 9"]);
        assert_eq!(lines.rest(), 4086);
    }
}
