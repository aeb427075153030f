//! Why a command ended early, and whether its caller is at fault.

use std::fmt;

/// One line for the terminal, and the exit status that goes with it.
#[derive(Debug)]
pub enum Failure {
    /// The command, the configuration or this machine does not meet the requirements: exit status
    /// 2.
    Refused(String),
    /// An operation failed, or a test failed: exit status 1.
    Broke(String),
    /// The same, but the terminal already shows all of it: exit status 1.
    Told,
}

impl Failure {
    /// `what`: the requirement that is not met.
    pub fn refused(what: impl fmt::Display) -> Failure {
        Failure::Refused(what.to_string())
    }

    /// `what`: the operation that failed.
    pub fn broke(what: impl fmt::Display) -> Failure {
        Failure::Broke(what.to_string())
    }

    /// For `map_err` on input and output: `doing` names the operation, such as "writing
    /// data/barepost.toml".
    pub fn io(doing: impl fmt::Display) -> impl FnOnce(std::io::Error) -> Failure {
        move |error| Failure::Broke(format!("{doing}: {error}"))
    }

    /// The exit status for this failure.
    pub fn status(&self) -> i32 {
        match self {
            Failure::Refused(_) => 2,
            Failure::Broke(_) | Failure::Told => 1,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Refused(what) | Failure::Broke(what) => formatter.write_str(what),
            Failure::Told => Ok(()),
        }
    }
}
