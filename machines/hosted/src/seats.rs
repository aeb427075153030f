//! The state that the cores of one machine share: how to wake each core, and whether the machine
//! continues.
//!
//! Invariants:
//! - Each core has a seat, the first core's is the first one, and their number never changes.
//! - A change of what the cores check between two turns is followed by ringing all bells, so that
//!   no core misses it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use machine::CoreId;
use rings::Sleep;
use rustix::io;

use crate::bell::Bell;

/// Clones share the same seats.
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
    /// Seats for this many cores, at least one.
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

    /// The seat of `core`; the first one if there is no such core.
    pub(crate) fn of(&self, core: CoreId) -> &CoreSeat {
        let other = core.index().checked_sub(1).and_then(|index| self.0.others.get(index));
        other.unwrap_or(&self.0.first)
    }

    /// Asks the machine to end its sessions, write what it holds, and stop.
    pub(crate) fn request_stop(&self) {
        self.0.is_stop_requested.store(true, Relaxed);
        self.ring_all();
    }

    pub(crate) fn is_stop_requested(&self) -> bool {
        self.0.is_stop_requested.load(Relaxed)
    }

    /// The machine has ended: no core begins another turn.
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

    /// The bell that ends its sleep.
    pub(crate) fn bell(&self) -> &Bell {
        &self.bell
    }

    /// Another core has put something into one of this core's rings.
    pub(crate) fn wake(&self) {
        if self.sleep.wake() {
            self.bell.ring();
        }
    }
}
