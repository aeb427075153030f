//! The whole server: the engine in the simulated machine, with clients that speak SMTP, POP3 and HTTP over IPv4 and IPv6 at the
//! same time, a wire that does not always carry, and a disk that carries out what it was asked for in any order.
//!
//! The bytes say what happens, one thing after the other. Then all faults are over: clients end, and who behaves is served.
//!
//! Oracles: no panic; every frame that the engine sends is well-formed (`network::check`); the engine neither spins nor ends;
//! what was acknowledged is in the mailbox, and no letter more than were sent; in the end nobody holds anything.

mod action;
mod room;
mod service;

use arbitrary::{Arbitrary, Unstructured};

use action::Action;
use room::Room;

/// Things that happen in one input.
const ACTIONS_MAX: usize = 120;

/// Runs one input.
pub fn run(data: &[u8]) {
    let mut input = Unstructured::new(data);
    let Ok(seed) = u8::arbitrary(&mut input) else { return };
    let mut room = Room::new(u64::from(seed));
    for _ in 0..ACTIONS_MAX {
        if input.is_empty() {
            break;
        }
        let Ok(action) = Action::arbitrary(&mut input) else { break };
        room.act(&action);
    }
    room.comes_to_rest();
    service::check(&mut room);
}
