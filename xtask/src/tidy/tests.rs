//! Each rule finds its violation in a small tree that breaks the rule, and nothing in a tree that
//! keeps the rule.

use super::violation::Violation;
use super::*;

const PAGE: &str = "# Repository\n| floor | crate | |\n|---|---|---|\n| 0 | `engine/low` | values: small ones |\n\
                    | 2 | `engine/net` | TCP |\n| 2 | `engine/store` | mail |\n| 5 | `machines/bare` | a PC |\n\n## Where unsafe lives\n\n- machines/bare: the devices\n\n\
                    ## Dependencies\n\n| crate | why |\n|---|---|\n| `toml` | files |\n\n## Else\n";
const ROOT: &str = "[workspace]\nmembers = ['engine/low', 'engine/net', 'engine/store']\n\
                    [workspace.dependencies]\nlow = { path = 'engine/low' }\nnet = { path = 'engine/net' }\n\
                    store = { path = 'engine/store' }\ntoml = { version = '=1.2.1' }\n";
const IMPORTS_LOW: &str = "[dependencies]\nlow.workspace = true\ntoml.workspace = true\n";

/// The violations that `check` finds in a correct tree with these files added or replaced.
fn found(check: fn(&Tree) -> Vec<Violation>, changed: &[(&str, &str)]) -> Vec<String> {
    let mut files = vec![
        ("ARCHITECTURE.md", PAGE),
        ("Cargo.toml", ROOT),
        ("engine/low/Cargo.toml", "[dependencies]\n"),
        ("engine/net/Cargo.toml", IMPORTS_LOW),
        ("engine/store/Cargo.toml", IMPORTS_LOW),
        ("engine/low/src/lib.rs", "//! Low.\n#![no_std]\n#![forbid(unsafe_code)]\n"),
        ("machines/bare/src/cpu.rs", "//! The processor.\nunsafe fn halt() {}\n"),
    ];
    files.extend(changed);
    check(&Tree::of(&files)).iter().map(ToString::to_string).collect()
}

#[test]
fn a_correct_tree_breaks_no_rule() {
    for rule in RULES.iter().take(17) {
        assert_eq!(found(rule.check, &[]), [""; 0], "{}", rule.name);
    }
}

#[test]
fn an_import_from_the_same_floor_or_above_is_found() {
    let sideways = [("engine/net/Cargo.toml", "[dependencies]\nstore.workspace = true\n")];
    assert_eq!(
        found(manifest::floors, &sideways),
        [
            "engine/net/Cargo.toml: engine/net (floor 2) imports engine/store, which is not on a floor below"
        ]
    );
    let upwards = [("engine/low/Cargo.toml", "[dependencies]\nnet = { workspace = true }\n")];
    assert_eq!(found(manifest::floors, &upwards).len(), 1);
    let for_tests = [("engine/low/Cargo.toml", "[dev-dependencies]\nnet = { workspace = true }\n")];
    assert_eq!(found(manifest::floors, &for_tests), [""; 0]);
}

#[test]
fn a_crate_without_a_floor_is_found() {
    let page = PAGE.replace("| 2 | `engine/net` | TCP |\n", "");
    let found = found(manifest::floors, &[("ARCHITECTURE.md", &page)]);
    assert_eq!(
        found,
        ["engine/net/Cargo.toml: engine/net has no floor in the table of ARCHITECTURE.md"]
    );
}

#[test]
fn a_dependency_without_pin_reason_or_common_version_is_found() {
    let loose = ROOT.replace("'=1.2.1'", "'1.2.1'");
    assert_eq!(
        found(manifest::dependencies, &[("Cargo.toml", &loose)]),
        ["Cargo.toml: the version of toml is not pinned with `=`"]
    );
    let more = format!("{ROOT}slab = '=1.0.0'\n");
    assert_eq!(
        found(manifest::dependencies, &[("Cargo.toml", &more)]),
        ["ARCHITECTURE.md: the table of dependencies does not say what slab is for"]
    );
    let own = [("engine/net/Cargo.toml", "[dependencies]\ntoml = '=1.2.0'\n")];
    assert_eq!(
        found(manifest::dependencies, &own),
        ["engine/net/Cargo.toml: toml does not come from the workspace's list"]
    );
}

#[test]
fn hidden_time_randomness_or_shared_state_is_found() {
    for line in [
        "let now = std::time::Instant::now();",
        "static mut COUNT: u32 = 0;",
        "thread_local! {}",
        "let x = getrandom::fill(&mut b);",
        "let t = unsafe { core::arch::x86_64::_rdtsc() };",
    ] {
        let text = format!("//! A file.\n// std::time is spoken of\n{line}\n");
        assert_eq!(
            found(rust::no_hidden_world, &[("engine/net/src/a.rs", &text)]).len(),
            1,
            "{line}"
        );
        assert_eq!(found(rust::no_hidden_world, &[("cli/src/a.rs", &text)]).len(), 0, "{line}");
    }
    let in_tests = "//! A file.\n#[cfg(test)]\nmod tests {\n    use std::time::Duration;\n}\n";
    assert_eq!(found(rust::no_hidden_world, &[("engine/net/src/a.rs", in_tests)]), [""; 0]);
}

#[test]
fn unsafe_outside_the_listed_places_is_found() {
    let text = "//! A file.\n// unsafe is a word\nlet a = \"unsafe\";\nunsafe { b() }\n";
    assert_eq!(
        found(rust::unsafe_places, &[("engine/net/src/a.rs", text)]),
        ["engine/net/src/a.rs:4: unsafe code in a place that ARCHITECTURE.md does not name"]
    );
    assert_eq!(found(rust::unsafe_places, &[("machines/barely/src/a.rs", text)]).len(), 1);
    let without = PAGE.replace("unsafe lives", "it lives");
    assert_eq!(found(rust::unsafe_places, &[("ARCHITECTURE.md", &without)]).len(), 1);
    let no_reason = PAGE.replace(": the devices", "");
    assert!(
        found(rust::unsafe_places, &[("ARCHITECTURE.md", &no_reason)])[0].contains("has no reason")
    );
}

#[test]
fn a_file_without_an_opening_comment_is_found() {
    for text in ["", "fn main() {}\n", "// A file.\n", "//! \nfn a() {}\n", "\n//! A file.\n"] {
        assert_eq!(found(rust::opening_comment, &[("cli/src/a.rs", text)]).len(), 1, "{text:?}");
    }
}

#[test]
fn an_engine_crate_with_std_or_unsafe_is_found() {
    let text = "//! A crate.\n#![no_std]\n// #![forbid(unsafe_code)]\n";
    assert_eq!(
        found(rust::engine_attributes, &[("engine/net/src/lib.rs", text)]),
        ["engine/net/src/lib.rs: does not carry #![forbid(unsafe_code)]"]
    );
    assert_eq!(found(rust::engine_attributes, &[("cli/src/lib.rs", text)]), [""; 0]);
    let page = PAGE.replace("machines/bare:", "engine/net:");
    assert_eq!(
        found(
            rust::engine_attributes,
            &[("engine/net/src/lib.rs", text), ("ARCHITECTURE.md", &page)]
        ),
        [""; 0]
    );
    let none = [("engine/net/src/lib.rs", "//! A crate.\n"), ("ARCHITECTURE.md", page.as_str())];
    assert_eq!(
        found(rust::engine_attributes, &none),
        ["engine/net/src/lib.rs: does not carry #![no_std]"]
    );
}

#[test]
fn a_promise_without_a_test_is_found() {
    let page = "# Promises\n\n- Kept — `a_thing_holds`\n- Kept by a part — `tidy`\n- Kept over\n  two lines — `a_thing_holds`,\n  `b_thing`\n\n\
                - Broken — `no_such_test`\n- Nameless\n\ntext — not a promise\n";
    let sources = ("a/src/tests.rs", "fn a_thing_holds() {}\n");
    let python = ("tests/a.py", "def b_thing(self):\n");
    assert_eq!(
        found(promises::promises, &[("SPECIFICATION.md", page), sources, python]),
        [
            "SPECIFICATION.md:9: there is no test `no_such_test`",
            "SPECIFICATION.md:10: this promise names no test"
        ]
    );
    assert_eq!(found(promises::promises, &[]), ["SPECIFICATION.md: is missing"]);
}

#[test]
fn integration_test_outside_the_table_is_found() {
    let forgotten = ("tests/forgotten.py", "if __name__ == \"__main__\":\n    main()\n");
    let library = ("tests/library.py", "def main(): ...\n");
    let listed: Vec<(&str, &str)> = crate::gate::parts::scripts().map(|path| (path, "")).collect();
    let files = [&[forgotten, library], listed.as_slice()].concat();
    assert_eq!(
        found(promises::integration_tests, &files),
        ["tests/forgotten.py: is not in the table of parts of `./barepost test`"]
    );
    assert!(!found(promises::integration_tests, &[]).is_empty(), "what is listed is missing");
}

#[test]
fn a_picture_of_other_floors_is_found() {
    let tree = Tree::of(&[("ARCHITECTURE.md", PAGE)]);
    let picture = floors::picture(&tree);
    assert!(
        ["floor 0", "floor 2", "engine/low", ">values<"].iter().all(|text| picture.contains(text))
    );
    assert_eq!(found(floors::drawn, &[(floors::PICTURE, &picture)]), [""; 0]);
    let page = PAGE.replace("| 0 | `engine/low`", "| 1 | `engine/low`");
    assert_eq!(
        found(floors::drawn, &[("ARCHITECTURE.md", &page), (floors::PICTURE, &picture)]).len(),
        1
    );
    assert_eq!(found(floors::drawn, &[]).len(), 1, "there is none");
    let page = PAGE.replace("values:", "values that are far too many to fit:");
    assert_eq!(
        found(floors::drawn, &[("ARCHITECTURE.md", &page)]).len(),
        2,
        "the phrase is too long"
    );
}

#[test]
fn wide_comment_pronoun_and_long_test_name_are_found() {
    let file = |text: String| {
        found_in_language(&format!("//! A.\n#![no_std]\n#![forbid(unsafe_code)]\n{text}\n"))
    };
    let wide = format!("// {}", "x".repeat(98));
    let long = format!("#[test]\n#[ignore]\nfn {}() {{}}", "x".repeat(61));
    assert_eq!(
        file(format!("{wide}\n{}", "x".repeat(101))),
        ["engine/low/src/lib.rs:4: a comment ends by column 100"]
    );
    assert_eq!(
        file("/// Who waits, and what the client whom it waits for does.\n// This.".into()).len(),
        1
    );
    assert!(file(long).concat().contains("has 61 characters"));
    assert_eq!(file(format!("fn {}() {{}}", "x".repeat(61))), [""; 0]);
}

#[test]
fn a_type_name_with_two_meanings_is_counted() {
    let files = |first: &'static str, second: &'static str| {
        found(
            language::type_names,
            &[("engine/low/src/a.rs", first), ("engine/net/src/b.rs", second)],
        )
    };
    let names: String = (0..=bounds::SHARED_TYPE_NAMES)
        .map(|n| format!("pub(crate) struct Line{n} {{\n"))
        .collect();
    let names: &'static str = names.leak();
    assert_eq!(files(names, names).len(), 1);
    assert_eq!(files(names, "pub enum Session {\n"), [""; 0]);
    assert_eq!(files("pub enum Session {\n", "trait Session {\n"), [""; 0]);
}

fn found_in_language(text: &str) -> Vec<String> {
    let rules = [language::comment_width, language::comment_words, language::test_names];
    rules.into_iter().flat_map(|rule| found(rule, &[("engine/low/src/lib.rs", text)])).collect()
}
