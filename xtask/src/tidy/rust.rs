//! Rules about Rust sources.

use super::manifest;
use super::source::{code, has_word, without_tests};
use super::tree::Tree;
use super::violation::Violation;

/// Names that give access to time, randomness or shared state without `Machine`.
const NAMES: &[&str] = &[
    "std::time",
    "Instant::now",
    "SystemTime",
    "getrandom",
    "thread_rng",
    "OsRng",
    "thread_local",
    "_rdtsc",
    "_rdrand64_step",
    "_rdseed64_step",
];
/// Folders in which files may use these names.
const FOLDERS: &[&str] = &["machines/", "host/", "cli/", "xtask/", "bench/", "fuzz/", "tests/"];

pub(super) fn no_hidden_world(tree: &Tree) -> Vec<Violation> {
    let mut found = Vec::new();
    for (path, text) in tree.rust() {
        if FOLDERS.iter().any(|place| path.starts_with(place)) {
            continue;
        }
        for (number, line) in numbered(without_tests(&code(text))) {
            let is_static = has_word(line, "static mut");
            if let Some(word) = NAMES
                .iter()
                .find(|word| has_word(line, word))
                .or(is_static.then_some(&"static mut"))
            {
                found.push(Violation::at(
                    path,
                    number,
                    format_args!("`{word}`: time, chance and state come through Machine"),
                ));
            }
        }
    }
    found
}

/// The section of ARCHITECTURE.md with one bullet `- PATH: REASON` for each place.
const UNSAFE_SECTION: &str = "## Where unsafe lives";

pub(super) fn unsafe_places(tree: &Tree) -> Vec<Violation> {
    if bullets_of_unsafe_places(tree).is_none() {
        return vec![Violation::of_file(
            manifest::PAGE,
            format_args!("has no section `{UNSAFE_SECTION}`"),
        )];
    }
    let mut found = Vec::new();
    for bullet in bullets_of_unsafe_places(tree).into_iter().flatten() {
        if place_in(bullet).is_none() {
            found.push(Violation::of_file(
                manifest::PAGE,
                format_args!("`- {bullet}` has no reason"),
            ));
        }
    }
    for (path, text) in tree.rust().filter(|(path, _)| !may_be_unsafe(tree, path)) {
        for (number, line) in numbered(&code(text)) {
            if has_word(line, "unsafe") {
                found.push(Violation::at(
                    path,
                    number,
                    "unsafe code in a place that ARCHITECTURE.md does not name",
                ));
            }
        }
    }
    found
}

fn bullets_of_unsafe_places(tree: &Tree) -> Option<impl Iterator<Item = &str>> {
    let (_, section) = tree.text(manifest::PAGE)?.split_once(UNSAFE_SECTION)?;
    let section = section.split("\n## ").next().unwrap_or_default();
    Some(section.lines().filter_map(|line| line.strip_prefix("- ")))
}

/// The place in a bullet, if the bullet gives a reason.
fn place_in(bullet: &str) -> Option<&str> {
    let (place, reason) = bullet.split_once(':')?;
    (!reason.trim().is_empty()).then(|| place.trim_matches(['`', ' ']))
}

fn may_be_unsafe(tree: &Tree, path: &str) -> bool {
    let mut places = bullets_of_unsafe_places(tree).into_iter().flatten().filter_map(place_in);
    places.any(|place| {
        path == place || path.strip_prefix(place).is_some_and(|rest| rest.starts_with('/'))
    })
}

pub(super) fn opening_comment(tree: &Tree) -> Vec<Violation> {
    let first = |text: &str| text.lines().next().unwrap_or_default().to_string();
    let is_open =
        |text: &str| first(text).strip_prefix("//! ").is_some_and(|what| !what.trim().is_empty());
    let mute = tree.rust().filter(|(_, text)| !is_open(text));
    mute.map(|(path, _)| Violation::of_file(path, "does not open with `//!` and what the file is"))
        .collect()
}

pub(super) fn engine_attributes(tree: &Tree) -> Vec<Violation> {
    let mut found = Vec::new();
    for (path, text) in
        tree.rust().filter(|(path, _)| path.starts_with("engine/") && path.ends_with("/src/lib.rs"))
    {
        let attributes = ["#![no_std]", "#![forbid(unsafe_code)]"];
        // A file with `unsafe` cannot forbid it.
        let required = if may_be_unsafe(tree, path) { 1 } else { 2 };
        for attribute in attributes.iter().take(required) {
            if !code(text).lines().any(|line| line.trim() == *attribute) {
                found.push(Violation::of_file(path, format_args!("does not carry {attribute}")));
            }
        }
    }
    found
}

fn numbered(text: &str) -> impl Iterator<Item = (usize, &str)> {
    (1_usize..).zip(text.lines())
}
