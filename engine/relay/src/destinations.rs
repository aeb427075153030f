//! The state of the destinations of mail, for all cores of a machine. The state has the connections
//! to each destination, the cores that wait for a connection, and whether the destination may be
//! tried.
//!
//! A destination that could not be reached is down for a while, which grows with each failure. Mail
//! for other destinations does not wait for it. After that time one trial connection is made.
//! Further connections follow only if the trial has succeeded.
//!
//! A core asks for leave before it makes a connection ([`Destinations::ask`]). If the destination
//! has as many connections as it may have, the core waits. While a core waits, a core with more
//! connections is asked to keep fewer ([`DestinationMessage::Keeps`]). That core ends a connection
//! after the message that is being sent on it.
//!
//! Invariants:
//! - A destination has at most [`Limits::connections`] connections, over all cores. After a
//!   failure, a connection is granted only if the destination has none: the trial.
//! - A core waits only for a destination that has connections, and only until one of them ends.
//!   Each core has at most one waiting attempt for a destination.
//! - When a connection ends, the waiting core with the fewest connections gets its place. If
//!   several cores have equally few, the core that has waited longest gets the place.
//! - A core is asked to keep fewer connections only if the waiting core has none, or has at least
//!   two connections fewer. So connections do not move forever between cores that have about as
//!   many.
//! - At most [`Limits::destinations`] destinations without a connection are known. The destination
//!   with the earliest end of its back-off is forgotten first. Forgetting it costs at most one
//!   useless attempt. Destinations with connections stay: the number of delivery attempts bounds
//!   their number.
//! - A destination has an entry only while it has connections or failures.

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;

use machine::{CoreId, Instant, Micros};

use crate::schedule::jittered;

/// The back-off of a destination after its first failure. It doubles with each further failure.
const BACK_OFF_FIRST: Micros = Micros::from_secs(60);
/// The longest back-off, without the jitter.
const BACK_OFF_LONGEST: Micros = Micros::from_secs(3600);

/// The limits of the table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// The most known destinations that have no connection.
    pub destinations: usize,
    /// The most connections to each destination.
    pub connections: u16,
}

/// Whether a core may make one more connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Leave {
    /// The core may make the connection, which counts until [`Destinations::ended`].
    Granted(Grant),
    /// The destination is down: no connection may be made for this time.
    NotFor(Micros),
}

/// The terms of a granted connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Grant {
    /// Whether the destination has failed, and only this connection tries it.
    pub is_trial: bool,
    /// The number of connections to the destination that the core may keep for further messages.
    pub keeps: u16,
}

/// A message to a core. `W` identifies the waiting attempt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DestinationMessage<W> {
    /// The delayed reply to a core's question about this destination.
    Leave(CoreId, u64, W, Leave),
    /// The number of connections to this destination that this core may keep for further messages,
    /// because other cores wait for a connection.
    Keeps(CoreId, u64, u16),
}

/// The outcome of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ConnectionOutcome {
    /// The destination spoke SMTP with us, whatever it said of the messages.
    Reached,
    /// The destination could not be reached.
    Failed,
    /// The destination was not tried, so the connection shows nothing about it.
    Unknown,
}

/// The state of one destination.
#[derive(Debug)]
struct DestinationState<W> {
    /// Failures in a row.
    failures: u8,
    /// No connection is made before this time.
    back_off_until: Instant,
    holders: Vec<Holder>,
    /// The waiting attempts and their cores, the longest waiting first.
    waiting: Vec<(CoreId, W)>,
}

/// A core with connections.
#[derive(Clone, Copy, Debug)]
struct Holder {
    core: CoreId,
    /// The number of its connections, at least one.
    connections: u16,
    /// The number of its connections that the core may keep.
    keeps: u16,
}

/// All destinations with state, by keyed hashes of their names.
#[derive(Debug)]
pub struct Destinations<W> {
    limits: Limits,
    known: BTreeMap<u64, DestinationState<W>>,
    /// Destinations without connections, ordered by the end of their back-off.
    resting: BTreeSet<(Instant, u64)>,
    messages: VecDeque<DestinationMessage<W>>,
}

impl<W: Copy> Destinations<W> {
    /// An empty table.
    pub fn new(limits: Limits) -> Destinations<W> {
        Destinations {
            limits,
            known: BTreeMap::new(),
            resting: BTreeSet::new(),
            messages: VecDeque::new(),
        }
    }

    /// Whether this core may make one more connection. `None`: the attempt waits, and its answer is
    /// a later [`DestinationMessage::Leave`]. A waiting attempt replaces an earlier waiting attempt
    /// of the same core.
    pub fn ask(&mut self, name: u64, core: CoreId, waiter: W, now: Instant) -> Option<Leave> {
        let most = self.limits.connections;
        let known = self.known.entry(name).or_insert_with(DestinationState::new);
        if now < known.back_off_until {
            return Some(Leave::NotFor(known.back_off_until.since(now)));
        }
        self.resting.remove(&(known.back_off_until, name));
        match known.waiting.iter_mut().find(|(waiting, _)| *waiting == core) {
            Some((_, before)) => *before = waiter,
            None => known.waiting.push((core, waiter)),
        }
        if known.waiting.len() == 1 && known.connections() < known.most(most) {
            known.waiting.clear();
            return Some(Leave::Granted(known.grant(core)));
        }
        self.balance(name);
        None
    }

    /// Notes that messages reach the destination, on a connection that is kept.
    pub fn reached(&mut self, name: u64) {
        let Some(known) = self.known.get_mut(&name).filter(|known| known.failures > 0) else {
            return;
        };
        let before = known.forgive();
        // If all connections are over by now, the destination needs no entry.
        if known.holders.is_empty() {
            self.resting.remove(&(before, name));
            self.known.remove(&name);
            return;
        }
        self.serve(name);
    }

    /// Removes a connection that was granted to this core, and is over or was not made. `random`:
    /// any number.
    pub fn ended(
        &mut self,
        name: u64,
        core: CoreId,
        how: ConnectionOutcome,
        now: Instant,
        random: u64,
    ) {
        let Some(known) = self.known.get_mut(&name) else {
            unreachable!("a connection ends that was not granted")
        };
        known.give_back(core);
        match how {
            ConnectionOutcome::Reached => drop(known.forgive()),
            // Connections that fail at about the same time count as one failure.
            ConnectionOutcome::Failed if now >= known.back_off_until => {
                let span = known.fail(now, random);
                let waiting = known.waiting.drain(..);
                self.messages.extend(waiting.map(|(core, waiter)| {
                    DestinationMessage::Leave(core, name, waiter, Leave::NotFor(span))
                }));
            }
            ConnectionOutcome::Failed | ConnectionOutcome::Unknown => {}
        }
        self.serve(name);
        self.rest(name);
    }

    /// Ends the back-off of a destination, because an administrator wants it to be tried.
    pub fn call_again(&mut self, name: u64) {
        let Some(known) = self.known.get_mut(&name) else { return };
        let until = core::mem::replace(&mut known.back_off_until, Instant::START);
        if self.resting.remove(&(until, name)) {
            self.resting.insert((Instant::START, name));
        }
    }

    /// Takes the next message to a core.
    pub fn next_message(&mut self) -> Option<DestinationMessage<W>> {
        self.messages.pop_front()
    }

    /// Whether there is a message to a core.
    pub fn has_messages(&self) -> bool {
        !self.messages.is_empty()
    }

    /// The number of known destinations.
    pub fn count(&self) -> usize {
        self.known.len()
    }

    /// The number of connections that were granted and are not over.
    pub fn connections(&self) -> usize {
        self.known.values().map(|known| usize::from(known.connections())).sum()
    }

    /// Gives leave to waiting cores, as far as the limit allows.
    fn serve(&mut self, name: u64) {
        let Some(known) = self.known.get_mut(&name) else { return };
        while known.connections() < known.most(self.limits.connections)
            && let Some((core, waiter)) = known.take_next()
        {
            let grant = known.grant(core);
            self.messages.push_back(DestinationMessage::Leave(
                core,
                name,
                waiter,
                Leave::Granted(grant),
            ));
        }
        self.balance(name);
    }

    /// Asks cores with more connections to keep fewer, in favour of the waiting cores.
    fn balance(&mut self, name: u64) {
        let Some(known) = self.known.get_mut(&name) else { return };
        let is_sound =
            |holder: &Holder| holder.connections > 0 && holder.keeps <= holder.connections;
        assert!(known.holders.iter().all(is_sound), "a core keeps only connections that it has");
        let mut coming: u16 =
            known.holders.iter().map(|holder| holder.connections - holder.keeps).sum();
        for core in known.order() {
            if coming > 0 {
                coming -= 1;
                continue;
            }
            let own = known.of(core);
            let others = known.holders.iter_mut().filter(|holder| holder.core != core);
            let Some(most) = others.max_by_key(|holder| holder.keeps) else { return };
            if most.keeps == 0 || own > 0 && most.keeps < own + 2 {
                return;
            }
            most.keeps -= 1;
            self.messages.push_back(DestinationMessage::Keeps(most.core, name, most.keeps));
        }
    }

    /// Forgets a destination without connections, unless it has failed.
    fn rest(&mut self, name: u64) {
        let Some(known) = self.known.get(&name).filter(|known| known.holders.is_empty()) else {
            return;
        };
        assert!(known.waiting.is_empty(), "a core waits only where a connection can end");
        if known.failures == 0 {
            self.known.remove(&name);
            return;
        }
        self.resting.insert((known.back_off_until, name));
        if self.resting.len() > self.limits.destinations
            && let Some((_, first)) = self.resting.pop_first()
        {
            self.known.remove(&first);
        }
        assert!(self.resting.len() <= self.known.len(), "a destination that rests is known");
    }
}

impl<W: Copy> DestinationState<W> {
    fn new() -> DestinationState<W> {
        DestinationState {
            failures: 0,
            back_off_until: Instant::START,
            holders: Vec::new(),
            waiting: Vec::new(),
        }
    }

    /// The number of connections to the destination.
    fn connections(&self) -> u16 {
        self.holders.iter().map(|holder| holder.connections).sum()
    }

    /// The most connections that the destination may have now. `connections`: the limit without a
    /// failure.
    fn most(&self, connections: u16) -> u16 {
        if self.failures > 0 { 1 } else { connections }
    }

    /// The number of a core's connections.
    fn of(&self, core: CoreId) -> u16 {
        self.holders
            .iter()
            .find(|holder| holder.core == core)
            .map_or(0, |holder| holder.connections)
    }

    /// The waiting cores, in the order in which they are served.
    fn order(&self) -> Vec<CoreId> {
        let mut cores: Vec<CoreId> = self.waiting.iter().map(|(core, _)| *core).collect();
        cores.sort_by_key(|core| self.of(*core));
        cores
    }

    /// Takes the waiting attempt of the core that is served next.
    fn take_next(&mut self) -> Option<(CoreId, W)> {
        let next = self.order().into_iter().next()?;
        let place = self.waiting.iter().position(|(core, _)| *core == next)?;
        Some(self.waiting.remove(place))
    }

    /// Counts one more connection of a core.
    fn grant(&mut self, core: CoreId) -> Grant {
        let is_trial = self.failures > 0;
        let keeps = match self.holders.iter_mut().find(|holder| holder.core == core) {
            Some(holder) => {
                (holder.connections, holder.keeps) = (holder.connections + 1, holder.keeps + 1);
                holder.keeps
            }
            None => {
                self.holders.push(Holder { core, connections: 1, keeps: 1 });
                1
            }
        };
        Grant { is_trial, keeps }
    }

    /// Removes one connection of a core from the count.
    fn give_back(&mut self, core: CoreId) {
        let place = self.holders.iter().position(|holder| holder.core == core);
        let Some((place, holder)) =
            place.and_then(|place| Some((place, self.holders.get_mut(place)?)))
        else {
            unreachable!("a core ends a connection that it does not have")
        };
        holder.connections -= 1;
        holder.keeps = holder.keeps.min(holder.connections);
        if holder.connections == 0 {
            self.holders.swap_remove(place);
        }
    }

    /// Clears the failures of a destination that works. Returns the end of its back-off.
    fn forgive(&mut self) -> Instant {
        self.failures = 0;
        core::mem::replace(&mut self.back_off_until, Instant::START)
    }

    /// Counts a failure. Returns the back-off that follows.
    fn fail(&mut self, now: Instant, random: u64) -> Micros {
        let longer = BACK_OFF_FIRST.0.saturating_mul(1 << self.failures.min(10));
        let span = jittered(Micros(longer).min(BACK_OFF_LONGEST), random);
        (self.failures, self.back_off_until) = (self.failures.saturating_add(1), now + span);
        span
    }
}
