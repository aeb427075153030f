//! The tools that fuzzing needs in addition to the stable compiler: a nightly compiler,
//! `cargo fuzz`, and a C++ compiler for libFuzzer.
//!
//! The versions of the first two are pinned. Missing tools are installed. A failure is one line.

use std::ffi::OsString;
use std::process::Command;
use std::time::Duration;

use host::{Failure, Repository, Stop, hold, packages, remark};

use crate::gate::cargo_tools::Tool;

/// The compiler that builds the targets.
pub(super) const NIGHTLY: &str = "nightly-2026-05-20";
const CARGO_FUZZ: Tool = Tool { name: "cargo-fuzz", version: "0.13.2", purpose: "fuzzing" };
const INSTALL_BUDGET: Duration = Duration::from_secs(900);

/// Installs missing tools. Returns the search path on which cargo finds `cargo fuzz`.
///
/// Errors: [`Failure::refused`] with the name of what is missing.
pub(super) fn fetch(repository: &Repository, stop: &Stop) -> Result<OsString, Failure> {
    packages::program("c++", "g++", stop)?;
    if !succeeds(
        Command::new("rustc")
            .arg(format!("+{NIGHTLY}"))
            .arg("--version")
            .env("RUSTUP_AUTO_INSTALL", "0"),
    ) {
        let mut rustup = hold::command("rustup");
        rustup.args(["toolchain", "install", NIGHTLY, "--profile", "minimal", "--no-self-update"]);
        install(&mut rustup, &format!("Rust's {NIGHTLY}"), stop)?;
    }
    CARGO_FUZZ.fetch(repository, stop)?;
    let before = std::env::var_os("PATH").unwrap_or_default();
    let folders =
        std::iter::once(repository.target("tools/bin")).chain(std::env::split_paths(&before));
    std::env::join_paths(folders).map_err(|error| Failure::broke(format_args!("PATH: {error}")))
}

fn install(command: &mut Command, what: &str, stop: &Stop) -> Result<(), Failure> {
    remark(format_args!("barepost: installing {what}, for fuzzing"));
    let failed = |failure| {
        Failure::refused(format_args!("fuzzing needs {what}, which is missing: {failure}"))
    };
    hold::run_to_success(command, &format!("installing {what}"), INSTALL_BUDGET, stop)
        .map_err(failed)
}

fn succeeds(command: &mut Command) -> bool {
    command.output().is_ok_and(|output| output.status.success())
}
