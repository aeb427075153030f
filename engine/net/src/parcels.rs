//! Parcels. A parcel holds a frame that a core without a transmit queue passes to a core with one.
//!
//! To the network, [`Through`] looks like a machine with a card, but its `transmit` fills a parcel.
//! The core with the queue gets the parcel, transmits the frame when the card has room, and returns
//! the parcel.
//!
//! Invariant: a core has a fixed number of parcels. While all are in use, the card counts as full
//! for this core. The next parcel that returns wakes the core.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::fmt;
use core::num::NonZeroU16;

use machine::{
    Card, ChecksumOffload, CoreId, Disk, DiskCompletion, DiskRequest, Entropy, Frame, Instant,
    Machine, OutgoingFrame, PIECES_MAX, Piece, TransmitError, UnixTime,
};
use sometimes::{buggify, sometimes};

/// The number of parcels of one core.
const PARCELS: usize = 128;

/// The longest head: a whole frame without further pieces.
const HEAD_BYTES: usize = 1514;

/// A frame for another core to send.
pub struct Parcel {
    head: [u8; HEAD_BYTES],
    head_bytes: usize,
    payload: Vec<Piece>,
    checksum: Option<ChecksumOffload>,
    segment_bytes: Option<NonZeroU16>,
}

/// The parcels of a core: its own, and those that it sends for other cores.
pub struct Sending {
    /// The parcels of this core, if it has no transmit queue.
    parcels: Option<Parcels>,
    /// Parcels of other cores that wait for room in the card.
    for_others: VecDeque<(CoreId, Box<Parcel>)>,
    /// Whether the parcels of other cores are sent first in the next turn.
    others_first: bool,
}

impl Sending {
    /// Creates the parcels of core `own`, for a card with `queues` queues.
    pub fn new(own: CoreId, queues: u8) -> Sending {
        Sending {
            parcels: Parcels::new(own, queues),
            for_others: VecDeque::new(),
            others_first: true,
        }
    }

    /// Wraps the machine of a core without a queue, so that it sends in parcels. `None` for a core
    /// with a queue.
    #[inline]
    pub fn through<'a, M>(&'a mut self, machine: &'a mut M) -> Option<Through<'a, M>> {
        self.parcels.as_mut().map(|parcels| Through { machine, parcels })
    }

    /// The next filled parcel for `core`, if that core sends for this core.
    pub fn next_filled(&mut self, core: CoreId) -> Option<Box<Parcel>> {
        self.parcels.as_mut().filter(|parcels| parcels.sender == core)?.filled.pop_front()
    }

    /// Whether a filled parcel waits to be sent.
    pub fn has_filled(&self) -> bool {
        self.parcels.as_ref().is_some_and(|parcels| !parcels.filled.is_empty())
    }

    /// The number of parcels that are filled, or are at the sending core.
    pub fn under_way(&self) -> usize {
        self.parcels.as_ref().map_or(0, |parcels| PARCELS - parcels.idle.len())
    }

    /// Takes back a parcel of this core that has been sent.
    pub fn came_home(&mut self, parcel: Box<Parcel>) {
        let Some(parcels) = &mut self.parcels else {
            unreachable!("a core with a queue has no parcels")
        };
        parcels.idle.push(parcel);
    }

    /// Queues a parcel of another core for sending.
    pub fn arrived(&mut self, from: CoreId, parcel: Box<Parcel>) {
        self.for_others.push_back((from, parcel));
    }

    /// Whether parcels of other cores wait to be sent.
    #[inline]
    pub fn has_for_others(&self) -> bool {
        !self.for_others.is_empty()
    }

    /// Whether this turn sends the parcels of other cores first. The answer alternates from turn to
    /// turn.
    #[inline]
    pub fn others_go_first(&mut self) -> bool {
        self.others_first = !self.others_first;
        !self.others_first
    }

    /// Sends parcels of other cores while the card has room. `sent`: returns a sent parcel to its
    /// core.
    pub fn transmit_for_others(
        &mut self,
        machine: &mut impl Machine,
        mut sent: impl FnMut(CoreId, Box<Parcel>),
    ) {
        while let Some((_, parcel)) = self.for_others.front_mut() {
            if !parcel.transmit(machine) {
                sometimes!(ParcelWaits);
                return;
            }
            sometimes!(ParcelSent);
            if let Some((from, parcel)) = self.for_others.pop_front() {
                sent(from, parcel);
            }
        }
    }
}

/// The parcels of a core without a queue.
struct Parcels {
    /// The core that sends for this core.
    sender: CoreId,
    #[expect(clippy::vec_box, reason = "a parcel travels as a pointer")]
    idle: Vec<Box<Parcel>>,
    filled: VecDeque<Box<Parcel>>,
}

impl Parcels {
    /// Creates the parcels of core `own`, for a card with `queues` queues. `None` for a core with a
    /// queue.
    fn new(own: CoreId, queues: u8) -> Option<Parcels> {
        let empty = || Parcel {
            head: [0; HEAD_BYTES],
            head_bytes: 0,
            payload: Vec::with_capacity(PIECES_MAX),
            checksum: None,
            segment_bytes: None,
        };
        (own.0 >= queues).then(|| Parcels {
            sender: CoreId(own.0 % queues.max(1)),
            idle: (0..PARCELS).map(|_| Box::new(empty())).collect(),
            filled: VecDeque::with_capacity(PARCELS),
        })
    }

    fn fill(&mut self, frame: &OutgoingFrame<'_>) -> Result<(), TransmitError> {
        if frame.head.len() > HEAD_BYTES || frame.payload.len() > PIECES_MAX {
            return Err(TransmitError::Malformed);
        }
        if self.idle.len() < PARCELS && buggify!(NoParcel) {
            return Err(TransmitError::Full);
        }
        let mut parcel = self.idle.pop().ok_or(TransmitError::Full)?;
        parcel.head_bytes = frame.head.len();
        parcel.head.iter_mut().zip(frame.head).for_each(|(place, byte)| *place = *byte);
        parcel.payload.extend_from_slice(frame.payload);
        (parcel.checksum, parcel.segment_bytes) = (frame.checksum, frame.segment_bytes);
        self.filled.push_back(parcel);
        Ok(())
    }
}

impl Parcel {
    /// Sends the frame of the parcel. Returns false if the card has no room now. A sent parcel
    /// holds no pieces.
    fn transmit(&mut self, machine: &mut impl Machine) -> bool {
        let frame = OutgoingFrame {
            head: self.head.get(..self.head_bytes).unwrap_or_default(),
            payload: &self.payload,
            checksum: self.checksum,
            segment_bytes: self.segment_bytes,
        };
        if machine.transmit(&frame) == Err(TransmitError::Full) {
            return false;
        }
        self.payload.clear();
        true
    }
}

/// The machine of a core without a transmit queue. It sends in parcels.
pub struct Through<'a, M> {
    /// The real machine, for everything except sending.
    machine: &'a mut M,
    parcels: &'a mut Parcels,
}

impl<M: Machine> Entropy for Through<'_, M> {
    fn random(&mut self, bytes: &mut [u8]) {
        self.machine.random(bytes);
    }
}

impl<M: Machine> Machine for Through<'_, M> {
    fn transmit(&mut self, frame: &OutgoingFrame<'_>) -> Result<(), TransmitError> {
        self.parcels.fill(frame)
    }

    fn now(&mut self) -> Instant {
        self.machine.now()
    }

    fn wall_clock(&mut self) -> UnixTime {
        self.machine.wall_clock()
    }

    fn print(&mut self, line: fmt::Arguments<'_>) {
        self.machine.print(line);
    }

    fn card(&self) -> Card {
        self.machine.card()
    }

    fn receive(&mut self) -> Option<Frame> {
        self.machine.receive()
    }

    fn give_back(&mut self, frame: Frame) {
        self.machine.give_back(frame);
    }

    fn disk(&self) -> Disk {
        self.machine.disk()
    }

    fn request(&mut self, request: DiskRequest) -> Result<(), DiskRequest> {
        self.machine.request(request)
    }

    fn completed(&mut self) -> Option<DiskCompletion> {
        self.machine.completed()
    }

    fn wake(&mut self, core: CoreId) {
        self.machine.wake(core);
    }

    fn ring_doorbells(&mut self) {
        self.machine.ring_doorbells();
    }

    fn is_low_on_memory(&mut self) -> bool {
        self.machine.is_low_on_memory()
    }

    fn stop_requested(&mut self) -> bool {
        self.machine.stop_requested()
    }
}
