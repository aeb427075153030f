//! The machine that the engine lives in: the trait [`Machine`] over clocks, card, disk, console and randomness.

use crate::clock::{self, rtc};
use crate::console;
use crate::cpu;
use crate::cpu::apic::LocalApic;
use crate::entropy::Entropy;
use crate::memory::allocator::{Allocator, Memory};
use crate::virtio::block::BlockDevice;
use crate::virtio::net::NetworkCard;
use core::fmt;
use machine::{
    Card, CoreId, Disk, DiskCompletion, DiskRequest, Frame, Instant, Machine, Micros, Outgoing, TransmitError, UnixTime,
};

/// How often a busy machine looks whether a key was pressed.
const KEYS_EVERY: Micros = Micros::from_millis(50);

/// How often the time of day is compared with the clock chip's.
const CHIP_EVERY: Micros = Micros::from_secs(60);

/// How far the time of day may be from the chip's, which tells whole seconds only, before it follows.
const CHIP_TOLERANCE: Micros = Micros::from_secs(2);

/// One core of a bare PC with its devices.
pub struct BareMachine {
    card: NetworkCard,
    disk: BlockDevice,
    entropy: Entropy,
    apic: LocalApic,
    allocator: &'static Allocator,
    /// As told last: the time of this turn.
    now: Instant,
    keys_at: Instant,
    /// The time of day at the machine's start.
    started: UnixTime,
    chip_at: Instant,
}

impl BareMachine {
    pub(crate) fn new(
        card: NetworkCard,
        disk: BlockDevice,
        entropy: Entropy,
        apic: LocalApic,
        time_of_day: Option<UnixTime>,
        allocator: &'static Allocator,
    ) -> BareMachine {
        let now = clock::now();
        let started = UnixTime(time_of_day.map_or(0, |time| time.0.saturating_sub(now.0)));
        // A chip that was about to change is asked again soon; one that is not there, now and then.
        let chip_at = if time_of_day.is_some() { now + CHIP_EVERY } else { now };
        BareMachine { card, disk, entropy, apic, allocator, now, keys_at: now, started, chip_at }
    }

    /// How much memory there is for the engine to size itself by.
    pub fn memory(&self) -> Memory {
        self.allocator.memory()
    }

    /// Sleeps until a frame arrives, a disk request completes, a key is pressed, or it is `until`; may return earlier.
    ///
    /// No event is slept through: first the devices are asked to interrupt at their next entry, then the rings are looked at once
    /// more, and interrupts stay off until the processor sleeps.
    pub fn idle(&mut self, until: Instant) {
        console::before_sleep();
        let until = self.disk.next_look().map_or(until, |look| until.min(look));
        if until > clock::now() && self.card.may_sleep() && self.disk.may_sleep() {
            self.apic.wake_at(until);
            cpu::sleep_until_interrupt();
            console::read_keys();
        }
        self.card.be_quiet();
        self.disk.be_quiet();
    }

    /// Follows the clock chip when the time of day has come away from it.
    fn compare_with_chip(&mut self) {
        let Some(chip) = rtc::read() else { return };
        self.chip_at = self.now + CHIP_EVERY;
        let ours = self.started.0.saturating_add(self.now.0);
        if ours.abs_diff(chip.0) > CHIP_TOLERANCE.0 {
            self.started = UnixTime(chip.0.saturating_sub(self.now.0));
        }
    }
}

impl Machine for BareMachine {
    #[inline]
    fn now(&mut self) -> Instant {
        self.now = clock::now();
        self.now
    }

    fn wall_clock(&mut self) -> UnixTime {
        if self.now >= self.chip_at {
            self.compare_with_chip();
        }
        UnixTime(self.started.0.saturating_add(self.now.0))
    }

    fn random(&mut self, bytes: &mut [u8]) {
        self.entropy.fill(bytes, self.now);
    }

    fn print(&mut self, line: fmt::Arguments<'_>) {
        console::line(line);
    }

    fn card(&self) -> Card {
        self.card.card()
    }

    #[inline]
    fn receive(&mut self) -> Option<Frame> {
        self.card.receive()
    }

    #[inline]
    fn give_back(&mut self, frame: Frame) {
        self.card.give_back(frame);
    }

    #[inline]
    fn transmit(&mut self, frame: &Outgoing<'_>) -> Result<(), TransmitError> {
        self.card.transmit(frame)
    }

    fn disk(&self) -> Disk {
        self.disk.disk()
    }

    #[inline]
    fn request(&mut self, request: DiskRequest) -> Result<(), DiskRequest> {
        self.disk.request(request, self.now)
    }

    #[inline]
    fn completed(&mut self) -> Option<DiskCompletion> {
        self.disk.completed(self.now)
    }

    /// There is no other core.
    fn wake(&mut self, _core: CoreId) {}

    #[inline]
    fn ring_doorbells(&mut self) {
        self.card.ring_doorbells();
        self.disk.ring_doorbell();
    }

    #[inline]
    fn stop_requested(&mut self) -> bool {
        if self.now >= self.keys_at {
            self.keys_at = self.now + KEYS_EVERY;
            console::pump();
            console::read_keys();
        }
        console::stop_requested()
    }
}
