//! The keyed hash under which everything on the disk stands: SipHash-1-3-128 under a key of the disk's own.

use core::hash::Hasher;
use siphasher::sip128::{Hasher128, SipHasher13};

/// Bytes of a hash.
pub(crate) const HASH_BYTES: usize = 16;

/// The disk's hash key.
#[derive(Clone)]
pub(crate) struct Key {
    bytes: [u8; 16],
    hasher: SipHasher13,
}

impl Key {
    pub(crate) fn new(bytes: [u8; 16]) -> Key {
        Key { bytes, hasher: SipHasher13::new_with_key(&bytes) }
    }

    pub(crate) fn bytes(&self) -> [u8; 16] {
        self.bytes
    }

    pub(crate) fn hash(&self, bytes: &[u8]) -> Hash {
        Hash(self.hasher.hash(bytes).as_bytes())
    }

    /// The hash of two byte strings in a row; the first is a multiple of eight bytes long.
    pub(crate) fn hash_two(&self, first: &[u8], second: &[u8]) -> Hash {
        let mut hasher = self.hasher;
        hasher.write(first);
        hasher.write(second);
        Hash(hasher.finish128().as_bytes())
    }

    /// Puts the hash of `record` from its 17th byte to `end` into its first 16 bytes.
    pub(crate) fn seal(&self, record: &mut [u8], end: usize) -> Hash {
        let hash = self.hash(record.get(HASH_BYTES..end).unwrap_or_default());
        if let Some(place) = record.first_chunk_mut::<HASH_BYTES>() {
            *place = hash.0;
        }
        hash
    }

    /// The hash of `record` as [`Key::seal`] put it there, if it is right.
    pub(crate) fn check(&self, record: &[u8], end: usize) -> Option<Hash> {
        let (stored, _) = record.split_first_chunk::<HASH_BYTES>()?;
        let hash = self.hash(record.get(HASH_BYTES..end)?);
        (hash.0 == *stored).then_some(hash)
    }
}

/// The hash of one record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Hash(pub(crate) [u8; HASH_BYTES]);

impl Hash {
    /// Its first eight bytes as a number.
    pub(crate) fn short(self) -> u64 {
        let [a, b, c, d, e, f, g, h, ..] = self.0;
        u64::from_le_bytes([a, b, c, d, e, f, g, h])
    }
}

/// Random numbers spun from the machine's random seed: for keys, ids and the first `previous` of a journal.
pub(crate) struct Random {
    key: Key,
    count: u64,
}

impl Random {
    pub(crate) fn new(seed: [u8; 32]) -> Random {
        let (first, second) = seed.split_at(16);
        let mut key = [0; 16];
        key.copy_from_slice(first);
        let mixed = Key::new(key).hash(second);
        Random { key: Key::new(mixed.0), count: 0 }
    }

    pub(crate) fn bytes(&mut self) -> [u8; 16] {
        self.count += 1;
        self.key.hash(&self.count.to_le_bytes()).0
    }

    pub(crate) fn number(&mut self) -> u64 {
        Hash(self.bytes()).short()
    }
}
