//! `fuzz`: runs every fuzz target for a few seconds, or for a given time.
//!
//! `cargo fuzz` builds the targets with a nightly compiler. Both have pinned versions and are
//! installed if missing. Two targets run at a time, each on its corpus and on inputs that once
//! failed. Inputs that reach new code are written to `target/fuzz-corpus`, and inputs that break a
//! promise to `target/test/fuzz`.

mod outcome;
mod toolchain;

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use host::hold::{self, Ended};
use host::{Failure, Repository, Stop, say};

use crate::gate::lanes;
use outcome::Outcome;
use toolchain::NIGHTLY;

/// The time in seconds for which each target runs by default.
const SECONDS_EACH: u64 = 6;
/// A fixed seed for the short runs: with the same code and the same corpus, two runs try the same
/// inputs, up to the time limit.
const SEED: u32 = 1;
/// With this value libFuzzer chooses a random seed.
const ANY_SEED: u32 = 0;
/// Extra time for a target: it first reads its corpus, and its last input may be slow.
const GRACE: Duration = Duration::from_secs(120);
const BUILD_BUDGET: Duration = Duration::from_secs(900);
const TARGET_FOLDER: &str = "target/fuzz";

/// The option that sets how long `fuzz` runs.
#[derive(Args)]
pub(super) struct Fuzzing {
    /// `fuzz`: run all targets, in this many minutes altogether
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100_000), help_heading = "Fuzzing")]
    pub(super) minutes: Option<u64>,
}

/// Builds and runs all targets. Prints one line for each target to the terminal and to `log`.
///
/// Errors: [`Failure::refused`] if a tool is not available, [`Failure::broke`] if the build fails,
/// [`Failure::Told`] if a target fails.
pub(super) fn run(
    repository: &Repository,
    log: &mut File,
    fuzzing: &Fuzzing,
    stop: &Stop,
) -> Result<(), Failure> {
    let tools = toolchain::fetch(repository, stop)?;
    build(repository, log, &tools, stop)?;
    let names = targets(repository)?;
    let (seconds, seed) = match fuzzing.minutes {
        None => (SECONDS_EACH, SEED),
        Some(minutes) => (minutes * 60 * lanes::LANES as u64 / names.len().max(1) as u64, ANY_SEED),
    };
    let outcomes = lanes::work_through(&names, stop, |name| {
        let outcome = run_target(repository, name, (seconds, seed), stop)?;
        let line = outcome.as_ref().map(|outcome| outcome.text(name));
        line.iter().for_each(say);
        Ok(outcome.zip(line))
    })?;
    let mut failed = 0_usize;
    for (outcome, line) in outcomes.into_iter().flatten() {
        failed = failed.saturating_add(usize::from(!outcome.holds()));
        writeln!(log, "{line}").map_err(Failure::io("writing a log"))?;
    }
    let passed = names.len().saturating_sub(failed);
    writeln!(log, "test result: {passed} passed; {failed} failed")
        .map_err(Failure::io("writing a log"))?;
    if failed == 0 && !stop.is_requested() { Ok(()) } else { Err(Failure::Told) }
}

/// The targets that the manifest names.
fn targets(repository: &Repository) -> Result<Vec<String>, Failure> {
    let path = repository.path("fuzz/Cargo.toml");
    let text = std::fs::read_to_string(&path)
        .map_err(Failure::io(format_args!("reading {}", path.display())))?;
    let manifest: toml::Table = text
        .parse()
        .map_err(|error| Failure::broke(format_args!("{}: {error}", path.display())))?;
    let bins = manifest.get("bin").and_then(toml::Value::as_array).into_iter().flatten();
    Ok(bins.filter_map(|bin| bin.get("name")?.as_str().map(str::to_string)).collect())
}

fn build(
    repository: &Repository,
    log: &File,
    tools: &std::ffi::OsStr,
    stop: &Stop,
) -> Result<(), Failure> {
    let share = || log.try_clone().map_err(Failure::io("sharing a log"));
    let mut format = hold::command("cargo");
    format
        .args(["fmt", "--check", "--manifest-path", "fuzz/Cargo.toml"])
        .current_dir(repository.root());
    format.stdout(share()?).stderr(share()?);
    hold::run_to_success(
        &mut format,
        "checking the format of the fuzz targets",
        BUILD_BUDGET,
        stop,
    )?;
    let mut build = hold::command("cargo");
    build.arg(format!("+{NIGHTLY}")).args([
        "fuzz",
        "build",
        "--sanitizer",
        "none",
        "--target-dir",
        TARGET_FOLDER,
    ]);
    build.current_dir(repository.root()).env("PATH", tools).stdout(share()?).stderr(share()?);
    hold::run_to_success(&mut build, "building the fuzz targets", BUILD_BUDGET, stop)
}

/// Runs one target; `None` if the user asked us to stop.
fn run_target(
    repository: &Repository,
    name: &str,
    (seconds, seed): (u64, u32),
    stop: &Stop,
) -> Result<Option<Outcome>, Failure> {
    let doing = format!("fuzzing {name}");
    let [found, broken] = [
        PathBuf::from("target/fuzz-corpus").join(name),
        PathBuf::from("target/test/fuzz").join(name),
    ];
    for folder in [&found, &broken] {
        std::fs::create_dir_all(repository.path(folder)).map_err(Failure::io(&doing))?;
    }
    let log_path = repository.path(broken.with_extension("log"));
    let log = File::create(&log_path).map_err(Failure::io(&doing))?;
    let program = program(name);
    let mut command = hold::command(repository.path(&program));
    command.current_dir(repository.root());
    command.args(arguments(repository, name, (seconds, seed), &broken)).arg(&found);
    command.args(kept_inputs(repository, name));
    command.stdout(log.try_clone().map_err(Failure::io(&doing))?).stderr(log);
    let budget = Duration::from_secs(seconds).saturating_add(GRACE);
    let has_ended = match hold::run(&mut command, budget, stop).map_err(Failure::io(&doing))? {
        Ended::Finished(status) => Some(status.success()),
        Ended::OutOfTime => Some(false),
        Ended::Stopped => None,
    };
    let output = std::fs::read(&log_path).map_err(Failure::io(&doing))?;
    Ok(has_ended.map(|holds| Outcome::read(&String::from_utf8_lossy(&output), holds, &program)))
}

/// The path of a target that `cargo fuzz` has built, relative to the root.
fn program(name: &str) -> PathBuf {
    let triple = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    Path::new(TARGET_FOLDER).join(triple).join("release").join(name)
}

fn arguments(
    repository: &Repository,
    name: &str,
    (seconds, seed): (u64, u32),
    broken: &Path,
) -> Vec<String> {
    let mut arguments = vec![
        format!("-max_total_time={seconds}"),
        format!("-seed={seed}"),
        format!("-artifact_prefix={}/", broken.display()),
        "-max_len=4096".to_string(),
        "-timeout=25".to_string(),
        "-rss_limit_mb=2048".to_string(),
        "-print_final_stats=1".to_string(),
    ];
    let dictionary = format!("fuzz/dictionaries/{name}.txt");
    if repository.path(&dictionary).is_file() {
        arguments.push(format!("-dict={dictionary}"));
    }
    arguments
}

/// The folders of the corpus and of inputs that once failed, if they exist.
fn kept_inputs(repository: &Repository, name: &str) -> Vec<PathBuf> {
    let folders = ["fuzz/corpus", "fuzz/regressions"].map(|folder| Path::new(folder).join(name));
    folders.into_iter().filter(|folder| repository.path(folder).is_dir()).collect()
}
