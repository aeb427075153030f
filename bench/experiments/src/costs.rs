//! The cost model: how long one run of a thread takes.
//!
//! The clock is that of the paper's processor: 1 GHz, one instruction a clock. The chain in this
//! crate runs on the engine's own queues and gates. A call of seven threads takes 1,421
//! instructions natively (`examples/chain.rs` under `valgrind --tool=callgrind`), 203 for each
//! thread.

use std::ops::{Add, AddAssign};

use crate::chain::Stage;

/// Clocks of a processor of 1 GHz: one instruction each.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Clocks(pub u64);

/// Clocks in a microsecond at 1 GHz.
pub const CLOCKS_PER_MICRO: u64 = 1_000;

impl Clocks {
    /// The clocks of this many microseconds.
    pub const fn from_micros(micros: u64) -> Clocks {
        Clocks(micros.saturating_mul(CLOCKS_PER_MICRO))
    }
}

impl Add for Clocks {
    type Output = Clocks;
    fn add(self, other: Clocks) -> Clocks {
        Clocks(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Clocks {
    fn add_assign(&mut self, other: Clocks) {
        *self = *self + other;
    }
}

/// The costs of a thread of the chain and of a device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Costs {
    /// One run of a thread, from its being taken out of the queue of ready threads to its end.
    pub thread: Clocks,
    /// The round trip of a device.
    pub round_trip: Clocks,
}

impl Costs {
    /// A thread as counted natively, and devices of `round_trip`.
    pub const fn counted(round_trip: Clocks) -> Costs {
        Costs { thread: Clocks(200), round_trip }
    }

    /// One run of the thread `stage`.
    pub fn of(&self, stage: Stage) -> Clocks {
        match stage {
            Stage::VirtualHardware => self.round_trip,
            _ => self.thread,
        }
    }
}
