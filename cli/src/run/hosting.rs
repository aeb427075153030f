//! The interface to the engine in this process, for programs that contain the engine.

use std::time::{Duration, Instant};

use host::Failure;

use crate::guest::{End, Event, Running};
use crate::run::DataFolder;

/// A machine that is a thread of this process.
pub trait Hosting: Running + Sized {
    /// The machine's card: the other end of a tap interface. It has a queue for each core, or one
    /// queue for all.
    type Taps;

    /// Attaches to a tap interface, for a machine with this many cores.
    ///
    /// Errors: [`Failure::refused`] if the interface is not available.
    fn attach(interface: &str, cores: u8) -> Result<Self::Taps, Failure>;

    /// Starts the machine with the files of a data folder.
    ///
    /// Errors: [`Failure::refused`] if the memory is too small.
    fn start(
        taps: Self::Taps,
        cores: u8,
        data: &DataFolder,
        memory_mib: u32,
    ) -> Result<Self, Failure>;
}

/// The type that stands for a machine in a program without the engine. It has no values.
pub enum NotHosted {}

impl Hosting for NotHosted {
    type Taps = NotHosted;

    fn attach(_interface: &str, _cores: u8) -> Result<NotHosted, Failure> {
        Err(Failure::refused(
            "--hosted: this program has no engine; start it with the script barepost",
        ))
    }

    fn start(
        taps: NotHosted,
        _cores: u8,
        _data: &DataFolder,
        _memory_mib: u32,
    ) -> Result<NotHosted, Failure> {
        match taps {}
    }
}

impl Running for NotHosted {
    fn started(&self) -> Instant {
        match *self {}
    }

    fn next_event(&self, _patience: Duration) -> Option<Event> {
        match *self {}
    }

    fn ask_to_stop(&mut self) {
        match *self {}
    }

    fn kill(&mut self) {
        match *self {}
    }

    fn end(self) -> Result<End, Failure> {
        match self {}
    }
}
