//! Throughput against devices and units (CEFOS, figure 5), on simulated units.
//!
//! As in the paper, throughput is the greatest number of system calls that complete within a fixed
//! period of 100,000 clocks. All senders exist at the beginning, as in the paper's data flow. The
//! calls go to the devices in turn.

use crate::chain::{Contention, DevicePlace};
use crate::costs::{Clocks, Costs};
use crate::units::Units;

/// The period in which calls are counted.
pub const PERIOD: Clocks = Clocks(100_000);

/// A machine of simulated units.
#[derive(Clone, Copy, Debug)]
pub struct Machine {
    /// The number of devices. Each has its own semaphore and queue.
    pub devices: u32,
    /// The number of execution units.
    pub units: usize,
    /// The way in which senders contend for the gate.
    pub contention: Contention,
    /// The place where devices do their work.
    pub place: DevicePlace,
    /// The costs of threads and devices.
    pub costs: Costs,
}

/// The greatest number of calls that the machine completes within [`PERIOD`].
pub fn calls_in_a_period(machine: Machine) -> u64 {
    let fits = |calls: u64| {
        let calls = usize::try_from(calls).unwrap_or(usize::MAX);
        machine.run(calls).now() <= PERIOD
    };
    let mut too_many = 1;
    while fits(too_many) {
        too_many *= 2;
    }
    let mut enough = too_many / 2;
    while too_many - enough > 1 {
        let middle = enough.midpoint(too_many);
        if fits(middle) { enough = middle } else { too_many = middle }
    }
    enough
}

impl Machine {
    fn run(self, calls: usize) -> Units {
        Units::run_batch(self.units, self.devices, calls, self.contention, self.place, self.costs)
    }
}
