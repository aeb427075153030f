//! Who has knocked before: SYNs that found no room and were not answered.
//!
//! A flood comes from addresses that nobody has, each of which calls once, or as fast as it can; who is real and hears nothing
//! calls again in a second (RFC 6298 §2.1). So while SYNs flood in, who knocks a second time is heard before all others, and
//! answers that nobody waits for are not sent: that leaves time to take the frames that matter out of the card's ring.
//!
//! One place for each of a million callers, named by a keyed hash, says when one of them knocked last and a part of who it was.
//! A later caller of the same place displaces him, so the memory is the shorter the more call: at 300,000 SYNs a second
//! three of four are known when they knock again after a second. A stranger seems known once in some hundred times. Neither
//! does harm: who is not known knocks once more, and who is not real does not answer.

use alloc::boxed::Box;
use alloc::vec;
use core::hash::{Hash, Hasher};

use machine::{Instant, Micros};
use siphasher::sip::SipHasher13;

/// Callers that are remembered, in two bytes each.
const PLACES: usize = 1 << 20;
/// Time is remembered in such steps.
const STEP: Micros = Micros::from_millis(250);
/// Who calls again sooner than after so many steps is no TCP: half a second at least.
const STEPS_MIN: u8 = 3;

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
    places: Box<[Place]>,
}

#[derive(Clone, Copy)]
struct Place {
    /// A part of the hash of who has called; zero is nobody's.
    tag: u8,
    /// When, in steps, modulo a minute.
    step: u8,
}

impl Knocks {
    /// `secret` is random, so that nobody outside chooses who displaces whom.
    pub fn new(secret: &[u8; 16]) -> Knocks {
        let places = vec![Place { tag: 0, step: 0 }; PLACES].into_boxed_slice();
        Knocks { hasher: SipHasher13::new_with_key(secret), places }
    }

    /// Somebody knocks; from now on he is known. `key`: addresses and ports of both ends.
    pub fn knock(&mut self, now: Instant, key: &impl Hash) -> Knock {
        let mut hasher = self.hasher;
        key.hash(&mut hasher);
        let hash = hasher.finish();
        let here = Place { tag: ((hash >> 56) as u8).max(1), step: (now.0 / STEP.0) as u8 };
        let Some(place) = self.places.get_mut(hash as usize % PLACES) else { return Knock::First };
        let before = core::mem::replace(place, here);
        let is_known = before.tag == here.tag && here.step.wrapping_sub(before.step) >= STEPS_MIN;
        if is_known { Knock::Again } else { Knock::First }
    }
}

#[cfg(test)]
mod tests;
