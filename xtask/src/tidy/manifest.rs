//! Rules about the crates' manifests: floors and dependencies.
//!
//! Both are read from tables in ARCHITECTURE.md. A line of the table of floors is
//! `| FLOOR | ``PATH`` | … |`. A line of the table of dependencies starts with the crate's name.

use std::collections::BTreeMap;

use toml::{Table, Value};

use super::tree::Tree;
use super::violation::Violation;

/// The page with the rules.
pub(super) const PAGE: &str = "ARCHITECTURE.md";
const ROOT: &str = "Cargo.toml";

/// Rule: a crate imports only from floors below its own. Crates on the same floor do not import
/// each other.
pub(super) fn floors(tree: &Tree) -> Vec<Violation> {
    let floors = floor_table(tree);
    let mut found = Vec::new();
    for (path, manifest) in member_manifests(tree) {
        let folder = path.trim_end_matches("/Cargo.toml");
        let Some(own) = floors.get(folder) else {
            found.push(Violation::of_file(
                &path,
                format_args!("{folder} has no floor in the table of {PAGE}"),
            ));
            continue;
        };
        for name in dependency_names(&manifest, "dependencies") {
            let Some(other) = workspace_folder(tree, &name) else { continue };
            match floors.get(other.as_str()) {
                Some(row) if row.floor < own.floor => {}
                _ => found.push(Violation::of_file(
                    &path,
                    format_args!(
                        "{folder} (floor {}) imports {other}, which is not on a floor below",
                        own.floor
                    ),
                )),
            }
        }
    }
    found
}

/// Rule: versions are exact, and ARCHITECTURE.md gives a reason for each dependency.
pub(super) fn dependencies(tree: &Tree) -> Vec<Violation> {
    let mut found = Vec::new();
    let page = tree.text(PAGE).unwrap_or_default();
    let (_, table) = page.split_once("## Dependencies").unwrap_or_default();
    let table = table.split("\n## ").next().unwrap_or_default();
    for (name, value) in workspace_dependencies(tree) {
        let version = match &value {
            Value::String(version) => Some(version.as_str()),
            Value::Table(table) if table.contains_key("path") => continue,
            other => other.get("version").and_then(Value::as_str),
        };
        if !version.is_some_and(|version| version.starts_with('=')) {
            found.push(Violation::of_file(
                ROOT,
                format_args!("the version of {name} is not pinned with `=`"),
            ));
        }
        if !table.lines().any(|line| line.starts_with('|') && line.contains(&format!("`{name}`"))) {
            found.push(Violation::of_file(
                PAGE,
                format_args!("the table of dependencies does not say what {name} is for"),
            ));
        }
    }
    for (path, manifest) in member_manifests(tree) {
        for kind in ["dependencies", "dev-dependencies", "build-dependencies"] {
            for (name, value) in table_of(&manifest, kind) {
                if value.get("workspace").and_then(Value::as_bool) != Some(true) {
                    found.push(Violation::of_file(
                        &path,
                        format_args!("{name} does not come from the workspace's list"),
                    ));
                }
            }
        }
    }
    found
}

/// A row of the table of floors.
pub(super) struct Row<'a> {
    pub(super) floor: u32,
    /// The description of the crate, up to the first colon.
    pub(super) phrase: &'a str,
}

/// The floors and phrases of all folders.
pub(super) fn floor_table(tree: &Tree) -> BTreeMap<&str, Row<'_>> {
    let rows = tree.text(PAGE).unwrap_or_default().lines();
    let mut floors = BTreeMap::new();
    for row in rows {
        let mut cells = row.split('|').map(str::trim).skip(1);
        let (Some(floor), Some(folder), Some(about)) = (cells.next(), cells.next(), cells.next())
        else {
            continue;
        };
        let Ok(floor) = floor.parse() else { continue };
        let phrase = about.split(':').next().unwrap_or_default();
        floors.insert(folder.trim_matches('`'), Row { floor, phrase });
    }
    floors
}

fn member_manifests(tree: &Tree) -> Vec<(String, Table)> {
    let root = root_manifest(tree);
    let members = root
        .get("workspace")
        .and_then(|workspace| workspace.get("members"))
        .and_then(Value::as_array);
    let paths = members
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .map(|member| format!("{member}/Cargo.toml"));
    paths.map(|path| (path.clone(), manifest(tree, &path))).collect()
}

fn root_manifest(tree: &Tree) -> Table {
    manifest(tree, ROOT)
}

/// A manifest; empty if it is missing or not TOML, which cargo reports.
fn manifest(tree: &Tree, path: &str) -> Table {
    tree.text(path).and_then(|text| text.parse().ok()).unwrap_or_default()
}

fn workspace_dependencies(tree: &Tree) -> Table {
    let root = root_manifest(tree);
    root.get("workspace")
        .and_then(Value::as_table)
        .map(|workspace| table_of(workspace, "dependencies"))
        .unwrap_or_default()
}

/// The folder of a dependency, if the dependency is a crate of this repository.
fn workspace_folder(tree: &Tree, name: &str) -> Option<String> {
    let dependencies = workspace_dependencies(tree);
    dependencies.get(name)?.get("path")?.as_str().map(str::to_string)
}

fn dependency_names(manifest: &Table, kind: &str) -> Vec<String> {
    table_of(manifest, kind).into_iter().map(|(name, _)| name).collect()
}

fn table_of(manifest: &Table, key: &str) -> Table {
    manifest.get(key).and_then(Value::as_table).cloned().unwrap_or_default()
}
