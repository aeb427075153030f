//! The result of a script, and the reason why a script ends early.

use std::fmt;

/// The result of a script.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Everything happened as the script says.
    Passed,
    /// A packet or the result of a call was not as the script says.
    Failed {
        /// The line of the script, counted from 1.
        line: usize,
        /// The packet or result that the script expects at this line.
        expected: String,
        /// The packet or result that was seen instead.
        seen: String,
    },
    /// The script needs a feature or a setting that the engine lacks.
    NotApplicable {
        /// The line of the script, counted from 1.
        line: usize,
        /// The missing feature or setting.
        reason: String,
    },
}

impl Verdict {
    pub(super) fn failed(
        line: usize,
        expected: impl fmt::Display,
        seen: impl fmt::Display,
    ) -> Verdict {
        Verdict::Failed { line, expected: expected.to_string(), seen: seen.to_string() }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Verdict::Passed => out.write_str("passed"),
            Verdict::Failed { line, expected, seen } => {
                write!(out, "failed: line {line}: expected {expected}; seen {seen}")
            }
            Verdict::NotApplicable { line, reason } => {
                write!(out, "not applicable: line {line}: {reason}")
            }
        }
    }
}

/// A script's verdict, and the liberties that the engine took.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Outcome {
    /// The verdict.
    pub verdict: Verdict,
    /// The differences from the script that an RFC leaves to the host: the line, and what differed.
    pub liberties: Vec<(usize, String)>,
}

/// The verdict of a script that ends early.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct ScriptStop(pub(super) Verdict);

impl ScriptStop {
    pub(super) fn failed(
        line: usize,
        expected: impl fmt::Display,
        seen: impl fmt::Display,
    ) -> ScriptStop {
        ScriptStop(Verdict::failed(line, expected, seen))
    }

    pub(super) fn not_applicable(line: usize, reason: impl fmt::Display) -> ScriptStop {
        ScriptStop(Verdict::NotApplicable { line, reason: reason.to_string() })
    }
}
