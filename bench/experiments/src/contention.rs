//! The cost of contending for a gate (CEFOS, figures 7 to 11): by self-continuation, and with the
//! gate's software queue.
//!
//! All `calls` senders start at once. There are one gate, one device and one execution unit. With
//! self-continuation, a sender that finds the gate taken joins the end of the queue of ready
//! threads, after all other waiting senders. So for each call that passes the gate, every waiting
//! sender runs once in vain.

use crate::chain::{Contention, DevicePlace};
use crate::costs::{Clocks, Costs};
use crate::units::Units;

/// The cost of a batch of calls.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Work {
    /// The number of calls. All of them were completed.
    pub calls: u64,
    /// The number of thread runs.
    pub runs: u64,
    /// The time until the last call was done.
    pub clocks: Clocks,
    /// The number of sender runs that found the gate taken.
    pub self_continuations: u64,
}

/// Runs `calls` senders to their end.
pub fn contend(calls: usize, contention: Contention, costs: Costs) -> Work {
    let units = Units::run_batch(1, 1, calls, contention, DevicePlace::Apart, costs);
    assert!(units.underway() == 0, "every call is done");
    let counts = units.counts();
    Work {
        calls: counts.done,
        runs: counts.runs,
        clocks: units.now(),
        self_continuations: counts.self_continuations,
    }
}

/// The growth of the work between two points, each a number of calls and the work for these calls:
/// the exponent `e` of the curve `c * calls^e` through both points.
pub fn growth(from: (u64, u64), to: (u64, u64)) -> f64 {
    (to.1 as f64 / from.1 as f64).ln() / (to.0 as f64 / from.0 as f64).ln()
}
