//! The keyed hash that protects everything on the disk: SipHash-1-3-128 of the record's digest,
//! under a key of the disk. Section 1 of `docs/format.md`.

use core::hash::Hasher;
use siphasher::sip128::{Hasher128, SipHasher13};

use crate::digest::Digester;

/// Bytes of a hash.
pub(crate) const HASH_BYTES: usize = 16;

/// The disk's hash key and the keys derived from it.
#[derive(Clone)]
pub(crate) struct HashKey {
    bytes: [u8; 16],
    names: SipHasher13,
    seals: SipHasher13,
    digester: Digester,
}

impl HashKey {
    pub(crate) fn new(bytes: [u8; 16]) -> HashKey {
        let names = SipHasher13::new_with_key(&bytes);
        let mut number = 0_u64;
        let mut secret = || {
            let secret = names.hash(&number.to_le_bytes()).as_bytes();
            number += 1;
            secret
        };
        HashKey {
            bytes,
            names,
            seals: SipHasher13::new_with_key(&secret()),
            digester: Digester::new(secret),
        }
    }

    pub(crate) fn bytes(&self) -> [u8; 16] {
        self.bytes
    }

    /// The hash of a name. A name is short, so it is hashed without a digest. The secrets of `new`
    /// are hashes of eight bytes that end with zero. No name has this form, so no name has such a
    /// hash.
    pub(crate) fn hash_name(&self, name: &[u8]) -> Hash {
        Hash(self.names.hash(name).as_bytes())
    }

    /// The hash of a record that consists of `parts`.
    pub(crate) fn hash<const N: usize>(&self, parts: [&[u8]; N]) -> Hash {
        let mut hasher = self.seals;
        parts.iter().for_each(|part| hasher.write(&self.digester.digest(part).to_le_bytes()));
        Hash(hasher.finish128().as_bytes())
    }

    /// Puts the hash of `record`, from its 17th byte to `end`, into its first 16 bytes.
    pub(crate) fn seal(&self, record: &mut [u8], end: usize) -> Hash {
        let Some(fields) = record.get(HASH_BYTES..end) else {
            unreachable!("a record that is larger than its buffer")
        };
        let hash = self.hash([fields]);
        let Some(place) = record.first_chunk_mut::<HASH_BYTES>() else {
            unreachable!("a record without its hash")
        };
        *place = hash.0;
        hash
    }

    /// The hash that [`HashKey::seal`] put into `record`, if it is right.
    pub(crate) fn check(&self, record: &[u8], end: usize) -> Option<Hash> {
        let (stored, _) = record.split_first_chunk::<HASH_BYTES>()?;
        let hash = self.hash([record.get(HASH_BYTES..end)?]);
        (hash.0 == *stored).then_some(hash)
    }
}

/// The hash of one record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Hash(pub(crate) [u8; HASH_BYTES]);

impl Hash {
    /// The first eight bytes of the hash as a number.
    pub(crate) fn short(self) -> u64 {
        let [a, b, c, d, e, f, g, h, ..] = self.0;
        u64::from_le_bytes([a, b, c, d, e, f, g, h])
    }
}

/// Random numbers that are derived from the machine's random seed. They are for keys, ids, stamps
/// and fences, and for the field `previous` of a journal's first block, which follows no block.
pub(crate) struct DiskRandom {
    hasher: SipHasher13,
    count: u64,
}

impl DiskRandom {
    pub(crate) fn new(seed: [u8; 32]) -> DiskRandom {
        let (first, second) = seed.split_at(16);
        let mut key = [0; 16];
        key.copy_from_slice(first);
        let mixed = SipHasher13::new_with_key(&key).hash(second).as_bytes();
        DiskRandom { hasher: SipHasher13::new_with_key(&mixed), count: 0 }
    }

    pub(crate) fn bytes(&mut self) -> [u8; 16] {
        self.count += 1;
        self.hasher.hash(&self.count.to_le_bytes()).as_bytes()
    }

    pub(crate) fn number(&mut self) -> u64 {
        Hash(self.bytes()).short()
    }
}
