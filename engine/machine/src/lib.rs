//! The interface between the engine and its machine: the trait [`Machine`] and its value types.
//!
//! The world is a parameter. The engine reaches time, randomness, frames, sectors and the console
//! only through this trait. Each implementation is a machine: the bare PC, a Linux process, one
//! actor of a simulation. A machine with several cores is several [`Machine`]s. Messages between
//! its cores go through rings beside them. This crate is floor 0. It contains no code that acts,
//! except the lines to be printed ([`ConsoleLines`]) and the table of services ([`SERVICES`]).
//!
//! Invariants that every implementation keeps, and that the engine relies on:
//! - No call waits. Slow work is requested, and its completion is fetched in a later turn.
//! - Only the owner of a buffer touches it. A frame or a disk buffer that was handed over is gone
//!   until it is returned. A [`Piece`] that was handed over is shared, and only read from then on.
//! - Time never goes back between two starts of the machine.
//! - Data from a device is not trusted: lengths and contents are claims of the sender.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod console;
mod core_id;
mod disk;
mod frame;
mod services;
mod time;

pub use console::ConsoleLines;
pub use core_id::CoreId;
pub use disk::{
    Disk, DiskCompletion, DiskError, DiskOperation, DiskRequest, DiskToken, SECTOR_BYTES, Sector,
};
pub use frame::{
    BLOCK_BYTES, Block, Card, Checksum, ChecksumOffload, Ethernet, Frame, HEAD_BYTES_MAX, Offloads,
    OutgoingFrame, PIECES_MAX, Piece, TransmitError,
};
pub use services::{
    HTTP, HTTPS, POP3, POP3S, Protocol, SERVICES, SMTP, SUBMISSION, SUBMISSIONS, Security,
    ServiceEntry,
};
pub use time::{Instant, Micros, Turn, UnixTime};

use core::fmt;

/// A source of randomness.
pub trait Entropy {
    /// Fills `bytes` from a cryptographic random number generator.
    fn random(&mut self, bytes: &mut [u8]);
}

/// The machine of an engine: one core with its queue of the card, its disk, its clocks and its
/// console.
pub trait Machine: Entropy {
    /// The time since the machine started, read once a turn.
    fn now(&mut self) -> Instant;

    /// The time of day. It may jump, in both directions, so nothing is ordered or timed by it.
    fn wall_clock(&mut self) -> UnixTime;

    /// The build time of the program, as far as it is known. It never runs before that. Constant.
    fn program_date(&self) -> UnixTime {
        UnixTime::default()
    }

    /// Prints one line on the console.
    fn print(&mut self, line: fmt::Arguments<'_>);

    /// The properties of the network card. Constant while the machine runs.
    fn card(&self) -> Card;

    /// The next frame that arrived, oldest first. Its buffer belongs to the card:
    /// [`Machine::give_back`] returns it.
    fn receive(&mut self) -> Option<Frame>;

    /// Returns the buffer of a received frame to the card.
    fn give_back(&mut self, frame: Frame);

    /// Queues one frame for sending. The head is copied, and the pieces are shared until the card
    /// has sent them.
    ///
    /// Errors: [`TransmitError::Full`] if the card's ring has no space. Nothing was queued then,
    /// and the caller tries again in a later turn. A machine that sleeps after that wakes when
    /// there is space.
    fn transmit(&mut self, frame: &OutgoingFrame<'_>) -> Result<(), TransmitError>;

    /// The properties of the disk. Constant while the machine runs.
    fn disk(&self) -> Disk;

    /// Queues one disk request.
    ///
    /// Errors: the request itself if the queue has no space.
    fn request(&mut self, request: DiskRequest) -> Result<(), DiskRequest>;

    /// The next disk request that completed, in any order.
    fn completed(&mut self) -> Option<DiskCompletion>;

    /// Ends the sleep of another core of this machine: now, or as soon as it falls asleep. The
    /// core's next turn finds everything that was put into a ring before this call.
    fn wake(&mut self, core: CoreId);

    /// Tells the card and the disk about all requests since the last call: one doorbell each, at
    /// the end of a turn.
    fn ring_doorbells(&mut self);

    /// Whether the memory reserve is in use. Then the engine takes no more memory for clients, and
    /// frees a part of what some of them hold. Asked at the start of each turn.
    fn is_low_on_memory(&mut self) -> bool;

    /// Whether the operator asked the machine to stop. Stays true afterwards. Only the first core
    /// is asked.
    fn stop_requested(&mut self) -> bool;
}
