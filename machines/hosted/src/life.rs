//! The machine's life: a thread that starts the engine, turns it, and sleeps where there is nothing to do.

use std::fs::File;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::Duration;

use http::Site;
use machine::Machine;
use server::configuration::Configuration;
use server::{Engine, Next, Sizes};

use crate::bell::Bell;
use crate::card::Tap;
use crate::console::Console;
use crate::world::HostedMachine;

/// What a machine is made of.
pub struct Setup {
    /// Its card.
    pub tap: Tap,
    /// Its disk: a file or a block device, as large as it is now.
    pub disk: File,
    /// What it serves.
    pub configuration: Configuration,
    /// The files that it serves by HTTP.
    pub site: Site,
    /// How much of everything the engine has.
    pub sizes: Sizes,
}

/// How a machine's life ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ending {
    /// It was asked to stop, and everything acknowledged is on the disk.
    Asked,
    /// The disk can't be served from; the console says why.
    Refused,
    /// The tap interface was taken away. Everything acknowledged is on the disk.
    CutOff,
    /// An invariant broke; what broke was printed. The log makes that safe.
    Panicked,
}

/// A machine that lives. Dropped, it goes on living until the process ends.
pub struct Life {
    lines: Receiver<String>,
    stop: Arc<AtomicBool>,
    bell: Bell,
    thread: JoinHandle<Ending>,
}

impl Life {
    /// Starts the machine.
    ///
    /// Errors: as Linux has them, when there can be no more files or threads.
    pub fn start(setup: Setup) -> io::Result<Life> {
        let Setup { tap, disk, configuration, site, sizes } = setup;
        let (bell, stop) = (Bell::new()?, Arc::new(AtomicBool::new(false)));
        let (console, lines) = Console::new();
        let machine = HostedMachine::new(tap, disk, console, bell.clone(), Arc::clone(&stop))?;
        let live = move || live(machine, configuration, site, sizes);
        let thread = std::thread::Builder::new().name("machine".into()).spawn(live)?;
        Ok(Life { lines, stop, bell, thread })
    }

    /// The next line on the machine's console.
    ///
    /// Errors: none came within `patience`, or, as disconnection, none will ever come: its life is over.
    pub fn next_line(&self, patience: Duration) -> Result<String, RecvTimeoutError> {
        self.lines.recv_timeout(patience)
    }

    /// Asks the machine to end its sessions, write what it holds, and go.
    pub fn ask_to_stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
        self.bell.ring();
    }

    /// Waits for the machine's end.
    pub fn end(self) -> Ending {
        self.thread.join().unwrap_or(Ending::Panicked)
    }
}

/// One turn after the other, and sleep where there is nothing to do.
fn live(mut machine: HostedMachine, configuration: Configuration, site: Site, sizes: Sizes) -> Ending {
    let mut secret = [0; 32];
    machine.random(&mut secret);
    let (seed, _) = server::seeds(configuration, site, sizes, 1, secret);
    let mut engine = Engine::new(seed, &mut machine);
    loop {
        match engine.turn(&mut machine) {
            Next::Now => {}
            Next::At(at) => machine.idle(at),
            Next::Stopped(server::Ending::Refused) => return Ending::Refused,
            Next::Stopped(server::Ending::Asked) if machine.is_cut_off() => {
                machine.print(format_args!("net: the tap interface is gone"));
                return Ending::CutOff;
            }
            Next::Stopped(server::Ending::Asked) => return Ending::Asked,
        }
    }
}
