//! The interface between the engine and its machine: the trait [`Machine`] and its value types.
//!
//! The engine gets time, randomness, frames, sectors and the console only through this trait. Each
//! implementation is a kind of machine: the bare PC, a Linux process, or a part of a simulation. A
//! machine with several cores has one [`Machine`] for each core. The cores exchange messages
//! through rings, which are not part of the trait. This crate depends on no other crate of the
//! engine. Besides the trait and its types it contains only the lines to be printed
//! ([`ConsoleLines`]) and the table of services ([`SERVICES`]).
//!
//! Invariants that every implementation keeps, and that the engine relies on:
//! - No call waits. Slow work is requested, and its completion is fetched in a later turn.
//! - Only the owner of a buffer accesses it. A frame or a disk buffer that was handed over belongs
//!   to the receiver until it is returned. A [`Piece`] that was handed over is shared, and from
//!   then on only read.
//! - Time never goes back between two starts of the machine.
//! - The engine does not trust data from a device: lengths and contents are claims of the sender.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod console;
mod core_id;
mod date;
mod disk;
mod frame;
mod services;
mod time;

pub use console::ConsoleLines;
pub use core_id::CoreId;
pub use date::{Date, LineStamp};
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

    /// The time of day. It may jump in both directions, so the engine does not use it to order
    /// events or to measure durations.
    fn wall_clock(&mut self) -> UnixTime;

    /// The build time of the program, or 0 if unknown. The program cannot run before this time. The
    /// result never changes.
    fn program_date(&self) -> UnixTime {
        UnixTime::default()
    }

    /// Prints one line on the console.
    fn print(&mut self, line: fmt::Arguments<'_>);

    /// The properties of the network card. Constant while the machine runs.
    fn card(&self) -> Card;

    /// The oldest received frame. Its buffer belongs to the card: [`Machine::give_back`] returns
    /// it.
    fn receive(&mut self) -> Option<Frame>;

    /// Returns the buffer of a received frame to the card.
    fn give_back(&mut self, frame: Frame);

    /// Queues one frame for sending. The card copies the head, and shares the pieces until it has
    /// sent them.
    ///
    /// Errors: [`TransmitError::Full`] if the card's ring has no space. In this case the frame was
    /// not queued, and the caller tries again in a later turn. If the machine sleeps after this
    /// error, it wakes when the ring has space.
    fn transmit(&mut self, frame: &OutgoingFrame<'_>) -> Result<(), TransmitError>;

    /// The properties of the disk. Constant while the machine runs.
    fn disk(&self) -> Disk;

    /// Queues one disk request.
    ///
    /// Errors: the request itself if the queue has no space.
    fn request(&mut self, request: DiskRequest) -> Result<(), DiskRequest>;

    /// The next completion of a disk request. Requests may complete in any order.
    fn completed(&mut self) -> Option<DiskCompletion>;

    /// Wakes another core of this machine: now, or as soon as that core begins to sleep. The next
    /// turn of that core finds everything that was put into a ring before this call.
    fn wake(&mut self, core: CoreId);

    /// Notifies the card and the disk of all requests since the last call. The engine calls it at
    /// the end of a turn, so each device gets at most one notification.
    fn ring_doorbells(&mut self);

    /// Whether the memory reserve is in use. If so, the engine takes no more memory for clients,
    /// and frees memory of some clients. The engine calls it at the start of each turn.
    fn is_low_on_memory(&mut self) -> bool;

    /// Whether the operator has asked the machine to stop. Once true, the result stays true. Only
    /// the engine of the first core calls it.
    fn stop_requested(&mut self) -> bool;
}
