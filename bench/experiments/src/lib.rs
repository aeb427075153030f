//! The experiments of the papers, rebuilt on the engine's own tasks: models that `barepost bench` runs and draws.
//!
//! | here | in the papers |
//! |---|---|
//! | [`Chain`] | the chain of zero-wait threads from a system call to its result (CEFOS, figure 4) |
//! | [`Units`] | execution units that share one queue of ready threads (CEFOS, section 3.1) |
//! | [`scaling`], [`cores`] | throughput against devices and units (CEFOS, figure 5), simulated and on the cores of this machine |
//! | [`contention`] | what it costs to contend for a gate (CEFOS, figures 7 to 11) |
//! | [`livelock`] | useful work against offered load (CEFOS, figure 6) |
//! | [`queues`] | one queue that polls, and resume and delay queue (bare PC email server, figures 16 and 17) |
//!
//! What the engine keeps runs here as it is: frames, gates, resume queue, delay queue, countdowns and budgets of `tasks`. What the
//! papers found to lose (contending by self-continuation, interrupts, one queue that polls) lives here and nowhere else.
//!
//! Invariants:
//! - A model counts work; it reads no clock, but for [`cores`], which measures. The same arguments give the same result.
//! - Nothing is lost: whoever runs a model to its end finds everything done that was begun.
#![forbid(unsafe_code)]

mod chain;
pub mod contention;
pub mod cores;
mod costs;
pub mod livelock;
pub mod queues;
pub mod scaling;
#[cfg(test)]
mod tests;
mod units;

pub use chain::{Chain, Contention, Counts, DevicePlace, Ran, Stage};
pub use costs::{CLOCKS_PER_MICRO, Clocks, Costs};
pub use units::Units;
