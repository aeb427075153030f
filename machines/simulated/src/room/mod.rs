//! The machine room: machines, client hosts, a switch, and one scheduler that a seed drives.
//!
//! A room runs its scenario: clients connect, talk and disconnect, while the scenario's faults
//! occur. After every power cut a copy of the disk is opened and checked against a model of the
//! responses that clients got. Then the faults end, and the room must become idle: every client is
//! done, no machine holds resources for a client, and every machine sleeps.
//!
//! Invariants:
//! - Two runs of the same scenario have the same frames, sectors and random draws
//!   ([`Report::digest`]).
//! - A broken invariant is a panic that names the invariant.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a broken invariant ends the room"
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
    Contents, Mailbox, contents_on, messages_on, noted_arrivals, summaries_on, with_all_arrivals,
    with_message,
};
pub use chronicle::{RoomCounts, Trace};
pub use fault::{FAULTS, Fault, Faults};
pub use scenario::Scenario;
use world::Room;

/// The result of a room that ended without a panic.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Report {
    /// The digest of all events. Two runs of a scenario have the same digest.
    pub digest: u64,
    /// The counters of the room.
    pub counts: RoomCounts,
}

/// Only one room of a process runs at a time, because the state of mishaps is global (`sometimes`).
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Runs `scenario`. Panics when an invariant is broken.
pub fn run_scenario(scenario: &Scenario, trace: Trace) -> Report {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    match scenario.faults.contain(Fault::Mishaps) {
        true => sometimes::begin(scenario.dice("mishaps").roll()),
        false => sometimes::end(),
    }
    let mut room = Room::new(scenario, trace);
    while room.story.now < scenario.until {
        room.step(scenario.until);
    }
    room.finish();
    room.story.counts.micros = room.story.now.0;
    room.story.counts.several_cores = u64::from(scenario.cores > 1);
    room.stations.iter().for_each(|station| room.story.fold(station.machine.history()));
    Report { digest: room.story.digest(), counts: room.story.counts }
}
