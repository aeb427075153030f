//! Errors in a configuration, with their place.

use alloc::string::{String, ToString};
use core::fmt;

/// One error in the text of a configuration, with its place and a description.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConfigurationError {
    /// The line, counted from 1.
    pub line: usize,
    /// The column in characters, counted from 1.
    pub column: usize,
    /// The problem.
    pub what: String,
    /// The expected form.
    pub expected: String,
}

impl ConfigurationError {
    /// Makes an error. `at`: its byte offset in `text`. An offset after the end means the end.
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

/// Escapes control characters: a quotation of the text may contain line ends or terminal commands.
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

/// Writes `LINE:COLUMN: WHAT; expected EXPECTED`, so that the name of the file may precede it.
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
