//! Checks crates from outside for known problems, with cargo-deny and the RustSec advisory
//! database.
//!
//! The database changes each day and is fetched each time. Without the database the check fails: an
//! old or empty database has no findings, which would look like success.

use std::fs::File;
use std::process::Command;
use std::time::Duration;

use host::{Failure, Repository, Stop, hold};

use crate::gate::cargo_tools::Tool;

const CARGO_DENY: Tool =
    Tool { name: "cargo-deny", version: "0.20.2", purpose: "looking for advisories" };
/// The database that cargo-deny uses by default.
const DATABASE: &str = "https://github.com/RustSec/advisory-db";
const FETCH_BUDGET: Duration = Duration::from_secs(120);

/// Fetches the database, and runs cargo-deny on everything in `deny.toml`. `log` gets the findings.
///
/// Errors: [`Failure::refused`] if the tool or the database is not available, [`Failure::broke`] if
/// there are findings.
pub(super) fn check(
    repository: &Repository,
    log: &File,
    budget: Duration,
    stop: &Stop,
) -> Result<(), Failure> {
    let tool = CARGO_DENY.fetch(repository, stop)?;
    let deny = |manifest: &str, asked: &[&str]| -> Result<Command, Failure> {
        let share = || log.try_clone().map_err(Failure::io("sharing a log"));
        let mut command = hold::command(&tool);
        command
            .arg("--manifest-path")
            .arg(repository.path(manifest))
            .arg("--config")
            .arg(repository.path("deny.toml"));
        command.arg("--locked").args(asked).current_dir(repository.root());
        command.stdout(share()?).stderr(share()?);
        Ok(command)
    };
    fetch(&mut deny("Cargo.toml", &["fetch", "db"])?, stop)?;
    hold::run_to_success(&mut deny("Cargo.toml", &["check"])?, "cargo-deny", budget, stop)?;
    // The fuzz targets have a separate dependency graph, which is used only in tests.
    let of_fuzz = &mut deny("fuzz/Cargo.toml", &["check", "advisories"])?;
    hold::run_to_success(of_fuzz, "cargo-deny on fuzz", budget, stop)
}

fn fetch(command: &mut Command, stop: &Stop) -> Result<(), Failure> {
    hold::run_to_success(command, "fetching it", FETCH_BUDGET, stop).map_err(|failure| {
        Failure::refused(format_args!(
            "the database of advisories cannot be fetched from {DATABASE}; this part needs the network: {failure}"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn check_fails_without_the_advisory_database() {
        let failure = fetch(&mut Command::new("false"), &Stop::default()).unwrap_err();
        assert_eq!(failure.status(), 2);
        let text = failure.to_string();
        assert!(text.contains(DATABASE) && text.contains("needs the network"), "{text}");
        fetch(&mut Command::new("true"), &Stop::default()).unwrap();
    }
}
