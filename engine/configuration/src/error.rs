//! What is wrong with a configuration, and where.

use alloc::string::{String, ToString};
use core::fmt;

/// One thing wrong with the text, told so that whoever wrote it can mend it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConfigurationError {
    /// The line, counted from 1.
    pub line: usize,
    /// The column in characters, counted from 1.
    pub column: usize,
    /// What is wrong.
    pub what: String,
    /// What was expected there.
    pub expected: String,
}

impl ConfigurationError {
    /// `at`: byte offset in `text`; past its end means the end.
    pub(super) fn new(
        text: &str,
        at: usize,
        what: impl ToString,
        expected: impl ToString,
    ) -> ConfigurationError {
        let before = text.get(..at).unwrap_or(text);
        let line = before.matches('\n').count().saturating_add(1);
        let column =
            before.rsplit('\n').next().unwrap_or_default().chars().count().saturating_add(1);
        ConfigurationError {
            line,
            column,
            what: printable(&what.to_string()),
            expected: expected.to_string(),
        }
    }
}

/// What the text says may be quoted in the error, and its escapes can be anything: a line end, or what a terminal obeys.
fn printable(what: &str) -> String {
    let mut printable = String::with_capacity(what.len());
    for character in what.chars() {
        if character.is_control() {
            printable.extend(character.escape_default());
        } else {
            printable.push(character);
        }
    }
    printable
}

/// `LINE:COLUMN: WHAT; expected EXPECTED`, so that the name of the file may stand before it.
impl fmt::Display for ConfigurationError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "{}:{}: {}; expected {}",
            self.line, self.column, self.what, self.expected
        )
    }
}

impl core::error::Error for ConfigurationError {}
