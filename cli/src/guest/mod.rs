//! A guest: the image in QEMU, with its console output and its end. The trait [`Running`] is the
//! common interface of guests and of machines in this process.
//!
//! The serial console goes through pipes, never through the terminal itself. So the guest cannot
//! leave the terminal in a bad state. Unprintable characters in a line are replaced.

mod accelerator;
mod command_line;

#[cfg(test)]
mod tests;

pub use accelerator::{Accelerator, AcceleratorChoice};
pub use command_line::{GuestFiles, Linux, MachineType, Network, Plugin, Setup};

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use host::{Failure, hold};

/// The byte that asks the guest to stop on its serial console: Ctrl-C.
const STOP_BYTE: u8 = 0x03;
/// QEMU's exit status when the guest stopped cleanly through its debug exit.
const CLEAN_STOP: i32 = 33;
/// The longest line of the console, in bytes. Longer lines are cut.
const LINE_BYTES_MAX: u64 = 4096;

/// An event of a machine.
#[derive(Debug)]
pub enum Event {
    /// The machine printed a line on its console.
    Line(String),
    /// QEMU printed a line, usually about an error.
    Complaint(String),
    /// The machine has ended.
    Ended,
}

/// The end of a machine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum End {
    /// The machine stopped on request, and has written everything to disk.
    Clean,
    /// The machine ended in another way. The text describes it for people.
    Other(String),
}

/// A running machine.
pub trait Running {
    /// The time at which the machine was started.
    fn started(&self) -> Instant;

    /// The next event, if one occurs within `patience`. [`Event::Ended`] is the last one.
    fn next_event(&self, patience: Duration) -> Option<Event>;

    /// Asks the machine to end its sessions, to write its data to disk, and to stop.
    fn ask_to_stop(&mut self);

    /// Ends the machine at once, as a power cut would.
    fn kill(&mut self);

    /// Waits until the machine has ended.
    fn end(self) -> Result<End, Failure>;
}

/// A running guest. It is killed when dropped.
pub struct Guest {
    qemu: Child,
    console: ChildStdin,
    events: Receiver<Event>,
    started: Instant,
}

impl Guest {
    /// Boots the guest that `setup` describes. Must be called from the main thread (see [`hold`]).
    pub fn start(setup: &Setup) -> Result<Guest, Failure> {
        let mut command = hold::command(&setup.qemu);
        command.args(setup.arguments());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let started = Instant::now();
        let mut qemu = command.spawn().map_err(Failure::io("starting QEMU"))?;
        let (Some(console), Some(output), Some(complaints)) =
            (qemu.stdin.take(), qemu.stdout.take(), qemu.stderr.take())
        else {
            return Err(Failure::broke("starting QEMU: it has no pipes"));
        };
        let (sender, events) = channel();
        let complaints_sender = sender.clone();
        std::thread::spawn(move || for_each_line(complaints, &complaints_sender, Event::Complaint));
        std::thread::spawn(move || {
            for_each_line(output, &sender, Event::Line);
            // The console's pipe closes when QEMU ends. The send fails if the guest was dropped.
            let _ = sender.send(Event::Ended);
        });
        Ok(Guest { qemu, console, events, started })
    }

    /// The process id of QEMU.
    pub fn process_id(&self) -> u32 {
        self.qemu.id()
    }
}

impl Running for Guest {
    fn started(&self) -> Instant {
        self.started
    }

    fn next_event(&self, patience: Duration) -> Option<Event> {
        match self.events.recv_timeout(patience) {
            Ok(event) => Some(event),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => Some(Event::Ended),
        }
    }

    fn ask_to_stop(&mut self) {
        // The write fails if QEMU has ended already. In this case `Event::Ended` follows.
        let _ = self.console.write_all(&[STOP_BYTE]).and_then(|()| self.console.flush());
    }

    fn kill(&mut self) {
        hold::kill_group(&self.qemu);
    }

    fn end(mut self) -> Result<End, Failure> {
        let status = self.qemu.wait().map_err(Failure::io("waiting for QEMU"))?;
        let other = || End::Other(format!("QEMU exited ({status})"));
        Ok(if status.code() == Some(CLEAN_STOP) { End::Clean } else { other() })
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        if matches!(self.qemu.try_wait(), Ok(None)) {
            self.kill();
            // QEMU has been killed, so `wait` returns at once. It removes the zombie process.
            let _ = self.qemu.wait();
        }
    }
}

/// Sends an event for every line of `stream`, without its line end and control characters.
fn for_each_line(stream: impl Read, sender: &Sender<Event>, event: impl Fn(String) -> Event) {
    let mut stream = BufReader::new(stream);
    let mut line = Vec::new();
    loop {
        line.clear();
        match stream.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return,
            Ok(_) if sender.send(event(printable(&line))).is_err() => return,
            Ok(_) => {}
        }
    }
}

/// The text of a line that is safe to show on any terminal.
fn printable(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(line);
    let text = text.trim_end_matches(['\r', '\n']);
    text.chars()
        .map(|c| if c.is_control() && c != '\t' { char::REPLACEMENT_CHARACTER } else { c })
        .collect()
}
