//! Numbers that outsiders cannot guess. They are derived from the machine's seed, and serve as
//! keys, transaction ids and jitter.

use core::hash::Hasher;
use siphasher::sip::SipHasher13;

/// A generator of random numbers: a counter under a keyed hash.
pub(crate) struct Random {
    hasher: SipHasher13,
    drawn: u64,
}

impl Random {
    /// Creates a generator from 32 bytes of seed: a key, and a salt that is hashed with every
    /// number.
    pub(crate) fn new(key: [u8; 16], salt: [u8; 16]) -> Random {
        let mut hasher = SipHasher13::new_with_key(&key);
        hasher.write(&salt);
        Random { hasher, drawn: 0 }
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.drawn = self.drawn.wrapping_add(1);
        let mut hasher = self.hasher;
        hasher.write_u64(self.drawn);
        hasher.finish()
    }

    /// A key for another generator.
    pub(crate) fn key(&mut self) -> [u8; 16] {
        (u128::from(self.next()) << 64 | u128::from(self.next())).to_le_bytes()
    }

    /// A number below `bound`; zero when `bound` is zero.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }
}
