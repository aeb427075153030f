//! Circles of files: files of a crate that import each other, directly or through others.
//!
//! A crate's files must form a staircase. A file imports another when it names the other's module
//! by a path that begins with `crate::`, `super::` or `self::`. A parent also imports a child when
//! it uses the child's names as `child::name`; the second bound counts those imports too.

use std::collections::{BTreeMap, BTreeSet};

use super::bounds::{Bound, CIRCLE, CIRCLE_WITH_CHILDREN};
use super::paths::{Start, paths};
use super::source::{code, without_tests};
use super::tree::Tree;
use super::violation::Violation;

/// The path of a file's module below its crate.
type Module = Vec<String>;
/// The modules that each module imports.
type Graph = BTreeMap<Module, BTreeSet<Module>>;

pub(super) fn circles(tree: &Tree) -> Vec<Violation> {
    above(tree, &CIRCLE, false, "import each other")
}

pub(super) fn circles_with_children(tree: &Tree) -> Vec<Violation> {
    above(tree, &CIRCLE_WITH_CHILDREN, true, "name each other")
}

fn above(tree: &Tree, bound: &Bound, with_children: bool, what: &str) -> Vec<Violation> {
    let mut found = Vec::new();
    for (folder, files) in tree.crates() {
        let most = bound.of(folder);
        let graph = graph(&files, with_children);
        for circle in strongly_connected(&graph).into_iter().filter(|circle| circle.len() > most) {
            let names: Vec<String> = circle.iter().map(name_of).collect();
            found.push(Violation::of_file(
                folder,
                format_args!(
                    "{} files {what}, at most {most} may: {}",
                    circle.len(),
                    names.join(", ")
                ),
            ));
        }
    }
    found
}

fn name_of(module: &Module) -> String {
    if module.is_empty() { "the root".to_string() } else { module.join("::") }
}

/// The imports between the modules of a crate. `files`: path below the crate, and text.
fn graph(files: &[(&str, &str)], with_children: bool) -> Graph {
    let modules: BTreeSet<Module> = files.iter().map(|(path, _)| module_of(path)).collect();
    let mut graph = Graph::new();
    for (path, text) in files {
        let own = module_of(path);
        let code = code(text);
        let mut imported = BTreeSet::new();
        for path in paths(without_tests(&code)) {
            let child = path
                .words
                .first()
                .map(|first| [own.as_slice(), std::slice::from_ref(first)].concat());
            let is_child =
                path.start == Start::Name && child.is_some_and(|child| modules.contains(&child));
            let is_child = is_child && with_children && !path.is_handed_on;
            let Some(target) = target(&own, &path.words, is_child) else { continue };
            // The longest prefix of the path that is a module.
            let target = (1..=target.len()).rev().filter_map(|length| target.get(..length));
            imported.extend(
                target.map(<[_]>::to_vec).find(|target| modules.contains(target) && *target != own),
            );
        }
        graph.entry(own).or_default().extend(imported);
    }
    graph
}

/// The path from the crate's root that `words` in the module `own` stand for.
///
/// `is_child`: `words` may begin with the name of a child of `own`.
fn target(own: &Module, words: &[String], is_child: bool) -> Option<Module> {
    let (first, rest) = words.split_first()?;
    let (base, rest) = match first.as_str() {
        "crate" => (Module::new(), rest),
        "self" => (own.clone(), rest),
        "super" => {
            let ups = words.iter().take_while(|word| *word == "super").count();
            (own.get(..own.len().checked_sub(ups)?)?.to_vec(), words.get(ups..)?)
        }
        _ if is_child => (own.clone(), words),
        _ => return None,
    };
    Some([base.as_slice(), rest].concat())
}

/// The module of a file: both `src/a/mod.rs` and `src/a.rs` are the module `a`.
fn module_of(path: &str) -> Module {
    let path = path.strip_prefix("src/").unwrap_or(path).trim_end_matches(".rs");
    let mut parts: Module = path.split('/').map(str::to_string).collect();
    if parts.last().is_some_and(|last| ["mod", "lib", "main"].contains(&last.as_str())) {
        parts.pop();
    }
    parts
}

/// The circles of a graph. Two modules are in the same circle if each reaches the other.
fn strongly_connected(graph: &Graph) -> Vec<BTreeSet<Module>> {
    let reached: BTreeMap<&Module, BTreeSet<&Module>> =
        graph.keys().map(|from| (from, reach(graph, from))).collect();
    let mut circles = BTreeSet::new();
    for (from, to) in &reached {
        let back = to
            .iter()
            .filter(|other| reached.get(**other).is_some_and(|reached| reached.contains(*from)));
        let circle: BTreeSet<Module> = back.map(|module| (*module).clone()).collect();
        if circle.len() > 1 {
            circles.insert(circle);
        }
    }
    circles.into_iter().collect()
}

fn reach<'g>(graph: &'g Graph, from: &Module) -> BTreeSet<&'g Module> {
    let mut reached = BTreeSet::new();
    let mut next: Vec<&Module> = graph.get(from).into_iter().flatten().collect();
    while let Some(module) = next.pop() {
        if reached.insert(module) {
            next.extend(graph.get(module).into_iter().flatten());
        }
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANIFEST: (&str, &str) = ("engine/low/Cargo.toml", "[dependencies]\n");

    fn found(check: fn(&Tree) -> Vec<Violation>, files: &[(&str, &str)]) -> Vec<String> {
        let tree = Tree::of(&[&[MANIFEST], files].concat());
        check(&tree).iter().map(ToString::to_string).collect()
    }

    /// Files a, b, c, … in a circle. Each has the text `path` with the next file's name for `?`.
    fn ring(count: usize, path: &str) -> Vec<(String, String)> {
        let name = |index: usize| char::from(b'a' + (index % count) as u8).to_string();
        let file = |index: usize| {
            (
                format!("engine/low/src/{}.rs", name(index)),
                format!("//! A.\n{}\n", path.replace('?', &name(index + 1))),
            )
        };
        (0..count).map(file).collect()
    }

    fn borrowed(files: &[(String, String)]) -> Vec<(&str, &str)> {
        files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect()
    }

    #[test]
    fn a_circle_above_the_bound_is_found() {
        for path in [
            "use crate::?::Type;",
            "fn f() { super::?::g() }",
            "use crate::{other, ?::{self, Type}};",
        ] {
            let four = ring(4, path);
            assert_eq!(
                found(circles, &borrowed(&four)),
                ["engine/low: 4 files import each other, at most 3 may: a, b, c, d"],
                "{path}"
            );
            assert_eq!(found(circles, &borrowed(&ring(3, path))), [""; 0]);
        }
    }

    #[test]
    fn files_in_a_staircase_are_accepted() {
        let mut stairs = ring(5, "use crate::?::Type;");
        stairs.truncate(4);
        assert_eq!(found(circles, &borrowed(&stairs)), [""; 0]);
    }

    #[test]
    fn comments_tests_and_other_crates_are_not_imports() {
        let last = [
            "// crate::a::B\n",
            "#[cfg(test)]\nmod tests {\n    use crate::a::B;\n}\n",
            "use a::B;\n",
        ];
        for last in last {
            let mut files = ring(4, "use crate::?::Type;");
            files[3].1 = format!("//! D.\n{last}");
            assert_eq!(found(circles, &borrowed(&files)), [""; 0], "{last}");
        }
    }

    #[test]
    fn a_parent_that_names_its_children_closes_a_circle() {
        let children: Vec<(String, String)> = (0..12)
            .map(|child| {
                (
                    format!("engine/low/src/parent/c{child}.rs"),
                    "//! C.\nuse super::Type;\n".to_string(),
                )
            })
            .collect();
        let calls: String = (0..12).map(|child| format!("c{child}::run();\n")).collect();
        let parent = |start: &str| ("engine/low/src/parent/mod.rs", format!("//! P.\n{start}"));
        let (path, text) = parent(&calls);
        let files = [borrowed(&children), vec![(path, text.as_str())]].concat();
        assert_eq!(found(circles, &files), [""; 0]);
        assert!(
            found(circles_with_children, &files)[0]
                .starts_with("engine/low: 13 files name each other, at most 12 ")
        );
        let handed_on = calls.replace("c", "pub use c").replace("()", "");
        let (path, text) = parent(&handed_on);
        let files = [borrowed(&children), vec![(path, text.as_str())]].concat();
        assert_eq!(found(circles_with_children, &files), [""; 0]);
    }
}
