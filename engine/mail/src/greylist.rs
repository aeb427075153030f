//! Greylisting (RFC 6647): a sender that is not known is told to come again, which those that send
//! much to many seldom do.
//!
//! A message comes from an *origin*: the domain that lets its host send, or else the host's network
//! (a /24, a /64). What an origin first sends in one name to one recipient is deferred. When it is
//! sent again, after [`Greylist::new`]'s delay and within a day, the origin is known for 35 days
//! from its last message on.
//!
//! - The table is of a fixed size. A newcomer displaces the record of its set that is forgotten
//!   first anyway; what was displaced has to come again once more.
//! - A message that is deferred already gets no new time.

use alloc::vec;
use alloc::vec::Vec;
use core::hash::Hasher;
use core::net::IpAddr;

use machine::{Instant, Micros};
use siphasher::sip::SipHasher13;

/// How long a message may take to come again.
const PATIENCE: Micros = Micros::from_secs(24 * 3_600);
/// How long an origin is known that has sent nothing.
const MEMORY: Micros = Micros::from_secs(35 * 24 * 3_600);

const WAYS: usize = 4;
const SETS: usize = 4096;

/// From where a message comes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Origin<'a> {
    /// This domain says that the host sends for it.
    Domain(&'a str),
    /// Nothing is said of the host.
    Host(IpAddr),
}

/// An origin, and a message from there in one name to one recipient, by keyed hashes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Triplet {
    origin: u64,
    message: u64,
}

impl Triplet {
    /// Its origin: the same for all messages from there.
    pub fn origin(self) -> u64 {
        self.origin
    }
}

#[derive(Clone, Copy)]
struct Record {
    key: u64,
    since: Instant,
    until: Instant,
}

impl Record {
    const NONE: Record = Record { key: 0, since: Instant::START, until: Instant::START };
}

/// The origins that are known, and the messages that were deferred.
pub struct Greylist {
    records: Vec<[Record; WAYS]>,
    delay: Micros,
    key: [u8; 16],
}

impl Greylist {
    /// Nothing is known. `delay`: how long it takes until a message may come again. `key`: random,
    /// and the same on all cores.
    pub fn new(delay: Micros, key: [u8; 16]) -> Greylist {
        Greylist { records: vec![[Record::NONE; WAYS]; SETS], delay, key }
    }

    /// Whether this message may come in now. If not, it may when it comes again.
    #[must_use]
    pub fn may_come(&mut self, triplet: Triplet, now: Instant) -> bool {
        let Triplet { origin, message } = triplet;
        let is_known = self.find(origin, now).is_some();
        let waited = self.find(message, now).map(|record| now.since(record.since));
        if is_known || waited.is_some_and(|waited| waited >= self.delay) {
            self.note(Record { key: origin, since: now, until: now + MEMORY });
            return true;
        }
        if waited.is_none() {
            self.note(Record { key: message, since: now, until: now + PATIENCE });
        }
        false
    }

    fn note(&mut self, noted: Record) {
        let Some(set) = self.records.get_mut(noted.key as usize % SETS) else { return };
        let place = set.iter().position(|record| record.key == noted.key);
        let forgotten_first = || {
            set.iter().enumerate().min_by_key(|(_, record)| record.until).map(|(place, _)| place)
        };
        let Some(place) = place.or_else(forgotten_first) else { return };
        if let Some(record) = set.get_mut(place) {
            *record = noted;
        }
    }

    fn find(&self, key: u64, now: Instant) -> Option<Record> {
        let set = self.records.get(key as usize % SETS)?;
        set.iter().find(|record| record.key == key && now <= record.until).copied()
    }

    /// A message from `origin`, in the name of `sender` for `recipient`.
    pub fn triplet(&self, origin: Origin<'_>, sender: &str, recipient: &str) -> Triplet {
        let mut hasher = SipHasher13::new_with_key(&self.key);
        match origin {
            Origin::Domain(domain) => write_name(domain, &mut hasher),
            Origin::Host(address) => match address.to_canonical() {
                IpAddr::V4(address) => hasher.write(address.octets().get(..3).unwrap_or_default()),
                IpAddr::V6(address) => hasher.write(address.octets().get(..8).unwrap_or_default()),
            },
        }
        hasher.write_u8(u8::from(matches!(origin, Origin::Host(_))));
        let of_origin = hasher.finish().max(1);
        write_name(sender, &mut hasher);
        write_name(recipient, &mut hasher);
        Triplet { origin: of_origin, message: hasher.finish().max(1) }
    }
}

/// Upper and lower case are the same.
fn write_name(name: &str, hasher: &mut SipHasher13) {
    name.bytes().for_each(|byte| hasher.write_u8(byte.to_ascii_lowercase()));
    hasher.write_u8(0);
}
