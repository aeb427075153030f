//! `tidy`: checks rules of this repository that no compiler checks.
//!
//! Every check is a function of the tree's text, so that its tests can build a small tree that
//! breaks one rule. ARCHITECTURE.md states the rules. The checks read its lists (floors, places of
//! `unsafe`, dependencies), so that page and check cannot differ.

mod bounds;
mod circles;
mod floors;
mod language;
mod manifest;
mod paths;
mod promises;
mod rust;
mod shapes;
mod sizes;
mod source;
mod supply;
mod tree;
mod violation;

#[cfg(test)]
mod tests;

pub(crate) use tree::Tree;

use std::fmt;

use host::{Failure, Repository};

use supply::Metadata;
use violation::Violation;

/// A rule of this repository.
pub(crate) struct Rule {
    pub(crate) name: &'static str,
    pub(crate) check: fn(&Tree) -> Vec<Violation>,
}

/// All rules that need only the tree.
pub(crate) const RULES: &[Rule] = &[
    Rule { name: "floors import downwards only", check: manifest::floors },
    Rule { name: "every dependency is pinned and has its reason", check: manifest::dependencies },
    Rule { name: "the engine has no world of its own", check: rust::no_hidden_world },
    Rule { name: "unsafe only where ARCHITECTURE.md says so", check: rust::unsafe_places },
    Rule { name: "every file says what it is", check: rust::opening_comment },
    Rule {
        name: "engine crates are no_std and forbid unsafe code",
        check: rust::engine_attributes,
    },
    Rule { name: "the files of a crate form a staircase", check: circles::circles },
    Rule {
        name: "parents and children do too, but for small families",
        check: circles::circles_with_children,
    },
    Rule { name: "a crate is as long as it may be", check: sizes::crate_lines },
    Rule { name: "a file tells one story", check: sizes::file_lines },
    Rule { name: "a function does one thing", check: sizes::function_lines },
    Rule { name: "few files implement a type", check: sizes::files_of_types },
    Rule { name: "what has methods that change it has few open fields", check: sizes::open_types },
    Rule { name: "comments end by column 100", check: language::comment_width },
    Rule { name: "comments name the actor", check: language::comment_words },
    Rule { name: "test names have at most 60 characters", check: language::test_names },
    Rule { name: "a type name means one thing", check: language::type_names },
    Rule { name: "the picture of the floors is the one of their table", check: floors::drawn },
    Rule { name: "every promise names a test that exists", check: promises::promises },
    Rule { name: "every integration test is run", check: promises::integration_tests },
];

/// A rule about the crates in cargo's metadata.
struct SupplyRule {
    name: &'static str,
    check: fn(&Tree, &Metadata) -> Vec<Violation>,
}

const SUPPLY_RULES: &[SupplyRule] = &[
    SupplyRule { name: "every crate has a licence that is allowed", check: supply::licences },
    SupplyRule { name: "no crate is there twice without a reason", check: supply::duplicates },
    SupplyRule { name: "every crate comes from the registry", check: supply::sources },
];

/// Checks every rule and prints the violations. Returns the numbers of kept and of broken rules.
pub(crate) fn run(
    repository: &Repository,
    mut print: impl FnMut(fmt::Arguments<'_>),
) -> Result<(usize, usize), Failure> {
    let tree = Tree::read(repository)?;
    let foreign = tree::foreign_words(repository);
    let mut broken = 0_usize;
    let mut report = |name: &str, violations: Vec<Violation>| {
        if !violations.is_empty() {
            broken = broken.saturating_add(1);
            print(format_args!("broken: {name}"));
        }
        for violation in violations {
            print(format_args!("  {violation}"));
        }
    };
    let drawn = repository.target(floors::DRAWN);
    std::fs::write(&drawn, floors::picture(&tree)).map_err(Failure::io("drawing the floors"))?;
    for rule in RULES {
        report(rule.name, (rule.check)(&tree));
    }
    report(
        "nothing names the machine it was written on",
        tree::names_no_workplace(&tree, &foreign),
    );
    let metadata = Metadata::read(repository)?;
    for rule in SUPPLY_RULES {
        report(rule.name, (rule.check)(&tree, &metadata));
    }
    let rules = RULES.len().saturating_add(SUPPLY_RULES.len()).saturating_add(1);
    Ok((rules.saturating_sub(broken), broken))
}
