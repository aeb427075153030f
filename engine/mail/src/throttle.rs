//! What a failed login costs, by address, by network (/24, /48) and by account.
//!
//! - Only the answer to a *failed* login is delayed, the longer the more failures its address,
//!   network or account has seen lately. The right password is let in at once, so nobody can lock
//!   the owner out.
//! - An address has at most [`PENDING_MAX`] logins under way, delayed answers included: guessing in parallel gains nothing.
//! - A failed login counts as under way until its answer is due, even if nobody waits for that any more: whoever takes a
//!   late answer for a wrong password, and hangs up, gains nothing either.
//! - The table is of a fixed size. A new entry displaces the least guilty one of its set, never one with undecided logins.

use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::hash::Hasher;
use core::net::IpAddr;

use machine::{Instant, Micros};
use siphasher::sip::SipHasher13;

/// Logins that one address may have under way.
pub const PENDING_MAX: usize = 4;

/// What the first failure costs.
const FIRST_DELAY: Micros = Micros::from_secs(2);
/// The delay doubles with each failure, this often at the most: to 64 seconds.
const DOUBLINGS_MAX: u32 = 5;
/// Failures on one account come from its owner's mistakes too: it takes this many to double the delay.
const ACCOUNT_FAILURES_PER_DOUBLING: u32 = 4;
/// Others may live in the same network: it takes this many there.
const NETWORK_FAILURES_PER_DOUBLING: u32 = 16;
/// After this long without a failure half of them are forgotten.
const HALF_LIFE: Micros = Micros::from_secs(300);

const WAYS: usize = 4;
const SETS: usize = 1024;

/// A login that has failed, as other cores are told of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FailedLogin {
    /// The client.
    pub peer: IpAddr,
    /// The name that it has said.
    pub name: String,
}

#[derive(Clone, Copy, Default)]
struct Record {
    key: u64,
    last_failure: Instant,
    failures: u16,
    /// When each place for a login is free again: [`UNDECIDED`] as long as nobody knows.
    free_from: [Instant; PENDING_MAX],
}

const UNDECIDED: Instant = Instant::NEVER;

impl Record {
    fn has_undecided_logins(&self) -> bool {
        self.free_from.contains(&UNDECIDED)
    }

    /// Those of its failures that are not forgotten at `now`.
    fn failures_at(&self, now: Instant) -> u16 {
        let half_lives = now.since(self.last_failure).0 / HALF_LIFE.0;
        self.failures.checked_shr(half_lives.min(u64::from(u16::MAX)) as u32).unwrap_or(0)
    }

    /// Frees the place of an undecided login from `at` on.
    fn decide(&mut self, at: Instant) {
        if let Some(place) = self.free_from.iter_mut().find(|place| **place == UNDECIDED) {
            *place = at;
        }
    }
}

/// Recent failures of addresses and accounts.
pub struct Throttle {
    records: Vec<[Record; WAYS]>,
    key: [u8; 16],
}

/// Who fails: each has failures of its own.
#[derive(Clone, Copy)]
enum Culprit<'a> {
    Address(IpAddr),
    Network(IpAddr),
    Account(&'a str),
}

impl Throttle {
    /// An empty memory; `key` is random, so that nobody can choose whom he displaces.
    pub fn new(key: [u8; 16]) -> Throttle {
        Throttle { records: vec![[Record::default(); WAYS]; SETS], key }
    }

    /// A login from `address` begins. False: too many are under way from there, and it must be refused unlooked at.
    #[must_use]
    pub fn login_begins(&mut self, address: IpAddr, now: Instant) -> bool {
        let record = self.record(Culprit::Address(address), now);
        match record.and_then(|record| record.free_from.iter_mut().find(|place| **place <= now)) {
            Some(place) => {
                *place = UNDECIDED;
                true
            }
            None => false,
        }
    }

    /// A login from `address` for `account`, which is one name whatever names the account has, failed: how long its answer
    /// has to wait.
    pub fn login_failed(&mut self, address: IpAddr, account: &str, now: Instant) -> Micros {
        let delay = self.failure_known(address, account, now);
        if let Some(record) = self.record(Culprit::Address(address), now) {
            record.decide(now + delay);
        }
        delay
    }

    /// Counts a failure, of a login that need not have begun here: how long its answer has to wait.
    pub fn failure_known(&mut self, address: IpAddr, account: &str, now: Instant) -> Micros {
        let mut fail = |culprit| {
            self.record(culprit, now).map_or(0, |record| {
                record.last_failure = now;
                record.failures = record.failures.saturating_add(1);
                u32::from(record.failures) - 1
            })
        };
        let by_account = fail(Culprit::Account(account)) / ACCOUNT_FAILURES_PER_DOUBLING;
        let by_network = fail(Culprit::Network(address)) / NETWORK_FAILURES_PER_DOUBLING;
        let doublings =
            fail(Culprit::Address(address)).max(by_account).max(by_network).min(DOUBLINGS_MAX);
        Micros(FIRST_DELAY.0 << doublings)
    }

    /// How much there is against a login from `address` for `account`: the recent failures of the
    /// address and its network, and some of the account's. Those with less are looked at first.
    pub fn guilt(&self, address: IpAddr, account: &str, now: Instant) -> u32 {
        let failures =
            |culprit| self.known(culprit).map_or(0, |record| u32::from(record.failures_at(now)));
        let of_account = failures(Culprit::Account(account)) / ACCOUNT_FAILURES_PER_DOUBLING;
        failures(Culprit::Address(address)) + failures(Culprit::Network(address)) + of_account
    }

    /// A login that began from `address` has succeeded, or was given up undecided.
    pub fn login_ended(&mut self, address: IpAddr, now: Instant) {
        if let Some(record) = self.record(Culprit::Address(address), now) {
            record.decide(now);
        }
    }

    fn known(&self, culprit: Culprit<'_>) -> Option<&Record> {
        let key = self.key_of(culprit);
        self.records.get(key as usize % SETS)?.iter().find(|record| record.key == key)
    }

    /// The record of `culprit`, a new one if there is none; `None` when all of its set have undecided logins.
    fn record(&mut self, culprit: Culprit<'_>, now: Instant) -> Option<&mut Record> {
        let key = self.key_of(culprit);
        let set = self.records.get_mut(key as usize % SETS)?;
        let place = match set.iter().position(|record| record.key == key) {
            Some(place) => place,
            None => {
                let idle =
                    set.iter().enumerate().filter(|(_, record)| !record.has_undecided_logins());
                let (place, _) =
                    idle.min_by_key(|(_, record)| (record.failures, record.last_failure))?;
                if let Some(record) = set.get_mut(place) {
                    *record = Record { key, ..Record::default() };
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

    fn key_of(&self, culprit: Culprit<'_>) -> u64 {
        let mut hasher = SipHasher13::new_with_key(&self.key);
        match culprit {
            Culprit::Address(IpAddr::V4(address)) => hasher.write(&address.octets()),
            // One host has a whole /64 to itself (RFC 6177), so that is what is judged.
            Culprit::Address(IpAddr::V6(address)) => {
                hasher.write(address.octets().get(..8).unwrap_or_default())
            }
            Culprit::Network(IpAddr::V4(address)) => {
                hasher.write(address.octets().get(..3).unwrap_or_default())
            }
            Culprit::Network(IpAddr::V6(address)) => {
                hasher.write(address.octets().get(..6).unwrap_or_default())
            }
            Culprit::Account(name) => {
                hasher.write(b"account:");
                hasher.write(name.as_bytes());
            }
        }
        hasher.finish().max(1)
    }
}
