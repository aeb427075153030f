//! `barepost`: the one command that builds, boots, tests and measures the machine.
//!
//! Invariants:
//! - Whatever this process starts dies with it, even when it is killed with SIGKILL ([`host::hold`]).
//! - Exit status 0: done; 1: something broke or a test failed; 2: the command, the configuration or the machine that
//!   this runs on is not as needed, told in one line before anything starts.
//! - Nothing is written outside the data folder, `target/` and `bench/results/`.
#![forbid(unsafe_code)]

mod bench;
mod disk;
mod guest;
mod hosted;
mod names;
mod pkt;
mod run;
mod services;
mod site;
mod test;
mod tidy;

use clap::{Parser, Subcommand};
use host::{Failure, House, Stop, hold, remark};

/// A mail server that is the whole machine.
#[derive(Parser)]
#[command(name = "barepost", version, disable_help_subcommand = true)]
struct CommandLine {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Build the machine, boot it and serve; Ctrl-C stops it cleanly
    Run(run::Options),
    /// Run the tests that every change must pass, or the named ones
    Test(test::Options),
    /// Measure the machine
    Bench(bench::Options),
    /// Tell what a disk holds and what is wrong with it, without writing to it
    Fsck(disk::Options),
    /// Print the records that the domain name system needs, or check them
    Dns(names::Options),
    /// Play packetdrill scripts against the engine's TCP
    Pkt(pkt::Options),
}

fn main() {
    hold::become_held_program();
    let arguments = CommandLine::parse();
    if let Err(failure) = obey(arguments.command) {
        if !matches!(failure, Failure::Told) {
            remark(format_args!("barepost: {failure}"));
        }
        std::process::exit(failure.status());
    }
}

fn obey(command: Command) -> Result<(), Failure> {
    let house = House::find()?;
    let stop = Stop::watch_signals()?;
    match command {
        Command::Run(options) => run::run(&house, &options, &stop),
        Command::Test(options) => test::run(&house, &options, &stop),
        Command::Bench(options) => bench::run(&house, &options, &stop),
        Command::Dns(options) => names::run(&options, &stop),
        Command::Fsck(options) => disk::fsck(&options),
        Command::Pkt(options) => pkt::run(&options),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::CommandLine;

    #[test]
    fn the_command_line_contradicts_itself_nowhere() {
        CommandLine::command().debug_assert();
    }
}
