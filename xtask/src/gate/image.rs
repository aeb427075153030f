//! `image`: builds the image, and checks that it has no forbidden contents.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use host::{Failure, Repository, Stop, hold, image, repository};

/// Engine crates that use ring, which cannot be built for the target without std. The image's build
/// shows that they do not use std: a second panic handler would break it.
const WITH_RING: &str = "accounts certificates compute configuration connections dkim filter inbound \
    outbound pop3_server resolver server shards signing submission tls web webmail";
/// The third-party crate that gets its system-dependent part from `machines/getrandom`.
const RANDOMNESS: &str = "getrandom@0.2.17";

/// Builds the image, and checks that it has no undefined symbol, no thread-local storage and no
/// system call. Also checks that the engine builds without std. `log` gets the output.
///
/// Errors: [`Failure::broke`] if a build or a check fails.
pub(super) fn check(
    repository: &Repository,
    log: &File,
    budget: Duration,
    stop: &Stop,
) -> Result<(), Failure> {
    let share = || log.try_clone().map_err(Failure::io("sharing a log"));
    let mut build = image::cargo(repository);
    build.stdout(share()?).stderr(share()?);
    hold::run_to_success(&mut build, "building the image", budget, stop)?;
    let image = image::unstripped(repository);
    refuse_undefined(&examine("nm", &["-u"], &image)?)?;
    refuse_instructions(&examine("objdump", &["-d", "--no-show-raw-insn"], &image)?)?;
    let bytes = image::strip(repository, stop)?
        .metadata()
        .map_err(Failure::io("measuring the image"))?
        .len();
    writeln!(share()?, "the image has {bytes} bytes").map_err(Failure::io("writing a log"))?;

    install_bare_target(repository, log, stop)?;
    let mut lint = hold::command("cargo");
    lint.args(["check", "--quiet", "--target", "x86_64-unknown-none", "--target-dir", "target"]);
    for package in without_std(repository)? {
        lint.args(["--package", &package]);
    }
    lint.current_dir(repository.root()).stdout(share()?).stderr(share()?);
    hold::run_to_success(&mut lint, "checking that the engine builds without std", budget, stop)
}

/// The packages that build without std, by their names in cargo.
fn without_std(repository: &Repository) -> Result<Vec<String>, Failure> {
    let folder =
        repository.path("engine").read_dir().map_err(Failure::io("reading the folder engine"))?;
    let names = folder.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    let own = names.filter(|name| !WITH_RING.split(' ').any(|with_ring| with_ring == name));
    // A third-party crate is also named `http`.
    let own = own.map(|name| if name == "http" { "http@0.1.0".into() } else { name });
    Ok(own.chain([RANDOMNESS.into()]).collect())
}

/// Installs the target without std by rustup. Without rustup, cargo reports the missing target.
fn install_bare_target(repository: &Repository, log: &File, stop: &Stop) -> Result<(), Failure> {
    if repository::program("rustup").is_none() {
        return Ok(());
    }
    let mut command = hold::command("rustup");
    // Runs in the root, where rust-toolchain.toml names the toolchain that needs the target.
    command
        .args(["target", "add", "x86_64-unknown-none"])
        .current_dir(repository.root())
        .stdout(Stdio::null());
    command.stderr(log.try_clone().map_err(Failure::io("sharing a log"))?);
    hold::run_to_success(
        &mut command,
        "getting the target x86_64-unknown-none",
        Duration::from_secs(300),
        stop,
    )
}

fn examine(program: &str, arguments: &[&str], image: &Path) -> Result<String, Failure> {
    let doing = format!("examining the image with {program}");
    let output =
        hold::command(program).args(arguments).arg(image).output().map_err(Failure::io(&doing))?;
    if !output.status.success() {
        return Err(Failure::broke(format_args!(
            "{doing}: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        )));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// `names`: the output of `nm -u`.
fn refuse_undefined(names: &str) -> Result<(), Failure> {
    match names.lines().next() {
        None => Ok(()),
        Some(name) => Err(Failure::broke(format_args!(
            "the image needs the external symbol `{}`",
            name.trim()
        ))),
    }
}

/// `listing`: the output of `objdump -d`.
fn refuse_instructions(listing: &str) -> Result<(), Failure> {
    let is_foreign = |line: &str| {
        let instruction =
            line.split_once(":\t").map(|(_, instruction)| instruction).unwrap_or_default();
        instruction.contains("%fs:")
            || matches!(instruction.split_whitespace().next(), Some("syscall" | "sysenter"))
    };
    match listing.lines().find(|line| is_foreign(line)) {
        None => Ok(()),
        Some(line) => Err(Failure::broke(format_args!(
            "the image contains a system instruction: {}",
            line.trim()
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_with_an_undefined_symbol_is_refused() {
        assert!(refuse_undefined("").is_ok());
        assert!(
            refuse_undefined("                 U malloc\n")
                .unwrap_err()
                .to_string()
                .contains("`U malloc`")
        );
    }

    #[test]
    fn an_image_with_a_system_instruction_is_refused() {
        assert!(
            refuse_instructions("  100000:\tmov    %rax,%rbx\n0000 <syscall_names>:\n").is_ok()
        );
        assert!(refuse_instructions("  100000:\tmov    %fs:0x28,%rax\n").is_err());
        assert!(refuse_instructions("  100000:\tsyscall\n").is_err());
    }
}
