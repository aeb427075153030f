//! Machine rooms: the simulator, built with optimization, and the choice of rooms to run.

use std::process::{Command, Stdio};
use std::time::Duration;

use clap::Args;
use host::hold::{self, Ended};
use host::{Failure, Repository, Stop};

use crate::simulator;

/// The options for the rooms of `sim`.
#[derive(Args)]
pub(super) struct Rooms {
    /// `sim`: run this many rooms
    #[arg(long, value_name = "N", help_heading = "Machine rooms")]
    seeds: Option<u64>,
    /// `sim`: the first room's seed
    #[arg(long, value_name = "S", help_heading = "Machine rooms")]
    from: Option<u64>,
    /// `sim`: run only the room with this seed
    #[arg(long, value_name = "S", conflicts_with_all = ["seeds", "from"], help_heading = "Machine rooms")]
    seed: Option<u64>,
    /// `sim`: faults to leave out of that room, by name
    #[arg(long, value_name = "FAULT,…", requires = "seed", help_heading = "Machine rooms")]
    off: Option<String>,
    /// `sim`: actions to leave out of that room's plan, by number, such as 0-4,7
    #[arg(long, value_name = "N,…", requires = "seed", help_heading = "Machine rooms")]
    without: Option<String>,
    /// `sim`: when that room's faults end, in microseconds
    #[arg(long, value_name = "MICROS", requires = "seed", help_heading = "Machine rooms")]
    until: Option<u64>,
    /// `sim`: print all that happens in that room
    #[arg(long, requires = "seed", help_heading = "Machine rooms")]
    trace: bool,
}

impl Rooms {
    /// The simulator's arguments. `cores`: the cores of each machine, in place of the number that
    /// the seed gives.
    pub(super) fn arguments(&self, cores: Option<u8>) -> Vec<String> {
        let number = |name: &str, value: Option<u64>| {
            value.map(|value| [name.to_string(), value.to_string()])
        };
        let text = |name: &str, value: &Option<String>| {
            value.clone().map(|value| [name.to_string(), value])
        };
        let named = [
            number("--seeds", self.seeds),
            number("--from", self.from),
            number("--seed", self.seed),
            text("--off", &self.off),
            text("--without", &self.without),
            number("--until", self.until),
            number("--cores", cores.map(u64::from)),
        ];
        let trace = self.trace.then(|| "--trace".to_string());
        named.into_iter().flatten().flatten().chain(trace).collect()
    }
}

/// Builds the simulator. Cargo's output goes to `log`, or to the terminal.
pub(super) fn program(
    repository: &Repository,
    log: Option<&std::fs::File>,
    stop: &Stop,
) -> Result<Command, Failure> {
    simulator::build(repository, log, stop)?;
    Ok(hold::command(simulator::rooms(repository)))
}

/// Runs the requested rooms, and prints their results.
///
/// Errors: [`Failure::Told`] when a room breaks a promise; the simulator has printed it.
pub(super) fn run(
    repository: &Repository,
    arguments: &[String],
    stop: &Stop,
) -> Result<(), Failure> {
    let mut simulator = program(repository, None, stop)?;
    simulator.args(arguments).stdout(Stdio::inherit());
    match hold::run(&mut simulator, Duration::from_secs(7 * 24 * 3600), stop)
        .map_err(Failure::io("simulating"))?
    {
        Ended::Finished(status) if status.success() => Ok(()),
        Ended::Finished(_) | Ended::OutOfTime | Ended::Stopped => Err(Failure::Told),
    }
}
