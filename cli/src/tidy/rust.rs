//! Rules about Rust sources.

use super::source::{code, has_word, without_tests};
use super::tree::Tree;
use super::{Violation, manifest};

/// A source longer than this is looked at; longer than [`LINES_MAX`] it is refused. Tests may be longer.
const LINES_MAX: usize = 600;

/// What reaches time, chance or shared state behind the back of `Machine`.
const WORLDS: &[&str] = &[
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
/// Where the world is at home.
const WORLDLY: &[&str] = &["machines/", "cli/", "bench/", "fuzz/", "tests/"];

pub(super) fn no_hidden_world(tree: &Tree) -> Vec<Violation> {
    let mut found = Vec::new();
    for (path, text) in tree.rust() {
        if WORLDLY.iter().any(|place| path.starts_with(place)) {
            continue;
        }
        for (number, line) in numbered(without_tests(&code(text))) {
            let is_static = has_word(line, "static mut");
            if let Some(word) = WORLDS.iter().find(|word| has_word(line, word)).or(is_static.then_some(&"static mut")) {
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

/// ARCHITECTURE.md, section `## Where unsafe lives`: one bullet `- PATH: REASON` a place.
pub(super) fn unsafe_places(tree: &Tree) -> Vec<Violation> {
    const SECTION: &str = "## Where unsafe lives";
    let page = tree.text(manifest::PAGE).unwrap_or_default();
    let Some((_, section)) = page.split_once(SECTION) else {
        return vec![Violation::of_file(manifest::PAGE, format_args!("has no section `{SECTION}`"))];
    };
    let section = section.split("\n## ").next().unwrap_or_default();
    let mut found = Vec::new();
    let mut places = Vec::new();
    for bullet in section.lines().filter_map(|line| line.strip_prefix("- ")) {
        match bullet.split_once(':') {
            Some((place, reason)) if !reason.trim().is_empty() => places.push(place.trim_matches(['`', ' '])),
            _ => found.push(Violation::of_file(manifest::PAGE, format_args!("`- {bullet}` has no reason"))),
        }
    }
    let is_listed = |path: &str| {
        places.iter().any(|place| path == *place || path.strip_prefix(place).is_some_and(|rest| rest.starts_with('/')))
    };
    for (path, text) in tree.rust().filter(|(path, _)| !is_listed(path)) {
        for (number, line) in numbered(&code(text)) {
            if has_word(line, "unsafe") {
                found.push(Violation::at(path, number, "unsafe code in a place that ARCHITECTURE.md does not name"));
            }
        }
    }
    found
}

pub(super) fn opening_comment(tree: &Tree) -> Vec<Violation> {
    let first = |text: &str| text.lines().next().unwrap_or_default().to_string();
    let is_open = |text: &str| first(text).strip_prefix("//! ").is_some_and(|what| !what.trim().is_empty());
    let mute = tree.rust().filter(|(_, text)| !is_open(text));
    mute.map(|(path, _)| Violation::of_file(path, "does not open with `//!` and what the file is")).collect()
}

pub(super) fn engine_attributes(tree: &Tree) -> Vec<Violation> {
    let mut found = Vec::new();
    for (path, text) in tree.rust().filter(|(path, _)| path.starts_with("engine/") && path.ends_with("/src/lib.rs")) {
        for attribute in ["#![no_std]", "#![forbid(unsafe_code)]"] {
            if !code(text).lines().any(|line| line.trim() == attribute) {
                found.push(Violation::of_file(path, format_args!("does not carry {attribute}")));
            }
        }
    }
    found
}

pub(super) fn file_length(tree: &Tree) -> Vec<Violation> {
    let is_test = |path: &str| path.ends_with("tests.rs") || path.contains("/tests/");
    let sources = tree.rust().filter(|(path, _)| !is_test(path));
    sources
        .filter_map(|(path, text)| {
            let lines = text.lines().count();
            let what = format_args!("has {lines} lines; past {LINES_MAX} look for the second story").to_string();
            (lines > LINES_MAX).then(|| Violation::of_file(path, what))
        })
        .collect()
}

fn numbered(text: &str) -> impl Iterator<Item = (usize, &str)> {
    (1_usize..).zip(text.lines())
}
