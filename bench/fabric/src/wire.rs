//! The wire: rings of frames between ends, and rings that return the buffers of the frames.
//!
//! Invariants:
//! - A buffer belongs to the end that made it. Its first byte is that end's number, and the
//!   receiver of a frame returns the buffer to that end.
//! - No memory is allocated once the ends are made. An end without a free buffer sends later.

use machine::{Checksum, Frame, OutgoingFrame, Piece, TransmitError};
use rings::{Receiver, Sender, ring};

/// The most frames in the ring from one end to another.
const FRAMES: usize = 256;
/// The buffers of one end, including those in rings and those that other ends have not returned.
const BUFFERS: usize = 1024;
/// The bytes before a frame in its buffer.
const MARGIN: usize = 16;
/// The longest IP packet with its Ethernet header.
const FRAME_BYTES_MAX: usize = 14 + 65_535;

/// A frame in a ring.
struct Sent {
    buffer: Box<[u8]>,
    bytes: usize,
}

/// One end of the wire.
pub(crate) struct End {
    ways: Vec<Way>,
    /// The index of the other end from which the next frame is received.
    next: usize,
    free: Vec<Box<[u8]>>,
}

/// The rings to and from one other end.
struct Way {
    other: u8,
    frames: Sender<Sent>,
    buffers_returned: Receiver<Box<[u8]>>,
    arriving: Receiver<Sent>,
    buffers_to_return: Sender<Box<[u8]>>,
}

/// The ends of `servers` and of `clients`. Each server's end is connected with each client's end.
/// The servers' ends are numbered from 0, and the clients' ends after them.
pub(crate) fn ends(servers: u8, clients: u8) -> (Vec<End>, Vec<End>) {
    let mut near: Vec<End> = (0..servers).map(End::new).collect();
    let mut far: Vec<End> = (servers..servers + clients).map(End::new).collect();
    for (number, server) in (0..).zip(&mut near) {
        for (other, client) in (servers..).zip(&mut far) {
            let ((to_client, from_server), (to_server, from_client)) = (ring(FRAMES), ring(FRAMES));
            let ((servers_go, servers_come), (clients_go, clients_come)) =
                (ring(BUFFERS), ring(BUFFERS));
            server.ways.push(Way {
                other,
                frames: to_client,
                buffers_returned: servers_come,
                arriving: from_client,
                buffers_to_return: clients_go,
            });
            client.ways.push(Way {
                other: number,
                frames: to_server,
                buffers_returned: clients_come,
                arriving: from_server,
                buffers_to_return: servers_go,
            });
        }
    }
    (near, far)
}

impl End {
    fn new(number: u8) -> End {
        let buffer = || {
            let mut buffer = vec![0; MARGIN + FRAME_BYTES_MAX].into_boxed_slice();
            buffer.first_mut().into_iter().for_each(|owner| *owner = number);
            buffer
        };
        End { ways: Vec::new(), next: 0, free: (0..BUFFERS).map(|_| buffer()).collect() }
    }

    /// The next frame that has arrived. The other ends take turns.
    pub(crate) fn receive(&mut self) -> Option<Frame> {
        let count = self.ways.len();
        for _ in 0..count {
            let way = self.ways.get_mut(self.next)?;
            self.next = if self.next + 1 < count { self.next + 1 } else { 0 };
            if let Some(Sent { buffer, bytes }) = way.arriving.receive() {
                // No checksum was computed: the frame has not left this process's memory.
                return Some(Frame::new(buffer, MARGIN..MARGIN + bytes, Checksum::Verified));
            }
        }
        None
    }

    /// Returns the buffer of a received frame to the end that owns it.
    pub(crate) fn give_back(&mut self, frame: Frame) {
        let buffer = frame.into_buffer();
        let owner = buffer.first().copied();
        if let Some(way) = self.ways.iter_mut().find(|way| Some(way.other) == owner) {
            let sent = way.buffers_to_return.send(buffer);
            assert!(sent.is_ok(), "the ring for returns has room for every buffer of an end");
        }
    }

    /// Sends a frame to each other end for which `is_meant` returns true. `is_meant` gets the
    /// number of the end.
    ///
    /// Errors: no room, or a frame larger than a buffer. A frame for several ends may have been
    /// sent to some of them.
    pub(crate) fn transmit(
        &mut self,
        frame: &OutgoingFrame<'_>,
        is_meant: impl Fn(u8) -> bool,
    ) -> Result<(), TransmitError> {
        let bytes = frame.head.len() + frame.payload.iter().map(Piece::len).sum::<usize>();
        if bytes > FRAME_BYTES_MAX {
            return Err(TransmitError::Malformed);
        }
        for way in self.ways.iter_mut().filter(|way| is_meant(way.other)) {
            if !way.frames.has_room() {
                return Err(TransmitError::Full);
            }
            let mut buffer = self.free.pop().ok_or(TransmitError::Full)?;
            fill(buffer.get_mut(MARGIN..).unwrap_or_default(), frame);
            let sent = way.frames.send(Sent { buffer, bytes });
            assert!(sent.is_ok(), "a ring that has room takes a frame");
        }
        Ok(())
    }

    /// Collects the returned buffers. The last returned buffer is used first.
    pub(crate) fn collect_buffers(&mut self) {
        for way in &mut self.ways {
            while let Some(buffer) = way.buffers_returned.receive() {
                self.free.push(buffer);
            }
        }
    }

    #[cfg(test)]
    pub(crate) fn free_buffers(&self) -> usize {
        self.free.len()
    }
}

/// Copies the parts of a frame into a buffer, one after the other.
fn fill(room: &mut [u8], frame: &OutgoingFrame<'_>) {
    let mut filled = 0;
    for part in std::iter::once(frame.head).chain(frame.payload.iter().map(Piece::bytes)) {
        if let Some(place) = room.get_mut(filled..filled + part.len()) {
            place.copy_from_slice(part);
        }
        filled += part.len();
    }
}
