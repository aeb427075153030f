//! Finds programs of Debian packages. Installs a missing one if that is allowed, or else asks the
//! user to install it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::failure::Failure;
use crate::hold;
use crate::repository;
use crate::stop::Stop;
use crate::terminal::remark;

/// Longer than any mirror takes.
const INSTALL_BUDGET: Duration = Duration::from_secs(600);

/// The path of `program`, which is in the Debian package `package`. Installs the package if it is
/// missing and we may.
pub fn program(program: &str, package: &str, stop: &Stop) -> Result<PathBuf, Failure> {
    if let Some(found) = repository::program(program) {
        return Ok(found);
    }
    install(&[package], program, stop)?;
    repository::program(program).ok_or_else(|| {
        Failure::refused(format_args!(
            "{program} is missing although package {package} is installed"
        ))
    })
}

/// Installs Debian packages. Errors: [`Failure::refused`] if we are not root or this is not Debian.
pub fn install(packages: &[&str], needed_for: &str, stop: &Stop) -> Result<(), Failure> {
    let line = format!("apt-get install {}", packages.join(" "));
    let may_install = nix::unistd::geteuid().is_root()
        && Path::new("/etc/debian_version").exists()
        && repository::program("apt-get").is_some();
    if !may_install {
        return Err(Failure::refused(format_args!(
            "{needed_for} is missing; install it first (Debian: {line})"
        )));
    }
    remark(format_args!("barepost: {line}"));
    let mut update = hold::command("apt-get");
    update.args(["-qq", "update"]);
    // The lists may be fresh even if no mirror answers now; only the installation must succeed.
    let _ = hold::run(&mut update, INSTALL_BUDGET, stop);
    let mut install = hold::command("apt-get");
    install.args(["-qq", "-y", "--no-install-recommends", "install"]).args(packages);
    install.env("DEBIAN_FRONTEND", "noninteractive").stdout(std::process::Stdio::null());
    hold::run_to_success(&mut install, &line, INSTALL_BUDGET, stop)
        .map_err(|failure| Failure::refused(format_args!("{needed_for} is missing; {failure}")))
}
