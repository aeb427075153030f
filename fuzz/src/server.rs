//! The whole server: the engine in the simulated machine, with clients that speak SMTP, POP3 and
//! HTTP over IPv4 and IPv6 at the same time. The wire loses and changes frames, and the disk
//! carries out requests in any order.
//!
//! The input is a list of actions. After them all faults end: the clients finish, and a correct
//! client is served.
//!
//! Oracles: no panic. Every frame that the engine sends is well-formed (`network::check`). The
//! engine neither spins nor ends. Acknowledged messages are in the mailbox. In the end no resource
//! is in use.

mod action;
mod room;
mod service;

use arbitrary::{Arbitrary, Unstructured};

use action::Action;
use room::Room;

/// The most actions of one input.
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
    room.come_to_rest();
    service::check(&mut room);
}
