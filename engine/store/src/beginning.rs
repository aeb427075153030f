//! The beginning of a message, gathered until its reader has enough of it.
//!
//! One read gives the octets that lie together on the disk. How many these are is the store's
//! affair: a chunk ends, a head begins or ends, and all of that may be in the middle of a line. A
//! reader that needs what belongs together gathers it here, reads on at [`Beginning::next`], and
//! parses again with each part.
//!
//! Invariants:
//! - The octets are those of the message from the first offset on, in order, without a gap.
//! - A reader that limits what it gathers is off by one part at most: by less than 32,257 octets.

use alloc::vec::Vec;

/// The octets of a message from one offset on, as far as they were read.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Beginning {
    from: u32,
    octets: Vec<u8>,
}

impl Beginning {
    /// Nothing yet of what begins at this offset.
    pub const fn from(offset: u32) -> Beginning {
        Beginning { from: offset, octets: Vec::new() }
    }

    /// The offset at which the next read begins.
    pub fn next(&self) -> u32 {
        self.from.saturating_add(self.octets.len() as u32)
    }

    /// A read that began at [`Beginning::next`] has given these octets.
    pub fn arrived(&mut self, octets: &[u8]) {
        self.octets.extend_from_slice(octets);
    }

    /// Whether nothing follows in a message of so many octets.
    pub fn is_all_of(&self, message_octets: u32) -> bool {
        self.next() >= message_octets
    }

    /// What was read.
    pub fn octets(&self) -> &[u8] {
        &self.octets
    }

    /// The same, for good.
    pub fn into_octets(self) -> Vec<u8> {
        self.octets
    }
}
