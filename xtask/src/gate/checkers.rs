//! Checkers of TLS and HTTP/2 servers for `tests/conform.py`: h2spec from Go modules and sslyze
//! from Python packages, in the versions that `tests/conform` pins.

use std::fs;
use std::process::Command;
use std::time::Duration;

use host::{Failure, Repository, Stop, hold, packages, remark};

/// The script that needs the checkers.
pub(super) const SCRIPT: &str = "tests/conform.py";

const H2SPEC: &str = "github.com/summerwind/h2spec/cmd/h2spec";
const PINNED: &str = "tests/conform/requirements.txt";
const BUDGET: Duration = Duration::from_secs(600);

/// Installs the checkers that are missing.
///
/// Errors: [`Failure::refused`] with the name of what is missing.
pub(super) fn fetch(repository: &Repository, stop: &Stop) -> Result<(), Failure> {
    build_h2spec(repository, stop)?;
    install_sslyze(repository, stop)
}

/// Builds `target/tools/bin/h2spec`. Go itself skips the steps that are up to date.
fn build_h2spec(repository: &Repository, stop: &Stop) -> Result<(), Failure> {
    let go = packages::program("go", "golang-go", stop)?;
    let mut build = hold::command(go);
    build.args(["build", "-o"]).arg(repository.target("tools/bin/h2spec")).arg(H2SPEC);
    build.current_dir(repository.path("tests/conform")).env("GOTOOLCHAIN", "local");
    hold::run_to_success(&mut build, "building h2spec", BUDGET, stop).map_err(refused("h2spec"))
}

/// Makes `target/tools/conform`, a separate Python environment with sslyze and its dependencies.
fn install_sslyze(repository: &Repository, stop: &Stop) -> Result<(), Failure> {
    let doing = "installing sslyze";
    let own = repository.target("tools/conform");
    let pinned = fs::read(repository.path(PINNED)).map_err(Failure::io(doing))?;
    let installed = own.join("requirements.txt");
    if fs::read(&installed).is_ok_and(|installed| installed == pinned) {
        return Ok(());
    }
    let has_venv = Command::new("python3").args(["-c", "import ensurepip, venv"]).output();
    if !has_venv.is_ok_and(|output| output.status.success()) {
        packages::install(&["python3-venv"], "Python's module venv", stop)?;
    }
    remark(format_args!("barepost: {doing}, with which TLS is checked"));
    let mut make = hold::command("python3");
    make.args(["-m", "venv", "--clear"]).arg(&own);
    hold::run_to_success(&mut make, doing, BUDGET, stop).map_err(refused("sslyze"))?;
    let mut install = hold::command(own.join("bin/pip"));
    install.args([
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--only-binary",
        ":all:",
        "--no-binary",
        "sslyze",
        "--no-deps",
        "-r",
    ]);
    install.arg(repository.path(PINNED));
    hold::run_to_success(&mut install, doing, BUDGET, stop).map_err(refused("sslyze"))?;
    fs::write(&installed, pinned).map_err(Failure::io(doing))
}

fn refused(what: &str) -> impl Fn(Failure) -> Failure {
    move |failure| {
        Failure::refused(format_args!(
            "the checks of TLS and HTTP/2 need {what}, which is missing: {failure}"
        ))
    }
}
