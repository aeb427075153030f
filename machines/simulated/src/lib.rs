//! A simulated machine in memory. The test controls its wire, disk, clocks and randomness.
//!
//! With the same seed and the same inputs, two runs have the same frames and sectors. A power cut
//! leaves contents that a real disk might hold: all flushed sectors, and for each other sector a
//! version that the dice select.
#![forbid(unsafe_code)]

mod client;
mod clock;
mod disk;
mod engines;
mod packetdrill;
mod queues;
pub mod room;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::fmt;
use std::hash::Hash;

use chance::Dice;
pub use client::{Cable, Client, Connection, Port};
pub use clock::CoreClock;
pub use disk::{MemoryDisk, Mood};
pub use engines::Engines;
use machine::{
    Card, Checksum, CoreId, Disk, DiskCompletion, DiskRequest, Entropy, Ethernet, Frame,
    HEAD_BYTES_MAX, Instant, Machine, Micros, Offloads, OutgoingFrame, PIECES_MAX, TransmitError,
    UnixTime,
};
pub use packetdrill::{Outcome, Verdict, play};

/// The hardware address of a simulated machine's card.
pub const ADDRESS: Ethernet = Ethernet([0x02, 0, 0, 0, 0, 1]);
/// The default of [`SimulatedMachine::transmit_ring`].
pub const TRANSMIT_RING: usize = 256;
/// The most bytes of one received frame.
pub const FRAME_BYTES_MAX: usize = 65_550;

/// A machine. Its fields are the environment of its engines: the test reads and writes them between
/// two turns.
pub struct SimulatedMachine {
    /// Time since the machine started.
    pub now: Instant,
    /// The time of day at which the machine started.
    pub started: UnixTime,
    /// The build date of its program.
    pub program_date: UnixTime,
    /// The core that has the present turn.
    pub core: CoreId,
    /// The number of queue pairs of the card.
    pub queues: u8,
    /// The chance in 10,000 that a frame arrives in a random queue.
    pub strays: u64,
    /// Frames on their way to the engine, oldest first.
    pub to_engine: VecDeque<Vec<u8>>,
    /// Frames that the engine has sent, oldest first.
    pub from_engine: VecDeque<Vec<u8>>,
    /// The disk. After a power cut, the remaining disk goes into the next machine.
    pub disk: MemoryDisk,
    /// The MTU of the card's link, in bytes.
    pub mtu: u16,
    /// The lines that the engine has printed.
    pub console: Vec<String>,
    /// Whether the machine has a request to stop.
    pub stop: bool,
    /// Whether the machine is using its memory reserve.
    pub low_on_memory: bool,
    /// The card's address.
    pub hardware: Ethernet,
    /// The number of frames that the card holds until the test takes them. A full card refuses
    /// frames.
    pub transmit_ring: usize,
    /// The clocks of the cores. A core without an entry shows [`SimulatedMachine::now`].
    pub clocks: Vec<CoreClock>,
    /// The computing time between two readings of the clock. In each turn, every reading except the
    /// first one advances the clock by this time.
    pub computing: Micros,
    /// The number of readings of the clock, without the first one of each turn.
    pub readings: u64,
    is_first_reading: bool,
    /// The frames in each receive queue, if the card has several queues.
    queued: Vec<VecDeque<Vec<u8>>>,
    /// The seed of the hash that assigns flows to queues.
    spread: u64,
    /// The cores that were woken since their last turn, one bit each.
    woken: u16,
    /// The cores that found the card full in their last turn, one bit each.
    refused: u16,
    dice: Dice,
    /// The dice that seed a global generator at each turn, for code that draws randomness without a
    /// machine, such as ring.
    seeds: Dice,
}

impl SimulatedMachine {
    /// A machine with the disk `disk`. `seed` determines all its randomness.
    pub fn new(seed: u64, disk: MemoryDisk) -> SimulatedMachine {
        SimulatedMachine {
            now: Instant::START,
            core: CoreId::FIRST,
            queues: 1,
            strays: 0,
            clocks: Vec::new(),
            computing: Micros(0),
            readings: 0,
            is_first_reading: true,
            queued: Vec::new(),
            spread: 0,
            woken: 0,
            refused: 0,
            started: UnixTime::from_seconds(1_767_225_600),
            program_date: UnixTime::default(),
            to_engine: VecDeque::new(),
            from_engine: VecDeque::new(),
            disk,
            mtu: 1500,
            console: Vec::new(),
            stop: false,
            low_on_memory: false,
            hardware: ADDRESS,
            transmit_ring: TRANSMIT_RING,
            dice: Dice::new(seed),
            seeds: Dice::stream(seed, "randomness that nobody hands over"),
        }
    }

    /// The random draws of the machine and the operations of its disk, for the digest of a room.
    pub(crate) fn history(&self) -> impl Hash + '_ {
        (&self.dice, self.disk.digest())
    }

    /// Whether another core has woken `core` since its last turn.
    pub(crate) fn is_woken(&self, core: CoreId) -> bool {
        self.woken >> core.0 & 1 == 1
    }

    /// Whether `core` found the card full in its last turn, and the card has space now.
    pub(crate) fn has_room_for(&self, core: CoreId) -> bool {
        self.refused >> core.0 & 1 == 1 && self.from_engine.len() < self.transmit_ring
    }

    /// The cores that were woken and had no turn since, one bit each.
    pub(crate) fn woken(&self) -> u16 {
        self.woken
    }

    fn clock(&self, core: CoreId) -> CoreClock {
        self.clocks.get(core.index()).copied().unwrap_or_default()
    }

    /// The time of the machine's clock at which the clock of `core` shows `at`.
    pub(crate) fn when(&self, core: CoreId, at: Instant) -> Instant {
        self.clock(core).when(at)
    }

    pub(crate) fn begin_turn(&mut self, core: CoreId) {
        self.core = core;
        self.is_first_reading = true;
        self.woken &= !(1 << core.0);
        self.refused &= !(1 << core.0);
        chance::seed(self.seeds.roll());
    }

    /// Advances the machine's clock by `span`.
    pub fn wait(&mut self, span: Micros) {
        self.now = self.now + span;
    }
}

impl Entropy for SimulatedMachine {
    fn random(&mut self, bytes: &mut [u8]) {
        self.dice.fill(bytes);
    }
}

impl Machine for SimulatedMachine {
    fn now(&mut self) -> Instant {
        if !core::mem::take(&mut self.is_first_reading) {
            self.readings += 1;
            self.now = self.now + self.computing;
        }
        self.clock(self.core).time_at(self.now)
    }

    fn wall_clock(&mut self) -> UnixTime {
        UnixTime(self.started.0 + self.clock(self.core).time_at(self.now).0)
    }

    fn program_date(&self) -> UnixTime {
        self.program_date
    }

    fn print(&mut self, line: fmt::Arguments<'_>) {
        self.console.push(line.to_string());
    }

    fn card(&self) -> Card {
        Card {
            address: self.hardware,
            mtu: self.mtu,
            offloads: Offloads::default(),
            queues: self.queues,
        }
    }

    fn receive(&mut self) -> Option<Frame> {
        let queue = match self.queues {
            1 if self.core == CoreId::FIRST => &mut self.to_engine,
            _ => self.queued.get_mut(self.core.index())?,
        };
        let bytes = queue.pop_front()?.into_boxed_slice();
        let whole = 0..bytes.len();
        Some(Frame::new(bytes, whole, Checksum::Unknown))
    }

    fn give_back(&mut self, frame: Frame) {
        drop(frame);
    }

    fn transmit(&mut self, frame: &OutgoingFrame<'_>) -> Result<(), TransmitError> {
        assert!(self.core.0 < self.queues, "{} has no transmit queue", self.core);
        let payload_bytes: usize = frame.payload.iter().map(|piece| piece.len()).sum();
        let limits_kept = frame.payload.len() <= PIECES_MAX
            && (frame.payload.is_empty() || frame.head.len() <= HEAD_BYTES_MAX)
            && frame.head.len() + payload_bytes <= FRAME_BYTES_MAX
            && frame.checksum.is_none()
            && frame.segment_bytes.is_none();
        if !limits_kept {
            return Err(TransmitError::Malformed);
        }
        if self.from_engine.len() >= self.transmit_ring {
            self.refused |= 1 << self.core.0;
            return Err(TransmitError::Full);
        }
        let mut bytes = frame.head.to_vec();
        frame.payload.iter().for_each(|piece| bytes.extend_from_slice(piece.bytes()));
        self.from_engine.push_back(bytes);
        Ok(())
    }

    fn disk(&self) -> Disk {
        self.disk.describe()
    }

    fn request(&mut self, request: DiskRequest) -> Result<(), DiskRequest> {
        self.disk.request(request)
    }

    fn completed(&mut self) -> Option<DiskCompletion> {
        self.disk.completed()
    }

    fn wake(&mut self, core: CoreId) {
        self.woken |= 1 << core.0;
    }

    fn ring_doorbells(&mut self) {
        self.disk.work();
    }

    fn is_low_on_memory(&mut self) -> bool {
        self.low_on_memory
    }

    fn stop_requested(&mut self) -> bool {
        self.stop
    }
}
