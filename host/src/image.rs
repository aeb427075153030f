//! Builds the machine's image from `machines/bare`, and strips it for booting.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::failure::Failure;
use crate::hold;
use crate::repository::Repository;
use crate::stop::Stop;
use crate::terminal::remark;

const BUILD_BUDGET: Duration = Duration::from_secs(1200);
/// Where cargo leaves the image, below `target`.
const BUILT: &str = "image/x86_64-unknown-linux-gnu/image/barepost-image";

/// Builds the image and returns the file to boot.
///
/// Errors: [`Failure::broke`] if the build fails.
pub fn build(repository: &Repository, stop: &Stop) -> Result<PathBuf, Failure> {
    if !unstripped(repository).exists() {
        remark("barepost: building the image, once; this takes a minute or more");
    }
    let mut command = cargo(repository);
    hold::run_to_success(&mut command, "building the image", BUILD_BUDGET, stop)?;
    strip(repository, stop)
}

/// The cargo command that builds the image with the flags of `.cargo/config.toml`. Flags in the
/// environment would replace those.
pub fn cargo(repository: &Repository) -> Command {
    let mut command = hold::command("cargo");
    command.args(["image", "--quiet"]).current_dir(repository.root());
    command
        .env_remove("RUSTFLAGS")
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .env_remove("CARGO_BUILD_RUSTFLAGS");
    command
}

/// The image as the linker wrote it, with the symbols and line numbers that examining it needs.
pub fn unstripped(repository: &Repository) -> PathBuf {
    repository.target(BUILT)
}

/// Strips the image. Debugging information is several times as large as the image, and of no use to
/// the machine.
///
/// The file is put in place by renaming, because another `barepost` may be reading the old one.
///
/// Errors: [`Failure::broke`] if the image cannot be stripped.
pub fn strip(repository: &Repository, stop: &Stop) -> Result<PathBuf, Failure> {
    let doing = "stripping the image";
    let stripped = repository.target("image").join("barepost-image");
    if is_newer(&stripped, &unstripped(repository)) {
        return Ok(stripped);
    }
    let fresh = stripped.with_extension(std::process::id().to_string());
    let mut command = hold::command("strip");
    command.arg("-o").arg(&fresh).arg(unstripped(repository));
    hold::run_to_success(&mut command, doing, Duration::from_secs(60), stop)?;
    std::fs::rename(&fresh, &stripped).map_err(Failure::io(doing))?;
    Ok(stripped)
}

fn is_newer(file: &Path, than: &Path) -> bool {
    let changed = |path: &Path| path.metadata().and_then(|metadata| metadata.modified()).ok();
    changed(file).zip(changed(than)).is_some_and(|(file, than)| file > than)
}
