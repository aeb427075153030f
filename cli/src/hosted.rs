//! The engine as this process, at a tap interface: a machine like a guest, for whoever serves from it.
//!
//! It needs no program of ours to hold it: it is a thread, and ends when we do, however we are ended.

use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use host::Failure;
use hosted::{AttachError, Ending, Life, Setup, Tap};
use server::Sizes;

use crate::guest::{End, Event, Running};
use crate::run::{DataFolder, LEAVE_PATIENCE};

/// The machine.
pub struct Hosted {
    life: Life,
    started: Instant,
    /// Whether it is not waited for any more.
    is_left: bool,
}

impl Hosted {
    /// Takes the other end of a tap interface. A machine that was just killed may take a moment to give it back.
    ///
    /// `cores`: for how many; the interface has a queue for each, or one for all.
    ///
    /// Errors: refused when it is not there, is no tap interface, is somebody else's, or may not be ours.
    pub fn attach(interface: &str, cores: u8) -> Result<Vec<Tap>, Failure> {
        let started = Instant::now();
        loop {
            match Tap::attach(interface, cores) {
                Ok(taps) => return Ok(taps),
                Err(AttachError::Busy) if started.elapsed() < LEAVE_PATIENCE => {
                    std::thread::sleep(Duration::from_millis(20));
                }
                Err(error) => {
                    let hint = match error {
                        AttachError::Missing => format!(" (ip tuntap add dev {interface} mode tap)"),
                        AttachError::NoTap => " (one made with multi_queue is for several cores: --cores)".into(),
                        _ => String::new(),
                    };
                    return Err(Failure::refused(format_args!("--tap {interface}: {error}{hint}")));
                }
            }
        }
    }

    /// Starts the machine on this data.
    ///
    /// Errors: refused when the memory is too little.
    pub fn start(taps: Vec<Tap>, cores: u8, data: &DataFolder, memory_mib: u32) -> Result<Hosted, Failure> {
        let started = Instant::now();
        let sizes = Sizes::for_memory(u64::from(memory_mib) << 20, cores).ok_or_else(|| {
            Failure::refused(format_args!(
                "--memory {memory_mib}M: the engines of so many cores need {} MiB",
                Sizes::memory_bytes_min(cores) >> 20
            ))
        })?;
        let (configuration, site) = (data.configuration.clone(), data.site()?);
        let (disk, papers) = (data.disk()?, data.papers()?);
        let setup = Setup { taps, cores, disk, configuration, site, papers, sizes };
        let life = Life::start(setup).map_err(Failure::io("starting the machine"))?;
        Ok(Hosted { life, started, is_left: false })
    }
}

impl Running for Hosted {
    fn started(&self) -> Instant {
        self.started
    }

    fn next_event(&self, patience: Duration) -> Option<Event> {
        if self.is_left {
            return Some(Event::Ended);
        }
        match self.life.next_line(patience) {
            Ok(line) => Some(Event::Line(line)),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => Some(Event::Ended),
        }
    }

    fn ask_to_stop(&mut self) {
        self.life.ask_to_stop();
    }

    /// A thread cannot be ended: it is left alone, and ends with the process.
    fn kill(&mut self) {
        self.is_left = true;
    }

    fn end(self) -> Result<End, Failure> {
        if self.is_left {
            return Ok(End::Other("it was left before its end".into()));
        }
        Ok(match self.life.end() {
            Ending::Asked => End::Clean,
            Ending::Refused => End::Other("it refused to serve; its console says why".into()),
            Ending::CutOff => End::Other("the tap interface was taken away".into()),
            Ending::Panicked => End::Other("it panicked; the log keeps what it acknowledged".into()),
        })
    }
}
