//! A cache of recently verified passwords, so that a client that logs in every minute costs one
//! hash an hour.
//!
//! An entry is a keyed 128-bit hash over the PHC string and the password. The key is random at each
//! start, so memory from before a restart reveals nothing. If the password changes, its entry no
//! longer matches.

use alloc::vec;
use alloc::vec::Vec;
use core::hash::Hasher;

use machine::{Instant, Micros};
use siphasher::sip128::{Hasher128, SipHasher24};

const PLACES: usize = 4096;
const LIFETIME: Micros = Micros::from_secs(3600);

#[derive(Clone, Copy)]
struct Verified {
    tag: u128,
    until: Instant,
}

/// A fixed number of verified logins. A new entry evicts an old one.
pub struct VerifiedLogins {
    places: Vec<Option<Verified>>,
    key: [u8; 16],
}

impl VerifiedLogins {
    /// An empty cache with a random `key`.
    pub fn new(key: [u8; 16]) -> VerifiedLogins {
        VerifiedLogins { places: vec![None; PLACES], key }
    }

    /// Whether `password` was verified against `hash`, a PHC string, within the last hour. The salt
    /// ties `hash` to one account.
    pub fn contains(&self, hash: &str, password: &[u8], now: Instant) -> bool {
        let tag = self.tag(hash, password);
        let place = self.places.get(tag as usize % PLACES).copied().flatten();
        place.is_some_and(|verified| verified.tag == tag && now < verified.until)
    }

    /// Records that `password` was verified against `hash` just now.
    pub fn insert(&mut self, hash: &str, password: &[u8], now: Instant) {
        let tag = self.tag(hash, password);
        if let Some(place) = self.places.get_mut(tag as usize % PLACES) {
            *place = Some(Verified { tag, until: now + LIFETIME });
        }
    }

    /// The keyed hash of a password hash and a password, which identifies an entry.
    fn tag(&self, hash: &str, password: &[u8]) -> u128 {
        let mut hasher = SipHasher24::new_with_key(&self.key);
        hasher.write_usize(hash.len());
        hasher.write(hash.as_bytes());
        hasher.write(password);
        hasher.finish128().as_u128()
    }
}
