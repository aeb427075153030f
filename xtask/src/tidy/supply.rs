//! Rules about third-party code: licences, duplicate crates, and sources.
//!
//! `deny.toml`, which cargo-deny also reads, lists what is allowed. Licences and versions come from
//! the dependency graph of `cargo metadata`. Sources come from every `Cargo.lock`, for all
//! platforms.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use host::{Failure, Repository};
use serde::Deserialize;

use super::tree::Tree;
use super::violation::Violation;

/// The file that lists the allowed licences, duplicates and sources.
const PAGE: &str = "deny.toml";

/// The output of `cargo metadata`, with only the fields that the rules use.
#[derive(Deserialize)]
pub(super) struct Metadata {
    packages: Vec<Package>,
    workspace_root: String,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    version: String,
    license: Option<String>,
    /// `None` for a crate in a folder of this machine.
    source: Option<String>,
    manifest_path: String,
}

impl Metadata {
    /// Reads the metadata of the dependency graph for this platform.
    pub(super) fn read(repository: &Repository) -> Result<Metadata, Failure> {
        let doing = "asking cargo for the crates";
        let output = Command::new("cargo")
            .args([
                "metadata",
                "--format-version",
                "1",
                "--locked",
                "--filter-platform",
                "x86_64-unknown-linux-gnu",
            ])
            .current_dir(repository.root())
            .output()
            .map_err(Failure::io(doing))?;
        if !output.status.success() {
            let why = String::from_utf8_lossy(&output.stderr);
            return Err(Failure::broke(format_args!("{doing}: {}", why.trim())));
        }
        Metadata::parse(&output.stdout)
    }

    pub(super) fn parse(json: &[u8]) -> Result<Metadata, Failure> {
        serde_json::from_slice(json)
            .map_err(|error| Failure::broke(format_args!("what cargo says of crates: {error}")))
    }
}

/// The contents of `deny.toml`.
#[derive(Deserialize)]
struct Allowed {
    licenses: Licences,
    bans: Bans,
    sources: Sources,
}

#[derive(Deserialize)]
struct Licences {
    allow: BTreeSet<String>,
    exceptions: Vec<Exception>,
}

#[derive(Deserialize)]
struct Exception {
    #[serde(rename = "crate")]
    name: String,
    allow: BTreeSet<String>,
}

#[derive(Deserialize)]
struct Bans {
    skip: Vec<Skip>,
}

/// A crate version that may exist in addition to another version.
#[derive(Deserialize)]
struct Skip {
    /// `NAME@VERSION`.
    #[serde(rename = "crate")]
    package: String,
    reason: String,
}

#[derive(Deserialize)]
struct Sources {
    #[serde(rename = "allow-registry")]
    registries: Vec<String>,
}

fn allowed(tree: &Tree) -> Result<Allowed, Vec<Violation>> {
    let text = tree.text(PAGE).ok_or_else(|| vec![Violation::of_file(PAGE, "is missing")])?;
    toml::from_str(text).map_err(|error| vec![Violation::of_file(PAGE, error.message())])
}

/// Rule: each crate has an allowed licence.
pub(super) fn licences(tree: &Tree, metadata: &Metadata) -> Vec<Violation> {
    let Licences { allow, exceptions } = match allowed(tree) {
        Ok(allowed) => allowed.licenses,
        Err(found) => return found,
    };
    let mut found = Vec::new();
    for Package { name, version, license, .. } in &metadata.packages {
        let excepted = exceptions.iter().filter(|exception| exception.name == *name);
        let excepted: BTreeSet<&str> =
            excepted.flat_map(|one| &one.allow).map(String::as_str).collect();
        let is_allowed = |one: &str| allow.contains(one) || excepted.contains(one);
        match license {
            Some(terms) if are_met(terms, &is_allowed) => {}
            Some(terms) => {
                found.push(Violation::of_file(
                    PAGE,
                    format_args!("{name} {version}: `{terms}` is not allowed"),
                ));
            }
            None => found
                .push(Violation::of_file(PAGE, format_args!("{name} {version} names no licence"))),
        }
    }
    for Exception { name, .. } in &exceptions {
        if !metadata.packages.iter().any(|package| package.name == *name) {
            found.push(Violation::of_file(
                PAGE,
                format_args!("the exception for {name} is not needed any more"),
            ));
        }
    }
    found
}

/// Rule: no crate has several versions, except those with a reason.
pub(super) fn duplicates(tree: &Tree, metadata: &Metadata) -> Vec<Violation> {
    let Bans { skip } = match allowed(tree) {
        Ok(allowed) => allowed.bans,
        Err(found) => return found,
    };
    let mut found = Vec::new();
    let mut versions: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for package in &metadata.packages {
        versions.entry(&package.name).or_default().insert(&package.version);
    }
    for Skip { package, reason } in &skip {
        let several = package.split_once('@').and_then(|(name, version)| {
            let several = versions.get_mut(name).filter(|versions| versions.len() > 1)?;
            several.remove(version).then_some(())
        });
        if several.is_none() {
            found.push(Violation::of_file(
                PAGE,
                format_args!("{package} is not there beside another version"),
            ));
        }
        if reason.trim().is_empty() {
            found.push(Violation::of_file(PAGE, format_args!("{package} has no reason")));
        }
    }
    for (name, versions) in versions.into_iter().filter(|(_, versions)| versions.len() > 1) {
        let versions: Vec<&str> = versions.into_iter().collect();
        found.push(Violation::of_file(
            PAGE,
            format_args!("{name} is there as {}", versions.join(" and ")),
        ));
    }
    found
}

/// Rule: each crate comes from an allowed registry, with its digest, or is in this repository.
pub(super) fn sources(tree: &Tree, metadata: &Metadata) -> Vec<Violation> {
    let Sources { registries } = match allowed(tree) {
        Ok(allowed) => allowed.sources,
        Err(found) => return found,
    };
    let is_allowed = |source: &str| {
        source
            .strip_prefix("registry+")
            .is_some_and(|url| registries.iter().any(|registry| registry == url))
    };
    let mut found = Vec::new();
    for (path, text) in
        tree.files().filter(|(path, _)| path.rsplit('/').next() == Some("Cargo.lock"))
    {
        let Ok(Lock { package }) = toml::from_str(text) else {
            found.push(Violation::of_file(path, "cannot be read"));
            continue;
        };
        for Locked { name, version, source, checksum } in package {
            match (source, checksum) {
                (None, _) => {}
                (Some(source), Some(_)) if is_allowed(&source) => {}
                (Some(source), Some(_)) => {
                    found.push(Violation::of_file(
                        path,
                        format_args!("{name} {version} comes from `{source}`"),
                    ));
                }
                (Some(source), None) => {
                    let what =
                        format_args!("{name} {version} comes from `{source}` without a digest");
                    found.push(Violation::of_file(path, what));
                }
            }
        }
    }
    let root = format!("{}/", metadata.workspace_root);
    for Package { name, manifest_path, .. } in
        metadata.packages.iter().filter(|package| package.source.is_none())
    {
        if !manifest_path.starts_with(&root) {
            found.push(Violation::of_file(
                PAGE,
                format_args!("{name} lies outside of the repository"),
            ));
        }
    }
    found
}

#[derive(Deserialize)]
struct Lock {
    package: Vec<Locked>,
}

#[derive(Deserialize)]
struct Locked {
    name: String,
    version: String,
    source: Option<String>,
    checksum: Option<String>,
}

/// Whether `terms`, an SPDX expression, can be met. All parts of an `AND` must be met, and one part
/// of an `OR`, which old manifests write as `/`. An invalid expression is never met.
fn are_met(terms: &str, is_allowed: &dyn Fn(&str) -> bool) -> bool {
    let spaced = terms.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut rest = words.as_slice();
    let met = any(&mut rest, is_allowed);
    met == Some(true) && rest.is_empty()
}

/// Parses `all (OR all)*`; `None`: it is not an expression.
fn any(words: &mut &[&str], is_allowed: &dyn Fn(&str) -> bool) -> Option<bool> {
    let mut met = all(words, is_allowed)?;
    while let Some(rest) = words.strip_prefix(&["OR"]) {
        *words = rest;
        met |= all(words, is_allowed)?;
    }
    Some(met)
}

/// Parses `one (AND one)*`.
fn all(words: &mut &[&str], is_allowed: &dyn Fn(&str) -> bool) -> Option<bool> {
    let mut met = one(words, is_allowed)?;
    while let Some(rest) = words.strip_prefix(&["AND"]) {
        *words = rest;
        met &= one(words, is_allowed)?;
    }
    Some(met)
}

/// Parses `( any )`, or a licence with an optional exception.
fn one(words: &mut &[&str], is_allowed: &dyn Fn(&str) -> bool) -> Option<bool> {
    let (first, rest) = words.split_first()?;
    *words = rest;
    match *first {
        "(" => {
            let met = any(words, is_allowed)?;
            *words = words.strip_prefix(&[")"])?;
            Some(met)
        }
        ")" | "AND" | "OR" | "WITH" => None,
        licence => match words {
            ["WITH", exception, rest @ ..] => {
                *words = rest;
                Some(is_allowed(&format!("{licence} WITH {exception}")))
            }
            _ => Some(is_allowed(licence)),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: &str = "[licenses]\nallow = ['MIT', 'ISC', 'Apache-2.0']\n\
                         exceptions = [{ crate = 'parser', allow = ['MPL-2.0'] }]\n\
                         [bans]\nskip = [{ crate = 'bits@1.0.0', reason = 'old' }]\n\
                         [sources]\nallow-registry = ['https://registry.test/index']\n";
    const LOCK: &str = "[[package]]\nname = 'own'\nversion = '0.1.0'\n[[package]]\nname = 'bits'\nversion = '2.0.0'\n\
                        source = 'registry+https://registry.test/index'\nchecksum = 'abc'\n";
    type Check = fn(&Tree, &Metadata) -> Vec<Violation>;

    /// A crate as `cargo metadata` describes it.
    fn package(name: &str, version: &str, license: &str) -> String {
        format!(
            "{{\"name\": \"{name}\", \"version\": \"{version}\", \"license\": \"{license}\", \"source\": \"registry\", \
             \"manifest_path\": \"/cargo/{name}\"}}"
        )
    }

    fn good() -> Vec<String> {
        vec![
            package("bits", "1.0.0", "MIT"),
            package("bits", "2.0.0", "MIT OR GPL-3.0"),
            package("parser", "1.0.0", "MPL-2.0 AND MIT"),
        ]
    }

    /// The violations that `check` finds in these crates, with these rules and this lock file.
    fn found(check: Check, packages: &[String], rules: &str, lock: &str) -> Vec<String> {
        let json =
            format!("{{\"packages\": [{}], \"workspace_root\": \"/here\"}}", packages.join(","));
        let tree = Tree::of(&[("deny.toml", rules), ("fuzz/Cargo.lock", lock)]);
        check(&tree, &Metadata::parse(json.as_bytes()).unwrap())
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    #[test]
    fn allowed_crates_break_no_rule() {
        for check in [licences as Check, duplicates, sources] {
            assert_eq!(found(check, &good(), RULES, LOCK), [""; 0]);
            assert!(
                !found(check, &good(), "", LOCK).is_empty(),
                "rules that cannot be read allow nothing"
            );
        }
    }

    #[test]
    fn a_licence_that_is_not_allowed_is_found() {
        let planted = [good(), vec![package("viral", "3.0.0", "GPL-3.0-only")]].concat();
        assert_eq!(
            found(licences, &planted, RULES, LOCK),
            ["deny.toml: viral 3.0.0: `GPL-3.0-only` is not allowed"]
        );
        let other = [good(), vec![package("other", "1.0.0", "MPL-2.0")]].concat();
        assert_eq!(
            found(licences, &other, RULES, LOCK).len(),
            1,
            "the exception is another crate's"
        );
        let without = good().join(",").replace("\"license\": \"MIT\"", "\"license\": null");
        assert_eq!(
            found(licences, &[without], RULES, LOCK),
            ["deny.toml: bits 1.0.0 names no licence"]
        );
        let stale = RULES.replace("'parser'", "'gone'");
        assert_eq!(found(licences, &good(), &stale, LOCK).len(), 2);
    }

    #[test]
    fn terms_are_met_by_one_of_or_and_all_of_and() {
        let met = |terms: &str| are_met(terms, &|one| ["MIT", "ISC", "Apache-2.0"].contains(&one));
        for terms in [
            "MIT",
            "MIT/GPL-2.0",
            "GPL-2.0 OR MIT",
            "MIT AND ISC",
            "(MIT OR GPL-2.0) AND ISC",
            "GPL-2.0 AND ISC OR MIT",
            "Apache-2.0 WITH LLVM-exception OR MIT",
        ] {
            assert!(met(terms), "{terms}");
        }
        for terms in [
            "",
            "GPL-2.0",
            "MIT AND GPL-2.0",
            "(MIT OR ISC) AND GPL-2.0",
            "MIT AND (GPL-2.0 OR BSL-1.0)",
            "Apache-2.0 WITH LLVM-exception",
            "MIT ISC",
            "(MIT",
            "MIT OR",
            "OR MIT",
        ] {
            assert!(!met(terms), "{terms}");
        }
    }

    #[test]
    fn a_crate_in_two_versions_is_found() {
        let planted = [good(), vec![package("parser", "2.0.0", "MIT")]].concat();
        assert_eq!(
            found(duplicates, &planted, RULES, LOCK),
            ["deny.toml: parser is there as 1.0.0 and 2.0.0"]
        );
        let third = [good(), vec![package("bits", "3.0.0", "MIT")]].concat();
        assert_eq!(
            found(duplicates, &third, RULES, LOCK),
            ["deny.toml: bits is there as 2.0.0 and 3.0.0"]
        );
        let one = good().split_off(1);
        assert_eq!(
            found(duplicates, &one, RULES, LOCK),
            ["deny.toml: bits@1.0.0 is not there beside another version"]
        );
        let unreasoned = RULES.replace("'old'", "' '");
        assert_eq!(
            found(duplicates, &good(), &unreasoned, LOCK),
            ["deny.toml: bits@1.0.0 has no reason"]
        );
    }

    #[test]
    fn a_source_that_is_not_the_registry_is_found() {
        let git =
            LOCK.replace("registry+https://registry.test/index", "git+https://git.test/bits?rev=1");
        assert_eq!(
            found(sources, &good(), RULES, &git),
            ["fuzz/Cargo.lock: bits 2.0.0 comes from `git+https://git.test/bits?rev=1`"]
        );
        let mirror = LOCK.replace("registry.test/index", "registry.test/index2");
        assert_eq!(found(sources, &good(), RULES, &mirror).len(), 1);
        let unchecked = LOCK.replace("checksum = 'abc'\n", "");
        assert!(found(sources, &good(), RULES, &unchecked)[0].ends_with("without a digest"));
        assert_eq!(found(sources, &good(), RULES, "nonsense"), ["fuzz/Cargo.lock: cannot be read"]);
        let elsewhere = good().join(",").replace("\"source\": \"registry\"", "\"source\": null");
        assert_eq!(found(sources, std::slice::from_ref(&elsewhere), RULES, LOCK).len(), 3);
        assert_eq!(found(sources, &[elsewhere.replace("/cargo/", "/here/")], RULES, LOCK), [""; 0]);
    }
}
