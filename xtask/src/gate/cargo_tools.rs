//! Cargo tools that tests need, in pinned versions. They are installed only below `target/tools`.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use host::{Failure, Repository, Stop, hold, remark};

const INSTALL_BUDGET: Duration = Duration::from_secs(900);

/// A program that cargo installs.
pub(super) struct Tool {
    /// The name of the package and of its program.
    pub(super) name: &'static str,
    pub(super) version: &'static str,
    /// The activity that needs the tool, for messages.
    pub(super) purpose: &'static str,
}

impl Tool {
    /// Installs the tool unless this version is installed. Returns its path.
    ///
    /// Errors: [`Failure::refused`] with the name of what is missing.
    pub(super) fn fetch(&self, repository: &Repository, stop: &Stop) -> Result<PathBuf, Failure> {
        let Tool { name, version, .. } = self;
        let tools = repository.target("tools");
        let path = tools.join("bin").join(name);
        let is_there = Command::new(&path).arg("--version").output().is_ok_and(|output| {
            String::from_utf8_lossy(&output.stdout).trim().ends_with(&format!(" {version}"))
        });
        if !is_there {
            let mut cargo = hold::command("cargo");
            cargo.args(["install", "--quiet", "--locked", name, "--version", version, "--root"]);
            cargo
                .arg(&tools)
                .arg("--target-dir")
                .arg(tools.join("build"))
                .current_dir(repository.root());
            self.install(&mut cargo, &format!("{name} {version}"), stop)?;
        }
        Ok(path)
    }

    /// Runs the installing command. `what`: the tool with its version.
    fn install(&self, command: &mut Command, what: &str, stop: &Stop) -> Result<(), Failure> {
        remark(format_args!("barepost: installing {what}, for {}", self.purpose));
        let failed = |failure| {
            Failure::refused(format_args!(
                "{} needs {what}, which is missing: {failure}",
                self.purpose
            ))
        };
        hold::run_to_success(command, &format!("installing {what}"), INSTALL_BUDGET, stop)
            .map_err(failed)
    }
}
