//! What a part of the tests is.

use std::time::Duration;

/// A part of the tests that can be run by its name.
pub(crate) struct Part {
    pub(crate) name: &'static str,
    /// What it shows, for `--help`.
    pub(crate) shows: &'static str,
    pub(crate) work: Work,
    /// It is killed, and fails, when it takes longer.
    pub(crate) budget: Duration,
    pub(crate) when: When,
}

/// What a part does.
pub(crate) enum Work {
    /// Checks the rules of the house, in this process.
    Tidy,
    /// Runs cargo, with these arguments, in the root.
    Cargo(&'static [&'static str]),
    /// Runs the tests of the store that are too long for `unit` and have this in their names.
    StoreAtLength(&'static str),
    /// Lives through machine rooms, with these arguments for the simulator.
    Rooms(&'static [&'static str]),
    /// Builds the fuzz targets, and runs each.
    Fuzz,
    /// Checks the types of the webmail's script.
    Types,
    /// Asks cargo-deny and its database of advisories about the crates from outside.
    Advisories,
    /// Builds the image, and checks what it must not hold.
    Image,
    /// Builds the player of packetdrill scripts, and plays every script in this folder.
    Scripts(&'static str),
    /// Runs a Python script, with these arguments.
    Script(&'static str, &'static [&'static str]),
    /// Runs the scripts of these parts, with so many cores in each machine whose test does not say how many it has.
    Again { parts: &'static [&'static str], cores: u8 },
}

/// When a part runs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum When {
    /// Always, on every change.
    Always,
    /// Only when it is named: it takes too long for every change.
    Named,
}

impl Part {
    /// Whether two such at a time would only take as long as both.
    pub(crate) fn takes_all_processors(&self) -> bool {
        matches!(self.work, Work::Cargo(_) | Work::StoreAtLength(_) | Work::Rooms(_) | Work::Fuzz)
    }

    /// Whether it boots machines that can have several cores.
    pub(crate) fn boots_machines(&self) -> bool {
        matches!(self.work, Work::Script(path, _) if path.starts_with("tests/"))
    }
}
