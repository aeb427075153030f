//! The commands of developers: `./barepost test` and `./barepost pkt`. The script `barepost` starts
//! this program for them.
//!
//! Invariants:
//! - The processes that this process starts die with it, even when it is killed with SIGKILL
//!   ([`host::hold`]).
//! - Exit status 0: success; 1: a failure while it worked, or a failed test; 2: the command or the
//!   host is unsuitable, reported in one line before the work starts.
//! - It writes only to `target/`.
//! - It does not contain the engine, so it is built in seconds. It builds the programs it runs.
#![forbid(unsafe_code)]

mod gate;
mod pkt;
mod simulator;
mod tidy;

use clap::{Parser, Subcommand};

/// Tests of Barepost.
#[derive(Parser)]
#[command(name = "barepost", bin_name = "barepost", version, disable_help_subcommand = true)]
struct CommandLine {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run the tests that every change must pass, or the named ones
    Test(gate::Options),
    /// Play packetdrill scripts against the engine's TCP
    Pkt(pkt::Options),
}

fn main() {
    host::main(CommandLine::parse, |arguments, repository, stop| match arguments.command {
        Command::Test(options) => gate::run(repository, &options, stop),
        Command::Pkt(options) => pkt::run(repository, &options, stop),
    });
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};

    use super::CommandLine;

    #[test]
    fn usage_names_the_script() {
        let Err(help) = CommandLine::try_parse_from(["target/release/program", "test", "--help"])
        else {
            panic!()
        };
        assert!(help.to_string().contains("\nUsage: barepost test "), "{help}");
    }

    #[test]
    fn the_command_line_is_consistent() {
        CommandLine::command().debug_assert();
    }

    #[test]
    fn developer_commands_have_the_same_help_everywhere() {
        for command in CommandLine::command().get_subcommands() {
            let about = command.get_about().unwrap().to_string();
            assert!(
                host::FOR_DEVELOPERS.contains(&(command.get_name(), about.as_str())),
                "{about}"
            );
        }
    }
}
