//! A part of the tests.

use std::time::Duration;

/// A part of the tests that can be run by its name.
pub(crate) struct Part {
    pub(crate) name: &'static str,
    /// The statement that holds if the part passes. `--help` prints it.
    pub(crate) claim: &'static str,
    pub(crate) work: Work,
    /// A part that takes longer is killed, and fails.
    pub(crate) budget: Duration,
    pub(crate) when: When,
}

/// The work of a part.
pub(crate) enum Work {
    /// Checks the repository's rules, in this process.
    Tidy,
    /// Runs cargo with these arguments in the root. A space separates two arguments.
    Cargo(&'static str),
    /// Runs the store tests that are too long for `unit` and have this text in their names.
    StoreAtLength(&'static str),
    /// Runs machine rooms, with these arguments for the simulator.
    Rooms(&'static [&'static str]),
    /// Builds the fuzz targets, and runs each.
    Fuzz,
    /// Checks the types of the webmail's script.
    Types,
    /// Runs cargo-deny with its advisory database on the third-party crates.
    Advisories,
    /// Builds the image, and checks that it has no forbidden contents.
    Image,
    /// Builds the packetdrill player, and plays every script in this folder.
    Scripts(&'static str),
    /// Runs a Python script, with these arguments.
    Script(&'static str, &'static [&'static str]),
    /// Runs the scripts of these parts. Each machine has this many cores, unless its test sets a
    /// number.
    Again { parts: &'static [&'static str], cores: u8 },
}

/// The occasions on which a part runs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum When {
    /// On every change: the part runs by default.
    Always,
    /// Only when the command line names the part, because it takes too long for every change.
    Named,
}

impl Part {
    /// Whether the part uses all processors, so that two such parts at a time would save no time.
    pub(crate) fn takes_all_processors(&self) -> bool {
        matches!(self.work, Work::Cargo(_) | Work::StoreAtLength(_) | Work::Rooms(_) | Work::Fuzz)
    }

    /// Whether the part boots machines that can have several cores.
    pub(crate) fn boots_machines(&self) -> bool {
        matches!(self.work, Work::Script(path, _) if path.starts_with("tests/"))
    }
}
