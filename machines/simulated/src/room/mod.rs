//! The machine room: machines, client hosts, a switch, and one scheduler that a seed drives.
//!
//! A room runs its scenario: clients connect, talk and disconnect, while the faults of the scenario
//! happen. After every power cut a copy of the disk is opened and checked against a model of what
//! clients were told. Then the faults end, and the room must come to rest: every client is done, no
//! machine holds any of their resources, and every machine sleeps.
//!
//! Invariants:
//! - The same scenario always runs the same way: every frame, sector and random draw
//!   ([`Report::digest`]).
//! - A broken promise is a panic that names it.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a broken promise ends the room"
)]

mod actions;
mod approach;
mod audit;
mod browser;
mod chronicle;
mod client;
mod context;
mod decay;
mod departure;
mod fault;
mod fixture;
mod forgery;
mod hoarder;
mod host;
mod http2_client;
mod inspection;
mod layout;
mod line;
mod listing;
mod lists;
mod make;
mod message;
mod model;
mod naming;
mod narrow;
mod page;
mod peer;
mod posted;
mod reader;
mod remote;
mod rest;
mod scenario;
mod sender;
mod site;
mod station;
mod tls_client;
mod uncertain;
mod webmail_client;
mod wire;
mod world;

use std::sync::{Mutex, PoisonError};

pub use audit::{
    Contents, Mailbox, contents_on, messages_on, summaries_on, with_all_arrivals, with_message,
};
pub use chronicle::{RoomCounts, Trace};
pub use fault::{FAULTS, Fault, Faults};
pub use scenario::Scenario;
use world::Room;

/// The result of a room that ended without a panic.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Report {
    /// The digest of all events.
    pub digest: u64,
    /// The counters.
    pub counts: RoomCounts,
}

/// Only one room in a process runs at a time, because the mishaps are global.
static LIFE: Mutex<()> = Mutex::new(());

/// Runs `scenario`. Panics when a promise is broken.
pub fn live(scenario: &Scenario, trace: Trace) -> Report {
    let _alone = LIFE.lock().unwrap_or_else(PoisonError::into_inner);
    match scenario.faults.contain(Fault::Mishaps) {
        true => sometimes::begin(scenario.dice("mishaps").roll()),
        false => sometimes::end(),
    }
    let mut room = Room::new(scenario, trace);
    while room.story.now < scenario.until {
        room.step(scenario.until);
    }
    room.come_to_rest();
    room.story.counts.micros = room.story.now.0;
    room.story.counts.several_cores = u64::from(scenario.cores > 1);
    room.stations.iter().for_each(|station| room.story.fold(station.machine.history()));
    Report { digest: room.story.digest(), counts: room.story.counts }
}
