//! Zero-wait threads: the tables, queues and counters with which all code in Barepost runs.
//!
//! A *zero-wait thread* is a handler: a plain function of (state, event). Once started, it runs to
//! its end without waiting (CEFOS, section 1). A frame holds the state of a task between two
//! handlers. A [`Continuation`] names the next step: a frame, and the point at which it waits. The
//! completion of an event wakes exactly that frame. So the runtime needs no search, no spurious
//! wake-ups, and no preemption.
//!
//! | here | in the papers |
//! |---|---|
//! | [`FrameTable`], [`FrameId`] | activation frames; TCB table, task index table; no search |
//! | [`Continuation`] | continuation (CEFOS, section 2.2: the request names the receiver) |
//! | [`Countdown`] | synchronization counter (CEFOS, section 2.1.2) |
//! | [`ResumeQueue`], [`DelayQueue`] | RQ and DQ (bare PC email server, section IV.4) |
//! | [`Gates`] | gate_thread with its software thread queue (CEFOS, sections 2.2 and 4.2) |
//!
//! Invariants:
//! - Every table and queue gets its size once. Nothing here allocates after that.
//! - No queue can overflow: each holds a frame at most once, and has a place for each frame.
//! - A stale [`FrameId`] finds nothing, since the generation of a slot changes when its frame is
//!   removed.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod budget;
mod continuation;
mod delay;
mod frame;
mod gate;
mod list;
mod resume;
mod subsystem;
#[cfg(test)]
mod tests;

pub use budget::Budget;
pub use continuation::{Continuation, Countdown, EntryPoint};
pub use delay::DelayQueue;
pub use frame::{FrameId, FrameTable};
pub use gate::{GateId, Gates, Passage};
pub use resume::ResumeQueue;
pub use subsystem::Subsystem;
