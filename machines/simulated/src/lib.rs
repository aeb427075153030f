//! A machine in memory: its wire, its disk, its clocks and its randomness belong to the test that drives it.
//!
//! The same seed and the same inputs give the same life, frame for frame and sector for sector. A power cut leaves of
//! the disk what a real one might: what was flushed, and of the rest each sector as the dice say.
#![forbid(unsafe_code)]

mod client;
mod dice;
mod disk;
mod engines;
mod packetdrill;
pub mod room;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::fmt;

pub use client::{Cable, Client, Connection};
pub use dice::Dice;
pub use disk::{MemoryDisk, Mood};
pub use engines::Engines;
use machine::{
    Card, Checksum, CoreId, Disk, DiskCompletion, DiskRequest, Ethernet, Frame, HEAD_BYTES_MAX, Instant, Machine,
    Micros, Offloads, Outgoing, PIECES_MAX, TransmitError, UnixTime,
};
pub use packetdrill::{Outcome, Verdict, play};

/// The hardware address of a simulated machine's card.
pub const ADDRESS: Ethernet = Ethernet([0x02, 0, 0, 0, 0, 1]);
/// Frames that the card takes before somebody fetches them from the wire, unless the test says otherwise.
pub const TRANSMIT_RING: usize = 256;
/// What one received frame can carry.
pub const FRAME_BYTES_MAX: usize = 65_550;

/// The machine. Its fields are the world: the test reads and writes them between two turns.
pub struct SimulatedMachine {
    /// Time since the machine started.
    pub now: Instant,
    /// The time of day at which the machine started.
    pub started: UnixTime,
    /// The core whose turn it is.
    pub core: CoreId,
    /// The card's pairs of queues.
    pub queues: u8,
    /// How many of 1,000 frames come into a queue that is not their flow's.
    pub strays: u64,
    /// Frames on their way to the engine, oldest first.
    pub to_engine: VecDeque<Vec<u8>>,
    /// Frames that the engine has sent, oldest first.
    pub from_engine: VecDeque<Vec<u8>>,
    /// The disk; what is left of it after a power cut goes into the next machine.
    pub disk: MemoryDisk,
    /// The largest IP packet that the card's link carries, in bytes.
    pub mtu: u16,
    /// Lines that the engine printed.
    pub console: Vec<String>,
    /// Whether the machine is asked to stop.
    pub stop: bool,
    /// The card's address.
    pub hardware: Ethernet,
    /// Frames that the card takes before somebody fetches them from the wire.
    pub transmit_ring: usize,
    /// What lies in the queues of a card that has several.
    queued: Vec<VecDeque<Vec<u8>>>,
    /// The cores that were woken since their last turn, a bit each.
    woken: u16,
    dice: Dice,
}

impl SimulatedMachine {
    /// A machine whose randomness comes from `seed`, with `disk` in it.
    pub fn new(seed: u64, disk: MemoryDisk) -> SimulatedMachine {
        SimulatedMachine {
            now: Instant::START,
            core: CoreId::FIRST,
            queues: 1,
            strays: 0,
            queued: Vec::new(),
            woken: 0,
            started: UnixTime::from_seconds(1_767_225_600),
            to_engine: VecDeque::new(),
            from_engine: VecDeque::new(),
            disk,
            mtu: 1500,
            console: Vec::new(),
            stop: false,
            hardware: ADDRESS,
            transmit_ring: TRANSMIT_RING,
            dice: Dice::new(seed),
        }
    }

    /// What the machine drew and its disk did, for the digest of a room.
    pub(crate) fn fold(&self, story: &mut room::Chronicle) {
        story.fold((&self.dice, self.disk.digest()));
    }

    /// Puts what has arrived into the queues, if there are several: a flow's frames into one queue, but for strays.
    pub(crate) fn sort_frames(&mut self) {
        if self.queues == 1 {
            return;
        }
        self.queued.resize(usize::from(self.queues), VecDeque::new());
        while let Some(frame) = self.to_engine.pop_front() {
            let is_stray = self.dice.happens(self.strays);
            let flow = if is_stray { self.dice.below(u64::from(self.queues)) } else { flow_of(&frame) };
            let place = (flow % u64::from(self.queues)) as usize;
            if let Some(queue) = self.queued.get_mut(place) {
                queue.push_back(frame);
            }
        }
    }

    /// Whether the next turn of `core` finds a frame.
    pub(crate) fn has_frames_for(&self, core: CoreId) -> bool {
        let is_queued = self.queued.get(core.index()).is_some_and(|queue| !queue.is_empty());
        // What is not sorted yet may be anybody's.
        is_queued || !self.to_engine.is_empty() && (self.queues > 1 || core == CoreId::FIRST)
    }

    /// Whether another core has woken `core` since its last turn.
    pub(crate) fn is_woken(&self, core: CoreId) -> bool {
        self.woken >> core.0 & 1 == 1
    }

    pub(crate) fn begin_turn(&mut self, core: CoreId) {
        self.core = core;
        self.woken &= !(1 << core.0);
    }

    /// Lets time pass.
    pub fn wait(&mut self, span: Micros) {
        self.now = self.now + span;
    }
}

impl Machine for SimulatedMachine {
    fn now(&mut self) -> Instant {
        self.now
    }

    fn wall_clock(&mut self) -> UnixTime {
        UnixTime(self.started.0 + self.now.0)
    }

    fn random(&mut self, bytes: &mut [u8]) {
        self.dice.fill(bytes);
    }

    fn print(&mut self, line: fmt::Arguments<'_>) {
        self.console.push(line.to_string());
    }

    fn card(&self) -> Card {
        Card { address: self.hardware, mtu: self.mtu, offloads: Offloads::default(), queues: self.queues }
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

    fn transmit(&mut self, frame: &Outgoing<'_>) -> Result<(), TransmitError> {
        assert!(self.core.0 < self.queues, "{} has no queue to send by", self.core);
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

    fn stop_requested(&mut self) -> bool {
        self.stop
    }
}

/// What names a frame's flow to a card: addresses and ports, if it is TCP without extension headers; nothing else does.
fn flow_of(frame: &[u8]) -> u64 {
    let names = match (frame.get(12..14), frame.get(23), frame.get(20)) {
        (Some([0x08, 0x00]), Some(6), _) => frame.get(26..38),
        (Some([0x86, 0xdd]), _, Some(6)) => frame.get(22..58),
        _ => None,
    };
    let mix = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    names.map_or(0, |names| names.iter().fold(0xcbf2_9ce4_8422_2325, mix) >> 32)
}
