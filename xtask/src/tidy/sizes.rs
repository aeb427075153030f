//! Rules about sizes: of crates, files, functions and types. The bounds are in `bounds.rs`.

use std::collections::{BTreeMap, BTreeSet};

use super::bounds::{CRATE_LINES, FILE_LINES, FILES_OF_TYPE, FUNCTION_LINES, OPEN_FIELDS};
use super::shapes::{functions, implemented, open_fields};
use super::source::{code, without_tests};
use super::tree::Tree;
use super::violation::Violation;

/// The crates that the rules about types apply to.
const ENGINE: &str = "engine/";

pub(super) fn crate_lines(tree: &Tree) -> Vec<Violation> {
    let mut found = Vec::new();
    for (folder, files) in tree.crates() {
        let lines: usize = files.iter().map(|(_, text)| text.lines().count()).sum();
        if let Some((_, most)) =
            CRATE_LINES.iter().find(|(name, most)| *name == folder && lines > *most)
        {
            found.push(Violation::of_file(
                folder,
                format_args!("has {lines} lines; at most {most}"),
            ));
        }
    }
    found
}

pub(super) fn file_lines(tree: &Tree) -> Vec<Violation> {
    let mut found = Vec::new();
    for (folder, below, text) in sources(tree) {
        let path = format!("{folder}/{below}");
        let (lines, most) = (text.lines().count(), FILE_LINES.of(&path));
        if lines > most {
            found.push(Violation::of_file(
                &path,
                format_args!("has {lines} lines; past {most} look for the second story"),
            ));
        }
    }
    found
}

pub(super) fn function_lines(tree: &Tree) -> Vec<Violation> {
    let mut found = Vec::new();
    for (folder, below, text) in sources(tree) {
        let path = format!("{folder}/{below}");
        for function in functions(without_tests(&code(text))) {
            let most = FUNCTION_LINES.of(&format!("{path}:{}", function.name));
            if function.lines > most {
                let what = format_args!(
                    "`{}` has {} lines; at most {most}",
                    function.name, function.lines
                );
                found.push(Violation::at(&path, function.line, what));
            }
        }
    }
    found
}

/// Rule: a type is implemented in the file that defines it, and in few other files.
pub(super) fn files_of_types(tree: &Tree) -> Vec<Violation> {
    let mut files: BTreeMap<(&str, String), BTreeSet<&str>> = BTreeMap::new();
    for (folder, below, text) in sources(tree).filter(|(folder, ..)| folder.starts_with(ENGINE)) {
        for name in implemented(without_tests(&code(text))) {
            files.entry((folder, name.to_string())).or_default().insert(below);
        }
    }
    let mut found = Vec::new();
    for ((folder, name), files) in files {
        let most = FILES_OF_TYPE.of(&format!("{folder}:{name}"));
        if files.len() > most {
            let what = format_args!("{} files implement `{name}`; at most {most}", files.len());
            found.push(Violation::of_file(folder, what));
        }
    }
    found
}

/// Rule: a type with `&mut self` methods keeps its fields private.
pub(super) fn open_types(tree: &Tree) -> Vec<Violation> {
    let mut found = Vec::new();
    for (folder, below, text) in sources(tree).filter(|(folder, ..)| folder.starts_with(ENGINE)) {
        let path = format!("{folder}/{below}");
        for (name, fields) in open_fields(without_tests(&code(text))) {
            let most = OPEN_FIELDS.of(&format!("{path}:{name}"));
            if fields > most {
                let what = format_args!("{fields} fields of `{name}` are open; at most {most}");
                found.push(Violation::of_file(&path, what));
            }
        }
    }
    found
}

/// The sources that are not tests: the crate's folder, the path below the folder, and the text.
fn sources(tree: &Tree) -> impl Iterator<Item = (&str, &str, &str)> {
    tree.crates().into_iter().flat_map(|(folder, files)| {
        files.into_iter().map(move |(below, text)| (folder, below, text))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    type Check = fn(&Tree) -> Vec<Violation>;

    /// The violations that `check` finds in a crate with these files.
    fn found(check: Check, folder: &str, files: &[(&str, &str)]) -> Vec<String> {
        let manifest = (format!("{folder}/Cargo.toml"), "[dependencies]\n");
        let files = files.iter().map(|(path, text)| (format!("{folder}/src/{path}"), *text));
        let files: Vec<(String, &str)> = std::iter::once(manifest).chain(files).collect();
        let files: Vec<(&str, &str)> =
            files.iter().map(|(path, text)| (path.as_str(), *text)).collect();
        check(&Tree::of(&files)).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn too_long_crate_with_a_bound_is_found() {
        let long = "x();\n".repeat(5_001);
        assert_eq!(
            found(crate_lines, "cli", &[("a.rs", &long)]),
            ["cli: has 5001 lines; at most 5000"]
        );
        assert_eq!(found(crate_lines, "cli", &[("tests.rs", &long)]), [""; 0]);
        assert_eq!(found(crate_lines, "other", &[("a.rs", &long)]), [""; 0]);
    }

    #[test]
    fn too_long_file_is_found() {
        let long = "x();\n".repeat(501);
        assert_eq!(found(file_lines, "engine/low", &[("a.rs", &long)]).len(), 1);
        assert_eq!(
            found(file_lines, "engine/low", &[("tests.rs", &long), ("tests/a.rs", &long)]),
            [""; 0]
        );
    }

    #[test]
    fn a_long_function_is_found_with_its_line() {
        let long = format!("struct A;\nfn long() {{\n{}}}\n", "    x();\n".repeat(99));
        assert_eq!(
            found(function_lines, "engine/low", &[("a.rs", &long)]),
            ["engine/low/src/a.rs:2: `long` has 101 lines; at most 100"]
        );
        assert_eq!(
            found(function_lines, "engine/low", &[("a.rs", &long.replacen("    x();\n", "", 1))]),
            [""; 0]
        );
    }

    #[test]
    fn a_type_that_many_files_implement_is_found() {
        let files =
            ["a.rs", "b.rs", "c.rs", "d.rs", "e.rs"].map(|path| (path, "impl Large {\n}\n"));
        let violation = "engine/low: 5 files implement `Large`; at most 4";
        assert_eq!(found(files_of_types, "engine/low", &files), [violation]);
        assert_eq!(found(files_of_types, "engine/low", &files[1..]), [""; 0]);
    }

    #[test]
    fn a_type_with_open_fields_and_methods_that_change_it_is_found() {
        let fields: String =
            (0..13).map(|field| format!("    pub(crate) f{field}: u8,\n")).collect();
        let text = |fields: &str| {
            format!(
                "struct Open {{\n{fields}}}\n\nimpl Open {{\n    fn change(&mut self) {{}}\n}}\n"
            )
        };
        assert_eq!(
            found(open_types, "engine/low", &[("a.rs", &text(&fields))]),
            ["engine/low/src/a.rs: 13 fields of `Open` are open; at most 12"]
        );
        let fewer = fields.replacen("    pub(crate)", "   ", 1);
        assert_eq!(found(open_types, "engine/low", &[("a.rs", &text(&fewer))]), [""; 0]);
    }
}
