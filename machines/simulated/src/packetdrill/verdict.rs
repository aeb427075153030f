//! The result of a script, and the reason why one ends early.

use std::fmt;

/// The result of a script.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Everything happened as the script says.
    Passed,
    /// Something happened differently.
    Failed {
        /// The line of the script, counted from 1.
        line: usize,
        /// What the script expects there.
        expected: String,
        /// What happened.
        seen: String,
    },
    /// The script needs something that the engine lacks, or does not leave open.
    NotApplicable {
        /// The line of the script, counted from 1.
        line: usize,
        /// What it needs.
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

/// Why a script ends early.
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
