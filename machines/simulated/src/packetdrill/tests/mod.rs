//! Tests of the player with small scripts: how it parses scripts, which differences it finds, and
//! which it allows.

mod interleavings;
mod language;
mod liberties;
mod orders;
mod planted;
mod states;

use super::{Outcome, Verdict, play};

/// A script that accepts a connection from a peer that has sent no data yet. The socket has the
/// number 4.
const ESTABLISHED: &str = "
    0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
   +0 bind(3, ..., ...) = 0
   +0 listen(3, 1) = 0
   +0 < S 0:0(0) win 32000 <mss 1000>
   +0 > S. 0:0(0) ack 1 win 65535 <mss 1460>
 +.01 < . 1:1(0) ack 1 win 32000
   +0 accept(3, ..., ...) = 4
";

/// Plays these lines after a handshake.
fn established(lines: &str) -> Outcome {
    play(&format!("{ESTABLISHED}{lines}\n"))
}

fn passes(script: &str) {
    assert_eq!(play(script).verdict, Verdict::Passed, "{script}");
}

/// The line of the failure, and the packet or result that was seen there.
fn failure(outcome: &Outcome) -> (usize, String) {
    match &outcome.verdict {
        Verdict::Failed { line, seen, .. } => (*line, seen.clone()),
        other => panic!("not failed: {other}"),
    }
}

fn reason(outcome: &Outcome) -> String {
    match &outcome.verdict {
        Verdict::NotApplicable { reason, .. } => reason.clone(),
        other => panic!("applicable: {other}"),
    }
}

/// All permutations of some items.
fn orders<T: Copy>(of: &[T]) -> Vec<Vec<T>> {
    if of.len() < 2 {
        return vec![of.to_vec()];
    }
    (0..of.len())
        .flat_map(|first| {
            let mut rest = of.to_vec();
            let first = rest.remove(first);
            orders(&rest).into_iter().map(move |order| [vec![first], order].concat())
        })
        .collect()
}
