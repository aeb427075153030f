//! `./barepost bench` measures Barepost. The script `barepost` starts this program for it.
//!
//! Invariants: those of `barepost` itself (`cli/src/lib.rs`). In addition, it writes nothing
//! outside `target/`, `bench/results/` and `docs/figures/`.
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

/// Benches of Barepost.
#[derive(Parser)]
#[command(name = "barepost", bin_name = "barepost", version, disable_help_subcommand = true)]
struct CommandLine {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run benchmarks
    Bench(bench::Options),
}

fn main() {
    host::main(CommandLine::parse, |arguments, repository, stop| match arguments.command {
        Command::Bench(options) => bench::run(repository, &options, stop),
    });
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};

    use super::CommandLine;

    #[test]
    fn usage_names_the_script() {
        let Err(help) = CommandLine::try_parse_from(["target/release/program", "bench", "--help"])
        else {
            panic!()
        };
        assert!(help.to_string().contains("\nUsage: barepost bench "), "{help}");
    }

    #[test]
    fn the_command_line_is_consistent() {
        CommandLine::command().debug_assert();
    }

    #[test]
    fn the_help_of_bench_is_the_same_everywhere() {
        for command in CommandLine::command().get_subcommands() {
            let about = command.get_about().unwrap().to_string();
            assert!(
                host::FOR_DEVELOPERS.contains(&(command.get_name(), about.as_str())),
                "{about}"
            );
        }
    }
}
