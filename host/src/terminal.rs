//! Prints lines for the user that started us.
//!
//! A user that closed our output does not want it. That is no reason to end a server that others
//! use, so failures to print are ignored.

use std::fmt;
use std::io::Write;

/// Prints a line of the requested output.
pub fn say(line: impl fmt::Display) {
    let mut output = std::io::stdout().lock();
    let _ = writeln!(output, "{line}").and_then(|()| output.flush());
}

/// Prints a line about an error or about progress.
pub fn remark(line: impl fmt::Display) {
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}
