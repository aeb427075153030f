//! `barepost test`: runs the parts of the tests, each within its budget, and sums up their results.
//! Parts that use all processors run one after the other, the others two at a time.
//!
//! The output of a part goes to `target/test/NAME.log`. If the part fails, the end of its output is
//! also shown on the terminal. The last line is always `N passed, N failed`.

mod advisories;
mod cargo_tools;
mod checkers;
mod counts;
mod fuzz;
mod image;
mod lanes;
mod npm;
mod part;
pub(crate) mod parts;
mod prerequisites;
mod rooms;
mod types;

use std::fs::File;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use clap::Args;
use host::hold::{self, Ended};
use host::{Failure, Repository, Stop, say};

use crate::pkt;
use crate::simulator;
use crate::tidy;
use counts::Counts;
use fuzz::Fuzzing;
use part::{Part, When, Work};
use parts::PARTS;
use rooms::Rooms;

/// The number of lines that are shown of a failed part's output.
const LINES_SHOWN: usize = 80;

/// The arguments with which cargo runs the store tests that are too long for `unit`.
const AT_LENGTH: &str = "test --quiet --release --package store --lib --target-dir target \
                         -- --ignored --nocapture";

#[derive(Args)]
#[command(after_help = help_on_parts())]
pub(crate) struct Options {
    /// Parts to run; by default all parts that run on every change
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// Cores of each machine, if its test does not set a number: for parts that boot machines, and
    /// for `sim` (8 at most)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=16))]
    cores: Option<u8>,
    #[command(flatten)]
    rooms: Rooms,
    #[command(flatten)]
    fuzzing: Fuzzing,
}

/// The result of a part.
struct Outcome {
    part: &'static Part,
    counts: Counts,
    took: Duration,
    verdict: &'static str,
}

/// Errors: [`Failure::refused`] for a name or option that is not allowed, [`Failure::Told`] if a
/// part fails.
pub(crate) fn run(repository: &Repository, options: &Options, stop: &Stop) -> Result<(), Failure> {
    let parts = chosen(&options.names)?;
    let of_rooms = options.rooms.arguments(options.cores);
    if options.names == ["sim"] && !of_rooms.is_empty() {
        return rooms::run(repository, &of_rooms, stop);
    }
    if !options.rooms.arguments(None).is_empty() {
        return Err(Failure::refused("options for machine rooms are only allowed with `sim`"));
    }
    if options.fuzzing.minutes.is_some() && !parts.iter().any(|part| part.name == "fuzz") {
        return Err(Failure::refused("--minutes is only allowed with `fuzz`"));
    }
    if options.cores.is_some()
        && let Some(part) = parts.iter().find(|part| !part.boots_machines())
    {
        return Err(Failure::refused(format_args!(
            "--cores is only allowed with parts that boot machines, and `{}` does not",
            part.name
        )));
    }
    let run_one = |part: &&'static Part| {
        let outcome = run_part(repository, part, options, stop)?;
        say(format_args!(
            "{:<8} {} in {:.1} s",
            outcome.verdict,
            part.name,
            outcome.took.as_secs_f64()
        ));
        Ok(outcome)
    };
    let mut outcomes = Vec::new();
    for side_by_side in groups(&parts) {
        outcomes.extend(lanes::work_through(side_by_side, stop, run_one)?);
    }
    let total = summarize(&outcomes);
    say(format_args!("\n{} passed, {} failed", total.passed, total.failed));
    if total.failed == 0 && !stop.is_requested() { Ok(()) } else { Err(Failure::Told) }
}

fn chosen(names: &[String]) -> Result<Vec<&'static Part>, Failure> {
    if names.is_empty() {
        return Ok(PARTS.iter().filter(|part| part.when == When::Always).collect());
    }
    let named = names.iter().map(|name| {
        PARTS.iter().find(|part| part.name == name).ok_or_else(|| {
            let known = parts::names().collect::<Vec<_>>().join(", ");
            Failure::refused(format_args!("there is no test `{name}`; there are {known}"))
        })
    });
    named.collect()
}

/// Groups of parts that may run side by side, in their order.
fn groups<'p>(parts: &'p [&'static Part]) -> impl Iterator<Item = &'p [&'static Part]> {
    parts.chunk_by(|one, next| !one.takes_all_processors() && !next.takes_all_processors())
}

fn run_part(
    repository: &Repository,
    part: &'static Part,
    options: &Options,
    stop: &Stop,
) -> Result<Outcome, Failure> {
    let started = Instant::now();
    let log_path = log_path(repository, part);
    let doing = format!("writing {}", log_path.display());
    if let Some(folder) = log_path.parent() {
        std::fs::create_dir_all(folder).map_err(Failure::io(&doing))?;
    }
    let mut log = File::create(&log_path).map_err(Failure::io(&doing))?;
    let verdict = match &part.work {
        Work::Tidy => check_rules(repository, &mut log)?,
        Work::Scripts(folder) => match simulator::build(repository, Some(&log), stop) {
            Ok(()) => play_scripts(repository, folder, &log, part.budget, stop)?,
            Err(failure) => note(&mut log, &failure)?,
        },
        Work::Cargo(arguments) => {
            let mut command = hold::command("cargo");
            command.args(arguments.split(' ')).current_dir(repository.root());
            command.env("CARGO_TARGET_DIR", "target");
            run_command(&mut command, &log, part.budget, stop)?
        }
        Work::StoreAtLength(name) => {
            let mut command = hold::command("cargo");
            command.args(AT_LENGTH.split(' ')).arg(name).current_dir(repository.root());
            run_command(&mut command, &log, part.budget, stop)?
        }
        Work::Rooms(arguments) => match rooms::program(repository, Some(&log), stop) {
            Ok(mut simulator) => run_command(simulator.args(*arguments), &log, part.budget, stop)?,
            Err(failure) => note(&mut log, &failure)?,
        },
        Work::Fuzz => match fuzz::run(repository, &mut log, &options.fuzzing, stop) {
            Ok(()) => "ok",
            Err(failure) => note(&mut log, &failure)?,
        },
        Work::Image => match image::check(repository, &log, part.budget, stop) {
            Ok(()) => "ok",
            Err(failure) => note(&mut log, &failure)?,
        },
        Work::Advisories => match advisories::check(repository, &log, part.budget, stop) {
            Ok(()) => "ok",
            Err(failure) => note(&mut log, &failure)?,
        },
        Work::Types => match types::checker(repository, stop) {
            Ok(mut checker) => run_command(&mut checker, &log, part.budget, stop)?,
            Err(failure) => note(&mut log, &failure)?,
        },
        Work::Script(path, arguments) => {
            run_script(repository, path, arguments, options.cores, &mut log, part.budget, stop)?
        }
        Work::Again { parts, cores } => {
            run_again(repository, parts, *cores, &mut log, part.budget, stop)?
        }
    };
    let output = std::fs::read(&log_path)
        .map_err(Failure::io(format_args!("reading {}", log_path.display())))?;
    let output = String::from_utf8_lossy(&output);
    if verdict != "ok" {
        show_end(part, &output, &log_path);
    }
    Ok(Outcome {
        part,
        counts: Counts::of(&output, verdict == "ok"),
        took: started.elapsed(),
        verdict,
    })
}

fn log_path(repository: &Repository, part: &Part) -> PathBuf {
    repository.target("test").join(part.name).with_extension("log")
}

/// Runs a Python script. `cores`: the cores of each machine, unless its test sets a number.
fn run_script(
    repository: &Repository,
    path: &str,
    arguments: &[&str],
    cores: Option<u8>,
    log: &mut File,
    budget: Duration,
    stop: &Stop,
) -> Result<&'static str, Failure> {
    let search_path = match prerequisites::fetch(repository, path, stop) {
        Ok(search_path) => search_path,
        Err(failure) => return note(log, &failure),
    };
    let mut command = hold::command("python3");
    command.arg(repository.path(path)).args(arguments).current_dir(repository.root());
    if let Some(cores) = cores {
        command.args(["--cores", &cores.to_string()]);
    }
    // Keeps `__pycache__` out of the sources.
    command
        .env("PATH", search_path)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("PYTHONUNBUFFERED", "1");
    run_command(&mut command, log, budget, stop)
}

/// Runs the scripts of `parts` one after the other, within one budget. All scripts run even if one
/// fails.
fn run_again(
    repository: &Repository,
    parts: &[&str],
    cores: u8,
    log: &mut File,
    budget: Duration,
    stop: &Stop,
) -> Result<&'static str, Failure> {
    let (started, mut verdict) = (Instant::now(), "ok");
    for (path, arguments) in parts::scripts_of(parts) {
        let left = budget.saturating_sub(started.elapsed());
        let result = run_script(repository, path, arguments, Some(cores), log, left, stop)?;
        verdict = if verdict == "ok" { result } else { verdict };
    }
    Ok(verdict)
}

fn run_command(
    command: &mut Command,
    log: &File,
    budget: Duration,
    stop: &Stop,
) -> Result<&'static str, Failure> {
    let share = || log.try_clone().map_err(Failure::io("sharing a log"));
    command.stdout(share()?).stderr(share()?);
    Ok(match hold::run(command, budget, stop).map_err(Failure::io("starting a test"))? {
        Ended::Finished(status) if status.success() => "ok",
        Ended::Finished(_) => "FAILED",
        Ended::OutOfTime => "TOO LONG",
        Ended::Stopped => "STOPPED",
    })
}

fn check_rules(repository: &Repository, log: &mut File) -> Result<&'static str, Failure> {
    use std::io::Write;
    let mut text = String::new();
    let (passed, failed) = tidy::run(repository, |line| text.push_str(&format!("{line}\n")))?;
    text.push_str(&format!("test result: {passed} passed; {failed} failed\n"));
    log.write_all(text.as_bytes()).map_err(Failure::io("writing a log"))?;
    Ok(if failed == 0 { "ok" } else { "FAILED" })
}

/// Plays all scripts in a folder. All scripts are our own, so an inapplicable one fails.
fn play_scripts(
    repository: &Repository,
    folder: &str,
    log: &File,
    budget: Duration,
    stop: &Stop,
) -> Result<&'static str, Failure> {
    let folder = repository.path(folder);
    let scripts = pkt::scripts_in(&folder)
        .map_err(Failure::io(format_args!("reading {}", folder.display())))?;
    if scripts.is_empty() {
        return Err(Failure::broke(format_args!(
            "{}: the folder contains no scripts",
            folder.display()
        )));
    }
    let mut player = hold::command(simulator::player(repository));
    run_command(player.arg("--strict").args(scripts), log, budget, stop)
}

fn note(log: &mut File, failure: &Failure) -> Result<&'static str, Failure> {
    use std::io::Write;
    writeln!(log, "{failure}").map_err(Failure::io("writing a log"))?;
    Ok("FAILED")
}

fn show_end(part: &Part, output: &str, log_path: &std::path::Path) {
    let lines: Vec<&str> = output.lines().collect();
    let last = lines.get(lines.len().saturating_sub(LINES_SHOWN)..).unwrap_or_default().join("\n");
    // Printed in one piece, because another part may print at the same time.
    say(format_args!("--- {}: the end of {}\n{last}\n---", part.name, log_path.display()));
}

fn summarize(outcomes: &[Outcome]) -> Counts {
    let mut total = Counts::default();
    say(format_args!(
        "\n{:<12} {:<8} {:>6} {:>6} {:>9} {:>8}",
        "part", "result", "passed", "failed", "seconds", "budget"
    ));
    for Outcome { part, counts, took, verdict } in outcomes {
        total += *counts;
        let (took, budget) = (took.as_secs_f64(), part.budget.as_secs());
        let Counts { passed, failed } = counts;
        say(format_args!(
            "{:<12} {verdict:<8} {passed:>6} {failed:>6} {took:>9.1} {budget:>8}",
            part.name
        ));
    }
    total
}

fn help_on_parts() -> String {
    let mut help = String::from("Parts:\n");
    for part in PARTS {
        let when = if part.when == When::Named { " (only when named)" } else { "" };
        let minutes = part.budget.as_secs().div_ceil(60);
        help.push_str(&format!(
            "  {:<13} {}; at most {minutes} min{when}\n",
            part.name, part.claim
        ));
    }
    help
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_parts_share_a_name() {
        let mut names: Vec<_> = parts::names().collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), PARTS.len());
    }

    #[test]
    fn the_help_names_every_part_with_its_time_budget() {
        let help = help_on_parts();
        for part in PARTS {
            let line = help
                .lines()
                .find(|line| line.split_whitespace().next() == Some(part.name))
                .unwrap();
            assert!(
                line.contains(&format!("at most {} min", part.budget.as_secs() / 60)),
                "{line}"
            );
        }
    }

    #[test]
    fn a_name_that_is_not_known_is_refused() {
        let failure = chosen(&["tidy".into(), "tidi".into()]).err().unwrap();
        assert_eq!(failure.status(), 2);
        assert!(failure.to_string().contains("`tidi`; there are tidy, fmt"), "{failure}");
    }

    #[test]
    fn repeated_parts_have_scripts_that_boot_machines() {
        for part in PARTS {
            let Work::Again { parts, .. } = part.work else { continue };
            assert_eq!(parts::scripts_of(parts).count(), parts.len(), "{}", part.name);
            let again =
                chosen(&parts.iter().map(|name| name.to_string()).collect::<Vec<_>>()).unwrap();
            assert!(again.iter().all(|part| part.boots_machines()), "{}", part.name);
        }
    }

    #[test]
    fn parts_with_all_processors_run_alone_and_machines_in_parallel() {
        let parts = chosen(&[]).unwrap();
        let group_of = |name| {
            groups(&parts).find(|group| group.iter().any(|part| part.name == name)).unwrap().len()
        };
        assert_eq!(["clippy", "unit", "sim", "fuzz"].map(group_of), [1; 4]);
        assert!(group_of("boot") > 10, "{}", group_of("boot"));
        assert_eq!(groups(&parts).map(<[_]>::len).sum::<usize>(), parts.len());
    }

    #[test]
    fn unnamed_part_runs_only_if_it_always_runs() {
        assert!(chosen(&[]).unwrap().iter().all(|part| part.when == When::Always));
        assert_eq!(chosen(&["unit".into()]).unwrap().len(), 1);
    }
}
