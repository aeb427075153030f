//! The programs of `machines/simulated`, built with optimization: machine rooms, and the player of
//! packetdrill scripts.

use std::fs::File;
use std::path::PathBuf;
use std::time::Duration;

use host::{Failure, Repository, Stop, hold, remark};

const BUILD_BUDGET: Duration = Duration::from_secs(900);

/// Builds both programs. Cargo's output goes to `log`, or to the terminal.
///
/// Errors: [`Failure::broke`] if the build fails.
pub(crate) fn build(
    repository: &Repository,
    log: Option<&File>,
    stop: &Stop,
) -> Result<(), Failure> {
    let mut cargo = hold::command("cargo");
    cargo.args([
        "build",
        "--quiet",
        "--release",
        "-p",
        "simulated",
        "--bins",
        "--target-dir",
        "target",
    ]);
    cargo.current_dir(repository.root());
    if let Some(log) = log {
        let share = || log.try_clone().map_err(Failure::io("sharing a log"));
        cargo.stdout(share()?).stderr(share()?);
    } else if !player(repository).exists() {
        remark("barepost: building the simulator, once; this takes a minute or more");
    }
    hold::run_to_success(&mut cargo, "building the simulator", BUILD_BUDGET, stop)
}

/// The program that runs machine rooms.
pub(crate) fn rooms(repository: &Repository) -> PathBuf {
    repository.target("release/simulated")
}

/// The program that plays packetdrill scripts.
pub(crate) fn player(repository: &Repository) -> PathBuf {
    repository.target("release/packetdrill")
}
