//! What is said to whoever started us.
//!
//! Somebody who closed our output does not want it; that is no reason to end a server that others use, so failures to
//! print are passed over.

use std::fmt;
use std::io::Write;

/// A line of what was asked for.
pub fn say(line: impl fmt::Display) {
    let mut output = std::io::stdout().lock();
    let _ = writeln!(output, "{line}").and_then(|()| output.flush());
}

/// A line about what is wrong, or under way.
pub fn remark(line: impl fmt::Display) {
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}
