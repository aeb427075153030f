//! `barepost`: builds the machine, boots it and watches it until its end. Tests, benches and
//! scripts for TCP are other programs, which the script `barepost` starts.
//!
//! It is a library because benches start machines as `run` does. The program in `main.rs` only
//! calls its [`main`].
//!
//! Invariants:
//! - The processes that this process starts die with it, even when it is killed with SIGKILL
//!   ([`host::hold`]).
//! - Exit status 0: success; 1: a failure while it worked; 2: the command, the configuration or the
//!   host is unsuitable, reported in one line before the machine starts.
//! - It writes only to the data folder and `target/`.
#![forbid(unsafe_code)]

mod disk;
pub mod guest;
mod names;
pub mod run;
pub mod services;
mod site;

use clap::{Parser, Subcommand};
use host::FOR_DEVELOPERS;

use crate::run::Hosting;

/// A mail server that is the whole machine.
#[derive(Parser)]
#[command(name = "barepost", version, disable_help_subcommand = true, after_help = help_for_developers())]
struct CommandLine {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Build the machine, boot it and serve; Ctrl-C stops it cleanly
    Run(run::Options),
    /// Check a disk and list its contents, without writing to it
    Fsck(disk::Options),
    /// Print the DNS records that the server needs, or check them
    Dns(names::Options),
}

fn help_for_developers() -> String {
    let lines = FOR_DEVELOPERS.iter().map(|(name, about)| format!("  {name:<5}  {about}\n"));
    std::iter::once("For developers (compiled when first used):\n".to_string())
        .chain(lines)
        .collect()
}

/// Runs the command line of this process. Does not return when the command fails.
pub fn main<H: Hosting>() {
    host::main(CommandLine::parse, |arguments, repository, stop| match arguments.command {
        Command::Run(options) => run::run::<H>(repository, &options, stop),
        Command::Dns(options) => names::run(&options, stop),
        Command::Fsck(options) => disk::fsck(&options),
    });
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::{CommandLine, FOR_DEVELOPERS};

    #[test]
    fn the_command_line_is_consistent() {
        CommandLine::command().debug_assert();
    }

    #[test]
    fn help_names_each_command_that_the_script_passes_on() {
        let script = include_str!("../../barepost");
        let (_, cases) = script.split_once("case ${1:-} in\n").unwrap();
        let (cases, _) = cases.split_once("\n*)").unwrap();
        let mut handed: Vec<&str> =
            cases.lines().flat_map(|line| line.split(')').next().unwrap().split(" | ")).collect();
        let mut told: Vec<&str> = FOR_DEVELOPERS.iter().map(|(name, _)| *name).collect();
        handed.sort_unstable();
        told.sort_unstable();
        assert_eq!(handed, told);
        let help = CommandLine::command().render_help().to_string();
        for name in ["run", "fsck", "dns"].iter().chain(&told) {
            assert!(
                help.lines().any(|line| line.split_whitespace().next() == Some(name)),
                "{name}: {help}"
            );
        }
    }
}
