//! The engine as this process, for programs that have it.

use std::time::{Duration, Instant};

use host::Failure;

use crate::guest::{End, Event, Running};
use crate::run::DataFolder;

/// A machine that a thread of this process is.
pub trait Hosting: Running + Sized {
    /// Its card: the other end of a tap interface, a queue for each core or one for all.
    type Taps;

    /// Takes the other end of a tap interface, for so many cores.
    ///
    /// Errors: refused when it cannot be had.
    fn attach(interface: &str, cores: u8) -> Result<Self::Taps, Failure>;

    /// Starts the machine on this data.
    ///
    /// Errors: refused when the memory is too little.
    fn start(
        taps: Self::Taps,
        cores: u8,
        data: &DataFolder,
        memory_mib: u32,
    ) -> Result<Self, Failure>;
}

/// What stands in for it in a program without the engine.
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
