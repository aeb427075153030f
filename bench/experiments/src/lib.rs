//! The experiments of the papers, rebuilt with the engine's own crate `tasks`. `barepost bench`
//! runs these models and draws the results.
//!
//! | here | in the papers |
//! |---|---|
//! | [`Chain`] | zero-wait threads from a system call to its result (CEFOS, figure 4) |
//! | [`Units`] | execution units that share one ready queue (CEFOS, section 3.1) |
//! | [`scaling`], [`cores`] | throughput by devices and units, simulated and real (figure 5) |
//! | [`contention`] | the cost of contending for a gate (CEFOS, figures 7 to 11) |
//! | [`livelock`] | useful work against offered load (CEFOS, figure 6) |
//! | [`queues`] | one polling queue, or resume and delay queue (email server, figures 16, 17) |
//!
//! The models use these parts of `tasks` unchanged: frames, gates, the resume queue, the delay
//! queue, countdowns and budgets. The designs that the papers rejected exist only in this crate:
//! contention by self-continuation, interrupts, and one queue that polls.
//!
//! Invariants:
//! - A model counts work and reads no clock, except [`cores`], which measures. The same arguments
//!   give the same result.
//! - No call and no task is lost: at the end of a model, each one that began is accounted for.
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
