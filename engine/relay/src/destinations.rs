//! How it stands with the places that mail goes to: how many connections lead there, and whether it is worth trying.
//!
//! A destination that could not be reached is left alone for a while, longer after each time, with all of its letters: others do not wait behind them. When the while is over one
//! connection tries, and more only when it has come through.
//!
//! Invariants:
//! - A destination has at most so many connections; one that has failed has one.
//! - The table has at most so many entries. Those with connections stay; of the others the one goes first whose back-off ends first. What is forgotten costs one attempt.
//! - A destination that nothing is to be said of has no entry.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};

use machine::{Instant, Micros};

use crate::schedule::jittered;

/// A destination is left alone for so long after its first failure, for twice as long after the next.
const BACK_OFF_FIRST: Micros = Micros::from_secs(60);
/// And never longer than this, but for the jitter.
const BACK_OFF_LONGEST: Micros = Micros::from_secs(3600);

/// How much there may be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Destinations that are known.
    pub destinations: usize,
    /// Connections to each.
    pub connections: u16,
}

/// Whether a connection may be made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Admission {
    /// It may, and is counted: [`Destinations::ended`] says that it is over.
    Go,
    /// Not before this: the destination is down.
    WaitUntil(Instant),
    /// Not before another one ends.
    Busy,
}

/// How a connection ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ended {
    /// The destination spoke SMTP with us, whatever it said of letters.
    Reached,
    /// It did not.
    Failed,
    /// We do not know: it was not tried.
    Unknown,
}

/// One destination.
#[derive(Clone, Copy, Debug)]
struct Standing {
    connections: u16,
    /// In a row.
    failures: u8,
    /// It is left alone until then.
    back_off_until: Instant,
}

/// All destinations of which there is something to know.
#[derive(Debug)]
pub struct Destinations {
    limits: Limits,
    standings: BTreeMap<Box<str>, Standing>,
    /// Those without connections, by when their back-off ends.
    resting: BTreeSet<(Instant, Box<str>)>,
}

impl Destinations {
    /// Nothing is known yet.
    pub fn new(limits: Limits) -> Destinations {
        Destinations { limits, standings: BTreeMap::new(), resting: BTreeSet::new() }
    }

    /// Whether a connection may be made. `destination`: a domain in lower case, or a smarthost.
    pub fn admit(&mut self, destination: &str, now: Instant) -> Admission {
        let Some(standing) = self.standings.get_mut(destination) else { return self.admit_first(destination) };
        let most = if standing.failures > 0 { 1 } else { self.limits.connections };
        if now < standing.back_off_until {
            Admission::WaitUntil(standing.back_off_until)
        } else if standing.connections >= most {
            Admission::Busy
        } else {
            if standing.connections == 0 {
                self.resting.remove(&(standing.back_off_until, destination.into()));
            }
            standing.connections += 1;
            Admission::Go
        }
    }

    fn admit_first(&mut self, destination: &str) -> Admission {
        if self.standings.len() >= self.limits.destinations {
            let Some((_, first)) = self.resting.pop_first() else { return Admission::Busy };
            self.standings.remove(&first);
        }
        let standing = Standing { connections: 1, failures: 0, back_off_until: Instant::START };
        self.standings.insert(destination.into(), standing);
        Admission::Go
    }

    /// Letters get through there by a connection that goes on. Whether others may be made beside it.
    pub fn reached(&mut self, destination: &str) -> bool {
        self.standings.get_mut(destination).is_some_and(|standing| {
            (standing.failures, standing.back_off_until) = (0, Instant::START);
            standing.connections < self.limits.connections
        })
    }

    /// A connection that was admitted is over. `random`: any number.
    pub fn ended(&mut self, destination: &str, how: Ended, now: Instant, random: u64) {
        let Some(standing) = self.standings.get_mut(destination) else { return };
        assert!(standing.connections > 0, "what was not admitted does not end");
        standing.connections -= 1;
        match how {
            Ended::Reached => (standing.failures, standing.back_off_until) = (0, Instant::START),
            // Several that were on the way fail together, and count once.
            Ended::Failed if now >= standing.back_off_until => {
                let longer = BACK_OFF_FIRST.0.saturating_mul(1 << standing.failures.min(10));
                standing.back_off_until = now + jittered(Micros(longer).min(BACK_OFF_LONGEST), random);
                standing.failures = standing.failures.saturating_add(1);
            }
            Ended::Failed | Ended::Unknown => {}
        }
        if standing.connections == 0 && standing.failures == 0 {
            self.standings.remove(destination);
        } else if standing.connections == 0 {
            self.resting.insert((standing.back_off_until, destination.into()));
        }
    }

    /// A destination that is left alone is so no longer: somebody wants it to be tried.
    pub fn call_again(&mut self, destination: &str) {
        let Some(standing) = self.standings.get_mut(destination) else { return };
        let until = core::mem::replace(&mut standing.back_off_until, Instant::START);
        if self.resting.remove(&(until, destination.into())) {
            self.resting.insert((Instant::START, destination.into()));
        }
    }

    /// Whether connections lead there.
    pub fn is_called(&self, destination: &str) -> bool {
        self.standings.get(destination).is_some_and(|standing| standing.connections > 0)
    }

    /// Destinations that are known.
    pub fn count(&self) -> usize {
        self.standings.len()
    }
}
