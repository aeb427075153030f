//! The machine's image: built from `machines/bare`, stripped for booting, and checked for what it must not hold.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::failure::Failure;
use crate::hold;
use crate::house::{self, House};
use crate::stop::Stop;
use crate::terminal::remark;

const BUILD_BUDGET: Duration = Duration::from_secs(1200);
const TRIPLE: &str = "x86_64-unknown-linux-gnu";
const PROFILE: &str = "image";

/// What builds where there is no std at all. What is missing of the engine needs ring, which that target cannot build; that it has no std either the image itself shows, which has a
/// panic handler of its own: there cannot be two.
const WITHOUT_STD: &[&str] = &[
    "budget",
    "dmarc",
    "dns",
    "getrandom@0.2.17",
    "http@0.1.0",
    "http2",
    "machine",
    "mail",
    "message",
    "net",
    "pop3",
    "relay",
    "rings",
    "sasl",
    "smtp",
    "spf",
    "sometimes",
    "store",
    "tasks",
    "webmail",
];

/// Builds the image and returns the file to boot.
pub fn build(house: &House, stop: &Stop) -> Result<PathBuf, Failure> {
    if !unstripped(house).exists() {
        remark("barepost: building the image, once; this takes a minute or more");
    }
    let mut command = cargo(house, "build");
    hold::run_to_success(&mut command, "building the image", BUILD_BUDGET, stop)?;
    strip(house, stop)
}

/// Builds the image and checks that it needs nothing from outside: no symbol that somebody else would have to define,
/// no thread-local storage, no system call; and that what [`WITHOUT_STD`] names builds where there is no std. `log` gets the
/// output.
pub fn check(house: &House, log: &File, budget: Duration, stop: &Stop) -> Result<(), Failure> {
    let share = || log.try_clone().map_err(Failure::io("sharing a log"));
    let mut build = cargo(house, "build");
    build.stdout(share()?).stderr(share()?);
    hold::run_to_success(&mut build, "building the image", budget, stop)?;
    let image = unstripped(house);
    refuse_undefined(&examine("nm", &["-u"], &image)?)?;
    refuse_instructions(&examine("objdump", &["-d", "--no-show-raw-insn"], &image)?)?;
    let bytes = strip(house, stop)?.metadata().map_err(Failure::io("measuring the image"))?.len();
    writeln!(share()?, "the image has {bytes} bytes").map_err(Failure::io("writing a log"))?;

    install_bare_target(house, log, stop)?;
    let mut lint = hold::command("cargo");
    lint.args(["check", "--quiet", "--target", "x86_64-unknown-none", "--target-dir", "target/no-std"]);
    lint.args(WITHOUT_STD.iter().flat_map(|package| ["--package", package]));
    lint.current_dir(house.root()).stdout(share()?).stderr(share()?);
    hold::run_to_success(&mut lint, "checking that the engine builds without std", budget, stop)
}

/// The lint's target, which has no std, comes from rustup; without rustup, cargo says what is missing.
fn install_bare_target(house: &House, log: &File, stop: &Stop) -> Result<(), Failure> {
    if house::program("rustup").is_none() {
        return Ok(());
    }
    let mut command = hold::command("rustup");
    // In the root, where rust-toolchain.toml names the toolchain that gets it.
    command.args(["target", "add", "x86_64-unknown-none"]).current_dir(house.root()).stdout(Stdio::null());
    command.stderr(log.try_clone().map_err(Failure::io("sharing a log"))?);
    hold::run_to_success(&mut command, "getting the target x86_64-unknown-none", Duration::from_secs(300), stop)
}

fn examine(program: &str, arguments: &[&str], image: &Path) -> Result<String, Failure> {
    let doing = format!("examining the image with {program}");
    let output = hold::command(program).args(arguments).arg(image).output().map_err(Failure::io(&doing))?;
    if !output.status.success() {
        return Err(Failure::broke(format_args!("{doing}: {}", String::from_utf8_lossy(&output.stderr).trim())));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// `names`: what `nm -u` prints.
fn refuse_undefined(names: &str) -> Result<(), Failure> {
    match names.lines().next() {
        None => Ok(()),
        Some(name) => Err(Failure::broke(format_args!("the image needs `{}` from outside", name.trim()))),
    }
}

/// `listing`: what `objdump -d` prints.
fn refuse_instructions(listing: &str) -> Result<(), Failure> {
    let is_foreign = |line: &str| {
        let instruction = line.split_once(":\t").map(|(_, instruction)| instruction).unwrap_or_default();
        instruction.contains("%fs:") || matches!(instruction.split_whitespace().next(), Some("syscall" | "sysenter"))
    };
    match listing.lines().find(|line| is_foreign(line)) {
        None => Ok(()),
        Some(line) => Err(Failure::broke(format_args!("the image has an instruction for a system: {}", line.trim()))),
    }
}

/// Cargo at work on the image. Flags in the environment would replace those of the image.
fn cargo(house: &House, verb: &str) -> Command {
    let mut command = hold::command("cargo");
    command.arg(verb).args(arguments()).arg("--quiet").current_dir(house.root());
    command.env_remove("RUSTFLAGS").env_remove("CARGO_ENCODED_RUSTFLAGS").env_remove("CARGO_BUILD_RUSTFLAGS");
    command
}

/// What cargo needs to know; the flags themselves are explained in machines/bare/README.md.
fn arguments() -> [&'static str; 12] {
    [
        "--config",
        "machines/bare/image.toml",
        "-p",
        "bare",
        "--bin",
        "barepost-image",
        "--profile",
        PROFILE,
        "--target",
        TRIPLE,
        "--target-dir",
        "target/image",
    ]
}

/// The image as the linker left it, with names and lines for whoever examines it.
pub fn unstripped(house: &House) -> PathBuf {
    house.target("image").join(TRIPLE).join(PROFILE).join("barepost-image")
}

/// Debugging information is several times the image and of no use to the machine.
///
/// Put in place by renaming, because another `barepost` may be reading the file that is there.
fn strip(house: &House, stop: &Stop) -> Result<PathBuf, Failure> {
    let doing = "stripping the image";
    let stripped = house.target("image").join("barepost-image");
    if is_newer(&stripped, &unstripped(house)) {
        return Ok(stripped);
    }
    let fresh = stripped.with_extension(std::process::id().to_string());
    let mut command = hold::command("strip");
    command.arg("-o").arg(&fresh).arg(unstripped(house));
    hold::run_to_success(&mut command, doing, Duration::from_secs(60), stop)?;
    std::fs::rename(&fresh, &stripped).map_err(Failure::io(doing))?;
    Ok(stripped)
}

fn is_newer(file: &Path, than: &Path) -> bool {
    let changed = |path: &Path| path.metadata().and_then(|metadata| metadata.modified()).ok();
    changed(file).zip(changed(than)).is_some_and(|(file, than)| file > than)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_of_the_engine_that_needs_no_ring_is_known_to_build_without_std() {
        let engine = Path::new(env!("CARGO_MANIFEST_DIR")).join("../engine");
        let names = std::fs::read_dir(engine).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        for name in names.filter(|name| !["dkim", "server", "tls"].contains(&name.as_str())) {
            let is_known = WITHOUT_STD.iter().any(|known| known.split('@').next() == Some(name.as_str()));
            assert!(is_known, "{name} is not checked");
        }
    }

    #[test]
    fn a_symbol_from_outside_is_refused() {
        assert!(refuse_undefined("").is_ok());
        assert!(refuse_undefined("                 U malloc\n").unwrap_err().to_string().contains("`U malloc`"));
    }

    #[test]
    fn an_instruction_for_a_system_is_refused() {
        assert!(refuse_instructions("  100000:\tmov    %rax,%rbx\n0000 <syscall_names>:\n").is_ok());
        assert!(refuse_instructions("  100000:\tmov    %fs:0x28,%rax\n").is_err());
        assert!(refuse_instructions("  100000:\tsyscall\n").is_err());
    }
}
