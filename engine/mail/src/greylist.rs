//! Greylisting (RFC 6647): who is not known is told to come again, which those who send much to many seldom do.
//!
//! A letter comes from an *origin*: the domain that lets its host send, or else the host's network (a /24, a /64). What an origin first sends in one name to one recipient is put off; when it is sent again,
//! after [`Greylist::new`]'s delay and within a day, the origin has shown that it does so, and is known for 35 days from the last letter on.
//!
//! - The table is of a fixed size. A newcomer displaces the one of his set who is forgotten first anyway; who was displaced has to come again once more.
//! - Each core has a table, and is told what the others learn, unless more than [`NEWS_MAX`] such things wait to be told.

use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;
use core::hash::Hasher;
use core::net::IpAddr;

use machine::{Instant, Micros};
use siphasher::sip::SipHasher13;

/// How long a letter may take to come again.
const PATIENCE: Micros = Micros::from_secs(24 * 3_600);
/// How long an origin is known that has sent nothing.
const MEMORY: Micros = Micros::from_secs(35 * 24 * 3_600);
/// Others hear again that an origin is known when it is for no longer than this.
const STALE: Micros = Micros::from_secs(34 * 24 * 3_600);

/// What other cores have not been told of, at most: of more they do not hear, so that a letter may be put off once more.
const NEWS_MAX: usize = 1024;

const WAYS: usize = 4;
const SETS: usize = 4096;

/// From where a letter comes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Origin<'a> {
    /// This domain says that the host sends for it.
    Domain(&'a str),
    /// Nobody says anything of the host.
    Host(IpAddr),
}

/// Something that another core has learnt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Met {
    /// A letter was put off.
    Letter(u64),
    /// An origin is known.
    Origin(u64),
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

/// Who is known, and what was put off.
pub struct Greylist {
    records: Vec<[Record; WAYS]>,
    delay: Micros,
    key: [u8; 16],
    /// What other cores have not been told of; not there where there is no other core.
    news: Option<VecDeque<Met>>,
}

impl Greylist {
    /// Nobody is known. `delay`: how long it takes until a letter may come again. `key`: random, and the same on all `cores`.
    pub fn new(delay: Micros, key: [u8; 16], cores: u8) -> Greylist {
        Greylist { records: vec![[Record::NONE; WAYS]; SETS], delay, key, news: (cores > 1).then(VecDeque::new) }
    }

    /// Whether a letter may come in from `origin`, in the name of `sender` for `recipient`. If not, it may when it comes again.
    #[must_use]
    pub fn may_come(&mut self, origin: Origin<'_>, sender: &str, recipient: &str, now: Instant) -> bool {
        let (origin, letter) = self.keys_of(origin, sender, recipient);
        let is_known = self.find(origin, now).is_some();
        let waited = self.find(letter, now).map(|record| now.since(record.since));
        if is_known || waited.is_some_and(|waited| waited >= self.delay) {
            self.know(origin, now);
            return true;
        }
        if waited.is_none() {
            self.learn(Met::Letter(letter), now);
            self.tell(Met::Letter(letter));
        }
        false
    }

    /// Another core has learnt this.
    pub fn told(&mut self, met: Met, now: Instant) {
        self.learn(met, now);
    }

    /// The next thing that other cores are to be told.
    pub fn next_news(&mut self) -> Option<Met> {
        self.news.as_mut()?.pop_front()
    }

    /// Whether there is such a thing.
    pub fn has_news(&self) -> bool {
        self.news.as_ref().is_some_and(|news| !news.is_empty())
    }

    fn know(&mut self, origin: u64, now: Instant) {
        let is_news = self.find(origin, now).is_none_or(|record| record.until < now + STALE);
        self.learn(Met::Origin(origin), now);
        if is_news {
            self.tell(Met::Origin(origin));
        }
    }

    fn learn(&mut self, met: Met, now: Instant) {
        let (key, until) = match met {
            Met::Letter(key) => (key, now + PATIENCE),
            Met::Origin(key) => (key, now + MEMORY),
        };
        let Some(set) = self.records.get_mut(key as usize % SETS) else { return };
        let place = set.iter().position(|record| record.key == key);
        let forgotten_first = || set.iter().enumerate().min_by_key(|(_, record)| record.until).map(|(place, _)| place);
        let Some(place) = place.or_else(forgotten_first) else { return };
        if let Some(record) = set.get_mut(place) {
            *record = Record { key, since: now, until };
        }
    }

    fn tell(&mut self, met: Met) {
        if let Some(news) = self.news.as_mut().filter(|news| news.len() < NEWS_MAX) {
            news.push_back(met);
        }
    }

    fn find(&self, key: u64, now: Instant) -> Option<Record> {
        let set = self.records.get(key as usize % SETS)?;
        set.iter().find(|record| record.key == key && now <= record.until).copied()
    }

    /// The keys of an origin, and of a letter from there.
    fn keys_of(&self, origin: Origin<'_>, sender: &str, recipient: &str) -> (u64, u64) {
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
        (of_origin, hasher.finish().max(1))
    }
}

/// Upper and lower case are the same.
fn write_name(name: &str, hasher: &mut SipHasher13) {
    name.bytes().for_each(|byte| hasher.write_u8(byte.to_ascii_lowercase()));
    hasher.write_u8(0);
}
