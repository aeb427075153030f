//! A Linux process as the machine: a tap interface is its card, a file or block device its disk.
//!
//! For debugging, profiling and native measurements: the engine is the image's own, only the floor below it is another.
//!
//! | file | story |
//! |---|---|
//! | `life` | threads that are the machine's cores: it starts, prints, is asked to stop, ends |
//! | `world` | the trait `Machine` over what follows, and the sleep that no event is lost in |
//! | `card` | frames, with checksums and segmentation left to Linux |
//! | `disk` | a file, read, written and flushed by threads, so that no turn waits for it |
//! | `seats` | what the cores know of each other, and whether the machine goes on |
//! | `bell` | what wakes a core from other threads |
//! | `console` | lines for whoever shows them |
//!
//! Invariants:
//! - No call of the engine's blocks: the tap's file never makes anybody wait, the disk's threads are reached through
//!   channels with a place for each request that there may be, and a line that finds no room is lost and counted.
//! - A flush is an `fdatasync` that begins after every write that completed before it was requested.
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
