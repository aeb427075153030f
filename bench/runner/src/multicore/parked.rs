//! A first core that serves nothing but the card, because it has connections enough.
//!
//! Steering gives a new connection to the core with the fewest. So the bench opens idle sessions
//! until the first core has more of them than any other will ever have requests at once. It closes
//! those that came to other cores. From then on nothing new comes to the first core, except what
//! falls into the buckets of its idle sessions: one of 4,096 for each.
//!
//! The core that executes the greeting tells where a session came to. For the first core's sessions
//! no other core executes as much.

use std::time::Duration;

use host::Failure;

use super::CORES;
use crate::at_tap::{Serving, service};
use crate::client::Client;

/// Sessions that stay on the first core; more than a third of the requests that there are at once.
const PARKED: usize = 64;
/// A fourth of them come to the first of four cores.
const OPENED_MAX: usize = 16 * PARKED;
/// More instructions than a core executes for a segment that it does not answer, and fewer than for
/// a connection and its greeting.
const GREETING: u64 = 8_000;
/// After this nothing of an opened session is under way any more.
const SETTLE: Duration = Duration::from_millis(2);

/// To be held as long as the first core is to serve nothing.
pub(super) fn park(serving: &Serving) -> Result<Vec<Client>, Failure> {
    let (mut parked, mut others) = (Vec::new(), Vec::new());
    let mut before = of_others(serving)?;
    while parked.len() < PARKED {
        if others.len() > OPENED_MAX {
            return Err(Failure::broke("hardly any session comes to the first core"));
        }
        let session = Client::connect(service(25), "220")?;
        std::thread::sleep(SETTLE);
        let after = of_others(serving)?;
        if after - before < GREETING {
            parked.push(session)
        } else {
            others.push(session)
        }
        before = after;
    }
    Ok(parked)
}

/// Instructions of all cores but the first.
fn of_others(serving: &Serving) -> Result<u64, Failure> {
    (1..CORES).map(|core| serving.total_of(core)).sum()
}
