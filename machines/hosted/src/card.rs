//! The card: our end of a tap interface. Linux has the other end.
//!
//! The header of virtio 1.2, section 5.1.6, precedes each frame in both directions. So the sender
//! of a frame need not compute the checksum, and one long frame may take the place of many
//! segments.
//!
//! One system call reads or writes each frame, and Linux performs it at once. This card has no
//! ring, and keeps no state of a frame after the call.
//!
//! An interface with several queues is one card, which has a [`Tap`] for each core.
//!
//! Invariants:
//! - Each buffer is either in use by an engine or in `buffers`.
//! - A length from Linux only selects a part of our own buffer.

use std::io::IoSlice;

use machine::{
    Card, Checksum, Ethernet, Frame, HEAD_BYTES_MAX, Offloads, OutgoingFrame, PIECES_MAX, Piece,
    TransmitError,
};
use rustix::event::PollFlags;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::{self, Errno};

use tap::{AttachError, Frames, HEADER_BYTES, Interface};

/// The frame's transport checksum is incomplete: it covers only the pseudo header.
const FLAG_NEEDS_CHECKSUM: u8 = 1;
/// The frame's transport checksum was verified.
const FLAG_CHECKSUM_VALID: u8 = 2;

const SEGMENTS_TCP_IPV4: u8 = 1;
const SEGMENTS_TCP_IPV6: u8 = 4;

/// The longest IP packet with its Ethernet header.
const FRAME_BYTES_MAX: usize = 14 + 65_535;

/// The maximum number of frames that the engine may have at a time.
const BUFFERS: usize = 4;
/// The maximum number of frames if other cores may have some of them too, each until its next turn.
const BUFFERS_OF_MANY: usize = 64;

/// The maximum MTU, the same as of the card of the image.
const MTU_MAX: u16 = 1500;

/// One queue of a tap interface.
pub struct Tap {
    device: OwnedFd,
    card: Card,
    buffers: Vec<Box<[u8]>>,
    buffers_max: usize,
    /// Whether the interface had no space for the last frame.
    is_full: bool,
    is_gone: bool,
}

impl Tap {
    /// Opens the existing tap interface called `name`. Returns one queue for each of `cores`, or a
    /// single queue, depending on how the interface was created.
    ///
    /// Errors: the reason why the interface cannot be used.
    pub fn attach(name: &str, cores: u8) -> Result<Vec<Tap>, AttachError> {
        let Interface { device, others, address, mtu } =
            tap::attach(name, Frames::Offloaded, cores)?;
        let card = Card {
            address: opposite(Ethernet(address)),
            mtu: mtu.min(MTU_MAX),
            offloads: Offloads { checksum: true, segmentation_ipv4: true, segmentation_ipv6: true },
            queues: 1 + others.len() as u8,
        };
        let buffers = if cores > 1 { BUFFERS_OF_MANY } else { BUFFERS };
        Ok(std::iter::once(device)
            .chain(others)
            .map(|device| Tap::over(device, card, buffers))
            .collect())
    }

    /// A queue of a card. It reads and writes frames through `device`. `buffers`: the maximum
    /// number of frames that engines may have at a time.
    pub(crate) fn over(device: OwnedFd, card: Card, buffers: usize) -> Tap {
        let buffer = || vec![0; HEADER_BYTES + FRAME_BYTES_MAX].into_boxed_slice();
        Tap {
            device,
            card,
            buffers: (0..buffers).map(|_| buffer()).collect(),
            buffers_max: buffers,
            is_full: false,
            is_gone: false,
        }
    }

    pub(crate) fn card(&self) -> Card {
        self.card
    }

    /// Whether a frame that arrives can be received.
    pub(crate) fn has_buffer(&self) -> bool {
        !self.buffers.is_empty()
    }

    /// The events that end a sleep: the arrival of a frame, and space in the interface if the last
    /// frame found none.
    pub(crate) fn awaited(&self) -> PollFlags {
        if self.is_full { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN }
    }

    /// Whether the interface was removed. Once true, it stays true.
    pub(crate) fn is_gone(&self) -> bool {
        self.is_gone
    }

    /// The next frame, if a frame has arrived and a buffer is free.
    pub(crate) fn receive(&mut self) -> Option<Frame> {
        let mut buffer = self.buffers.pop()?;
        loop {
            match io::read(&self.device, &mut *buffer) {
                Ok(bytes) if bytes >= HEADER_BYTES => {
                    let checksum = checksum(&buffer);
                    return Some(Frame::new(buffer, HEADER_BYTES..bytes, checksum));
                }
                Err(Errno::INTR) => continue,
                Err(Errno::AGAIN) => {}
                Ok(_) | Err(_) => self.is_gone = true,
            }
            self.buffers.push(buffer);
            return None;
        }
    }

    /// Takes back the buffer of a frame, for later frames.
    pub(crate) fn give_back(&mut self, frame: Frame) {
        let buffer = frame.into_buffer();
        if self.buffers.len() < self.buffers_max && buffer.len() == HEADER_BYTES + FRAME_BYTES_MAX {
            self.buffers.push(buffer);
        }
    }

    /// Sends a frame to Linux.
    pub(crate) fn transmit(&mut self, frame: &OutgoingFrame<'_>) -> Result<(), TransmitError> {
        check(frame, self.card)?;
        let header = header(frame);
        let mut parts = [IoSlice::new(&[]); 2 + PIECES_MAX];
        let all = [header.as_slice(), frame.head]
            .into_iter()
            .chain(frame.payload.iter().map(Piece::bytes));
        parts.iter_mut().zip(all).for_each(|(place, part)| *place = IoSlice::new(part));
        self.is_full = false;
        loop {
            return match io::writev(&self.device, &parts) {
                Ok(_) => Ok(()),
                Err(Errno::INTR) => continue,
                Err(Errno::AGAIN) => {
                    self.is_full = true;
                    Err(TransmitError::Full)
                }
                Err(Errno::INVAL) => Err(TransmitError::Malformed),
                // The interface is down. As with an unplugged cable, the frame is lost.
                Err(Errno::IO) => Ok(()),
                Err(_) => {
                    self.is_gone = true;
                    Ok(())
                }
            };
        }
    }
}

impl AsFd for Tap {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.device.as_fd()
    }
}

/// The hardware address of our end, derived from the address of Linux's end. The result is always
/// the same for an interface, differs between interfaces, and is locally administered.
fn opposite(Ethernet([first, second, rest @ ..]): Ethernet) -> Ethernet {
    let [third, fourth, fifth, sixth] = rest;
    Ethernet([first & !1 | 2, second ^ 0xBA, third, fourth, fifth, sixth])
}

/// The checksum state of a received frame, from its virtio header. A frame with an incomplete
/// checksum has never left this host, so it counts as verified.
fn checksum(buffer: &[u8]) -> Checksum {
    match buffer.first() {
        Some(flags) if flags & (FLAG_NEEDS_CHECKSUM | FLAG_CHECKSUM_VALID) != 0 => {
            Checksum::Verified
        }
        _ => Checksum::Unknown,
    }
}

/// Checks a frame to send. Errors: `Malformed` if the frame exceeds a limit of [`OutgoingFrame`],
/// or needs an offload that the card lacks.
fn check(frame: &OutgoingFrame<'_>, card: Card) -> Result<(), TransmitError> {
    let payload_bytes: usize = frame.payload.iter().map(Piece::len).sum();
    let head_bytes_max = if frame.payload.is_empty() { FRAME_BYTES_MAX } else { HEAD_BYTES_MAX };
    let is_sound = frame.head.len() <= head_bytes_max
        && frame.payload.len() <= PIECES_MAX
        && frame.head.len() + payload_bytes <= FRAME_BYTES_MAX
        && (frame.checksum.is_none() || card.offloads.checksum)
        && (frame.segment_bytes.is_none()
            || card.offloads.can_cut(frame) && frame.checksum.is_some());
    if is_sound { Ok(()) } else { Err(TransmitError::Malformed) }
}

/// The virtio header of a frame to send, in the host's byte order.
fn header(frame: &OutgoingFrame<'_>) -> [u8; HEADER_BYTES] {
    let Some(checksum) = frame.checksum else { return [0; HEADER_BYTES] };
    let (kind, head_bytes, segment_bytes) = match frame.segment_bytes {
        Some(bytes) if frame.is_ipv6() => (SEGMENTS_TCP_IPV6, frame.head.len() as u16, bytes.get()),
        Some(bytes) => (SEGMENTS_TCP_IPV4, frame.head.len() as u16, bytes.get()),
        None => (0, 0, 0),
    };
    let [h0, h1] = head_bytes.to_ne_bytes();
    let [s0, s1] = segment_bytes.to_ne_bytes();
    let [c0, c1] = checksum.start.to_ne_bytes();
    let [o0, o1] = checksum.offset.to_ne_bytes();
    [FLAG_NEEDS_CHECKSUM, kind, h0, h1, s0, s1, c0, c1, o0, o1, 0, 0]
}

#[cfg(test)]
mod tests;
