//! What the engine needs from the machine it lives in: the trait [`Machine`] and its value types.
//!
//! The world is a parameter. The engine reaches time, randomness, frames, sectors and the console only through
//! this trait; whoever implements it is a machine: the bare PC, a Linux process, one actor of a simulation. A machine of
//! several cores is several [`Machine`]s, and what its cores tell each other goes through rings that lie beside them.
//! This crate is floor 0 and holds no code that does anything, but for the lines that wait to be
//! printed ([`ConsoleLines`]), and the table of what a machine serves ([`SERVICES`]).
//!
//! Invariants that every implementation keeps, and that the engine relies on:
//! - No call waits. What takes time is requested, and its completion is fetched in a later turn.
//! - Who owns a buffer may touch it. A frame or a disk buffer handed over is gone until it is given back; a
//!   [`Piece`] handed over is shared and from then on only read.
//! - Time never goes back within one life of the machine.
//! - Nothing handed out by a device is trusted: lengths and contents are the sender's claims.
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
    Outgoing, PIECES_MAX, Piece, TransmitError,
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

/// The machine that an engine lives in: one core with its queue of the card, its disk, its clocks and its console.
pub trait Machine: Entropy {
    /// The time since the machine started, read once a turn.
    fn now(&mut self) -> Instant;

    /// The time of day. It may jump, in both directions; nothing is ordered or timed by it.
    fn wall_clock(&mut self) -> UnixTime;

    /// When the program was made, as far as it knows: it never runs before. Constant.
    fn program_date(&self) -> UnixTime {
        UnixTime::default()
    }

    /// Prints one line on the console.
    fn print(&mut self, line: fmt::Arguments<'_>);

    /// What the network card is and can do; constant for the machine's life.
    fn card(&self) -> Card;

    /// The next frame that arrived, oldest first. Its buffer is the card's: [`Machine::give_back`] returns it.
    fn receive(&mut self) -> Option<Frame>;

    /// Returns the buffer of a received frame to the card.
    fn give_back(&mut self, frame: Frame);

    /// Queues one frame for sending. The head is copied and the pieces are shared until the card has sent them.
    ///
    /// Errors: [`TransmitError::Full`] when the card's ring has no room; nothing was queued, and the caller tries
    /// again in a later turn. A machine that sleeps after that wakes when there is room.
    fn transmit(&mut self, frame: &Outgoing<'_>) -> Result<(), TransmitError>;

    /// What the disk is; constant for the machine's life.
    fn disk(&self) -> Disk;

    /// Queues one disk request.
    ///
    /// Errors: the request itself when the queue has no room.
    fn request(&mut self, request: DiskRequest) -> Result<(), DiskRequest>;

    /// The next disk request that completed, in any order.
    fn completed(&mut self) -> Option<DiskCompletion>;

    /// Ends the sleep of another core of this machine: now, or as soon as it falls asleep. What was put into a ring before the
    /// call is found by that core's next turn.
    fn wake(&mut self, core: CoreId);

    /// Tells the card and the disk what was queued since the last call: one doorbell each, at the end of a turn.
    fn ring_doorbells(&mut self);

    /// Whether so little memory is left that the reserve is touched: nothing more is taken for
    /// clients then, and what some of them hold is given back. Asked at the start of each turn.
    fn is_low_on_memory(&mut self) -> bool;

    /// Whether somebody at the machine asked it to stop. Stays true once it was. The first core is asked.
    fn stop_requested(&mut self) -> bool;
}
