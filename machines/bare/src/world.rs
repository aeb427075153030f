//! The machine that the engine runs on: the trait [`Machine`] over clocks, card, disk, console and
//! randomness.

use crate::clock::{self, rtc};
use crate::console;
use crate::cpu;
use crate::cpu::apic::LocalApic;
use crate::cpu::cores;
use crate::entropy::EntropyPool;
use crate::memory::allocator::{Allocator, Memory};
use crate::virtio::block::BlockDevice;
use crate::virtio::net::NetworkCard;
use core::fmt;
use machine::{
    Card, CoreId, Disk, DiskCompletion, DiskRequest, Frame, Instant, Machine, Micros,
    OutgoingFrame, TransmitError, UnixTime,
};

/// The time between two checks of a busy machine for a key press.
const KEYS_EVERY: Micros = Micros::from_millis(50);

/// The time between two comparisons of the time of day with the time of the clock chip.
const CHIP_EVERY: Micros = Micros::from_secs(60);

/// The largest difference between the time of day and the time of the chip, which has only whole
/// seconds. After a larger difference, the time of day follows the chip.
const CHIP_TOLERANCE: Micros = Micros::from_secs(2);

/// The disk of a core without a disk.
const NO_DISK: Disk = Disk { sectors: 0, durable: false };

/// One core of a bare PC, with its own parts of the devices: a pair of queues of the card, if the
/// card has enough pairs. The first core also has the disk, the console's keys and the clock chip.
pub struct BareMachine {
    core: CoreId,
    about_card: Card,
    card: Option<NetworkCard>,
    disk: Option<BlockDevice>,
    entropy: EntropyPool,
    apic: LocalApic,
    allocator: &'static Allocator,
    /// The time of this turn, which `Machine::now` returned last.
    now: Instant,
    /// The time at which to check for keys next. `chip_at` is the time at which to read the clock
    /// chip next. Both are `NEVER` except on the first core.
    keys_at: Instant,
    chip_at: Instant,
}

impl BareMachine {
    /// The machine of the first core. The caller has set the time of day, if it could read it.
    pub(crate) fn first(
        about_card: Card,
        card: Option<NetworkCard>,
        disk: BlockDevice,
        entropy: EntropyPool,
        apic: LocalApic,
        allocator: &'static Allocator,
    ) -> BareMachine {
        let now = clock::now();
        // If the boot could not read the chip, each call of `wall_clock` tries again.
        let chip_at = if clock::knows_day() { now + CHIP_EVERY } else { now };
        BareMachine {
            core: CoreId::FIRST,
            about_card,
            card,
            disk: Some(disk),
            entropy,
            apic,
            allocator,
            now,
            keys_at: now,
            chip_at,
        }
    }

    /// The machine of another core.
    pub(crate) fn other(
        core: CoreId,
        about_card: Card,
        card: Option<NetworkCard>,
        entropy: EntropyPool,
        apic: LocalApic,
        allocator: &'static Allocator,
    ) -> BareMachine {
        BareMachine {
            core,
            about_card,
            card,
            disk: None,
            entropy,
            apic,
            allocator,
            now: clock::now(),
            keys_at: Instant::NEVER,
            chip_at: Instant::NEVER,
        }
    }

    /// The core's number.
    pub fn core(&self) -> CoreId {
        self.core
    }

    /// The memory of all cores together.
    pub fn memory(&self) -> Memory {
        self.allocator.memory()
    }

    /// Sleeps until `until`, or until a frame arrives, a disk request completes, a key is pressed,
    /// or another core wakes this core. May return earlier.
    ///
    /// The sleep misses no event. First this core requests interrupts from the devices and from the
    /// other cores. Then it checks the rings and the wakes again, because an event may have come
    /// before the request. Interrupts stay off until the processor sleeps.
    pub fn idle(&mut self, until: Instant) {
        console::before_sleep();
        let until = self
            .disk
            .as_ref()
            .and_then(BlockDevice::next_check)
            .map_or(until, |look| until.min(look));
        let sleep = cores::seat(self.core.index()).sleep();
        let is_wanted = !sleep.begin();
        if !is_wanted && until > clock::now() && self.devices_may_sleep() {
            self.apic.wake_at(until);
            cpu::sleep_until_interrupt();
            if self.core == CoreId::FIRST {
                console::read_keys();
            }
        }
        sleep.end();
        self.card.iter().for_each(NetworkCard::be_quiet);
        self.disk.iter().for_each(BlockDevice::be_quiet);
    }

    fn devices_may_sleep(&mut self) -> bool {
        self.card.as_mut().is_none_or(NetworkCard::may_sleep)
            && self.disk.as_ref().is_none_or(BlockDevice::may_sleep)
    }

    /// Sets the time of day to the time of the clock chip if the two differ too much.
    fn compare_with_chip(&mut self) {
        let Some(chip) = rtc::read() else { return };
        self.chip_at = self.now + CHIP_EVERY;
        if clock::day(self.now).0.abs_diff(chip.0) > CHIP_TOLERANCE.0 {
            clock::set_day(self.now, chip);
        }
    }
}

impl machine::Entropy for BareMachine {
    fn random(&mut self, bytes: &mut [u8]) {
        self.entropy.fill(bytes, self.now);
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
        clock::day(self.now)
    }

    fn program_date(&self) -> UnixTime {
        UnixTime::from_decimal_seconds(env!("BAREPOST_COMMITTED"))
    }

    fn print(&mut self, line: fmt::Arguments<'_>) {
        console::line(line);
    }

    fn card(&self) -> Card {
        self.about_card
    }

    #[inline]
    fn receive(&mut self) -> Option<Frame> {
        self.card.as_mut()?.receive()
    }

    #[inline]
    fn give_back(&mut self, frame: Frame) {
        if let Some(card) = &mut self.card {
            card.give_back(frame);
        }
    }

    /// A core without queues of the card has no space for any frame.
    #[inline]
    fn transmit(&mut self, frame: &OutgoingFrame<'_>) -> Result<(), TransmitError> {
        self.card.as_mut().map_or(Err(TransmitError::Full), |card| card.transmit(frame))
    }

    fn disk(&self) -> Disk {
        self.disk.as_ref().map_or(NO_DISK, BlockDevice::disk)
    }

    /// A core without the disk has no space for any request.
    #[inline]
    fn request(&mut self, request: DiskRequest) -> Result<(), DiskRequest> {
        match &mut self.disk {
            Some(disk) => disk.request(request, self.now),
            None => Err(request),
        }
    }

    #[inline]
    fn completed(&mut self) -> Option<DiskCompletion> {
        self.disk.as_mut()?.completed(self.now)
    }

    #[inline]
    fn wake(&mut self, core: CoreId) {
        let seat = cores::seat(core.index());
        if seat.sleep().wake() {
            self.apic.interrupt(seat.apic_id());
        }
    }

    #[inline]
    fn ring_doorbells(&mut self) {
        if let Some(card) = &mut self.card {
            card.ring_doorbells();
        }
        if let Some(disk) = &mut self.disk {
            disk.ring_doorbell();
        }
    }

    #[inline]
    fn is_low_on_memory(&mut self) -> bool {
        self.allocator.is_low()
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
