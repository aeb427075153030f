//! The connections of this core to the destinations of its mail.
//!
//! The owner of a destination knows how many connections the machine has to it, and whether it is
//! down. A keyed hash of the destination's name selects the core that owns it (crate `shards`). An
//! attempt asks the owner for leave before it looks up the hosts. This file holds what a core has
//! to know itself: the destinations of its own attempts, and the destinations that are down as far
//! as their owners have told.
//!
//! Invariants:
//! - One attempt at a time asks for leave to a destination. So attempts that wait for leave take
//!   few of the places.
//! - While one connection tries a destination that has failed, this core makes no other there.
//! - At most [`DOWN_MAX`] destinations are known to be down. A forgotten one costs a question
//!   to its owner.

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
    /// The same, by time.
    ends: BTreeSet<(Instant, Box<str>)>,
}

/// A destination with attempts.
struct Called {
    /// The key by which its owner knows it.
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
    /// It may, and is counted: [`CoreDestinations::ended`] says that it is over.
    Ask,
    /// Not before this time: the destination is down.
    WaitUntil(Instant),
    /// Not before another attempt ends.
    Busy,
}

impl CoreDestinations {
    /// Whether one more attempt may be made at a destination. `key`: the key by which its owner
    /// knows it.
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

    /// The attempt that has asked for leave has it. Returns whether another one may ask.
    pub(super) fn granted(&mut self, destination: &str, grant: Grant) -> bool {
        let Some(called) = self.called.get_mut(destination) else {
            unreachable!("leave that was not asked for")
        };
        assert!(called.is_asking, "leave was asked for");
        let Grant { is_trial, keeps } = grant;
        (called.is_asking, called.is_trial, called.keeps) = (false, is_trial, keeps);
        !is_trial
    }

    /// A destination is down until `until`.
    pub(super) fn is_down(&mut self, destination: &str, until: Instant) {
        self.try_again(destination);
        self.down.insert(destination.into(), until);
        self.ends.insert((until, destination.into()));
        if self.ends.len() > DOWN_MAX
            && let Some((_, first)) = self.ends.pop_first()
        {
            self.down.remove(&first);
        }
    }

    /// A destination that is down is to be tried all the same.
    pub(super) fn try_again(&mut self, destination: &str) {
        if let Some((destination, until)) = self.down.remove_entry(destination) {
            self.ends.remove(&(until, destination));
        }
    }

    /// Messages get through there, on a connection that goes on. Returns whether others may be
    /// made.
    pub(super) fn reached(&mut self, destination: &str) -> bool {
        self.called.get_mut(destination).is_some_and(|called| {
            called.is_trial = false;
            !called.is_asking && called.attempts < CONNECTIONS_MAX
        })
    }

    /// An admitted attempt is over. `has_leave`: it does not wait for leave any more.
    pub(super) fn ended(&mut self, destination: &str, has_leave: bool) {
        let Some(called) = self.called.get_mut(destination) else {
            unreachable!("an attempt that was not admitted")
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

    /// The owner of a destination says how many connections this core may keep there. Returns
    /// whether this core has more than that, and may give up one that it is still making, because
    /// it keeps another. Otherwise one ends with its message.
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

    /// Whether an attempt is made there.
    pub(super) fn is_called(&self, destination: &str) -> bool {
        self.called.contains_key(destination)
    }
}

impl Called {
    fn may_keep(&self) -> bool {
        self.attempts - u16::from(self.is_asking) <= self.keeps
    }
}
