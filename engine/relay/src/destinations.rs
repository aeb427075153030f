//! The state of the destinations of mail, for all cores of a machine: how many connections lead
//! there, which core waits for one, and whether a destination is worth a try.
//!
//! A destination that could not be reached is left alone for a while, longer after each failure.
//! Mail for others does not wait behind it. When the while is over one connection tries, and more
//! are made only when it has come through.
//!
//! A core asks for leave before it makes a connection ([`Destinations::ask`]). Where the machine
//! has as many as may be, the core waits, and a core with more connections is asked to do with
//! fewer ([`Told::Keeps`]): it ends one after the message that is on its way there.
//!
//! Invariants:
//! - A destination has at most so many connections, whichever cores have them; one that has failed
//!   has one.
//! - A core waits only where connections lead: the end of one of them is what it waits for. A core
//!   has one place among those that wait.
//! - A connection that ends is for the waiting core that has the fewest, and of these for the one
//!   that waits longest.
//! - A core is asked to do with fewer only where the waiting core has no connection, or still has
//!   no more than the other when it has got one. So connections do not change hands for ever
//!   between cores that have about as many.
//! - Destinations without a connection are at most so many. The one with the back-off that ends
//!   first is forgotten first, which costs one attempt. Those with connections stay: the delivery
//!   attempts that there are bound them.
//! - A destination that nothing is to be said of has no entry.

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;

use machine::{CoreId, Instant, Micros};

use crate::schedule::jittered;

/// The back-off of a destination after its first failure. It doubles with each further failure.
const BACK_OFF_FIRST: Micros = Micros::from_secs(60);
/// The longest back-off, but for the jitter.
const BACK_OFF_LONGEST: Micros = Micros::from_secs(3600);

/// How much there may be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Destinations that are known and have no connection.
    pub destinations: usize,
    /// Connections to each.
    pub connections: u16,
}

/// Whether a core may make one more connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Leave {
    /// It may, and that is counted: [`Destinations::ended`] says that the connection is over.
    Granted(Grant),
    /// Not before this time has passed: the destination is down.
    NotFor(Micros),
}

/// What a core with leave has to know.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Grant {
    /// The destination has failed, and this connection alone tries it.
    pub is_trial: bool,
    /// The connections that the core may keep there for further messages.
    pub keeps: u16,
}

/// What a core is told without having asked. `W` names what waits there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Told<W> {
    /// The reply to a question of this core about this destination, which had to wait.
    Leave(CoreId, u64, W, Leave),
    /// This core may keep so many connections to this destination for further messages: others
    /// wait for one.
    Keeps(CoreId, u64, u16),
}

/// How a connection ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ended {
    /// The destination spoke SMTP with us, whatever it said of messages.
    Reached,
    /// It did not.
    Failed,
    /// Unknown: it was not tried.
    Unknown,
}

/// The state of one destination.
#[derive(Debug)]
struct DestinationState<W> {
    /// In a row.
    failures: u8,
    /// It is left alone until then.
    back_off_until: Instant,
    holders: Vec<Holder>,
    /// What waits on which core, the longest first.
    waiting: Vec<(CoreId, W)>,
}

/// A core with connections.
#[derive(Clone, Copy, Debug)]
struct Holder {
    core: CoreId,
    /// At least one.
    connections: u16,
    /// How many of them it may keep.
    keeps: u16,
}

/// All destinations of which there is something to know, by keyed hashes of their names.
#[derive(Debug)]
pub struct Destinations<W> {
    limits: Limits,
    known: BTreeMap<u64, DestinationState<W>>,
    /// Those without connections, by when their back-off ends.
    resting: BTreeSet<(Instant, u64)>,
    told: VecDeque<Told<W>>,
}

impl<W: Copy> Destinations<W> {
    /// Nothing is known yet.
    pub fn new(limits: Limits) -> Destinations<W> {
        Destinations {
            limits,
            known: BTreeMap::new(),
            resting: BTreeSet::new(),
            told: VecDeque::new(),
        }
    }

    /// Whether this core may make one more connection. `None`: it waits, and is told later. What
    /// waited there on the same core before waits no longer.
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

    /// Messages get through there by a connection that goes on.
    pub fn reached(&mut self, name: u64) {
        let Some(known) = self.known.get_mut(&name).filter(|known| known.failures > 0) else {
            return;
        };
        let before = known.forgive();
        // Without connections it would have been told too late.
        if known.holders.is_empty() {
            self.resting.remove(&(before, name));
            self.known.remove(&name);
            return;
        }
        self.serve(name);
    }

    /// A connection that was granted to this core is over, or was not made. `random`: any number.
    pub fn ended(&mut self, name: u64, core: CoreId, how: Ended, now: Instant, random: u64) {
        let Some(known) = self.known.get_mut(&name) else {
            unreachable!("a connection ends that was not granted")
        };
        known.give_back(core);
        match how {
            Ended::Reached => drop(known.forgive()),
            // Several that were on the way fail together, and count once.
            Ended::Failed if now >= known.back_off_until => {
                let span = known.fail(now, random);
                let waiting = known.waiting.drain(..);
                self.told
                    .extend(waiting.map(|(core, waiter)| {
                        Told::Leave(core, name, waiter, Leave::NotFor(span))
                    }));
            }
            Ended::Failed | Ended::Unknown => {}
        }
        self.serve(name);
        self.rest(name);
    }

    /// A destination that is left alone is so no longer: somebody wants it to be tried.
    pub fn call_again(&mut self, name: u64) {
        let Some(known) = self.known.get_mut(&name) else { return };
        let until = core::mem::replace(&mut known.back_off_until, Instant::START);
        if self.resting.remove(&(until, name)) {
            self.resting.insert((Instant::START, name));
        }
    }

    /// What a core is to be told.
    pub fn next_told(&mut self) -> Option<Told<W>> {
        self.told.pop_front()
    }

    /// Whether a core is to be told something.
    pub fn has_told(&self) -> bool {
        !self.told.is_empty()
    }

    /// Destinations that are known.
    pub fn count(&self) -> usize {
        self.known.len()
    }

    /// Connections that were granted and are not over.
    pub fn connections(&self) -> usize {
        self.known.values().map(|known| usize::from(known.connections())).sum()
    }

    /// Gives leave to those that wait, as far as there is room.
    fn serve(&mut self, name: u64) {
        let Some(known) = self.known.get_mut(&name) else { return };
        while known.connections() < known.most(self.limits.connections)
            && let Some((core, waiter)) = known.take_next()
        {
            let grant = known.grant(core);
            self.told.push_back(Told::Leave(core, name, waiter, Leave::Granted(grant)));
        }
        self.balance(name);
    }

    /// Asks cores with more connections to do with fewer, for those that wait.
    fn balance(&mut self, name: u64) {
        let Some(known) = self.known.get_mut(&name) else { return };
        let is_sound =
            |holder: &Holder| holder.connections > 0 && holder.keeps <= holder.connections;
        assert!(known.holders.iter().all(is_sound), "a core keeps none that it does not have");
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
            self.told.push_back(Told::Keeps(most.core, name, most.keeps));
        }
    }

    /// A destination without connections is forgotten, unless it has failed.
    fn rest(&mut self, name: u64) {
        let Some(known) = self.known.get(&name).filter(|known| known.holders.is_empty()) else {
            return;
        };
        assert!(known.waiting.is_empty(), "a core waits for a connection that ends");
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

    /// How many connections there are.
    fn connections(&self) -> u16 {
        self.holders.iter().map(|holder| holder.connections).sum()
    }

    /// How many there may be.
    fn most(&self, connections: u16) -> u16 {
        if self.failures > 0 { 1 } else { connections }
    }

    /// How many a core has.
    fn of(&self, core: CoreId) -> u16 {
        self.holders
            .iter()
            .find(|holder| holder.core == core)
            .map_or(0, |holder| holder.connections)
    }

    /// The cores that wait, the next one first.
    fn order(&self) -> Vec<CoreId> {
        let mut cores: Vec<CoreId> = self.waiting.iter().map(|(core, _)| *core).collect();
        cores.sort_by_key(|core| self.of(*core));
        cores
    }

    /// What waits on the next core.
    fn take_next(&mut self) -> Option<(CoreId, W)> {
        let next = self.order().into_iter().next()?;
        let place = self.waiting.iter().position(|(core, _)| *core == next)?;
        Some(self.waiting.remove(place))
    }

    /// A core gets one more.
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

    /// A core has one fewer.
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

    /// It works. Until when it would have been left alone.
    fn forgive(&mut self) -> Instant {
        self.failures = 0;
        core::mem::replace(&mut self.back_off_until, Instant::START)
    }

    /// It does not work. For how long it is left alone.
    fn fail(&mut self, now: Instant, random: u64) -> Micros {
        let longer = BACK_OFF_FIRST.0.saturating_mul(1 << self.failures.min(10));
        let span = jittered(Micros(longer).min(BACK_OFF_LONGEST), random);
        (self.failures, self.back_off_until) = (self.failures.saturating_add(1), now + span);
        span
    }
}
