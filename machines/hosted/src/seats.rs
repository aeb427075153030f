//! The state that the cores of one machine share: how to wake each core, and whether the machine
//! continues.
//!
//! Invariants:
//! - Each core has a seat, and the number of seats never changes.
//! - After a change of a value that the cores check between turns, all bells are rung. So no core
//!   misses the change.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use machine::CoreId;
use rings::Sleep;
use rustix::io;

use crate::bell::Bell;

/// The seats of all cores of a machine. Clones share the same seats.
#[derive(Clone, Debug)]
pub(crate) struct Seats(Arc<SharedSeats>);

#[derive(Debug)]
struct SharedSeats {
    first: CoreSeat,
    others: Vec<CoreSeat>,
    is_stop_requested: AtomicBool,
    is_over: AtomicBool,
}

/// The seat of one core.
#[derive(Debug)]
pub(crate) struct CoreSeat {
    sleep: Sleep,
    bell: Bell,
}

impl Seats {
    /// Makes the seats of a machine with `cores` cores, at least one.
    ///
    /// Errors: those of Linux, if the process may have no more open files.
    pub(crate) fn new(cores: u8) -> io::Result<Seats> {
        let seat = || Ok(CoreSeat { sleep: Sleep::new(), bell: Bell::new()? });
        Ok(Seats(Arc::new(SharedSeats {
            first: seat()?,
            others: (1..cores).map(|_| seat()).collect::<io::Result<_>>()?,
            is_stop_requested: AtomicBool::new(false),
            is_over: AtomicBool::new(false),
        })))
    }

    /// The seat of `core`. If the machine has no such core, the seat of the first core.
    pub(crate) fn of(&self, core: CoreId) -> &CoreSeat {
        let other = core.index().checked_sub(1).and_then(|index| self.0.others.get(index));
        other.unwrap_or(&self.0.first)
    }

    /// Asks the machine to end its sessions, write its unwritten data, and stop.
    pub(crate) fn request_stop(&self) {
        self.0.is_stop_requested.store(true, Relaxed);
        self.ring_all();
    }

    pub(crate) fn is_stop_requested(&self) -> bool {
        self.0.is_stop_requested.load(Relaxed)
    }

    /// Ends the machine: no core begins another turn.
    pub(crate) fn end(&self) {
        self.0.is_over.store(true, Relaxed);
        self.ring_all();
    }

    pub(crate) fn is_over(&self) -> bool {
        self.0.is_over.load(Relaxed)
    }

    fn ring_all(&self) {
        self.0.first.bell.ring();
        self.0.others.iter().for_each(|seat| seat.bell.ring());
    }
}

impl CoreSeat {
    /// The state of the core's sleep.
    pub(crate) fn sleep(&self) -> &Sleep {
        &self.sleep
    }

    /// The bell that ends the core's sleep.
    pub(crate) fn bell(&self) -> &Bell {
        &self.bell
    }

    /// Wakes the core: another core has put a message into one of its rings.
    pub(crate) fn wake(&self) {
        if self.sleep.wake() {
            self.bell.ring();
        }
    }
}
