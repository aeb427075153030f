//! The SYN retry filter: recognises a repeated SYN. The first SYN found no room and got no answer.
//!
//! A SYN flood uses forged addresses. It uses each address once, or repeats it without a pause. A
//! real client without an answer repeats its SYN after a second (RFC 6298 §2.1), with the same
//! sequence number. So during a flood we serve repeated SYNs first, and send nothing to forged
//! addresses. This leaves time to take the other frames from the card's ring.
//!
//! The filter has room for a million SYNs, in buckets of one cache line each. One part of a keyed
//! hash of the SYN selects the bucket. Another part is stored in the bucket, with the time. With a
//! probability of one in a million, a new SYN is mistaken for a repeated one.
//! - A bucket is ordered by time, newest first. A new SYN evicts the oldest entry, but never an
//!   entry that is too young. So a stored SYN is recognised when it is repeated after a second,
//!   however many other SYNs arrive in that time.
//! - Below 760,000 SYNs a second, nearly every SYN is stored. At twice that rate, every second SYN
//!   is stored, and the others need one more retry. At lower rates entries stay longer, which helps
//!   clients with longer retry intervals.

use alloc::boxed::Box;
use alloc::vec;
use core::hash::{Hash, Hasher};

use machine::{Instant, Micros};
use siphasher::sip::SipHasher13;

/// The number of buckets, each of [`ENTRIES`] entries.
const BUCKETS: usize = 1 << 16;
/// The number of entries of a bucket.
const ENTRIES: usize = 16;
/// The resolution of stored times.
const STEP: Micros = Micros::from_millis(250);
/// The fewest steps after which a client repeats its SYN. The steps are at least half a second,
/// because stored times are rounded down.
const STEPS_MIN: u8 = 3;
/// The fewest steps for which an entry is kept. They are at least a second and a quarter.
const STEPS_KEPT: u8 = 6;

/// Whether a SYN has been seen before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SynHistory {
    /// The SYN was not seen before, or was last seen too recently for a retry.
    New,
    /// The SYN was seen before, long enough ago for a retry.
    Repeated,
}

/// The filter.
pub struct SynRetryFilter {
    hasher: SipHasher13,
    buckets: Box<[SynBucket]>,
}

#[derive(Clone, Copy)]
#[repr(align(64))]
struct SynBucket([SynEntry; ENTRIES]);

const _: () = assert!(size_of::<SynBucket>() == 64, "a bucket is one cache line");

/// Part of the hash in the upper 24 bits, and the time in steps modulo a minute.
#[derive(Clone, Copy)]
struct SynEntry(u32);

impl SynEntry {
    const NONE: SynEntry = SynEntry(0);

    fn is_of(self, other: SynEntry) -> bool {
        self.0 >> 8 == other.0 >> 8
    }

    /// The number of steps since the SYN of this entry was last seen.
    fn age(self, now: SynEntry) -> u8 {
        (now.0 as u8).wrapping_sub(self.0 as u8)
    }

    /// Whether the sender of the SYN still has time to repeat it.
    fn is_kept(self, now: SynEntry) -> bool {
        !self.is_of(SynEntry::NONE) && self.age(now) < STEPS_KEPT
    }
}

impl SynRetryFilter {
    /// `secret`: random, so that no outsider can choose which entries are evicted.
    pub fn new(secret: &[u8; 16]) -> SynRetryFilter {
        let buckets = vec![SynBucket([SynEntry::NONE; ENTRIES]); BUCKETS].into_boxed_slice();
        SynRetryFilter { hasher: SipHasher13::new_with_key(secret), buckets }
    }

    /// Records a SYN, if there is room for it. Returns whether it has been seen before. `key`:
    /// addresses and ports of both ends, and the sequence number of the SYN.
    pub fn record_syn(&mut self, now: Instant, key: &impl Hash) -> SynHistory {
        let mut hasher = self.hasher;
        key.hash(&mut hasher);
        let hash = hasher.finish();
        let here = SynEntry(((hash >> 40) as u32).max(1) << 8 | u32::from((now.0 / STEP.0) as u8));
        let Some(SynBucket(places)) = self.buckets.get_mut(hash as usize % BUCKETS) else {
            unreachable!("a bucket above the last one")
        };
        let (at, is_known) = match places.iter().position(|place| place.is_of(here)) {
            Some(at) => (at, places.get(at).is_some_and(|before| before.age(here) >= STEPS_MIN)),
            None if places.last().is_some_and(|oldest| oldest.is_kept(here)) => {
                return SynHistory::New;
            }
            None => (ENTRIES - 1, false),
        };
        // The newer entries move back by one place, and the SYN takes the first.
        let Some(newer) = places.get_mut(..=at) else { unreachable!("a place above the last one") };
        newer.rotate_right(1);
        let [newest, ..] = places;
        *newest = here;
        if is_known { SynHistory::Repeated } else { SynHistory::New }
    }
}

#[cfg(test)]
mod tests;
