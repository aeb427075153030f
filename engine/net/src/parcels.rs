//! How a core without a queue of the card's sends: in parcels, through a core that has one.
//!
//! To the network it looks as if the card were here: [`Through`] is the machine, but for `transmit`, which fills a parcel.
//! The parcel travels to the core whose queue it is, is transmitted there when the card has room, and comes home.
//!
//! Invariant: so many parcels are on their way at the most; when all are, the card is full, and the next one that comes home ends the
//! sleep of who found it so.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::fmt;
use core::num::NonZeroU16;

use machine::{
    Card, ChecksumOffload, CoreId, Disk, DiskCompletion, DiskRequest, Entropy, Frame, Instant, Machine, Outgoing,
    PIECES_MAX, Piece, TransmitError, UnixTime,
};
use sometimes::buggify;

/// Parcels of one core.
const PARCELS: usize = 128;

/// The longest head: a whole frame, where nothing follows it.
const HEAD_BYTES: usize = 1514;

/// A frame on its way to the core that sends it.
pub struct Parcel {
    head: [u8; HEAD_BYTES],
    head_bytes: usize,
    payload: Vec<Piece>,
    checksum: Option<ChecksumOffload>,
    segment_bytes: Option<NonZeroU16>,
}

/// The parcels of a core that has no queue.
pub struct Parcels {
    /// The core that sends for us.
    pub sender: CoreId,
    #[expect(clippy::vec_box, reason = "a parcel travels as a pointer")]
    idle: Vec<Box<Parcel>>,
    filled: VecDeque<Box<Parcel>>,
}

impl Parcels {
    /// For core `own` of a card with so many queues; `None` for a core that has one.
    pub fn new(own: CoreId, queues: u8) -> Option<Parcels> {
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

    /// The next parcel for the core that sends for us.
    pub fn next_filled(&mut self) -> Option<Box<Parcel>> {
        self.filled.pop_front()
    }

    /// Whether a filled parcel waits to be sent.
    pub fn has_filled(&self) -> bool {
        !self.filled.is_empty()
    }

    /// How many are filled, or with the core that sends for us.
    pub fn under_way(&self) -> usize {
        PARCELS - self.idle.len()
    }

    /// A parcel has come home.
    pub fn came_home(&mut self, parcel: Box<Parcel>) {
        self.idle.push(parcel);
    }

    fn fill(&mut self, frame: &Outgoing<'_>) -> Result<(), TransmitError> {
        if frame.head.len() > HEAD_BYTES || frame.payload.len() > PIECES_MAX {
            return Err(TransmitError::Malformed);
        }
        if self.under_way() > 0 && buggify!(NoParcel) {
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
    /// Sends it. False: the card has no room now. Once it is sent it holds nothing.
    pub fn transmit(&mut self, machine: &mut impl Machine) -> bool {
        let frame = Outgoing {
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

/// The machine of a core that has no queue.
pub struct Through<'a, M> {
    /// The machine, used for everything but sending.
    pub machine: &'a mut M,
    /// Where frames go instead of to the card.
    pub parcels: &'a mut Parcels,
}

impl<M: Machine> Entropy for Through<'_, M> {
    fn random(&mut self, bytes: &mut [u8]) {
        self.machine.random(bytes);
    }
}

impl<M: Machine> Machine for Through<'_, M> {
    fn transmit(&mut self, frame: &Outgoing<'_>) -> Result<(), TransmitError> {
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
