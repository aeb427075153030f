//! A Linux process as the machine: its card is a tap interface, and its disk is a file or block
//! device.
//!
//! This machine is used for debugging, profiling and native measurements. The engine is the same as
//! in the image, and only the machine below it differs.
//!
//! | file | story |
//! |---|---|
//! | `life` | the threads that are the machine's cores: start, console, stop and end |
//! | `world` | the trait `Machine` over the rest, and a sleep that misses no event |
//! | `card` | frames, with checksums and segmentation left to Linux |
//! | `disk` | a file, read, written and flushed by threads, so that no turn waits for it |
//! | `seats` | the state that the cores share, and whether the machine continues |
//! | `bell` | wakes a core from other threads |
//! | `console` | lines for the thread that shows them |
//!
//! Invariants:
//! - No call of the engine blocks. The tap's file is non-blocking. The channels to the disk's
//!   threads have capacity for all requests. A console line that does not fit is dropped and
//!   counted.
//! - A flush is an `fdatasync` that begins after every write that completed before the flush was
//!   requested.
#![forbid(unsafe_code)]

mod bell;
mod card;
mod console;
mod disk;
mod life;
mod seats;
mod world;

pub use card::Tap;
pub use life::{Ending, Life, Setup};
pub use tap::AttachError;
