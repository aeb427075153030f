//! Who has knocked before: SYNs that found no room and were not answered.
//!
//! A flood comes from addresses that nobody has, each of which calls once, or as fast as it can; who is real and hears nothing
//! calls again in a second (RFC 6298 §2.1), and begins with the same number as before. So while SYNs flood in, who knocks a
//! second time is heard before all others, and answers that nobody waits for are not sent: that leaves time to take the frames
//! that matter out of the card's ring.
//!
//! There are places for a million callers, in buckets of one cache line each. Of a keyed hash one part names the bucket and
//! another stands there for who has called, with the time: a stranger seems known once in a million times.
//!
//! - A bucket holds the newest first. A newcomer displaces who has not knocked for the longest time, but nobody before his time:
//!   who finds a place is known when he knocks again after a second, however many call meanwhile.
//! - Below 760,000 SYNs a second nearly everybody finds a place; of twice as many every second one does, and the others knock
//!   once more. The fewer call, the longer is the memory: that helps who waits longer each time.

use alloc::boxed::Box;
use alloc::vec;
use core::hash::{Hash, Hasher};

use machine::{Instant, Micros};
use siphasher::sip::SipHasher13;

/// Buckets of [`PLACES`] callers.
const BUCKETS: usize = 1 << 16;
/// Callers that a bucket remembers.
const PLACES: usize = 16;
/// Time is remembered in such steps.
const STEP: Micros = Micros::from_millis(250);
/// Who calls again sooner than after so many steps is no TCP: half a second at least.
const STEPS_MIN: u8 = 3;
/// Nobody is displaced sooner: a second and a quarter at least.
const STEPS_KEPT: u8 = 6;

/// How often somebody has called, as far as we know.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Knock {
    /// Never before, or just now.
    First,
    /// Not long ago.
    Again,
}

/// Remembers who has knocked.
pub struct Knocks {
    hasher: SipHasher13,
    buckets: Box<[Bucket]>,
}

#[derive(Clone, Copy)]
#[repr(align(64))]
struct Bucket([Place; PLACES]);

const _: () = assert!(size_of::<Bucket>() == 64, "a bucket is one cache line");

/// Who, in the upper 24 bits, and when, in steps modulo a minute.
#[derive(Clone, Copy)]
struct Place(u32);

impl Place {
    const NOBODYS: Place = Place(0);

    fn is_of(self, other: Place) -> bool {
        self.0 >> 8 == other.0 >> 8
    }

    /// Steps since its caller knocked.
    fn age(self, now: Place) -> u8 {
        (now.0 as u8).wrapping_sub(self.0 as u8)
    }

    /// Whether its caller still has time to knock again.
    fn is_kept(self, now: Place) -> bool {
        !self.is_of(Place::NOBODYS) && self.age(now) < STEPS_KEPT
    }
}

impl Knocks {
    /// `secret` is random, so that nobody outside chooses who displaces whom.
    pub fn new(secret: &[u8; 16]) -> Knocks {
        let buckets = vec![Bucket([Place::NOBODYS; PLACES]); BUCKETS].into_boxed_slice();
        Knocks { hasher: SipHasher13::new_with_key(secret), buckets }
    }

    /// Somebody knocks; from now on he is known, if there is a place for him. `key`: addresses and ports of both ends, and the
    /// number that he begins with.
    pub fn knock(&mut self, now: Instant, key: &impl Hash) -> Knock {
        let mut hasher = self.hasher;
        key.hash(&mut hasher);
        let hash = hasher.finish();
        let here = Place(((hash >> 40) as u32).max(1) << 8 | u32::from((now.0 / STEP.0) as u8));
        let Some(Bucket(places)) = self.buckets.get_mut(hash as usize % BUCKETS) else {
            unreachable!("a bucket above the last one")
        };
        let (at, is_known) = match places.iter().position(|place| place.is_of(here)) {
            Some(at) => (at, places.get(at).is_some_and(|before| before.age(here) >= STEPS_MIN)),
            None if places.last().is_some_and(|oldest| oldest.is_kept(here)) => {
                return Knock::First;
            }
            None => (PLACES - 1, false),
        };
        // Who has knocked since then moves on by one.
        let Some(newer) = places.get_mut(..=at) else { unreachable!("a place above the last one") };
        newer.rotate_right(1);
        let [newest, ..] = places;
        *newest = here;
        if is_known { Knock::Again } else { Knock::First }
    }
}

#[cfg(test)]
mod tests;
