//! The text files of the repository: those that git tracks or would track.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::violation::Violation;
use host::{Failure, Repository};

/// The text of each file, by its path below the root, with `/` as the separator.
pub(crate) struct Tree {
    files: BTreeMap<String, String>,
}

impl Tree {
    /// Reads the repository's text files; other files are skipped.
    pub(crate) fn read(repository: &Repository) -> Result<Tree, Failure> {
        let doing = "listing the files of the repository";
        let listing = Command::new("git")
            .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
            .current_dir(repository.root())
            .output()
            .map_err(Failure::io(doing))?;
        if !listing.status.success() {
            return Err(Failure::broke(format_args!(
                "{doing}: git: {}",
                String::from_utf8_lossy(&listing.stderr).trim()
            )));
        }
        let paths = String::from_utf8_lossy(&listing.stdout);
        let files = paths.split_terminator('\0').filter_map(|path| {
            let text = std::fs::read_to_string(repository.path(path)).ok()?;
            Some((path.to_string(), text))
        });
        Ok(Tree { files: files.collect() })
    }

    #[cfg(test)]
    pub(crate) fn of(files: &[(&str, &str)]) -> Tree {
        Tree {
            files: files.iter().map(|(path, text)| (path.to_string(), text.to_string())).collect(),
        }
    }

    pub(super) fn text(&self, path: &str) -> Option<&str> {
        self.files.get(path).map(String::as_str)
    }

    pub(super) fn files(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files.iter().map(|(path, text)| (path.as_str(), text.as_str()))
    }

    /// The Rust sources.
    pub(super) fn rust(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files().filter(|(path, _)| path.ends_with(".rs"))
    }

    /// The crates by folder. Each has the paths below the folder and the texts of its Rust sources
    /// that are not tests.
    pub(super) fn crates(&self) -> BTreeMap<&str, Vec<(&str, &str)>> {
        let folders: Vec<&str> =
            self.files().filter_map(|(path, _)| path.strip_suffix("/Cargo.toml")).collect();
        let mut crates: BTreeMap<&str, Vec<(&str, &str)>> = BTreeMap::new();
        for (path, text) in self.rust() {
            let around = folders.iter().filter_map(|folder| {
                Some((*folder, path.strip_prefix(folder)?.strip_prefix('/')?))
            });
            if let Some((folder, below)) = around.max_by_key(|(folder, _)| folder.len())
                && !is_test(below)
            {
                crates.entry(folder).or_default().push((below, text));
            }
        }
        crates
    }
}

/// Whether a source is compiled only into tests. `path`: the path below its crate.
pub(super) fn is_test(path: &str) -> bool {
    let mut folders = path.split('/').rev();
    let file = folders.next().unwrap_or_default();
    file == "tests.rs"
        || file.ends_with("_tests.rs")
        || folders.any(|folder| ["tests", "examples"].contains(&folder))
}

/// Words that are private to this machine: the paths of this checkout and of its user's home, and
/// the hosts in cargo's configuration.
pub(super) fn foreign_words(repository: &Repository) -> Vec<String> {
    let mut words = Vec::new();
    let mut folder = |path: Option<PathBuf>| {
        let path = path.unwrap_or_default();
        let common = ["", "/", "/tmp", "/home", "/usr", "/opt", "/srv", "/var", "/mnt", "/root"];
        if !common.iter().any(|common| path == Path::new(common)) {
            words.push(format!("{}/", path.display()));
        }
    };
    let root = repository.root().canonicalize().ok();
    folder(root.as_deref().and_then(Path::parent).map(Path::to_path_buf));
    folder(root);
    let home = std::env::home_dir();
    folder(home.clone());
    for name in [".cargo/config.toml", ".cargo/config"] {
        let text = home
            .as_ref()
            .and_then(|home| std::fs::read_to_string(home.join(name)).ok())
            .unwrap_or_default();
        words.extend(hosts(&text));
    }
    words
}

/// The hosts of the addresses in `text`, except those of crates.io.
fn hosts(text: &str) -> impl Iterator<Item = String> {
    let after_scheme = text.split("://").skip(1);
    let hosts = after_scheme.filter_map(|rest| rest.split(['/', ':', '"', '\'', '\n']).next());
    hosts
        .filter(|host| host.contains('.') && !host.ends_with("crates.io") && *host != "github.com")
        .map(str::to_string)
}

/// Rule: no file contains a path or host of the machine on which it was written.
pub(super) fn names_no_workplace(tree: &Tree, foreign: &[String]) -> Vec<Violation> {
    let lines = tree.files().flat_map(|(path, text)| {
        text.lines().enumerate().map(move |(index, line)| (path, index, line))
    });
    lines
        .filter_map(|(path, index, line)| {
            let word = foreign.iter().find(|word| line.contains(word.as_str()))?;
            Some(Violation::at(path, index.saturating_add(1), format_args!("names `{word}`")))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_or_host_of_this_machine_is_found() {
        let tree = Tree::of(&[
            ("docs/a.md", "fine\nsee /build/place/x\n"),
            ("b.toml", "index = 'mirror.corp.test'\n"),
        ]);
        let foreign = ["/build/place/".to_string(), "mirror.corp.test".to_string()];
        let found: Vec<String> =
            names_no_workplace(&tree, &foreign).iter().map(ToString::to_string).collect();
        assert_eq!(
            found,
            ["b.toml:1: names `mirror.corp.test`", "docs/a.md:2: names `/build/place/`"]
        );
    }

    #[test]
    fn the_hosts_of_a_cargo_configuration_are_known() {
        let text = "[source.a]\nregistry = \"sparse+https://mirror.corp.test:443/index/\"\n[source.b]\nregistry='https://index.crates.io/'\n";
        assert_eq!(hosts(text).collect::<Vec<_>>(), ["mirror.corp.test"]);
    }
}
