//! A player for packetdrill scripts: it plays the other end of a connection, and the program above our own, as a script says,
//! against the engine's network in virtual time, and tells whether our packets and the calls' results are the expected ones.
//!
//! It understands the dialects of google/packetdrill and of FreeBSD's tcp-testsuite. docs/packetdrill.md says how calls are
//! mapped onto what the engine offers a service, what is left to us, and what makes a script not applicable.
//!
//! ```text
//!   text ─ lexer ─ parser, packets, options ─ script
//!   script ─ config (header lines), settings (shell commands), applicable (what cannot be had)
//!   play ─┬─ inbound ─ wire ─> host (the network on a simulated card)
//!         ├─ outbound ─ compare <─ wire ─ host
//!         └─ waiting ─ calls, transfers, socket_options, polling ─ player ─ sockets ─ host
//! ```
//!
//! Invariants:
//! - Nothing of a script is ever executed as a program: shell commands and code are interpreted, or make it not applicable.
//! - Time passes only when the script waits, so a verdict does not depend on the machine that this runs on.
//! - Every byte that is read or sent is checked against its place in the stream, and every checksum is verified.

mod applicable;
mod attempt;
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
mod play;
mod player;
mod polling;
mod script;
mod settings;
mod socket_options;
mod sockets;
#[cfg(test)]
mod tests;
mod transfers;
mod verdict;
mod waiting;
mod wire;

pub use verdict::{Outcome, Verdict};

/// Plays a script.
pub fn play(text: &str) -> Outcome {
    match parser::parse(text) {
        Ok(script) => play::play(&script),
        Err(error) => {
            let verdict = match names::is_undefined(&error.seen) {
                true => {
                    let reason = format!(
                        "{} is not defined in the script, but on packetdrill's command line",
                        error.seen
                    );
                    Verdict::NotApplicable { line: error.line, reason }
                }
                false => Verdict::failed(error.line, error.expected, format!("`{}`", error.seen)),
            };
            Outcome { verdict, liberties: Vec::new() }
        }
    }
}
