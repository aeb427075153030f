//! What is to leave from the outboxes of a core: which entry waits for what, and which is next.
//!
//! It knows no delivery attempt: an attempt works with it, and in the end tells the entry's state.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use core::num::NonZeroU64;

use machine::Instant;
use relay::QueueIds;
use relay::destinations::Grant;
use relay::tally::Tally;
use shards::{Archive, CallEvent};
use store::{AccountId, OUTBOX, Store, Uid};
use tasks::{DelayQueue, FrameId};

use super::calls::Calls;
use super::context::Config;
use super::shares::{ATTEMPTS_MAX, Shares};
use super::standing::{DomainMark, Standings, State};
use super::waiting::{Place, Turns};
use super::{entry, smarthosts};

#[cfg(test)]
mod tests;

/// Messages of outboxes that a core looks at in a turn when it begins to serve.
pub(super) const LOOKED_AT_MAX: usize = 1024;

/// What is to leave from the outboxes of a core.
pub(super) struct Queue {
    pub(super) config: Config,
    /// Names for reports, none of which a message that comes in has.
    pub(super) queue_ids: QueueIds,
    pub(super) standings: Standings,
    pub(super) shares: Shares,
    pub(super) deadlines: DelayQueue,
    /// The attempts that go on in the next turn, and at this time at the latest: those that the
    /// store has refused something that they ask for again, and those with more to compute.
    again: Vec<FrameId>,
    again_at: Instant,
    pub(super) calls: Calls,
    pub(super) tally: Tally,
    /// What waits until somebody leaves the road to this destination.
    pub(super) behind: BTreeMap<String, Turns>,
    /// What waited so at destinations that are left alone, and is to be looked at for that.
    released: Vec<Turns>,
    is_to_look: bool,
    /// The outboxes that were not looked through since the core serves, from these messages on.
    unlooked: Vec<Place>,
    pub(super) is_serving: bool,
}

/// How an attempt has ended for its entry.
pub(super) struct Ended {
    pub(super) place: Place,
    /// When the entry is tried again. None: it is gone.
    pub(super) next: Option<Instant>,
    pub(super) destination_try: DestinationTry,
    /// It stays until an administrator does something with it.
    pub(super) is_left: bool,
    /// What is to be remembered of it.
    pub(super) words: Option<String>,
}

/// What an attempt came to with the destination of its recipients at other servers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum DestinationTry {
    /// It tried none.
    NotTried,
    /// It had a road there. When it ends, the next entry for that destination may start.
    OnRoad,
    /// The destination is not tried before this time.
    NotBefore(Instant),
    /// There are as many attempts at this destination as may be, and the entry waits behind them.
    Behind(String),
}

impl Queue {
    pub(super) fn new(now: Instant, config: Config, queue_ids: QueueIds) -> Queue {
        Queue {
            config,
            queue_ids,
            standings: Standings::default(),
            shares: Shares::default(),
            deadlines: DelayQueue::with_capacity(ATTEMPTS_MAX, now),
            again: Vec::new(),
            again_at: now,
            calls: Calls::default(),
            tally: Tally::default(),
            behind: BTreeMap::new(),
            released: Vec::new(),
            is_to_look: false,
            unlooked: Vec::new(),
            is_serving: false,
        }
    }

    /// The core serves: messages may leave.
    pub(super) fn begin(&mut self) {
        (self.is_to_look, self.is_serving) = (true, true);
    }

    /// Whether an attempt can go on, or begin.
    #[inline]
    pub(super) fn has_work(&self, store: &Store, now: Instant) -> bool {
        self.is_serving && (self.has_to_look() || store.has_posted())
            || !self.again.is_empty()
            || self.next_deadline().is_some_and(|at| at <= now)
    }

    /// When there is, whatever happens.
    #[inline]
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        // It is asked for in each turn, and in most there is none.
        let is_any = self.shares.taken() > 0 || self.standings.do_some_wait();
        if is_any { self.first_deadline() } else { None }
    }

    fn first_deadline(&self) -> Option<Instant> {
        let begins = self.next_waiting().map(|(at, _)| at);
        let again = (!self.again.is_empty()).then_some(self.again_at);
        [begins, again, self.deadlines.next_deadline()].into_iter().flatten().min()
    }

    /// Whether the outboxes are to be looked through, which no event announces.
    #[inline]
    pub(super) fn has_to_look(&self) -> bool {
        self.is_serving
            && (self.is_to_look || !self.unlooked.is_empty() || !self.released.is_empty())
    }

    /// The first entry that waits and has an account that may have another attempt.
    fn next_waiting(&self) -> Option<(Instant, Place)> {
        // While a place is free all may have it but accounts that have some: so few are looked at.
        let is_any_free = self.is_serving && self.shares.is_any_free();
        is_any_free
            .then(|| self.standings.next(|account| self.shares.has_one_for(account)))
            .flatten()
    }

    /// What has come into the outboxes waits from now on.
    pub(super) fn take_in(&mut self, store: &mut Store, now: Instant) {
        if !self.is_serving {
            return;
        }
        if core::mem::take(&mut self.is_to_look) {
            let all = store.accounts().map(|account| account.id());
            let has_some = |account: &AccountId| {
                store.mailbox(*account, OUTBOX).is_some_and(|own| own.messages > 0)
            };
            self.unlooked = all.filter(has_some).map(|account| (account, Uid(1))).collect();
        }
        let mut left = LOOKED_AT_MAX;
        self.look_through(store, now, &mut left);
        self.let_go(&mut left);
        while let Some(place) = store.next_posted() {
            self.standings.arrived(place, now);
        }
    }

    /// Looks through more of the outboxes, at so many entries at most.
    fn look_through(&mut self, store: &Store, now: Instant, left: &mut usize) {
        while let Some((account, from)) = self.unlooked.pop() {
            for info in store.messages_from(account, OUTBOX, from) {
                if *left == 0 {
                    return self.unlooked.push((account, info.uid));
                }
                *left -= 1;
                self.standings.found(
                    (account, info.uid),
                    entry::fate(store.outbox_entry(account, info.uid)).state(now),
                );
            }
        }
    }

    /// The next entry that is due. It is under way, and an attempt has a place for it.
    pub(super) fn next_due(&mut self, now: Instant) -> Option<Place> {
        let (_, place) = self.next_waiting().filter(|(at, _)| *at <= now)?;
        self.take_up(place);
        Some(place)
    }

    /// An attempt begins with this entry.
    pub(super) fn take_up(&mut self, place: Place) {
        self.shares.take(place.0);
        self.standings.set(place, State::UnderWay);
    }

    /// The attempts that go on in this turn.
    pub(super) fn take_again(&mut self) -> Vec<FrameId> {
        core::mem::take(&mut self.again)
    }

    /// A destination is left alone. What waits for others to leave the road there is looked at,
    /// and waits for the same time if it is not too old for that.
    pub(super) fn leave_alone(&mut self, destination: &str) {
        self.released.extend(self.behind.remove(destination));
    }

    /// The destination of what is for this domain is left alone no longer.
    pub(super) fn call_again(&mut self, domain: &str, store: &mut Archive) {
        let destination = smarthosts::destination(domain, self.config.way_to(domain));
        self.calls.call_again(&destination);
        store.tell_of_call(store.own.facts.destination(&destination), CallEvent::ToBeTried);
    }

    /// What waited at such a destination is due, so many entries at most.
    fn let_go(&mut self, left: &mut usize) {
        while *left > 0
            && let Some(turns) = self.released.last_mut()
        {
            match turns.next(|_| true) {
                Some(place) if self.standings.is(place, State::Behind) => {
                    self.standings.set(place, State::Waits(Instant::START));
                }
                // Some are held meanwhile.
                Some(_) => {}
                None => {
                    self.released.pop();
                }
            }
            *left -= 1;
        }
    }

    /// An entry is for this domain.
    pub(super) fn is_for(&mut self, place: Place, domain: &str, store: &Store) {
        self.standings.is_for(place, Queue::mark_of(domain, store));
    }

    /// By what a domain is known.
    pub(super) fn mark_of(domain: &str, store: &Store) -> DomainMark {
        let hash = u128::from_le_bytes(store.secret(domain.as_bytes())) as u64;
        DomainMark(NonZeroU64::new(hash).unwrap_or(NonZeroU64::MIN))
    }

    /// An attempt at a destination is over. The entry that waits for that is next.
    pub(super) fn road_left(&mut self, destination: &str, has_leave: bool) {
        self.calls.ended(destination, has_leave);
        self.let_next_try(destination);
    }

    /// The attempt that has asked for leave to a destination has it. The next one may ask.
    pub(super) fn leave_granted(&mut self, destination: &str, grant: Grant) {
        if self.calls.granted(destination, grant) {
            self.let_next_try(destination);
        }
    }

    /// The attempt that has asked for leave to a destination is over: that is down until then.
    pub(super) fn is_down(&mut self, destination: &str, until: Instant) {
        self.calls.ended(destination, false);
        self.calls.is_down(destination, until);
        self.leave_alone(destination);
    }

    /// A courier goes on in the next turn, which is to come by then.
    pub(super) fn go_on_later(&mut self, frame: FrameId, at: Instant) {
        self.again_at = if self.again.is_empty() { at } else { self.again_at.min(at) };
        self.again.push(frame);
    }

    /// The attempt that acts is over. What becomes of its entry.
    pub(super) fn ended(&mut self, ended: Ended) {
        let Ended { place, next, destination_try, is_left, words } = ended;
        self.shares.give_back();
        if let Some(words) = words {
            self.standings.said(place, words);
        }
        let has_tried_none =
            matches!(destination_try, DestinationTry::NotTried | DestinationTry::NotBefore(_));
        match (next, destination_try) {
            (None, _) => self.standings.gone(place),
            (Some(_), DestinationTry::Behind(destination)) => {
                self.standings.set(place, State::Behind);
                self.behind.entry(destination.clone()).or_default().push(place);
                // The attempts that it is to wait for may have ended meanwhile.
                self.let_try_where_nobody_is(&destination);
            }
            (Some(_), _) if is_left => self.standings.set(place, State::LeftAlone),
            (Some(at), _) => self.standings.set(place, State::Waits(at)),
        }
        if has_tried_none {
            self.let_others_try();
        }
    }

    fn let_try_where_nobody_is(&mut self, destination: &str) {
        if !self.calls.is_called(destination) {
            self.let_next_try(destination);
        }
    }

    /// An attempt has ended without a try at a destination, and it is not known which that was. At
    /// each destination without an attempt the next entry may try: else it would wait for none.
    fn let_others_try(&mut self) {
        let Queue { behind, calls, .. } = self;
        let free: Vec<String> =
            behind.keys().filter(|name| !calls.is_called(name)).cloned().collect();
        free.iter().for_each(|destination| self.let_next_try(destination));
    }

    /// The entry that goes on with a road to this destination.
    pub(super) fn next_behind(&mut self, destination: &str) -> Option<Place> {
        let Queue { behind, standings, .. } = self;
        let turns = behind.get_mut(destination)?;
        // Some are held meanwhile.
        let next = core::iter::from_fn(|| turns.next(|_| true))
            .find(|place| standings.is(*place, State::Behind));
        if turns.is_empty() {
            behind.remove(destination);
        }
        next
    }

    /// Messages get through there. Another entry that waits may try by a road of its own.
    pub(super) fn road_is_good(&mut self, destination: &str) {
        if self.calls.reached(destination) {
            self.let_next_try(destination);
        }
    }

    /// The next entry that waits for a road to this destination may try, if its account may have an
    /// attempt. Where no account may have one now, one entry of each account may: the first that
    /// has an attempt goes first.
    fn let_next_try(&mut self, destination: &str) {
        let Queue { behind, standings, shares, .. } = self;
        let Some(turns) = behind.get_mut(destination) else { return };
        let mut turn = || turns.next(|account| shares.has_one_for(account));
        let next = core::iter::from_fn(&mut turn).find(|place| standings.is(*place, State::Behind));
        match next {
            Some(next) => standings.set(next, State::Waits(Instant::START)),
            None => turns.one_of_each().into_iter().for_each(|next| {
                if standings.is(next, State::Behind) {
                    standings.set(next, State::Waits(Instant::START));
                }
            }),
        }
        if turns.is_empty() {
            behind.remove(destination);
        }
    }
}
