//! The console of a core: the lines that a turn of the core prints for the operator.
//!
//! Any part of the engine may add lines. At its end, after the replies have been sent, the turn
//! prints all lines in order.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt::Arguments;

use crate::Machine;

/// Lines that the turn has not printed yet.
#[derive(Default)]
pub struct ConsoleLines {
    lines: Vec<String>,
}

impl ConsoleLines {
    /// Adds one line.
    #[cold]
    pub fn print(&mut self, line: Arguments<'_>) {
        self.lines.push(line.to_string());
    }

    /// Adds these lines.
    pub fn extend(&mut self, lines: impl IntoIterator<Item = String>) {
        self.lines.extend(lines);
    }

    /// Prints the lines that were added.
    #[inline]
    pub fn flush(&mut self, machine: &mut impl Machine) {
        if !self.lines.is_empty() {
            self.print_all(machine);
        }
    }

    #[cold]
    fn print_all(&mut self, machine: &mut impl Machine) {
        for line in self.lines.drain(..) {
            machine.print(format_args!("{line}"));
        }
    }
}
