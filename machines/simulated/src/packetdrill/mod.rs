//! A player for packetdrill scripts. The player acts as the peer of a connection and as the local
//! program, against the engine's network in virtual time. It reports whether our packets and the
//! results of calls are as the script expects.
//!
//! The player understands the dialects of google/packetdrill and of FreeBSD's tcp-testsuite.
//! docs/packetdrill.md describes how calls map onto the engine's interface, which liberties the
//! engine has, and which scripts are not applicable.
//!
//! ```text
//!   text ─ lexer ─ parser, packets, options ─ script
//!   script ─ config (header lines), settings (shell commands), applicable (what the engine lacks)
//!   play ─┬─ inbound ─ wire ─> host (the network on a simulated card)
//!         ├─ outbound ─ compare <─ wire ─ host
//!         └─ waiting ─ calls, transfers, socket_options, polling ─ player ─ sockets ─ host
//! ```
//!
//! Invariants:
//! - The player never executes a part of a script as a program. It interprets shell commands and
//!   code, or reports the script as not applicable.
//! - Time passes only when the script waits, so a verdict does not depend on the machine that runs
//!   the player.
//! - Every byte that is read or sent is compared with the pattern of the stream
//!   ([`sockets::pattern`]), and every checksum is verified.

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

/// Plays the script `text`.
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
