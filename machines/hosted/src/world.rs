//! The machine that the engine lives in: the trait [`Machine`] over card, disk, clocks, console and randomness.

use std::fmt;
use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Instant as Moment, SystemTime, UNIX_EPOCH};

use machine::{
    Card, CoreId, Disk, DiskCompletion, DiskRequest, Frame, Instant, Machine, Outgoing, TransmitError, UnixTime,
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::rand::{GetRandomFlags, getrandom};

use crate::bell::Bell;
use crate::card::Tap;
use crate::console::Console;
use crate::disk::FileDisk;

/// One core of a host, with a tap interface and a file.
pub(crate) struct HostedMachine {
    card: Tap,
    disk: FileDisk,
    console: Console,
    bell: Bell,
    stop: Arc<AtomicBool>,
    started: Moment,
}

impl HostedMachine {
    /// `stop`: becomes true, and `bell` is rung, when somebody asks the machine to stop.
    ///
    /// Errors: as Linux has them, when the disk cannot be started.
    pub(crate) fn new(
        card: Tap,
        disk: File,
        console: Console,
        bell: Bell,
        stop: Arc<AtomicBool>,
    ) -> std::io::Result<HostedMachine> {
        let disk = FileDisk::start(disk, &bell)?;
        Ok(HostedMachine { card, disk, console, bell, stop, started: Moment::now() })
    }

    /// Sleeps until a frame arrives, a disk request completes, somebody asks to stop, or it is `until`; may return
    /// earlier.
    ///
    /// No event is slept through: a frame that nobody has read and a bell that nobody has silenced end the sleep as
    /// soon as it begins.
    pub(crate) fn idle(&mut self, until: Instant) {
        let span = until.since(self.now());
        let timeout = Timespec {
            tv_sec: i64::try_from(span.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: (span.0 % 1_000_000 * 1_000) as _,
        };
        let timeout = if until == Instant::NEVER { None } else { Some(&timeout) };
        if span.0 == 0 || self.disk.has_finished() {
            return;
        }
        let bell = PollFd::new(&self.bell, PollFlags::IN);
        let outcome = if self.card.is_gone() {
            poll(&mut [bell], timeout)
        } else {
            poll(&mut [bell, PollFd::new(&self.card, PollFlags::IN)], timeout)
        };
        assert!(matches!(outcome, Ok(_) | Err(Errno::INTR)), "sleeping: {outcome:?}");
        self.bell.silence();
    }

    /// Whether the machine lost its card: nobody will ever reach it again.
    pub(crate) fn is_cut_off(&self) -> bool {
        self.card.is_gone()
    }
}

impl Machine for HostedMachine {
    fn now(&mut self) -> Instant {
        Instant(u64::try_from(self.started.elapsed().as_micros()).unwrap_or(u64::MAX))
    }

    fn wall_clock(&mut self) -> UnixTime {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        UnixTime(u64::try_from(since.as_micros()).unwrap_or(u64::MAX))
    }

    fn random(&mut self, bytes: &mut [u8]) {
        let mut filled = 0;
        while let Some(rest) = bytes.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            match getrandom(rest, GetRandomFlags::empty()) {
                Ok(more) => filled += more,
                Err(error) => assert!(error == Errno::INTR, "without randomness nothing may be served: {error}"),
            }
        }
    }

    fn print(&mut self, line: fmt::Arguments<'_>) {
        let now = self.now();
        self.console.print(now, line);
    }

    fn card(&self) -> Card {
        self.card.card()
    }

    fn receive(&mut self) -> Option<Frame> {
        self.card.receive()
    }

    fn give_back(&mut self, frame: Frame) {
        self.card.give_back(frame);
    }

    fn transmit(&mut self, frame: &Outgoing<'_>) -> Result<(), TransmitError> {
        self.card.transmit(frame)
    }

    fn disk(&self) -> Disk {
        self.disk.disk()
    }

    fn request(&mut self, request: DiskRequest) -> Result<(), DiskRequest> {
        self.disk.request(request)
    }

    fn completed(&mut self) -> Option<DiskCompletion> {
        self.disk.completed()
    }

    /// There is no other core.
    fn wake(&mut self, _core: CoreId) {}

    /// Nothing is left to be told: frames and requests were handed over as they came.
    fn ring_doorbells(&mut self) {}

    fn stop_requested(&mut self) -> bool {
        // A machine that nobody can reach has nothing left to do but to write what it holds.
        self.stop.load(Ordering::Relaxed) || self.card.is_gone()
    }
}

#[cfg(test)]
mod tests;
