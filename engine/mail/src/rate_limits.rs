//! Rate limits for unauthenticated external clients, by address and by network. They limit
//! concurrent and new connections, messages and recipients a minute, and unknown recipients an
//! hour. The limits on concurrent connections apply to all services, separately for two kinds:
//! external connections to port 25, and all other connections ([`ConnectionKind`]).
//!
//! - One IPv6 host has a whole /64 (RFC 6177), so a /64 counts as one address. A network is a /24
//!   or a /48, and its limits are [`NETWORK_SHARE`] times those of an address.
//! - Each limit on actions is a token bucket with a burst of one period's allowance: of a minute,
//!   or of an hour for unknown recipients. So in one period, an address never does more than twice
//!   its limit.
//! - With several cores, an action on one core counts on all. A core reports actions to the other
//!   cores in batches, so reports cost little. A batch is the limit of an address or network,
//!   divided by [`UNREPORTED_DIVISOR`] and by the number of cores. So at most the limit divided by
//!   [`UNREPORTED_DIVISOR`] is unreported. Open connections are counted for each core separately.
//! - The table has a fixed size. A new record evicts a record of its set: one with the fewest open
//!   connections, and among these the one with the least recent actions. The count of an evicted
//!   address restarts at zero. So an address is never counted with more connections than it has.

use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;
use core::hash::Hasher;
use core::net::IpAddr;

use machine::{Instant, Micros};
use siphasher::sip::SipHasher13;

/// The limits of a network, as a multiple of those of an address.
pub const NETWORK_SHARE: u64 = 4;

/// At most the limit divided by this number is unreported, on all cores together.
const UNREPORTED_DIVISOR: u64 = 4;
/// The most reports that wait to be taken. If there is no space for one more, the actions are
/// reported later.
const REPORTS_MAX: usize = 64;

const MINUTE: Micros = Micros::from_secs(60);
const HOUR: Micros = Micros::from_secs(3_600);

/// The bit that is set only in the keys of networks.
const NETWORK_KEY: u64 = 1 << 63;

const WAYS: usize = 4;
const SETS: usize = 2048;

/// The limits of one address. Each is at least 1.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ClientLimits {
    /// Concurrent external connections to port 25.
    pub connections: u16,
    /// Concurrent connections to all other services together.
    pub client_connections: u16,
    /// New connections a minute.
    pub arrivals: u16,
    /// Messages a minute.
    pub messages: u16,
    /// Recipients a minute.
    pub recipients: u16,
    /// Unknown recipients an hour.
    pub guesses: u16,
}

impl Default for ClientLimits {
    fn default() -> ClientLimits {
        ClientLimits {
            connections: 100,
            client_connections: 400,
            arrivals: 200,
            messages: 600,
            recipients: 2_000,
            guesses: 50,
        }
    }
}

/// An action with a rate limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RateLimitedAction {
    /// A connection was opened.
    Arrival,
    /// A message was started.
    Message,
    /// A recipient was named.
    Recipient,
    /// A recipient was named that does not exist on this server.
    Guess,
}

const ACTIONS: usize = 4;

/// The limit that a connection counts towards.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ConnectionKind {
    /// An external connection to port 25.
    Mail,
    /// Any other connection, to any service.
    Client,
}

const CONNECTION_KINDS: usize = 2;

#[derive(Clone, Copy)]
struct ClientEntry {
    key: u64,
    /// Open connections of each kind.
    connections: [u32; CONNECTION_KINDS],
    /// For each action, the time when its bucket is full again. The action is allowed if it would
    /// move this time to at most a whole period in the future.
    paid_at: [Instant; ACTIONS],
    /// For each action, how often it was done on this core and not reported to the other cores.
    unreported: [u16; ACTIONS],
}

impl ClientEntry {
    const NONE: ClientEntry = ClientEntry {
        key: 0,
        connections: [0; CONNECTION_KINDS],
        paid_at: [Instant::START; ACTIONS],
        unreported: [0; ACTIONS],
    };

    /// The value of the information in this record, which an eviction would lose.
    fn weight(&self) -> (u32, Option<Instant>) {
        (self.open(), self.paid_at.into_iter().max())
    }

    /// The limits of this record, as a multiple of those of an address.
    fn share(&self) -> u64 {
        if self.key & NETWORK_KEY == 0 { 1 } else { NETWORK_SHARE }
    }

    /// Open connections of both kinds.
    fn open(&self) -> u32 {
        self.connections.iter().sum()
    }
}

/// The recent actions of external clients.
pub struct ClientRateLimits {
    records: Vec<[ClientEntry; WAYS]>,
    limits: ClientLimits,
    key: [u8; 16],
    /// The number of cores.
    cores: u8,
    /// The reports for other cores.
    reports: VecDeque<RemoteActions>,
}

/// A report to other cores: how often clients did an action on the core that reports it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RemoteActions {
    subject: RateSubject,
    action: RateLimitedAction,
    count: u16,
}

/// An address or a network. Each has its own counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum RateSubject {
    Address(IpAddr),
    Network(IpAddr),
}

impl RateSubject {
    fn both(address: IpAddr) -> [RateSubject; 2] {
        [RateSubject::Address(address), RateSubject::Network(address)]
    }

    /// The limits of the subject, as a multiple of those of an address.
    fn share(self) -> u64 {
        if let RateSubject::Network(_) = self { NETWORK_SHARE } else { 1 }
    }
}

impl ClientRateLimits {
    /// An empty table. `key` is random, so that a client cannot choose which records it evicts.
    /// `cores`: the number of cores.
    pub fn new(limits: ClientLimits, key: [u8; 16], cores: u8) -> ClientRateLimits {
        ClientRateLimits {
            records: vec![[ClientEntry::NONE; WAYS]; SETS],
            limits,
            key,
            cores,
            reports: VecDeque::new(),
        }
    }

    /// A connection from `address` is opened. Returns false if the address or its network has too
    /// many open or new connections. In this case the connection is not counted as open.
    #[must_use]
    pub fn arrives(&mut self, kind: ConnectionKind, address: IpAddr, now: Instant) -> bool {
        let most = u64::from(match kind {
            ConnectionKind::Mail => self.limits.connections,
            ConnectionKind::Client => self.limits.client_connections,
        });
        let has_room = RateSubject::both(address).into_iter().all(|subject| {
            let open = self
                .record(subject)
                .and_then(|record| record.connections.get(kind as usize))
                .copied();
            u64::from(open.unwrap_or(0)) < most * subject.share()
        });
        let may = has_room
            && (kind == ConnectionKind::Client
                || self.may(RateLimitedAction::Arrival, address, now));
        for subject in RateSubject::both(address).into_iter().filter(|_| may) {
            if let Some(open) =
                self.record(subject).and_then(|record| record.connections.get_mut(kind as usize))
            {
                *open = open.saturating_add(1);
            }
        }
        may
    }

    /// A counted connection is over.
    pub fn leaves(&mut self, kind: ConnectionKind, address: IpAddr) {
        for subject in RateSubject::both(address) {
            if let Some(open) =
                self.known_mut(subject).and_then(|record| record.connections.get_mut(kind as usize))
            {
                *open = open.saturating_sub(1);
            }
        }
    }

    /// The number of connections that count against `address`: its own open connections, or its
    /// part of the connections of its network if that is more.
    pub fn share_of(&mut self, address: IpAddr) -> u32 {
        let shares = RateSubject::both(address).map(|subject| {
            self.known_mut(subject).map_or(0, |record| record.open() / record.share() as u32)
        });
        shares.into_iter().max().unwrap_or(0)
    }

    /// The largest share of all addresses, as [`ClientRateLimits::share_of`] counts. Scans the
    /// whole table.
    pub fn share_max(&self) -> u32 {
        self.records
            .iter()
            .flatten()
            .map(|record| record.open() / record.share() as u32)
            .max()
            .unwrap_or(0)
    }

    /// Whether a client at `address` may do `action` now. If so, the action is counted.
    #[must_use]
    pub fn may(&mut self, action: RateLimitedAction, address: IpAddr, now: Instant) -> bool {
        let may = self.could(action, address, now);
        if may {
            self.has_done(action, address, now);
        }
        may
    }

    /// The result of [`ClientRateLimits::may`], without counting the action.
    pub fn could(&mut self, action: RateLimitedAction, address: IpAddr, now: Instant) -> bool {
        RateSubject::both(address).into_iter().all(|subject| {
            let (period, price) = self.price(action, subject);
            self.record(subject).is_none_or(|record| {
                let paid_at = record.paid_at.get(action as usize).copied().unwrap_or(now);
                paid_at.max(now) + price <= now + period
            })
        })
    }

    /// Counts `action`, which a client at `address` has done.
    pub fn has_done(&mut self, action: RateLimitedAction, address: IpAddr, now: Instant) {
        for subject in RateSubject::both(address) {
            self.count(RemoteActions { subject, action, count: 1 }, now);
            if self.cores > 1 {
                self.report_later(action, subject);
            }
        }
    }

    /// Counts actions that another core has reported.
    pub fn has_done_elsewhere(&mut self, actions: RemoteActions, now: Instant) {
        self.count(actions, now);
    }

    /// Whether there are reports for other cores.
    pub fn has_reports(&self) -> bool {
        !self.reports.is_empty()
    }

    /// The next report for other cores.
    pub fn next_report(&mut self) -> Option<RemoteActions> {
        self.reports.pop_front()
    }

    /// Counts actions against the limit of their subject.
    fn count(&mut self, actions: RemoteActions, now: Instant) {
        let RemoteActions { subject, action, count } = actions;
        let (period, price) = self.price(action, subject);
        let paid_at =
            self.record(subject).and_then(|record| record.paid_at.get_mut(action as usize));
        if let Some(paid_at) = paid_at {
            let price = Micros(price.0.saturating_mul(count.into()));
            *paid_at = ((*paid_at).max(now) + price).min(now + period);
        }
    }

    /// Counts an unreported action. Queues a report for the other cores once there are enough of
    /// them.
    fn report_later(&mut self, action: RateLimitedAction, subject: RateSubject) {
        let enough = u64::from(self.most(action)) * subject.share()
            / (UNREPORTED_DIVISOR * u64::from(self.cores));
        let has_room = self.reports.len() < REPORTS_MAX;
        let unreported =
            self.record(subject).and_then(|record| record.unreported.get_mut(action as usize));
        let Some(unreported) = unreported else { return };
        *unreported = unreported.saturating_add(1);
        if u64::from(*unreported) >= enough && has_room {
            let count = core::mem::take(unreported);
            self.reports.push_back(RemoteActions { subject, action, count });
        }
    }

    /// The period of an action's limit, and the time that the bucket needs to recover from one
    /// action.
    fn price(&self, action: RateLimitedAction, subject: RateSubject) -> (Micros, Micros) {
        let period = if action == RateLimitedAction::Guess { HOUR } else { MINUTE };
        (period, Micros(period.0 / (u64::from(self.most(action)) * subject.share())))
    }

    /// The number of times that an address may do an action in the action's period.
    fn most(&self, action: RateLimitedAction) -> u16 {
        let most = match action {
            RateLimitedAction::Arrival => self.limits.arrivals,
            RateLimitedAction::Message => self.limits.messages,
            RateLimitedAction::Recipient => self.limits.recipients,
            RateLimitedAction::Guess => self.limits.guesses,
        };
        most.max(1)
    }

    /// The record of `subject`, if there is one.
    fn known_mut(&mut self, subject: RateSubject) -> Option<&mut ClientEntry> {
        let key = self.key_of(subject);
        self.records.get_mut(key as usize % SETS)?.iter_mut().find(|record| record.key == key)
    }

    /// The record of `subject`, or a new one.
    fn record(&mut self, subject: RateSubject) -> Option<&mut ClientEntry> {
        let key = self.key_of(subject);
        let set = self.records.get_mut(key as usize % SETS)?;
        let place = match set.iter().position(|record| record.key == key) {
            Some(place) => place,
            None => {
                let (place, lightest) =
                    set.iter_mut().enumerate().min_by_key(|(_, record)| record.weight())?;
                *lightest = ClientEntry { key, ..ClientEntry::NONE };
                place
            }
        };
        set.get_mut(place)
    }

    fn key_of(&self, subject: RateSubject) -> u64 {
        let (RateSubject::Address(address) | RateSubject::Network(address)) = subject;
        let (octets, lengths) = match address.to_canonical() {
            IpAddr::V4(address) => (address.to_ipv6_mapped().octets(), [16, 15]),
            IpAddr::V6(address) => (address.octets(), [8, 6]),
        };
        let [of_address, of_network] = lengths;
        let length = if let RateSubject::Address(_) = subject { of_address } else { of_network };
        let mut hasher = SipHasher13::new_with_key(&self.key);
        hasher.write(octets.get(..length).unwrap_or_default());
        match subject {
            RateSubject::Address(_) => (hasher.finish() & !NETWORK_KEY).max(1),
            RateSubject::Network(_) => hasher.finish() | NETWORK_KEY,
        }
    }
}
