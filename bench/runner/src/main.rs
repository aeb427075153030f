//! What measures Barepost: `./barepost bench`, which the script `barepost` hands over to this program.
//!
//! Invariants: those of `barepost` itself (`cli/src/main.rs`); and nothing is written outside `target/`, `bench/results/` and
//! `docs/figures/`.
#![forbid(unsafe_code)]

mod at_tap;
mod bench;
mod beside;
mod boot;
mod client;
mod counters;
mod email;
mod fabric;
mod filling;
mod goodput;
mod instructions;
mod multicore;
mod network;
mod papers;
mod plot;
mod processors;
mod profile;
mod relay;
mod report;
mod statistics;
mod tls;
mod web;
mod webmail;
mod workplace;

use clap::{Parser, Subcommand};
use host::{Failure, House, Stop, hold, remark};

/// Benches of Barepost.
#[derive(Parser)]
#[command(name = "barepost", version, disable_help_subcommand = true)]
struct CommandLine {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Measure the machine
    Bench(bench::Options),
}

fn main() {
    hold::become_held_program();
    let CommandLine { command: Command::Bench(options) } = CommandLine::parse();
    if let Err(failure) = measure(&options) {
        if !matches!(failure, Failure::Told) {
            remark(format_args!("barepost: {failure}"));
        }
        std::process::exit(failure.status());
    }
}

fn measure(options: &bench::Options) -> Result<(), Failure> {
    let house = House::find()?;
    let stop = Stop::watch_signals()?;
    bench::run(&house, options, &stop)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::CommandLine;

    #[test]
    fn the_command_line_contradicts_itself_nowhere() {
        CommandLine::command().debug_assert();
    }

    #[test]
    fn the_help_of_all_commands_says_the_same_of_benches() {
        for command in CommandLine::command().get_subcommands() {
            let about = command.get_about().unwrap().to_string();
            assert!(host::FOR_DEVELOPERS.contains(&(command.get_name(), about.as_str())), "{about}");
        }
    }
}
