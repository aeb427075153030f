//! Rules about the promises in SPECIFICATION.md and the tests that keep them.
//!
//! SPECIFICATION.md has one promise in each bullet: `- What is promised — ``name_of_the_test```. A
//! promise may name several tests. Each is the name of a test function or of a part of `./barepost
//! test`.

use super::tree::Tree;
use super::violation::Violation;
use crate::gate::parts;

const SPECIFICATION: &str = "SPECIFICATION.md";

pub(super) fn promises(tree: &Tree) -> Vec<Violation> {
    let Some(page) = tree.text(SPECIFICATION) else {
        return vec![Violation::of_file(SPECIFICATION, "is missing")];
    };
    let mut found = Vec::new();
    for (line, bullet) in bullets(page) {
        let Some((_, tests)) = bullet.rsplit_once('—') else {
            found.push(Violation::at(SPECIFICATION, line, "this promise names no test"));
            continue;
        };
        let mut names = tests.split('`').skip(1).step_by(2).peekable();
        if names.peek().is_none() {
            found.push(Violation::at(SPECIFICATION, line, "this promise names no test"));
        }
        for name in names.filter(|name| !is_test(tree, name)) {
            found.push(Violation::at(
                SPECIFICATION,
                line,
                format_args!("there is no test `{name}`"),
            ));
        }
    }
    found
}

/// Rule: every Python file with tests is in the table of parts, and the table's scripts exist.
pub(super) fn integration_tests(tree: &Tree) -> Vec<Violation> {
    let listed: Vec<&str> = parts::scripts().collect();
    let missing = listed.iter().filter(|path| tree.text(path).is_none());
    let mut found: Vec<Violation> = missing
        .map(|path| Violation::of_file(path, "is missing, but `./barepost test` lists it"))
        .collect();
    for (path, text) in tree.files() {
        let is_script = path.starts_with("tests/")
            && path.ends_with(".py")
            && text.contains("__name__ == \"__main__\"");
        if is_script && !listed.contains(&path) {
            found.push(Violation::of_file(
                path,
                "is not in the table of parts of `./barepost test`",
            ));
        }
    }
    found
}

/// The bullets of a page with their continuation lines, and the line on which each starts.
fn bullets(page: &str) -> Vec<(usize, String)> {
    let mut bullets: Vec<(usize, String)> = Vec::new();
    let mut is_open = false;
    for (number, line) in (1_usize..).zip(page.lines()) {
        if let Some(text) = line.strip_prefix("- ") {
            bullets.push((number, text.to_string()));
            is_open = true;
        } else if let (true, true, Some((_, bullet))) =
            (is_open, line.starts_with("  "), bullets.last_mut())
        {
            bullet.push(' ');
            bullet.push_str(line.trim());
        } else {
            is_open = false;
        }
    }
    bullets
}

fn is_test(tree: &Tree, name: &str) -> bool {
    let is_name =
        !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '-');
    let in_rust = format!("fn {name}(");
    let in_python = format!("def {name}(");
    is_name
        && (parts::names().any(|part| part == name)
            || tree.files().any(|(path, text)| {
                (path.ends_with(".rs") && text.contains(&in_rust))
                    || (path.ends_with(".py") && text.contains(&in_python))
            }))
}
