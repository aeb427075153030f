//! A violation of a rule.

use std::fmt;

/// A broken rule, and its place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Violation {
    pub(crate) path: String,
    /// The line, counted from 1. `None` if the violation is about the whole file.
    pub(crate) line: Option<usize>,
    pub(crate) what: String,
}

impl Violation {
    pub(crate) fn of_file(path: &str, what: impl fmt::Display) -> Violation {
        Violation { path: path.into(), line: None, what: what.to_string() }
    }

    pub(crate) fn at(path: &str, line: usize, what: impl fmt::Display) -> Violation {
        Violation { path: path.into(), line: Some(line), what: what.to_string() }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(formatter, "{}:{line}: {}", self.path, self.what),
            None => write!(formatter, "{}: {}", self.path, self.what),
        }
    }
}
