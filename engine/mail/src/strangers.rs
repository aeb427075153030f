//! How much strangers may do, by address and by network: connections at once and a minute, messages
//! and recipients a minute, and how often they may guess who is here. Connections at once are
//! counted for every service: those of strangers to port 25, and all others ([`ConnectionKind`]).
//!
//! - One host of IPv6 has a whole /64 to itself (RFC 6177), so that counts as an address. A network is a /24 or a /48, and may do [`NETWORK_SHARE`] times as much as an address.
//! - What may be done so often a minute may be done so often at once by who has done nothing of it in the last one, and from then on as evenly as it comes: in no minute is it done more than twice as often.
//! - Where there are several cores, what is done on one counts on all. A core tells the others of
//!   deeds by the dozen, so they cost little: when an address or network has done one part in
//!   [`UNTOLD`] of what it may do, divided by the cores. So on all cores together no more than that
//!   part is done unheard. Each core counts open connections for itself.
//! - The table is of a fixed size. A newcomer displaces the one of his set who has least open and waits shortest; who was displaced is counted anew, so nobody is ever
//!   counted to have more open than he has.

use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;
use core::hash::Hasher;
use core::net::IpAddr;

use machine::{Instant, Micros};
use siphasher::sip::SipHasher13;

/// How many times as much a network may do as an address of its.
pub const NETWORK_SHARE: u64 = 4;

/// The part of what may be done that all cores together may keep from each other: one in so many.
const UNTOLD: u64 = 4;
/// Deeds that wait to be told. What finds no room is told with the next deed.
const TOLD_MAX: usize = 64;

const MINUTE: Micros = Micros::from_secs(60);
const HOUR: Micros = Micros::from_secs(3_600);

/// The bit that is set in the keys of networks alone.
const NETWORK_KEY: u64 = 1 << 63;

const WAYS: usize = 4;
const SETS: usize = 2048;

/// How much one address may do. Each is at least 1.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StrangerLimits {
    /// Connections at once, of strangers to port 25.
    pub connections: u16,
    /// Connections at once to all other services together.
    pub client_connections: u16,
    /// New connections a minute.
    pub arrivals: u16,
    /// Messages a minute.
    pub messages: u16,
    /// Recipients a minute.
    pub recipients: u16,
    /// Recipients an hour that are not here.
    pub guesses: u16,
}

impl Default for StrangerLimits {
    fn default() -> StrangerLimits {
        StrangerLimits {
            connections: 100,
            client_connections: 400,
            arrivals: 200,
            messages: 600,
            recipients: 2_000,
            guesses: 50,
        }
    }
}

/// What is done so often and no oftener.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Deed {
    /// A connection was opened.
    Arrival,
    /// A message was begun.
    Message,
    /// A recipient was named.
    Recipient,
    /// One was named who is not here.
    Guess,
}

const DEEDS: usize = 4;

/// Which limit a connection counts towards.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ConnectionKind {
    /// A stranger's to port 25.
    Mail,
    /// Any other: a client's of any service.
    Client,
}

const CONNECTION_KINDS: usize = 2;

#[derive(Clone, Copy)]
struct Record {
    key: u64,
    /// Open connections of each kind.
    connections: [u32; CONNECTION_KINDS],
    /// When each deed will have been paid for: it may be done if that is not a whole period away.
    paid_at: [Instant; DEEDS],
    /// How often each was done here, and other cores were not told.
    untold: [u16; DEEDS],
}

impl Record {
    const NONE: Record = Record {
        key: 0,
        connections: [0; CONNECTION_KINDS],
        paid_at: [Instant::START; DEEDS],
        untold: [0; DEEDS],
    };

    /// What is lost with it.
    fn weight(&self) -> (u32, Option<Instant>) {
        (self.open(), self.paid_at.into_iter().max())
    }

    /// How many times as much as an address it may do.
    fn share(&self) -> u64 {
        if self.key & NETWORK_KEY == 0 { 1 } else { NETWORK_SHARE }
    }

    /// Open connections of both kinds.
    fn open(&self) -> u32 {
        self.connections.iter().sum()
    }
}

/// What strangers have done lately.
pub struct Strangers {
    records: Vec<[Record; WAYS]>,
    limits: StrangerLimits,
    key: [u8; 16],
    /// How many cores there are.
    cores: u8,
    told: VecDeque<Deeds>,
}

/// What was done on another core.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Deeds {
    doer: Doer,
    deed: Deed,
    count: u16,
}

/// Who does something: each is counted by himself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Doer {
    Address(IpAddr),
    Network(IpAddr),
}

impl Doer {
    fn both(address: IpAddr) -> [Doer; 2] {
        [Doer::Address(address), Doer::Network(address)]
    }

    fn share(self) -> u64 {
        if let Doer::Network(_) = self { NETWORK_SHARE } else { 1 }
    }
}

impl Strangers {
    /// Nobody has done anything. `key` is random, so that nobody can choose whom he displaces.
    /// `cores`: how many there are.
    pub fn new(limits: StrangerLimits, key: [u8; 16], cores: u8) -> Strangers {
        Strangers {
            records: vec![[Record::NONE; WAYS]; SETS],
            limits,
            key,
            cores,
            told: VecDeque::new(),
        }
    }

    /// A connection from `address` is opened. False: there are too many, and it is not to be counted as open.
    #[must_use]
    pub fn arrives(&mut self, kind: ConnectionKind, address: IpAddr, now: Instant) -> bool {
        let most = u64::from(match kind {
            ConnectionKind::Mail => self.limits.connections,
            ConnectionKind::Client => self.limits.client_connections,
        });
        let has_room = Doer::both(address).into_iter().all(|doer| {
            let open =
                self.record(doer).and_then(|record| record.connections.get(kind as usize)).copied();
            u64::from(open.unwrap_or(0)) < most * doer.share()
        });
        let may =
            has_room && (kind == ConnectionKind::Client || self.may(Deed::Arrival, address, now));
        for doer in Doer::both(address).into_iter().filter(|_| may) {
            if let Some(open) =
                self.record(doer).and_then(|record| record.connections.get_mut(kind as usize))
            {
                *open = open.saturating_add(1);
            }
        }
        may
    }

    /// One that was counted is over.
    pub fn leaves(&mut self, kind: ConnectionKind, address: IpAddr) {
        for doer in Doer::both(address) {
            if let Some(open) =
                self.known_mut(doer).and_then(|record| record.connections.get_mut(kind as usize))
            {
                *open = open.saturating_sub(1);
            }
        }
    }

    /// How much of all connections is held against `address`: as many as it has open itself, or its
    /// part of those of its network, if that is more.
    pub fn share_of(&mut self, address: IpAddr) -> u32 {
        let shares = Doer::both(address).map(|doer| {
            self.known_mut(doer).map_or(0, |record| record.open() / record.share() as u32)
        });
        shares.into_iter().max().unwrap_or(0)
    }

    /// The largest share of all addresses, as [`Strangers::share_of`] counts. Looks at the whole
    /// table.
    pub fn share_max(&self) -> u32 {
        self.records
            .iter()
            .flatten()
            .map(|record| record.open() / record.share() as u32)
            .max()
            .unwrap_or(0)
    }

    /// Whether somebody at `address` may do this now. It is counted if he may.
    #[must_use]
    pub fn may(&mut self, deed: Deed, address: IpAddr, now: Instant) -> bool {
        let may = self.could(deed, address, now);
        if may {
            self.has_done(deed, address, now);
        }
        may
    }

    /// The same, and it is not counted.
    pub fn could(&mut self, deed: Deed, address: IpAddr, now: Instant) -> bool {
        Doer::both(address).into_iter().all(|doer| {
            let (period, price) = self.price(deed, doer);
            self.record(doer).is_none_or(|record| {
                let paid_at = record.paid_at.get(deed as usize).copied().unwrap_or(now);
                paid_at.max(now) + price <= now + period
            })
        })
    }

    /// Somebody at `address` has done this.
    pub fn has_done(&mut self, deed: Deed, address: IpAddr, now: Instant) {
        for doer in Doer::both(address) {
            self.count(Deeds { doer, deed, count: 1 }, now);
            if self.cores > 1 {
                self.tell(deed, doer);
            }
        }
    }

    /// This was done on another core.
    pub fn has_done_elsewhere(&mut self, deeds: Deeds, now: Instant) {
        self.count(deeds, now);
    }

    /// Whether other cores are to be told of something.
    pub fn has_deeds(&self) -> bool {
        !self.told.is_empty()
    }

    /// What other cores are to be told next.
    pub fn next_deeds(&mut self) -> Option<Deeds> {
        self.told.pop_front()
    }

    fn count(&mut self, deeds: Deeds, now: Instant) {
        let Deeds { doer, deed, count } = deeds;
        let (period, price) = self.price(deed, doer);
        let paid_at = self.record(doer).and_then(|record| record.paid_at.get_mut(deed as usize));
        if let Some(paid_at) = paid_at {
            let price = Micros(price.0.saturating_mul(count.into()));
            *paid_at = ((*paid_at).max(now) + price).min(now + period);
        }
    }

    /// A deed was done here. Other cores hear of it once there are enough to be worth it.
    fn tell(&mut self, deed: Deed, doer: Doer) {
        let enough = u64::from(self.most(deed)) * doer.share() / (UNTOLD * u64::from(self.cores));
        let has_room = self.told.len() < TOLD_MAX;
        let untold = self.record(doer).and_then(|record| record.untold.get_mut(deed as usize));
        let Some(untold) = untold else { return };
        *untold = untold.saturating_add(1);
        if u64::from(*untold) >= enough && has_room {
            let count = core::mem::take(untold);
            self.told.push_back(Deeds { doer, deed, count });
        }
    }

    /// How long it takes to pay for a deed, and how long ahead it may be done.
    fn price(&self, deed: Deed, doer: Doer) -> (Micros, Micros) {
        let period = if deed == Deed::Guess { HOUR } else { MINUTE };
        (period, Micros(period.0 / (u64::from(self.most(deed)) * doer.share())))
    }

    /// How often an address may do this in its period.
    fn most(&self, deed: Deed) -> u16 {
        let most = match deed {
            Deed::Arrival => self.limits.arrivals,
            Deed::Message => self.limits.messages,
            Deed::Recipient => self.limits.recipients,
            Deed::Guess => self.limits.guesses,
        };
        most.max(1)
    }

    /// The record of `doer`, if there is one.
    fn known_mut(&mut self, doer: Doer) -> Option<&mut Record> {
        let key = self.key_of(doer);
        self.records.get_mut(key as usize % SETS)?.iter_mut().find(|record| record.key == key)
    }

    /// The record of `doer`, a new one if there is none.
    fn record(&mut self, doer: Doer) -> Option<&mut Record> {
        let key = self.key_of(doer);
        let set = self.records.get_mut(key as usize % SETS)?;
        let place = match set.iter().position(|record| record.key == key) {
            Some(place) => place,
            None => {
                let (place, lightest) =
                    set.iter_mut().enumerate().min_by_key(|(_, record)| record.weight())?;
                *lightest = Record { key, ..Record::NONE };
                place
            }
        };
        set.get_mut(place)
    }

    fn key_of(&self, doer: Doer) -> u64 {
        let (Doer::Address(address) | Doer::Network(address)) = doer;
        let (octets, lengths) = match address.to_canonical() {
            IpAddr::V4(address) => (address.to_ipv6_mapped().octets(), [16, 15]),
            IpAddr::V6(address) => (address.octets(), [8, 6]),
        };
        let [of_address, of_network] = lengths;
        let length = if let Doer::Address(_) = doer { of_address } else { of_network };
        let mut hasher = SipHasher13::new_with_key(&self.key);
        hasher.write(octets.get(..length).unwrap_or_default());
        match doer {
            Doer::Address(_) => (hasher.finish() & !NETWORK_KEY).max(1),
            Doer::Network(_) => hasher.finish() | NETWORK_KEY,
        }
    }
}
