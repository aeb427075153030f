//! The program `simulated`: runs one or many machine rooms, for `./barepost test sim`.
//!
//! Each share of the seeds runs in its own process, so rooms in different processes do not affect
//! each other.
#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, reason = "this program's output is for people")]

mod trial;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, ExitCode, Stdio};

use machine::Instant;
use simulated::room::{Fault, RoomCounts, Scenario, Trace};
use sometimes::{Mishap, Place};
use trial::{TrialOutcome, shrink, try_out};

/// One room in this many runs twice, and both runs must have the same result.
const TWICE_EVERY: u64 = 20;

/// A run of at least this many rooms must reach each source line that is marked with `sometimes!`,
/// and each mishap of `buggify!`.
const ROOMS_FOR_PLACES: u64 = 200;

/// The command-line options.
#[derive(Default)]
struct Options {
    from: u64,
    seeds: u64,
    /// A single seed, and the parts of its scenario that are left out.
    seed: Option<u64>,
    off: Vec<Fault>,
    without: Vec<usize>,
    until: Option<u64>,
    /// The cores of each machine, instead of the number that the seed selects.
    cores: Option<u8>,
    trace: bool,
    /// The share of this process: every `.1`th seed, beginning with the `.0`th.
    share: Option<(u64, u64)>,
}

fn main() -> ExitCode {
    let options = match Options::parse(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(what) => {
            println!("simulated: {what}");
            return ExitCode::from(2);
        }
    };
    if options.share.is_some() {
        die_with_parent();
    }
    let is_good = match (options.seed, options.share) {
        (Some(seed), _) => replay(&options.scenario(seed), options.trace),
        (None, Some((first, step))) => work(&options, first, step),
        (None, None) => share_out(&options),
    };
    if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Ends this process when its parent ends: standard input is a pipe from the parent.
fn die_with_parent() {
    std::thread::spawn(|| {
        let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
        std::process::exit(1);
    });
}

/// Runs one room twice, and prints the result.
fn replay(scenario: &Scenario, trace: bool) -> bool {
    let outcome = try_out(scenario, if trace { Trace::On } else { Trace::Off });
    match &outcome {
        TrialOutcome::Failed(failure) => println!("seed {} failed: {failure}", scenario.seed),
        TrialOutcome::Good(report) => {
            println!("seed {}: digest {:016x}", scenario.seed, report.digest);
            print_counts(1, &report.counts);
        }
    }
    let is_same = outcome == try_out(scenario, Trace::Off);
    if !is_same {
        println!("the second run of seed {} differs", scenario.seed);
    }
    let is_good = matches!(outcome, TrialOutcome::Good(_)) && is_same;
    print_verdict(u64::from(is_good), u64::from(!is_good));
    is_good
}

/// Runs the share of this process. Prints a line for each failure, and the totals of the rooms that
/// passed.
fn work(options: &Options, first: u64, step: u64) -> bool {
    let (mut counts, mut rooms) = (RoomCounts::default(), 0);
    let mut is_good = true;
    for seed in (options.from + first..options.from + options.seeds).step_by(step as usize) {
        let scenario = options.scenario(seed);
        let outcome = try_out(&scenario, Trace::Off);
        let is_other =
            seed.is_multiple_of(TWICE_EVERY) && outcome != try_out(&scenario, Trace::Off);
        match outcome {
            _ if is_other => println!("failed {seed} the second run differs"),
            TrialOutcome::Good(report) => {
                counts.add(&report.counts);
                rooms += 1;
                continue;
            }
            TrialOutcome::Failed(failure) => println!("failed {seed} {failure}"),
        }
        is_good = false;
    }
    println!("lived {rooms} {}", counts.to_words());
    for place in Place::ALL {
        println!("reached {} {place:?}", sometimes::count(*place));
    }
    for mishap in Mishap::ALL {
        println!("reached {} {mishap:?}", sometimes::happened(*mishap));
    }
    is_good
}

/// Starts a process for each core with a share of the rooms, and adds up the results.
fn share_out(options: &Options) -> bool {
    let cores = std::thread::available_parallelism()
        .map_or(1, |cores| cores.get() as u64)
        .min(options.seeds.max(1));
    let mut workers: Vec<Child> =
        (0..cores).filter_map(|first| worker(options, first, cores)).collect();
    let (mut counts, mut rooms) = (RoomCounts::default(), 0);
    let mut failures: Vec<u64> = Vec::new();
    let mut reached: BTreeMap<String, u64> = BTreeMap::new();
    for worker in &mut workers {
        let Some(output) = worker.stdout.take() else { continue };
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            let mut words = line.split(' ');
            let (kind, number) =
                (words.next(), words.next().and_then(|number| number.parse().ok()).unwrap_or(0));
            let rest: Vec<&str> = words.collect();
            match kind {
                Some("lived") => {
                    rooms += number;
                    counts.add(&RoomCounts::from_words(&rest));
                }
                Some("reached") => *reached.entry(rest.join(" ")).or_default() += number,
                Some("failed") => {
                    println!("seed {number} failed: {}", rest.join(" "));
                    failures.push(number);
                }
                _ => println!("{line}"),
            }
        }
        let _ = worker.wait();
    }
    if let Some(seed) = failures.first() {
        explain(&options.scenario(*seed));
    }
    print_counts(rooms, &counts);
    let lost = options.seeds.saturating_sub(rooms);
    let missed = if options.seeds >= ROOMS_FOR_PLACES { missed_places(&reached) } else { 0 };
    print_verdict(rooms, lost + missed);
    lost + missed == 0
}

/// Prints how often each marked source line was reached. Returns the number of lines that were
/// never reached.
fn missed_places(reached: &BTreeMap<String, u64>) -> u64 {
    for (place, count) in reached {
        println!("{place}: {count} times");
    }
    let missed = reached.iter().filter(|(_, count)| **count == 0);
    missed.inspect(|(place, _)| println!("no room ever reached {place}")).count() as u64
}

fn worker(options: &Options, first: u64, step: u64) -> Option<Child> {
    let mut command = Command::new(std::env::current_exe().ok()?);
    command.args(["--from", &options.from.to_string(), "--seeds", &options.seeds.to_string()]);
    // Rooms allocate and free many machines. These settings make malloc keep freed memory instead
    // of returning it to the system, which is faster.
    command
        .envs([("MALLOC_MMAP_THRESHOLD_", "1073741824"), ("MALLOC_TRIM_THRESHOLD_", "1073741824")]);
    if let Some(cores) = options.cores {
        command.args(["--cores", &cores.to_string()]);
    }
    command
        .args(["--share", &format!("{first}/{step}")])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    command.spawn().ok()
}

/// Prints the shortest scenario that fails like this seed, and the command that replays it.
fn explain(whole: &Scenario) {
    let Some((scenario, failure)) = shrink(whole) else {
        return println!("seed {} does not fail again", whole.seed);
    };
    println!("\nthe shortest scenario found: {failure}");
    println!("to see it: ./barepost test sim {} --trace", trial::words(&scenario));
}

fn print_counts(rooms: u64, counts: &RoomCounts) {
    println!(
        "{rooms} rooms, {} of them with several cores a machine, {} power cuts, {} messages acknowledged, {} read and right, {} deleted, {} pages, {} clients over TLS, {} frames, {} turns, {} s of virtual time",
        counts.several_cores,
        counts.cuts,
        counts.acknowledged,
        counts.read,
        counts.deleted,
        counts.pages,
        counts.over_tls,
        counts.frames,
        counts.turns,
        counts.micros / 1_000_000
    );
}

/// Prints the line from which `./barepost test` reads the number of passed and failed tests.
fn print_verdict(passed: u64, failed: u64) {
    println!("test result: {passed} passed; {failed} failed");
}

impl Options {
    fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Options, String> {
        let mut options = Options { from: 1, seeds: 100, ..Options::default() };
        while let Some(name) = arguments.next() {
            if name == "--trace" {
                options.trace = true;
                continue;
            }
            let value = arguments.next().ok_or_else(|| format!("{name} needs a value"))?;
            let number = || {
                value.parse::<u64>().map_err(|_| format!("{name} needs a number, not `{value}`"))
            };
            match name.as_str() {
                "--from" => options.from = number()?,
                "--seeds" => options.seeds = number()?,
                "--seed" => options.seed = Some(number()?),
                "--until" => options.until = Some(number()?),
                "--cores" => options.cores = Some(cores(&value)?),
                "--off" => {
                    let fault = |name: &str| {
                        Fault::named(name).ok_or_else(|| format!("there is no fault `{name}`"))
                    };
                    options.off = value.split(',').map(fault).collect::<Result<_, _>>()?;
                }
                "--without" => {
                    for range in value.split(',') {
                        let (first, last) = range.split_once('-').unwrap_or((range, range));
                        let number = |text: &str| {
                            text.parse::<usize>().map_err(|_| format!("`{text}` is no number"))
                        };
                        options.without.extend(number(first)?..=number(last)?);
                    }
                }
                "--share" => {
                    let (first, step) = value.split_once('/').unwrap_or((&value, "1"));
                    let number = |text: &str| {
                        text.parse::<u64>().map_err(|_| format!("`{text}` is no number"))
                    };
                    options.share = Some((number(first)?, number(step)?.max(1)));
                }
                _ => return Err(format!("there is no `{name}`")),
            }
        }
        Ok(options)
    }

    fn scenario(&self, seed: u64) -> Scenario {
        let mut scenario = Scenario::of_seed(seed);
        for fault in &self.off {
            scenario.faults = scenario.faults.without(*fault);
        }
        scenario.left_out.clone_from(&self.without);
        scenario.until = self.until.map_or(scenario.until, Instant);
        scenario.cores = self.cores.unwrap_or(scenario.cores);
        scenario
    }
}

/// Parses a number of cores from 1 to 8. The engine runs on up to 16 cores, but eight cores show
/// the same problems.
fn cores(text: &str) -> Result<u8, String> {
    text.parse()
        .ok()
        .filter(|cores| (1..=8).contains(cores))
        .ok_or(format!("machines have 1 to 8 cores, not `{text}`"))
}
