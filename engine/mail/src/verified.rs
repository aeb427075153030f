//! Passwords that were right a little while ago, so that a client that logs in every minute costs one hash an hour.
//!
//! What is kept is a keyed 128-bit hash of password hash and password, under a key of this machine's life: it
//! tells nothing to who reads the memory of another life, and it dies with a password change.

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

/// A fixed number of verified logins; a new one displaces an old one.
pub struct VerifiedLogins {
    places: Vec<Option<Verified>>,
    key: [u8; 16],
}

impl VerifiedLogins {
    /// An empty memory under a random `key`.
    pub fn new(key: [u8; 16]) -> VerifiedLogins {
        VerifiedLogins { places: vec![None; PLACES], key }
    }

    /// Whether `password` was verified against `hash`, a PHC string, within the last hour. Its salt makes it the hash of one account.
    pub fn contains(&self, hash: &str, password: &[u8], now: Instant) -> bool {
        let tag = self.tag(hash, password);
        let place = self.places.get(tag as usize % PLACES).copied().flatten();
        place.is_some_and(|verified| verified.tag == tag && now < verified.until)
    }

    /// `password` was verified against `hash` just now.
    pub fn insert(&mut self, hash: &str, password: &[u8], now: Instant) {
        let tag = self.tag(hash, password);
        if let Some(place) = self.places.get_mut(tag as usize % PLACES) {
            *place = Some(Verified { tag, until: now + LIFETIME });
        }
    }

    fn tag(&self, hash: &str, password: &[u8]) -> u128 {
        let mut hasher = SipHasher24::new_with_key(&self.key);
        hasher.write_usize(hash.len());
        hasher.write(hash.as_bytes());
        hasher.write(password);
        hasher.finish128().as_u128()
    }
}
