//! The wire program of `tests/wire`: builds and runs it.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;

use host::{Failure, Repository, Stop, hold};

const BUILD_BUDGET: Duration = Duration::from_secs(600);

/// A wire between two tap interfaces. It ends when this value is dropped.
pub(crate) struct Wire(Child);

impl Wire {
    /// Builds the program.
    pub(crate) fn build(repository: &Repository, stop: &Stop) -> Result<PathBuf, Failure> {
        let mut cargo = hold::command("cargo");
        cargo
            .args(["build", "--quiet", "--release", "-p", "wire", "--target-dir", "target"])
            .current_dir(repository.root());
        hold::run_to_success(&mut cargo, "building the wire", BUILD_BUDGET, stop)?;
        Ok(repository.target("release/wire"))
    }

    /// Starts `program` between two interfaces of this thread's network namespace, with `spec` in
    /// both directions.
    pub(crate) fn between(
        program: &Path,
        here: &str,
        there: &str,
        spec: &str,
        seed: u64,
    ) -> Result<Wire, Failure> {
        let doing = "starting the wire";
        let mut command = hold::command(program);
        command.args([here, there, "--there", spec, "--back", spec, "--seed", &seed.to_string()]);
        // The program ends when its standard input closes.
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(Failure::io(doing))?;
        let mut printed = String::new();
        if let Some(output) = child.stdout.take() {
            BufReader::new(output).read_line(&mut printed).map_err(Failure::io(doing))?;
        }
        if printed == "ready\n" {
            return Ok(Wire(child));
        }
        let mut complaint = String::new();
        if let Some(mut errors) = child.stderr.take() {
            errors.read_to_string(&mut complaint).map_err(Failure::io(doing))?;
        }
        hold::end(&mut child);
        Err(Failure::broke(format_args!("{doing}: {}", complaint.trim())))
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        hold::end(&mut self.0);
    }
}
