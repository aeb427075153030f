//! Makes the first core handle only the card, by giving it many idle connections.
//!
//! A new connection goes to the core with the fewest connections. So the bench opens idle sessions
//! until the first core has more idle sessions than any other core ever has simultaneous requests.
//! It closes the sessions of the other cores. From then on no new connection goes to the first
//! core, with one exception. The machine divides connections into 4,096 buckets by a hash, and each
//! bucket belongs to one core. A new connection in the bucket of an idle session goes to the first
//! core.
//!
//! The core that executes the greeting owns the session. If the first core owns it, the other cores
//! execute fewer instructions than a greeting takes.

use std::time::Duration;

use host::Failure;

use super::CORES;
use crate::at_tap::{Serving, service};
use crate::client::Client;

/// Sessions that stay on the first core: more than a third of the highest number of simultaneous
/// requests, which the three other cores share.
const PARKED: usize = 64;
/// The bench gives up when the other cores have more sessions than this. About a fourth of all
/// opened sessions should go to the first of four cores.
const OPENED_MAX: usize = 16 * PARKED;
/// A threshold: more instructions than a core executes to forward a segment, and fewer than it
/// executes for a connection and its greeting.
const GREETING: u64 = 8_000;
/// The time after which all work of an opened session is finished.
const SETTLE: Duration = Duration::from_millis(2);

/// Opens the sessions and returns those of the first core. The first core serves no pages as long
/// as the caller keeps them.
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
