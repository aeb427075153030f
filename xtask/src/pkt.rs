//! `barepost pkt FILE…`: plays packetdrill scripts against the engine's TCP, in virtual time.
//!
//! The player is a separate program, `machines/simulated/src/bin/packetdrill.rs`, so that this
//! command does not contain the engine.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Args;
use host::{Failure, Repository, Stop};

use crate::simulator;

#[derive(Args)]
pub(crate) struct Options {
    /// Packetdrill scripts
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Do not report differences that the RFCs allow
    #[arg(long)]
    quiet: bool,
}

/// Replaces this process by the packetdrill player, so that the player's exit status is returned.
///
/// Errors: [`Failure::broke`] if the player cannot be built or started.
pub(crate) fn run(repository: &Repository, options: &Options, stop: &Stop) -> Result<(), Failure> {
    simulator::build(repository, None, stop)?;
    let mut player = Command::new(simulator::player(repository));
    player.args(options.quiet.then_some("--quiet")).arg("--").args(&options.files);
    Err(Failure::broke(format_args!("starting the player of scripts: {}", player.exec())))
}

/// The scripts in a folder, by name.
pub(crate) fn scripts_in(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut scripts = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        scripts.push(entry?.path());
    }
    scripts.retain(|path| path.extension().is_some_and(|extension| extension == "pkt"));
    scripts.sort();
    Ok(scripts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_are_found_by_their_ending_and_sorted() {
        let place = tempfile::tempdir().unwrap();
        for name in ["b.pkt", "a.pkt", "c.txt"] {
            std::fs::write(place.path().join(name), "").unwrap();
        }
        let found = scripts_in(place.path()).unwrap();
        assert_eq!(found, ["a.pkt", "b.pkt"].map(|name| place.path().join(name)));
    }
}
