//! The health of a core's store: the console reports a disk that fails, fills up or returns wrong
//! data, and each recovery. A failed disk is tried again. docs/running.md lists the lines.
//!
//! | file | what |
//! |---|---|
//! | `capacity` | how full the disk and the index are |
//! | `faults` | messages that a reader could not get |
//!
//! Invariants:
//! - Each event is reported once, and its end once.
//! - Only the first core, which has the disk, reports events that concern the whole machine. Each
//!   core reports faults of its own accounts.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod capacity;
mod faults;

use machine::{ConsoleLines, CoreId, Instant, Micros};
use store::{State, Store};

use crate::capacity::CapacityWatch;
use crate::faults::FaultLog;

/// The interval of retries after the disk has failed.
const DISK_AGAIN: Micros = Micros::from_secs(60);
/// The time after which a failed read is repeated while the machine starts.
const READ_AGAIN: Micros = Micros::from_secs(1);

/// The health of a core's store.
pub struct StorageHealth {
    core: CoreId,
    /// The time of the next try of a failed disk, or of unreadable sectors while it is opened.
    /// `None` if neither waits for a try.
    again_at: Option<Instant>,
    /// Whether the console has reported an unreadable sector.
    is_unreadable_told: bool,
    capacity: CapacityWatch,
    faults: FaultLog,
}

/// The part of the machine's life in which the health is examined.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HealthPhase {
    /// The store is being opened.
    Opening,
    /// The machine starts or stops. A failed disk is reported, but not tried again.
    NotServing,
    /// Clients are served.
    Serving,
}

impl StorageHealth {
    /// The health of the store of `core`.
    pub fn new(core: CoreId) -> StorageHealth {
        StorageHealth {
            core,
            again_at: None,
            is_unreadable_told: false,
            capacity: CapacityWatch::default(),
            faults: FaultLog::default(),
        }
    }

    /// Reports what has changed, and tries a failed disk again when it is time. Must be called in
    /// every turn.
    pub fn examine(
        &mut self,
        phase: HealthPhase,
        now: Instant,
        store: &mut Store,
        console: &mut ConsoleLines,
    ) {
        self.faults.report(now, store, console);
        if self.core != CoreId::FIRST {
            return;
        }
        match phase {
            HealthPhase::Opening => self.read_again(now, store, console),
            HealthPhase::NotServing => self.examine_state(phase, now, store, console),
            HealthPhase::Serving => {
                self.examine_state(phase, now, store, console);
                if let Some(capacity) = store.capacity() {
                    self.capacity.examine(capacity, &mut |line| console.print(line));
                }
            }
        }
    }

    /// Ends the retries, because the machine stops.
    pub fn stop(&mut self) {
        self.again_at = None;
    }

    /// The time at which [`StorageHealth::examine`] must be called even without an event.
    pub fn next_deadline(&self) -> Instant {
        Instant::or_never(self.again_at).min(self.faults.next_deadline())
    }

    /// Announces once that the disk has failed, retries every minute, and announces once that it
    /// works again.
    fn examine_state(
        &mut self,
        phase: HealthPhase,
        now: Instant,
        store: &mut Store,
        console: &mut ConsoleLines,
    ) {
        match (store.state(), self.again_at) {
            (State::ReadOnly(why), None) => {
                console.print(format_args!("store: {why}"));
                self.again_at = Some(now + DISK_AGAIN);
            }
            (State::ReadOnly(_), Some(at)) if now >= at => {
                self.again_at = Some(now + DISK_AGAIN);
                if phase == HealthPhase::Serving {
                    store.retry();
                }
            }
            (State::Serving, Some(_)) => {
                console.print(format_args!("store: the disk works again; mail is accepted"));
                self.again_at = None;
            }
            _ => {}
        }
    }

    /// Repeats failed reads every second while the disk is opened. The console reports this once.
    fn read_again(&mut self, now: Instant, store: &mut Store, console: &mut ConsoleLines) {
        let Some(sector) = store.unreadable() else { return self.again_at = None };
        if !core::mem::replace(&mut self.is_unreadable_told, true) {
            console.print(format_args!(
                "store: the disk cannot read sector {}; trying again every second",
                sector.0
            ));
        }
        match self.again_at {
            Some(at) if now < at => return,
            Some(_) => store.read_again(),
            None => {}
        }
        self.again_at = Some(now + READ_AGAIN);
    }
}
