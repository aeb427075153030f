//! Complete frames that wait for the end of the turn: ARP, ICMP, UDP, and TCP segments that belong
//! to no connection.
//!
//! The outbox is one ring of bytes, allocated once. Each frame is contiguous, and its length is in
//! the two bytes before it.
//!
//! Invariants:
//! - If `read == write`, the outbox is empty. If `write < read`, the frames reach from `read` to
//!   `end`, and then from 0 to `write`.
//! - A frame that does not fit is refused, and the queued frames stay intact.

use alloc::boxed::Box;
use alloc::vec;

/// Bytes of the length field before each frame.
const LENGTH_BYTES: usize = 2;

pub(crate) struct Outbox {
    bytes: Box<[u8]>,
    read: usize,
    write: usize,
    end: usize,
    /// The start of the most recently reserved frame. The frame can be taken back until the next
    /// call that reserves or removes a frame.
    last: usize,
}

impl Outbox {
    /// Allocates `capacity` bytes for frames and their lengths.
    pub(crate) fn with_capacity(capacity: usize) -> Outbox {
        Outbox { bytes: vec![0; capacity].into_boxed_slice(), read: 0, write: 0, end: 0, last: 0 }
    }

    /// Reserves `length` bytes for a frame at the end of the queue; their contents are undefined.
    /// `None` if there is no room, or if the length does not fit its field.
    pub(crate) fn reserve(&mut self, length: usize) -> Option<&mut [u8]> {
        let count = u16::try_from(length).ok()?;
        let needed = length + LENGTH_BYTES;
        if self.write < self.read {
            if self.read - self.write <= needed {
                return None;
            }
        } else if self.bytes.len() - self.write < needed {
            if self.read <= needed {
                return None;
            }
            self.end = self.write;
            self.write = 0;
        }
        let start = self.write;
        self.last = start;
        self.write += needed;
        let frame =
            self.bytes.get_mut(start..start + needed).and_then(<[u8]>::split_first_chunk_mut);
        let Some((place, frame)) = frame else { unreachable!("the room was checked above") };
        *place = count.to_ne_bytes();
        Some(frame)
    }

    /// The oldest frame.
    pub(crate) fn front(&self) -> Option<&[u8]> {
        if self.is_empty() { None } else { Some(self.frame_at(self.read)) }
    }

    /// Takes back the most recently reserved frame. Call it directly after a successful
    /// [`Outbox::reserve`].
    pub(crate) fn take_back(&mut self) -> &[u8] {
        self.write = self.last;
        self.frame_at(self.last)
    }

    /// Removes the oldest frame.
    pub(crate) fn pop(&mut self) {
        let Some(length) = self.front().map(<[u8]>::len) else { return };
        self.read += length + LENGTH_BYTES;
        if self.write < self.read && self.read == self.end {
            self.read = 0;
        }
        if self.read == self.write {
            (self.read, self.write) = (0, 0);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.read == self.write
    }

    fn frame_at(&self, start: usize) -> &[u8] {
        let (_, rest) = self.bytes.split_at(start);
        let Some((count, rest)) = rest.split_first_chunk() else {
            unreachable!("each frame has its length before it")
        };
        let Some(frame) = rest.get(..usize::from(u16::from_ne_bytes(*count))) else {
            unreachable!("each frame ends within the ring")
        };
        frame
    }
}

#[cfg(test)]
mod tests {
    use super::Outbox;
    use alloc::collections::VecDeque;
    use alloc::vec;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    #[test]
    fn a_frame_too_long_for_its_length_field_is_refused() {
        let mut outbox = Outbox::with_capacity(200_000);
        assert!(outbox.reserve(usize::from(u16::MAX) + 1).is_none());
        assert!(outbox.is_empty());
        assert!(outbox.reserve(10).is_some());
        assert_eq!(outbox.front().map(<[u8]>::len), Some(10));
    }

    proptest! {
        #[test]
        fn frames_leave_the_outbox_whole_and_in_order(steps in proptest::collection::vec((0u8..5, 0usize..60), 0..400)) {
            let mut outbox = Outbox::with_capacity(200);
            let mut model: VecDeque<Vec<u8>> = VecDeque::new();
            for (number, (push, length)) in steps.into_iter().enumerate() {
                if push < 3 {
                    match outbox.reserve(length) {
                        Some(room) => {
                            room.fill(number as u8);
                            if push == 0 {
                                let frame = vec![number as u8; length];
                                prop_assert_eq!(outbox.take_back(), frame.as_slice());
                            } else {
                                model.push_back(room.to_vec());
                            }
                        }
                        // A refusal means that the ring is rather full. At most half of the ring is
                        // unused because a frame must be contiguous.
                        None => prop_assert!(model.iter().map(|frame| frame.len() + 2).sum::<usize>() + length > 70),
                    }
                } else {
                    let oldest = model.pop_front();
                    prop_assert_eq!(outbox.front(), oldest.as_deref());
                    outbox.pop();
                }
                prop_assert_eq!(outbox.front(), model.front().map(Vec::as_slice));
                prop_assert_eq!(outbox.is_empty(), model.is_empty());
            }
        }
    }
}
