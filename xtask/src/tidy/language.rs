//! Rules about language: the width of comments, words that comments avoid, the length of test
//! names, and type names with one meaning.

use std::collections::{BTreeMap, BTreeSet};

use super::bounds::SHARED_TYPE_NAMES;
use super::source::{code, has_word};
use super::tree::Tree;
use super::violation::Violation;

/// The most columns of a comment line, with its indentation.
const COMMENT_COLUMNS: usize = 100;
/// The most characters of a test's name.
const TEST_NAME_CHARACTERS: usize = 60;
/// Pronouns that comments must not use: software is "it", and an actor has a name.
const AVOIDED: &[&str] =
    &["who", "whom", "whose", "whoever", "he", "him", "his", "somebody", "nobody"];
/// Type names that each crate may define once.
const CONVENTIONS: &[&str] = &[
    "Actions", "Command", "Config", "Error", "Expect", "Limits", "Reply", "Request", "Response",
    "Session", "Stage", "State",
];

pub(super) fn comment_width(tree: &Tree) -> Vec<Violation> {
    let wide = comments(tree).filter(|(.., line)| line.chars().count() > COMMENT_COLUMNS);
    wide.map(|(path, number, _)| {
        Violation::at(path, number, format_args!("a comment ends by column {COMMENT_COLUMNS}"))
    })
    .collect()
}

pub(super) fn comment_words(tree: &Tree) -> Vec<Violation> {
    let mut found = Vec::new();
    for (path, number, line) in comments(tree) {
        let line = line.to_ascii_lowercase();
        if let Some(word) = AVOIDED.iter().find(|word| has_word(&line, word)) {
            found.push(Violation::at(
                path,
                number,
                format_args!("`{word}`: name the actor, and call software \"it\""),
            ));
        }
    }
    found
}

pub(super) fn test_names(tree: &Tree) -> Vec<Violation> {
    let mut found = Vec::new();
    for (path, text) in tree.rust() {
        let mut is_test = false;
        for (number, line) in (1_usize..).zip(text.lines().map(str::trim_start)) {
            is_test |= line == "#[test]";
            let Some(name) = line.strip_prefix("fn ").and_then(|rest| rest.split('(').next())
            else {
                continue;
            };
            if is_test && name.len() > TEST_NAME_CHARACTERS {
                let what = format_args!(
                    "`{name}` has {} characters; at most {TEST_NAME_CHARACTERS}",
                    name.len()
                );
                found.push(Violation::at(path, number, what));
            }
            is_test = false;
        }
    }
    found
}

/// Rule: a type's name means one thing in the whole engine.
pub(super) fn type_names(tree: &Tree) -> Vec<Violation> {
    let mut files: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (folder, sources) in
        tree.crates().into_iter().filter(|(folder, _)| folder.starts_with("engine/"))
    {
        for (below, text) in sources {
            for name in
                code(text).lines().filter_map(defined).filter(|name| !CONVENTIONS.contains(name))
            {
                files.entry(name.into()).or_default().insert(format!("{folder}/{below}"));
            }
        }
    }
    let shared: Vec<_> =
        files.iter().filter(|(_, files)| files.len() > 1).map(|(name, _)| name.as_str()).collect();
    if shared.len() <= SHARED_TYPE_NAMES {
        return Vec::new();
    }
    let what = format_args!(
        "{} type names are defined twice; at most {SHARED_TYPE_NAMES}: {shared:?}",
        shared.len()
    );
    vec![Violation::of_file("engine", what)]
}

/// The type that this line defines.
fn defined(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let line = match line.strip_prefix("pub") {
        Some(rest) if rest.starts_with('(') => rest.split_once(") ")?.1,
        Some(rest) => rest.trim_start(),
        None => line,
    };
    let (kind, rest) = line.split_once(' ')?;
    let name = rest.split(|c: char| !c.is_alphanumeric() && c != '_').next()?;
    (matches!(kind, "struct" | "enum" | "trait") && !name.is_empty()).then_some(name)
}

/// All comment lines, with their file and line number.
fn comments(tree: &Tree) -> impl Iterator<Item = (&str, usize, &str)> {
    tree.rust().flat_map(|(path, text)| {
        let lines =
            (1_usize..).zip(text.lines()).filter(|(_, line)| line.trim_start().starts_with("//"));
        lines.map(move |(number, line)| (path, number, line))
    })
}
