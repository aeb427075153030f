//! The machine that the engine runs on: the trait [`Machine`] over card, disk, clocks, console and
//! randomness.

use std::fmt;
use std::time::{Instant as Moment, SystemTime, UNIX_EPOCH};

use host::randomness::fill;
use machine::{
    Card, CoreId, Disk, DiskCompletion, DiskRequest, Entropy, Frame, Instant, LineStamp, Machine,
    OutgoingFrame, TransmitError, UnixTime,
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::card::Tap;
use crate::console::Console;
use crate::disk::FileDisk;
use crate::seats::Seats;

/// The disk of a core without a disk.
const NO_DISK: Disk = Disk { sectors: 0, durable: false };

/// One core of a Linux process. It has a queue of the tap interface, if the interface has enough.
/// The first core also has the disk.
pub(crate) struct HostedMachine {
    pub(crate) core: CoreId,
    pub(crate) seats: Seats,
    /// The properties of the whole card.
    pub(crate) about_card: Card,
    pub(crate) card: Option<Tap>,
    pub(crate) disk: Option<FileDisk>,
    pub(crate) console: Console,
    /// The time at which the machine started, the same for all cores.
    pub(crate) started: Moment,
}

impl HostedMachine {
    /// Sleeps until `until`, or until a frame arrives, a disk request completes, another core wakes
    /// this core, or a stop is requested. May return earlier.
    ///
    /// The sleep misses no event: an unread frame or a rung bell ends the sleep as soon as it
    /// begins. Another core that wakes this core rings this core's bell, unless this core sees the
    /// wake-up before it sleeps.
    pub(crate) fn idle(&mut self, until: Instant) {
        let sleep = self.seats.of(self.core).sleep();
        let is_wanted = !sleep.begin();
        if !is_wanted && !self.disk.as_ref().is_some_and(FileDisk::has_finished) {
            self.sleep(until);
        }
        self.seats.of(self.core).sleep().end();
    }

    fn sleep(&mut self, until: Instant) {
        let span = until.since(self.now());
        if span.0 == 0 {
            return;
        }
        let timeout = Timespec {
            tv_sec: i64::try_from(span.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: (span.0 % 1_000_000 * 1_000) as _,
        };
        let timeout = if until == Instant::NEVER { None } else { Some(&timeout) };
        let bell = self.seats.of(self.core).bell();
        let rung = PollFd::new(bell, PollFlags::IN);
        // Without a free buffer, frames wait in Linux. The core that returns a buffer rings the
        // bell.
        let outcome = match self.card.as_ref().filter(|card| card.has_buffer() && !card.is_gone()) {
            Some(card) => poll(&mut [rung, PollFd::new(card, card.awaited())], timeout),
            None => poll(&mut [rung], timeout),
        };
        assert!(matches!(outcome, Ok(_) | Err(Errno::INTR)), "sleeping: {outcome:?}");
        bell.silence();
    }

    /// Whether the machine has lost its card, so that no client can reach it.
    pub(crate) fn is_cut_off(&self) -> bool {
        self.card.as_ref().is_some_and(Tap::is_gone)
    }
}

impl Entropy for HostedMachine {
    fn random(&mut self, bytes: &mut [u8]) {
        assert!(fill(bytes), "the server must not run without randomness");
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

    fn program_date(&self) -> UnixTime {
        UnixTime::from_decimal_seconds(env!("BAREPOST_COMMITTED"))
    }

    fn print(&mut self, line: fmt::Arguments<'_>) {
        let stamp = LineStamp { wall: Some(self.wall_clock()), now: self.now() };
        self.console.print(stamp, line);
    }

    fn card(&self) -> Card {
        self.about_card
    }

    fn receive(&mut self) -> Option<Frame> {
        self.card.as_mut()?.receive()
    }

    fn give_back(&mut self, frame: Frame) {
        if let Some(card) = &mut self.card {
            card.give_back(frame);
        }
    }

    /// A core without a queue of the card has no capacity for any frame.
    fn transmit(&mut self, frame: &OutgoingFrame<'_>) -> Result<(), TransmitError> {
        self.card.as_mut().map_or(Err(TransmitError::Full), |card| card.transmit(frame))
    }

    fn disk(&self) -> Disk {
        self.disk.as_ref().map_or(NO_DISK, FileDisk::disk)
    }

    /// A core without the disk has no capacity for any request.
    fn request(&mut self, request: DiskRequest) -> Result<(), DiskRequest> {
        match &mut self.disk {
            Some(disk) => disk.request(request),
            None => Err(request),
        }
    }

    fn completed(&mut self) -> Option<DiskCompletion> {
        self.disk.as_mut()?.completed()
    }

    fn wake(&mut self, core: CoreId) {
        self.seats.of(core).wake();
    }

    /// Does nothing, because frames and requests were passed to Linux at once.
    fn ring_doorbells(&mut self) {}

    fn is_low_on_memory(&mut self) -> bool {
        // Linux manages the memory, so there is no reserve.
        false
    }

    fn stop_requested(&mut self) -> bool {
        // A machine that no client can reach only has to write its unwritten data, and stop.
        self.seats.is_stop_requested() || self.is_cut_off()
    }
}

#[cfg(test)]
mod tests;
