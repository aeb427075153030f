//! The connections of this core to the destinations of its mail.
//!
//! The owner of a destination is the core that a keyed hash of the destination's name selects
//! (crate `shards`). The owner knows how many connections the machine has to the destination, and
//! whether the destination is down. A delivery attempt asks the owner for leave to connect, before
//! it looks up the hosts.
//!
//! This file holds the knowledge of one core. It has the destinations of the core's own attempts,
//! and the destinations that their owners have reported as down.
//!
//! Invariants:
//! - For each destination, at most one attempt of this core waits for leave. So the waiting
//!   attempts take few of the core's places for attempts (`shares`).
//! - While a trial connection tests a destination that has failed, this core makes no other
//!   connection to it.
//! - This core remembers at most [`DOWN_MAX`] destinations that are down. For a forgotten
//!   destination, an attempt asks the owner again.

#[cfg(test)]
mod tests;

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};

use machine::Instant;
use relay::destinations::Grant;
use shards::CONNECTIONS_MAX;

const DOWN_MAX: usize = 4096;

/// The destinations of the attempts of this core, and those that are down.
#[derive(Default)]
pub(super) struct CoreDestinations {
    called: BTreeMap<Box<str>, Called>,
    down: BTreeMap<Box<str>, Instant>,
    /// The destinations of `down`, ordered by the end of their down time.
    ends: BTreeSet<(Instant, Box<str>)>,
}

/// A destination with attempts.
struct Called {
    /// The key by which the owner knows the destination.
    key: u64,
    /// The number of attempts, including the one that asks for leave.
    attempts: u16,
    is_asking: bool,
    is_trial: bool,
    /// The number of connections that may be kept for further messages.
    keeps: u16,
}

/// Whether an attempt may ask for leave to make a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum AttemptAdmission {
    /// The attempt may ask. It counts until [`CoreDestinations::ended`].
    Ask,
    /// The destination is down until this time.
    WaitUntil(Instant),
    /// All connections are in use, another attempt is asking for leave, or a trial is under way.
    Busy,
}

impl CoreDestinations {
    /// Whether one more attempt at a destination may begin. `key`: the key by which the owner knows
    /// the destination.
    pub(super) fn admit(&mut self, destination: &str, key: u64, now: Instant) -> AttemptAdmission {
        if let Some(until) = self.down.get(destination).copied() {
            if now < until {
                return AttemptAdmission::WaitUntil(until);
            }
            self.try_again(destination);
        }
        match self.called.get_mut(destination) {
            Some(called)
                if called.is_asking || called.is_trial || called.attempts >= CONNECTIONS_MAX =>
            {
                AttemptAdmission::Busy
            }
            Some(called) => {
                (called.attempts, called.is_asking) = (called.attempts + 1, true);
                AttemptAdmission::Ask
            }
            None => {
                let called =
                    Called { key, attempts: 1, is_asking: true, is_trial: false, keeps: 0 };
                self.called.insert(destination.into(), called);
                AttemptAdmission::Ask
            }
        }
    }

    /// Notes that the owner has granted leave to the attempt that asked for it. Returns whether
    /// another attempt may ask.
    pub(super) fn granted(&mut self, destination: &str, grant: Grant) -> bool {
        let Some(called) = self.called.get_mut(destination) else {
            unreachable!("leave was granted that was not asked for")
        };
        assert!(called.is_asking, "leave was asked for");
        let Grant { is_trial, keeps } = grant;
        (called.is_asking, called.is_trial, called.keeps) = (false, is_trial, keeps);
        !is_trial
    }

    /// Notes that a destination is down until `until`.
    pub(super) fn went_down(&mut self, destination: &str, until: Instant) {
        self.try_again(destination);
        self.down.insert(destination.into(), until);
        self.ends.insert((until, destination.into()));
        if self.ends.len() > DOWN_MAX
            && let Some((_, first)) = self.ends.pop_first()
        {
            self.down.remove(&first);
        }
    }

    /// Forgets that a destination is down, so that it may be tried at once.
    pub(super) fn try_again(&mut self, destination: &str) {
        if let Some((destination, until)) = self.down.remove_entry(destination) {
            self.ends.remove(&(until, destination));
        }
    }

    /// Notes that messages reach the destination, on a connection that is kept. Returns whether
    /// another connection may be made.
    pub(super) fn reached(&mut self, destination: &str) -> bool {
        self.called.get_mut(destination).is_some_and(|called| {
            called.is_trial = false;
            !called.is_asking && called.attempts < CONNECTIONS_MAX
        })
    }

    /// Removes an admitted attempt that is over. `has_leave`: whether the attempt had leave.
    /// Otherwise it was still waiting for leave.
    pub(super) fn ended(&mut self, destination: &str, has_leave: bool) {
        let Some(called) = self.called.get_mut(destination) else {
            unreachable!("an attempt ends that was not admitted")
        };
        assert!(called.attempts > 0, "an attempt that ends was counted");
        assert!(has_leave || called.is_asking, "an attempt has leave or asks for it");
        called.attempts -= 1;
        if has_leave {
            called.is_trial = false;
        } else {
            called.is_asking = false;
        }
        if called.attempts == 0 {
            self.called.remove(destination);
        }
    }

    /// Stores the number of connections that the owner of a destination lets this core keep.
    /// Returns whether this core has more connections. In that case it should give up a connection
    /// that it is still making. With `keeps` 0 the result is false: the last connection ends after
    /// its message.
    pub(super) fn keeps(&mut self, key: u64, keeps: u16) -> bool {
        let Some(called) = self.called.values_mut().find(|called| called.key == key) else {
            return false;
        };
        called.keeps = keeps;
        keeps > 0 && !called.may_keep()
    }

    /// Whether a connection may be kept for another message, because no other core waits for it.
    pub(super) fn may_keep(&self, destination: &str) -> bool {
        self.called.get(destination).is_some_and(Called::may_keep)
    }

    /// Whether this core has an attempt at the destination.
    pub(super) fn is_called(&self, destination: &str) -> bool {
        self.called.contains_key(destination)
    }
}

impl Called {
    /// Whether this core has at most as many connections as it may keep.
    fn may_keep(&self) -> bool {
        self.attempts - u16::from(self.is_asking) <= self.keeps
    }
}
