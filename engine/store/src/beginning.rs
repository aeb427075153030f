//! The first part of a message, gathered until the reader has enough.
//!
//! One read returns octets that are contiguous on the disk. Their number depends on the layout: in
//! the middle of a line, a chunk may end, or a head may begin or end. So a reader that needs a
//! whole structure gathers octets in a [`PartialMessage`]. It continues reading at
//! [`PartialMessage::next`], and parses again after each part.
//!
//! Invariants:
//! - The octets are those of the message, from the first offset on, in order and without a gap.
//! - If a reader stops gathering at a limit, it exceeds the limit by less than one part: less than
//!   32,257 octets.

use alloc::vec::Vec;

/// The octets of a message from one offset on, as far as they have been read.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PartialMessage {
    from: u32,
    octets: Vec<u8>,
}

impl PartialMessage {
    /// An empty part that begins at `offset`.
    pub const fn from(offset: u32) -> PartialMessage {
        PartialMessage { from: offset, octets: Vec::new() }
    }

    /// The offset at which the next read begins.
    pub fn next(&self) -> u32 {
        self.from.saturating_add(self.octets.len() as u32)
    }

    /// Appends octets that a read from [`PartialMessage::next`] returned.
    pub fn arrived(&mut self, octets: &[u8]) {
        self.octets.extend_from_slice(octets);
    }

    /// Whether everything up to the end of a message of this length has been read.
    pub fn is_all_of(&self, message_octets: u32) -> bool {
        self.next() >= message_octets
    }

    /// The octets read so far.
    pub fn octets(&self) -> &[u8] {
        &self.octets
    }

    /// The octets read so far, by value.
    pub fn into_octets(self) -> Vec<u8> {
        self.octets
    }
}
