//! The life of the machine: each core is a thread, which creates its engine, runs its turns, and
//! sleeps when no work is due.
//!
//! The machine ends when its first core ends, or when any core panics. Then no core begins another
//! turn. Everything that was acknowledged is in the log.

use std::fs::File;
use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant as Moment};

use http::Site;
use machine::{CoreId, Entropy, Machine};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use server::configuration::Configuration;
use server::{Engine, MachineKeys, Next, Seed, Sizes};

use crate::card::Tap;
use crate::console::Console;
use crate::disk::FileDisk;
use crate::seats::Seats;
use crate::world::HostedMachine;

/// The parts of a machine.
pub struct Setup {
    /// The queues of the card: one for each core, or one for all.
    pub taps: Vec<Tap>,
    /// The number of cores: at least one, and at least as many as queues.
    pub cores: u8,
    /// The disk: a file or a block device, with its current size.
    pub disk: File,
    /// The configuration of the server.
    pub configuration: Configuration,
    /// The files that the server serves by HTTP.
    pub site: Site,
    /// The certificates and keys of the server, and the authorities that it trusts.
    pub papers: MachineKeys,
    /// The sizes of the engine of each core.
    pub sizes: Sizes,
}

/// The way in which the machine ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ending {
    /// The machine was asked to stop, and everything acknowledged is on the disk.
    Asked,
    /// The disk cannot be used. The console has the reason.
    Refused,
    /// The tap interface was removed. Everything acknowledged is on the disk.
    CutOff,
    /// An invariant was violated, and the panic was printed. The log of the store makes this end
    /// safe.
    Panicked,
}

/// A running machine. If the value is dropped, the machine continues until the process ends.
pub struct Life {
    lines: Receiver<String>,
    seats: Seats,
    first: JoinHandle<Ending>,
    others: Vec<JoinHandle<Ending>>,
}

impl Life {
    /// Starts the machine.
    ///
    /// Errors: those of Linux, if the process may have no more open files or threads.
    pub fn start(setup: Setup) -> io::Result<Life> {
        let Setup { taps, cores, disk, configuration, site, papers, sizes } = setup;
        host::randomness::provide();
        let (console, lines) = Console::new();
        let seats = Seats::new(cores)?;
        let about_card = taps.first().map(Tap::card).ok_or(io::ErrorKind::InvalidInput)?;
        let mut disk = Some(FileDisk::start(disk, seats.of(CoreId::FIRST).bell())?);
        let (mut taps, started) = (taps.into_iter(), Moment::now());
        let mut machine = |core| HostedMachine {
            core: CoreId(core),
            seats: seats.clone(),
            about_card,
            card: taps.next(),
            disk: disk.take(),
            console: console.clone(),
            started,
        };
        let mut first = machine(0);
        let mut secret = [0; 32];
        first.random(&mut secret);
        let (seed, seeds) = server::seeds(configuration, site, papers, sizes, cores, secret);
        let mut places = places(cores).into_iter();
        let first = start_core(first, places.next(), move |machine| live(machine, seed))?;
        let others = (1..cores).zip(seeds).map(|(core, seed)| {
            start_core(machine(core), places.next(), move |machine| live(machine, seed))
        });
        let others = others.collect::<io::Result<_>>()?;
        Ok(Life { lines, seats, first, others })
    }

    /// The next line on the machine's console.
    ///
    /// Errors: `Timeout` if no line arrived within `patience`, `Disconnected` if the machine has
    /// ended.
    pub fn next_line(&self, patience: Duration) -> Result<String, RecvTimeoutError> {
        self.lines.recv_timeout(patience)
    }

    /// Asks the machine to end its sessions, write its unwritten data, and stop.
    pub fn ask_to_stop(&self) {
        self.seats.request_stop();
    }

    /// Waits until the machine has ended. Returns the way in which it ended.
    pub fn end(self) -> Ending {
        let first = self.first.join().unwrap_or(Ending::Panicked);
        let others = self.others.into_iter().map(|core| core.join().unwrap_or(Ending::Panicked));
        others.fold(first, |ending, other| if other == Ending::Panicked { other } else { ending })
    }
}

/// A processor for each core, if the process has enough: each core stays on one processor, with its
/// caches. Empty for a single core, and for cores that must share processors: Linux schedules them.
fn places(cores: u8) -> Vec<CpuSet> {
    let Ok(ours) = sched_getaffinity(None) else { return Vec::new() };
    if cores == 1 || ours.count() < u32::from(cores) {
        return Vec::new();
    }
    let place = |processor| {
        let mut place = CpuSet::new();
        place.set(processor);
        place
    };
    (0..CpuSet::MAX_CPU).filter(|processor| ours.is_set(*processor)).map(place).collect()
}

/// Starts a core's thread. `place`: the processor that the thread stays on, if any.
fn start_core(
    machine: HostedMachine,
    place: Option<CpuSet>,
    live: impl FnOnce(HostedMachine) -> Ending + Send + 'static,
) -> io::Result<JoinHandle<Ending>> {
    let number = machine.core.index();
    Builder::new().name(format!("core {number}")).spawn(move || {
        if let Some(place) = place {
            // If the processor is no longer available, the core still serves.
            let _ = sched_setaffinity(None, &place);
        }
        let _over =
            MachineIsOver { seats: machine.seats.clone(), is_first: machine.core == CoreId::FIRST };
        live(machine)
    })
}

/// Each core has such a value, which is dropped when the core's thread ends. The drop ends the
/// machine if the core is the first one, or has panicked.
struct MachineIsOver {
    seats: Seats,
    is_first: bool,
}

impl Drop for MachineIsOver {
    fn drop(&mut self) {
        if self.is_first || std::thread::panicking() {
            self.seats.end();
        }
    }
}

/// Runs one turn after another, and sleeps when no work is due.
fn live(mut machine: HostedMachine, seed: Seed) -> Ending {
    let mut engine = Engine::new(seed, &mut machine);
    while !machine.seats.is_over() {
        match engine.turn(&mut machine) {
            Next::Now => {}
            Next::At(at) => machine.idle(at),
            Next::Stopped(server::Ending::Refused) => return Ending::Refused,
            Next::Stopped(server::Ending::Asked)
                if machine.core == CoreId::FIRST && machine.is_cut_off() =>
            {
                machine.print(format_args!("net: the tap interface is gone"));
                return Ending::CutOff;
            }
            Next::Stopped(server::Ending::Asked) => return Ending::Asked,
        }
    }
    Ending::Asked
}

#[cfg(test)]
mod tests;
