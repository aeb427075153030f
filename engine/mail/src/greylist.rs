//! Greylisting (RFC 6647): mail of an unknown sender is deferred. Bulk spammers seldom retry.
//!
//! The *origin* of a message is the domain that authorizes its host (by SPF). If no domain does,
//! the origin is the network of the host (a /24, a /64). The first message of an origin from one
//! sender to one recipient is deferred. It is accepted when it is retried after the delay of
//! [`Greylist::new`] and within a day. From then on, the origin is known until 35 days after its
//! last message.
//!
//! - The table has a fixed size. A new record evicts the record of its set that would expire first.
//!   An evicted message must be retried once more.
//! - A message that is deferred again keeps the time of its first attempt.

use alloc::vec;
use alloc::vec::Vec;
use core::hash::Hasher;
use core::net::IpAddr;

use machine::{Instant, Micros};
use siphasher::sip::SipHasher13;

/// The longest time from the first attempt of a message to its retry.
const RETRY_WITHIN: Micros = Micros::from_secs(24 * 3_600);
/// The time for which an origin without new mail stays known.
const KNOWN_FOR: Micros = Micros::from_secs(35 * 24 * 3_600);

const WAYS: usize = 4;
const SETS: usize = 4096;

/// The origin of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SenderOrigin<'a> {
    /// This domain authorizes the host to send for it.
    Domain(&'a str),
    /// No domain authorizes the host.
    Host(IpAddr),
}

/// Keyed hashes of an origin, and of a message from one sender to one recipient.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Triplet {
    origin: u64,
    message: u64,
}

impl Triplet {
    /// The hash of the origin. It is the same for all messages from the origin.
    pub fn origin(self) -> u64 {
        self.origin
    }
}

#[derive(Clone, Copy)]
struct GreylistEntry {
    key: u64,
    since: Instant,
    until: Instant,
}

impl GreylistEntry {
    const NONE: GreylistEntry =
        GreylistEntry { key: 0, since: Instant::START, until: Instant::START };
}

/// The known origins, and the deferred messages.
pub struct Greylist {
    records: Vec<[GreylistEntry; WAYS]>,
    delay: Micros,
    key: [u8; 16],
}

impl Greylist {
    /// An empty table. `delay`: the time until a retry is accepted. `key`: random, and the same on
    /// all cores.
    pub fn new(delay: Micros, key: [u8; 16]) -> Greylist {
        Greylist { records: vec![[GreylistEntry::NONE; WAYS]; SETS], delay, key }
    }

    /// Whether the message is accepted now. If not, it is deferred, and a later retry may be
    /// accepted.
    #[must_use]
    pub fn passes(&mut self, triplet: Triplet, now: Instant) -> bool {
        let Triplet { origin, message } = triplet;
        let is_known = self.find(origin, now).is_some();
        let waited = self.find(message, now).map(|record| now.since(record.since));
        if is_known || waited.is_some_and(|waited| waited >= self.delay) {
            self.store(GreylistEntry { key: origin, since: now, until: now + KNOWN_FOR });
            return true;
        }
        if waited.is_none() {
            self.store(GreylistEntry { key: message, since: now, until: now + RETRY_WITHIN });
        }
        false
    }

    /// Stores a record in place of the record with the same key, or of the one that expires first.
    fn store(&mut self, entry: GreylistEntry) {
        let Some(set) = self.records.get_mut(entry.key as usize % SETS) else { return };
        let place = set.iter().position(|record| record.key == entry.key);
        let expires_first = || {
            set.iter().enumerate().min_by_key(|(_, record)| record.until).map(|(place, _)| place)
        };
        let Some(place) = place.or_else(expires_first) else { return };
        if let Some(record) = set.get_mut(place) {
            *record = entry;
        }
    }

    /// The record with this key, if the record has not expired.
    fn find(&self, key: u64, now: Instant) -> Option<GreylistEntry> {
        let set = self.records.get(key as usize % SETS)?;
        set.iter().find(|record| record.key == key && now <= record.until).copied()
    }

    /// The triplet of a message from `origin`, with this sender and recipient.
    pub fn triplet(&self, origin: SenderOrigin<'_>, sender: &str, recipient: &str) -> Triplet {
        let mut hasher = SipHasher13::new_with_key(&self.key);
        match origin {
            SenderOrigin::Domain(domain) => write_name(domain, &mut hasher),
            SenderOrigin::Host(address) => match address.to_canonical() {
                IpAddr::V4(address) => hasher.write(address.octets().get(..3).unwrap_or_default()),
                IpAddr::V6(address) => hasher.write(address.octets().get(..8).unwrap_or_default()),
            },
        }
        hasher.write_u8(u8::from(matches!(origin, SenderOrigin::Host(_))));
        let of_origin = hasher.finish().max(1);
        write_name(sender, &mut hasher);
        write_name(recipient, &mut hasher);
        Triplet { origin: of_origin, message: hasher.finish().max(1) }
    }
}

/// Adds a name to the hash, without regard to case.
fn write_name(name: &str, hasher: &mut SipHasher13) {
    name.bytes().for_each(|byte| hasher.write_u8(byte.to_ascii_lowercase()));
    hasher.write_u8(0);
}
