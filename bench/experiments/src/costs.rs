//! The cost model: the duration of one thread run.
//!
//! The clock is the one of the paper's processor: 1 GHz, one instruction in each clock. The chain
//! of this crate uses the engine's own queues and gates. A call consists of seven threads. It takes
//! 1,421 native instructions (`examples/chain.rs` under `valgrind --tool=callgrind`), which is 203
//! for each thread.

use std::ops::{Add, AddAssign};

use crate::chain::Stage;

/// A duration in clocks of a processor of 1 GHz, which runs one instruction in each clock.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Clocks(pub u64);

/// The number of clocks in a microsecond at 1 GHz.
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
    /// The cost of one thread run, from the queue of ready threads to its end.
    pub thread: Clocks,
    /// The time from a request to a device until its completion.
    pub round_trip: Clocks,
}

impl Costs {
    /// The rounded native cost of a thread, and devices with this `round_trip`.
    pub const fn counted(round_trip: Clocks) -> Costs {
        Costs { thread: Clocks(200), round_trip }
    }

    /// The cost of one run of the thread `stage`.
    pub fn of(&self, stage: Stage) -> Clocks {
        match stage {
            Stage::VirtualHardware => self.round_trip,
            _ => self.thread,
        }
    }
}
