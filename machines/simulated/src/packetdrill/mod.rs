//! A player for packetdrill scripts: it plays the other end of a connection, and the program above our own, as a script says,
//! against the engine's network in virtual time, and tells whether our packets and the calls' results are the expected ones.
//!
//! It understands the dialects of google/packetdrill and of FreeBSD's tcp-testsuite. docs/packetdrill.md says how calls are
//! mapped onto what the engine offers a service, what is left to us, and what makes a script not applicable.
//!
//! ```text
//!   text ─ lexer ─ parser, packets, options ─ script
//!   script ─ config (header lines), settings (shell commands), applicable (what cannot be had)
//!   player ─┬─ inbound ─ wire ─> host (the network on a simulated card)
//!           ├─ outbound ─ compare <─ wire ─ host
//!           └─ calls, transfers, socket_options, polling ─ sockets ─ host
//! ```
//!
//! Invariants:
//! - Nothing of a script is ever executed as a program: shell commands and code are interpreted, or make it not applicable.
//! - Time passes only when the script waits, so a verdict does not depend on the machine that this runs on.
//! - Every byte that is read or sent is checked against its place in the stream, and every checksum is verified.

mod applicable;
mod calls;
mod code;
mod compare;
mod config;
mod flow;
mod host;
mod inbound;
mod lexer;
mod names;
mod options;
mod outbound;
mod packets;
mod parser;
mod player;
mod polling;
mod script;
mod settings;
mod socket_options;
mod sockets;
#[cfg(test)]
mod tests;
mod transfers;
mod wire;

use std::fmt;

/// What came of a script.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// All went as the script says.
    Passed,
    /// Something went otherwise.
    Failed {
        /// The line of the script, counted from 1.
        line: usize,
        /// What the script says there.
        expected: String,
        /// What happened.
        seen: String,
    },
    /// The script asks for what the engine does not have, or does not leave open.
    NotApplicable {
        /// The line of the script, counted from 1.
        line: usize,
        /// What it asks for.
        reason: String,
    },
}

impl Verdict {
    fn failed(line: usize, expected: impl fmt::Display, seen: impl fmt::Display) -> Verdict {
        Verdict::Failed { line, expected: expected.to_string(), seen: seen.to_string() }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Verdict::Passed => out.write_str("passed"),
            Verdict::Failed { line, expected, seen } => {
                write!(out, "failed: line {line}: expected {expected}; seen {seen}")
            }
            Verdict::NotApplicable { line, reason } => write!(out, "not applicable: line {line}: {reason}"),
        }
    }
}

/// A script's verdict, and what was left to us on the way to it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Outcome {
    /// The verdict.
    pub verdict: Verdict,
    /// Where the script says otherwise and an RFC leaves it to the host: lines, and what of it.
    pub liberties: Vec<(usize, String)>,
}

/// Why a script goes no further.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Stop(Verdict);

impl Stop {
    fn failed(line: usize, expected: impl fmt::Display, seen: impl fmt::Display) -> Stop {
        Stop(Verdict::failed(line, expected, seen))
    }

    fn not_applicable(line: usize, reason: impl fmt::Display) -> Stop {
        Stop(Verdict::NotApplicable { line, reason: reason.to_string() })
    }
}

/// Plays a script.
pub fn play(text: &str) -> Outcome {
    match parser::parse(text) {
        Ok(script) => player::play(&script),
        Err(error) => {
            let verdict = match is_undefined(&error.seen) {
                true => {
                    let reason =
                        format!("{} is not defined in the script, but on packetdrill's command line", error.seen);
                    Verdict::NotApplicable { line: error.line, reason }
                }
                false => Verdict::failed(error.line, error.expected, format!("`{}`", error.seen)),
            };
            Outcome { verdict, liberties: Vec::new() }
        }
    }
}

/// Whether a word where the language has none is the name of a define.
fn is_undefined(word: &str) -> bool {
    word.len() > 2
        && word.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
        && word.starts_with(|c: char| c.is_ascii_uppercase())
}
