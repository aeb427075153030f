//! How large circles, crates, files, functions and types may be.
//!
//! Each bound has its final value and a table of what is not there yet, with the value that holds
//! now. An entry is a ratchet: what is worse than its entry fails. A commit that makes something
//! better lowers the entry, and removes the line when the final value is reached.

/// A number that nothing may exceed.
pub(super) struct Bound {
    /// The final value.
    pub(super) most: usize,
    /// What is above it, by name, and how far it may be.
    pub(super) not_yet: &'static [(&'static str, usize)],
}

impl Bound {
    /// How much `name` may have.
    pub(super) fn of(&self, name: &str) -> usize {
        let entry = self.not_yet.iter().find(|(known, _)| *known == name);
        entry.map_or(self.most, |(_, now)| *now)
    }
}

/// Files of a crate that import each other by `crate::` and `super::`: the largest circle, by
/// crate. `net::tcp` may end at 6.
pub(super) const CIRCLE: Bound = Bound { most: 3, not_yet: &[] };

/// The same, counting also what a file calls `child::name`.
pub(super) const CIRCLE_WITH_CHILDREN: Bound = Bound { most: 12, not_yet: &[] };

/// Lines of a crate's sources without its tests, by crate. Only crates that are named here have
/// such a bound.
pub(super) const CRATE_LINES: &[(&str, usize)] = &[
    ("engine/server", 3_999),
    ("cli", 5_000),
    // A program of developers, built before each run of the tests.
    ("xtask", 4_000),
];

/// Lines of a file that is no test, by file. What is named here grew when lines became narrower.
pub(super) const FILE_LINES: Bound = Bound { most: 500, not_yet: &[] };

/// Lines of a function that is no test, by file and function.
pub(super) const FUNCTION_LINES: Bound = Bound { most: 100, not_yet: &[] };

/// Files that implement one type of the engine's, by crate and type. `Tcb` may end at 6.
pub(super) const FILES_OF_TYPE: Bound = Bound { most: 4, not_yet: &[("engine/net:Tcb", 6)] };

/// Open fields of a type of the engine's with methods that change it, by file and type.
pub(super) const OPEN_FIELDS: Bound = Bound { most: 12, not_yet: &[] };
