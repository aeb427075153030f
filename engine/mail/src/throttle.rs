//! Login throttling: the delay of failed logins, by address, by network (/24, /48) and by account.
//!
//! - Only the reply to a *failed* login is delayed. The delay grows with the recent failures of the
//!   address, network or account. The right password is accepted at once, so an attacker cannot
//!   lock the owner out.
//! - An address has at most [`PENDING_MAX`] pending logins, including delayed replies. So parallel
//!   guesses gain nothing.
//! - A failed login is pending until its reply is due, even after the client has disconnected. So
//!   an attacker that disconnects while it waits for a late reply cannot begin another login
//!   sooner.
//! - The table has a fixed size. A new entry evicts the entry of its set with the fewest failures,
//!   but never an entry with undecided logins.

use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::hash::Hasher;
use core::net::IpAddr;

use machine::{Instant, Micros};
use siphasher::sip::SipHasher13;

/// The most pending logins of one address.
pub const PENDING_MAX: usize = 4;

/// The delay after the first failure.
const FIRST_DELAY: Micros = Micros::from_secs(2);
/// The delay doubles with each failure, but at most this often. So it is at most 64 seconds.
const DOUBLINGS_MAX: u32 = 5;
/// The number of failures on one account that double the delay. The number is larger than for an
/// address, since the owner of the account makes mistakes too.
const ACCOUNT_FAILURES_PER_DOUBLING: u32 = 4;
/// The number of failures in one network that double the delay. The network may have other users.
const NETWORK_FAILURES_PER_DOUBLING: u32 = 16;
/// After this time without a failure, half of the failures are forgotten.
const HALF_LIFE: Micros = Micros::from_secs(300);

const WAYS: usize = 4;
const SETS: usize = 1024;

/// A failed login, as reported to other cores.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FailedLogin {
    /// The client.
    pub peer: IpAddr,
    /// The user name that the client has sent.
    pub name: String,
}

#[derive(Clone, Copy, Default)]
struct ThrottleEntry {
    key: u64,
    last_failure: Instant,
    failures: u16,
    /// The time at which each slot for a login becomes free: [`UNDECIDED`] while the login has no
    /// result.
    free_from: [Instant; PENDING_MAX],
}

const UNDECIDED: Instant = Instant::NEVER;

impl ThrottleEntry {
    fn has_undecided_logins(&self) -> bool {
        self.free_from.contains(&UNDECIDED)
    }

    /// The failures that still count at `now`.
    fn failures_at(&self, now: Instant) -> u16 {
        let half_lives = now.since(self.last_failure).0 / HALF_LIFE.0;
        self.failures.checked_shr(half_lives.min(u64::from(u16::MAX)) as u32).unwrap_or(0)
    }

    /// Frees the slot of an undecided login at the time `at`.
    fn decide(&mut self, at: Instant) {
        if let Some(place) = self.free_from.iter_mut().find(|place| **place == UNDECIDED) {
            *place = at;
        }
    }
}

/// Recent failures of addresses, networks and accounts.
pub struct Throttle {
    records: Vec<[ThrottleEntry; WAYS]>,
    key: [u8; 16],
}

/// An address, a network or an account. Each has its own count of failures.
#[derive(Clone, Copy)]
enum ThrottleSubject<'a> {
    Address(IpAddr),
    Network(IpAddr),
    Account(&'a str),
}

impl Throttle {
    /// An empty table. `key` is random, so that a client cannot choose which records it evicts.
    pub fn new(key: [u8; 16]) -> Throttle {
        Throttle { records: vec![[ThrottleEntry::default(); WAYS]; SETS], key }
    }

    /// A login from `address` begins. Returns false if the address has too many pending logins. In
    /// this case the login must be refused without a check.
    #[must_use]
    pub fn login_begins(&mut self, address: IpAddr, now: Instant) -> bool {
        let record = self.record(ThrottleSubject::Address(address), now);
        match record.and_then(|record| record.free_from.iter_mut().find(|place| **place <= now)) {
            Some(place) => {
                *place = UNDECIDED;
                true
            }
            None => false,
        }
    }

    /// A login from `address` for `account` has failed. Returns the delay of its reply. `account`
    /// must be the same name for all aliases of an account.
    pub fn login_failed(&mut self, address: IpAddr, account: &str, now: Instant) -> Micros {
        let delay = self.failure_known(address, account, now);
        if let Some(record) = self.record(ThrottleSubject::Address(address), now) {
            record.decide(now + delay);
        }
        delay
    }

    /// Counts a failure of a login that may have begun on another core. Returns the delay of its
    /// reply.
    pub fn failure_known(&mut self, address: IpAddr, account: &str, now: Instant) -> Micros {
        let mut fail = |subject| {
            self.record(subject, now).map_or(0, |record| {
                record.last_failure = now;
                record.failures = record.failures.saturating_add(1);
                u32::from(record.failures) - 1
            })
        };
        let by_account = fail(ThrottleSubject::Account(account)) / ACCOUNT_FAILURES_PER_DOUBLING;
        let by_network = fail(ThrottleSubject::Network(address)) / NETWORK_FAILURES_PER_DOUBLING;
        let doublings = fail(ThrottleSubject::Address(address))
            .max(by_account)
            .max(by_network)
            .min(DOUBLINGS_MAX);
        Micros(FIRST_DELAY.0 << doublings)
    }

    /// The evidence against a login from `address` for `account`: the recent failures of the
    /// address and its network, and a part of the failures of the account. Logins with less
    /// evidence are checked first.
    pub fn guilt(&self, address: IpAddr, account: &str, now: Instant) -> u32 {
        let failures =
            |subject| self.known(subject).map_or(0, |record| u32::from(record.failures_at(now)));
        let of_account =
            failures(ThrottleSubject::Account(account)) / ACCOUNT_FAILURES_PER_DOUBLING;
        failures(ThrottleSubject::Address(address))
            + failures(ThrottleSubject::Network(address))
            + of_account
    }

    /// A login that began from `address` has succeeded, or was abandoned without a result.
    pub fn login_ended(&mut self, address: IpAddr, now: Instant) {
        if let Some(record) = self.record(ThrottleSubject::Address(address), now) {
            record.decide(now);
        }
    }

    fn known(&self, subject: ThrottleSubject<'_>) -> Option<&ThrottleEntry> {
        let key = self.key_of(subject);
        self.records.get(key as usize % SETS)?.iter().find(|record| record.key == key)
    }

    /// The record of `subject`, or a new one. `None` if all records of its set have undecided
    /// logins.
    fn record(&mut self, subject: ThrottleSubject<'_>, now: Instant) -> Option<&mut ThrottleEntry> {
        let key = self.key_of(subject);
        let set = self.records.get_mut(key as usize % SETS)?;
        let place = match set.iter().position(|record| record.key == key) {
            Some(place) => place,
            None => {
                let idle =
                    set.iter().enumerate().filter(|(_, record)| !record.has_undecided_logins());
                let (place, _) =
                    idle.min_by_key(|(_, record)| (record.failures, record.last_failure))?;
                if let Some(record) = set.get_mut(place) {
                    *record = ThrottleEntry { key, ..ThrottleEntry::default() };
                }
                place
            }
        };
        let record = set.get_mut(place)?;
        let failures = record.failures_at(now);
        if failures != record.failures {
            (record.failures, record.last_failure) = (failures, now);
        }
        Some(record)
    }

    fn key_of(&self, subject: ThrottleSubject<'_>) -> u64 {
        let mut hasher = SipHasher13::new_with_key(&self.key);
        match subject {
            ThrottleSubject::Address(IpAddr::V4(address)) => hasher.write(&address.octets()),
            // One IPv6 host has a whole /64 (RFC 6177), so a /64 counts as one address.
            ThrottleSubject::Address(IpAddr::V6(address)) => {
                hasher.write(address.octets().get(..8).unwrap_or_default())
            }
            ThrottleSubject::Network(IpAddr::V4(address)) => {
                hasher.write(address.octets().get(..3).unwrap_or_default())
            }
            ThrottleSubject::Network(IpAddr::V6(address)) => {
                hasher.write(address.octets().get(..6).unwrap_or_default())
            }
            ThrottleSubject::Account(name) => {
                hasher.write(b"account:");
                hasher.write(name.as_bytes());
            }
        }
        hasher.finish().max(1)
    }
}
