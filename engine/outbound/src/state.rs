//! The state of a core's queue: which entry waits for what, and which is next.
//!
//! The queue does not know the delivery attempts. An attempt uses the queue, and reports the state
//! of its entry at its end.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;
use core::num::NonZeroU64;

use machine::Instant;
use relay::QueueIds;
use relay::destinations::Grant;
use relay::tally::Tally;
use shards::{DestinationEvent, ShardedStore};
use store::{AccountId, OUTBOX, Store, Uid};
use tasks::{DelayQueue, FrameId};

use super::calls::CoreDestinations;
use super::context::Config;
use super::index::{DomainMark, MessageMark, QueueIndex, State};
use super::shares::{ATTEMPTS_MAX, Shares};
use super::waiting::{Place, Turns};
use super::waiting_failures::WaitingFailures;
use super::{entry, smarthosts};

#[cfg(test)]
mod tests;

/// The most entries that a core examines in a turn, at the start or after a destination went down.
pub(super) const EXAMINED_MAX: usize = 1024;

/// The entries in the outboxes of a core that are to be sent.
pub(super) struct Queue {
    pub(super) config: Config,
    /// Identifiers for reports. No incoming message gets one of them.
    pub(super) queue_ids: QueueIds,
    pub(super) index: QueueIndex,
    pub(super) shares: Shares,
    pub(super) deadlines: DelayQueue,
    /// The attempts that continue in the next turn, which begins at `again_at` or earlier. Each of
    /// them repeats a request that the store has refused, or has more to compute.
    again: Vec<FrameId>,
    again_at: Instant,
    pub(super) calls: CoreDestinations,
    pub(super) tally: Tally,
    pub(super) failures: WaitingFailures,
    /// By destination, the entries that wait until an attempt there ends.
    pub(super) behind: BTreeMap<String, Turns>,
    /// Entries that waited behind a destination that is down now. They are to be made due again.
    released: Vec<Turns>,
    must_list_outboxes: bool,
    /// The outboxes that were not searched completely since the core began to serve. Each has the
    /// message at which the search continues.
    unsearched: Vec<Place>,
    pub(super) is_serving: bool,
}

/// The result of an attempt for its entry.
pub(super) struct AttemptOutcome {
    pub(super) place: Place,
    /// The time at which the entry is tried again. `None`: the entry is gone.
    pub(super) next: Option<Instant>,
    pub(super) destination_try: DestinationTry,
    /// Whether the entry stays until an administrator acts on it.
    pub(super) is_left: bool,
    /// The reason that the queue page shows.
    pub(super) words: Option<String>,
}

/// The result of an attempt at the destination of its remote recipients.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum DestinationTry {
    /// The attempt has not tried the destination.
    NotTried,
    /// The attempt had leave to try the destination. When the attempt ends, the next entry for that
    /// destination may start.
    Tried,
    /// The destination is not tried before this time.
    NotBefore(Instant),
    /// The destination has as many attempts as it may have. The entry waits behind them.
    Behind(String),
}

impl Queue {
    pub(super) fn new(now: Instant, config: Config, queue_ids: QueueIds) -> Queue {
        Queue {
            config,
            queue_ids,
            index: QueueIndex::default(),
            shares: Shares::default(),
            deadlines: DelayQueue::with_capacity(ATTEMPTS_MAX, now),
            again: Vec::new(),
            again_at: now,
            calls: CoreDestinations::default(),
            tally: Tally::default(),
            failures: WaitingFailures::default(),
            behind: BTreeMap::new(),
            released: Vec::new(),
            must_list_outboxes: false,
            unsearched: Vec::new(),
            is_serving: false,
        }
    }

    /// Begins to serve: messages may be sent from now on.
    pub(super) fn begin(&mut self) {
        (self.must_list_outboxes, self.is_serving) = (true, true);
    }

    /// Whether the queue has something to do now.
    #[inline]
    pub(super) fn has_work(&self, store: &Store, now: Instant) -> bool {
        self.is_serving && (self.has_unannounced_work() || store.has_posted())
            || !self.again.is_empty()
            || self.next_deadline().is_some_and(|at| at <= now)
    }

    /// The next time at which the queue has work even without an event.
    #[inline]
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        // The core asks for this time in each turn. In most turns nothing waits, and this check is
        // cheap.
        let is_any = self.shares.taken() > 0 || self.index.has_waiting_entries();
        if is_any { self.first_deadline() } else { None }
    }

    /// The earliest of the times at which an attempt can begin, can continue, or has a deadline.
    fn first_deadline(&self) -> Option<Instant> {
        let begins = self.next_waiting().map(|(at, _)| at);
        let again = (!self.again.is_empty()).then_some(self.again_at);
        [begins, again, self.deadlines.next_deadline()].into_iter().flatten().min()
    }

    /// Whether outboxes must be searched or entries released. No event announces this work.
    #[inline]
    pub(super) fn has_unannounced_work(&self) -> bool {
        self.is_serving
            && (self.must_list_outboxes || !self.unsearched.is_empty() || !self.released.is_empty())
    }

    /// The first waiting entry of an account that may have another attempt.
    fn next_waiting(&self) -> Option<(Instant, Place)> {
        // If one more attempt may begin, only accounts that have attempts already can be refused
        // one. These are few, so the search examines only a few accounts.
        let is_any_free = self.is_serving && self.shares.is_any_free();
        is_any_free.then(|| self.index.next(|account| self.shares.has_one_for(account))).flatten()
    }

    /// Adds the messages that have arrived in the outboxes, so that they wait for an attempt.
    pub(super) fn take_in(&mut self, store: &mut Store, now: Instant) {
        if !self.is_serving {
            return;
        }
        if core::mem::take(&mut self.must_list_outboxes) {
            let all = store.accounts().map(|account| account.id());
            let has_some = |account: &AccountId| {
                store.mailbox(*account, OUTBOX).is_some_and(|own| own.messages > 0)
            };
            self.unsearched = all.filter(has_some).map(|account| (account, Uid(1))).collect();
        }
        let mut left = EXAMINED_MAX;
        self.search_outboxes(store, now, &mut left);
        self.make_due(&mut left);
        while let Some(place) = store.next_posted() {
            if let Some(info) = store.message(place.0, OUTBOX, place.1) {
                self.index.arrived(place, info.internal_date, now);
            }
        }
    }

    /// Continues the search of the outboxes. `left`: the number of entries that may still be
    /// examined.
    fn search_outboxes(&mut self, store: &Store, now: Instant, left: &mut usize) {
        while let Some((account, from)) = self.unsearched.pop() {
            for info in store.messages_from(account, OUTBOX, from) {
                if *left == 0 {
                    return self.unsearched.push((account, info.uid));
                }
                *left -= 1;
                self.index.found(
                    (account, info.uid),
                    entry::recorded_state(store.outbox_entry(account, info.uid)).state(now),
                );
            }
        }
    }

    /// Takes the next entry that is due. Its state becomes [`State::UnderWay`], and its attempt
    /// counts for the account.
    pub(super) fn next_due(&mut self, now: Instant) -> Option<Place> {
        let (_, place) = self.next_waiting().filter(|(at, _)| *at <= now)?;
        self.take_up(place);
        Some(place)
    }

    /// Counts an attempt with this entry for its account.
    pub(super) fn take_up(&mut self, place: Place) {
        self.shares.take(place.0);
        self.index.set(place, State::UnderWay);
    }

    /// Takes the attempts that continue in this turn.
    pub(super) fn take_again(&mut self) -> Vec<FrameId> {
        core::mem::take(&mut self.again)
    }

    /// Releases the entries that wait behind a destination, because the destination is down. The
    /// next attempt of each entry ends at once, and the entry waits until the destination may be
    /// tried. An entry that is too old for that is given up.
    pub(super) fn release_entries_behind(&mut self, destination: &str) {
        self.released.extend(self.behind.remove(destination));
    }

    /// Lets the destination of this domain be tried at once.
    pub(super) fn try_again(&mut self, domain: &str, store: &mut ShardedStore) {
        let destination = smarthosts::destination(domain, self.config.way_to(domain));
        self.calls.try_again(&destination);
        store.report_destination(
            store.own.facts.destination(&destination),
            DestinationEvent::ToBeTried,
        );
    }

    /// Makes released entries due. `left`: the number of entries that may still be examined.
    fn make_due(&mut self, left: &mut usize) {
        while *left > 0
            && let Some(turns) = self.released.last_mut()
        {
            match turns.next(|_| true) {
                Some(place) if self.index.has_state(place, State::Behind) => {
                    self.index.set(place, State::Waits(Instant::START));
                }
                // An administrator may hold the entry by now.
                Some(_) => {}
                None => {
                    self.released.pop();
                }
            }
            *left -= 1;
        }
    }

    /// Sets the domain of an entry's recipients.
    pub(super) fn set_domain(&mut self, place: Place, domain: &str, store: &Store) {
        self.index.set_domain(place, Queue::mark_of(domain, store));
    }

    /// The mark of a message: a keyed hash of its envelope and header.
    pub(super) fn mark_of_message(head: &[u8], store: &Store) -> MessageMark {
        let hash = u128::from_le_bytes(store.secret(head)) as u64;
        MessageMark(NonZeroU64::new(hash).unwrap_or(NonZeroU64::MIN))
    }

    /// The mark of a domain: a keyed hash of its name.
    pub(super) fn mark_of(domain: &str, store: &Store) -> DomainMark {
        let hash = u128::from_le_bytes(store.secret(domain.as_bytes())) as u64;
        DomainMark(NonZeroU64::new(hash).unwrap_or(NonZeroU64::MIN))
    }

    /// Notes that an attempt at a destination is over. The next entry that waits there may start.
    pub(super) fn attempt_left(&mut self, destination: &str, has_leave: bool) {
        self.calls.ended(destination, has_leave);
        self.let_next_try(destination);
    }

    /// Notes that the owner has granted leave to the attempt that asked for it. The next attempt
    /// may ask.
    pub(super) fn leave_granted(&mut self, destination: &str, grant: Grant) {
        if self.calls.granted(destination, grant) {
            self.let_next_try(destination);
        }
    }

    /// Notes that a destination is down until `until`. The attempt that asked for leave is over.
    pub(super) fn destination_down(&mut self, destination: &str, until: Instant) {
        self.calls.ended(destination, false);
        self.calls.went_down(destination, until);
        self.release_entries_behind(destination);
    }

    /// Lets an attempt continue in the next turn, which begins at `at` or earlier.
    pub(super) fn go_on_later(&mut self, frame: FrameId, at: Instant) {
        self.again_at = if self.again.is_empty() { at } else { self.again_at.min(at) };
        // While the store is busy, each event of the connection comes here.
        if !self.again.contains(&frame) {
            self.again.push(frame);
        }
    }

    /// Notes the end of an attempt: it no longer counts for its account, and its entry gets a new
    /// state.
    pub(super) fn ended(&mut self, ended: AttemptOutcome, now: Instant) {
        let AttemptOutcome { place, next, destination_try, is_left, words } = ended;
        self.shares.give_back();
        if let Some(words) = words {
            self.index.remember_result(place, words);
        }
        let messages = if self.failures.is_empty() {
            BTreeSet::new()
        } else {
            self.index.messages_near(place)
        };
        let has_tried_none =
            matches!(destination_try, DestinationTry::NotTried | DestinationTry::NotBefore(_));
        match (next, destination_try) {
            (None, _) => self.gone(place),
            (Some(_), DestinationTry::Behind(destination)) => {
                self.index.set(place, State::Behind);
                self.behind.entry(destination.clone()).or_default().push(place);
                // The attempts that the entry waits for may have ended by now.
                self.let_next_try_if_none_is_active(&destination);
            }
            (Some(_), _) if is_left => self.index.set(place, State::LeftAlone),
            (Some(at), _) => self.index.set(place, State::Waits(at)),
        }
        if has_tried_none {
            self.let_others_try();
        }
        // A report waits for each entry that may belong to its message. An entry that was not read
        // may belong to any message. So the reports of these messages may have waited for this
        // entry, and may begin now.
        for message in messages {
            self.let_report_begin(message, now);
        }
    }

    /// Lets the report of a message begin: an entry of the message that has failures to report
    /// becomes due. Does nothing if another entry of the message is about to be tried.
    fn let_report_begin(&mut self, message: MessageMark, now: Instant) {
        let Queue { failures, index, .. } = self;
        let waits = |place: &Place| {
            index.of(*place).is_some_and(|status| matches!(status.state, State::Waits(_)))
        };
        if let Some(first) = failures.entries(message).find(waits)
            && !index.has_untried(message, first, now)
        {
            index.set(first, State::Waits(Instant::START));
        }
    }

    /// Removes an entry.
    pub(super) fn gone(&mut self, place: Place) {
        self.forget_failures(place);
        self.index.gone(place);
    }

    /// Drops the waiting failures of an entry, because the entry is removed, or an administrator
    /// changes it.
    pub(super) fn forget_failures(&mut self, place: Place) {
        if let Some(message) = self.index.message(place) {
            self.failures.take(message, place);
        }
    }

    /// Lets the next entry that waits for this destination try, if no attempt at it is active.
    fn let_next_try_if_none_is_active(&mut self, destination: &str) {
        if !self.calls.is_called(destination) {
            self.let_next_try(destination);
        }
    }

    /// For each destination that has no active attempt, lets the next entry that waits for it try.
    /// Called when an attempt ends before it has contacted its destination: the caller does not
    /// know which destination that was. Without this call an entry could wait forever.
    fn let_others_try(&mut self) {
        let Queue { behind, calls, .. } = self;
        let free: Vec<String> =
            behind.keys().filter(|name| !calls.is_called(name)).cloned().collect();
        free.iter().for_each(|destination| self.let_next_try(destination));
    }

    /// Takes the next entry that waits for this destination, to use the kept connection.
    pub(super) fn next_behind(&mut self, destination: &str) -> Option<Place> {
        let Queue { behind, index, .. } = self;
        let turns = behind.get_mut(destination)?;
        // An administrator may hold some of the entries by now.
        let next = core::iter::from_fn(|| turns.next(|_| true))
            .find(|place| index.has_state(*place, State::Behind));
        if turns.is_empty() {
            behind.remove(destination);
        }
        next
    }

    /// Notes that messages reach this destination. Another waiting entry may try, with a new
    /// connection.
    pub(super) fn destination_reached(&mut self, destination: &str) {
        if self.calls.reached(destination) {
            self.let_next_try(destination);
        }
    }

    /// Lets the next entry that waits for this destination try, if its account may have an attempt.
    /// If no account may have one now, one entry of each account becomes due. The first account
    /// with a free place then goes first.
    fn let_next_try(&mut self, destination: &str) {
        let Queue { behind, index, shares, .. } = self;
        let Some(turns) = behind.get_mut(destination) else { return };
        let mut turn = || turns.next(|account| shares.has_one_for(account));
        let next =
            core::iter::from_fn(&mut turn).find(|place| index.has_state(*place, State::Behind));
        match next {
            Some(next) => index.set(next, State::Waits(Instant::START)),
            None => turns.one_of_each().into_iter().for_each(|next| {
                if index.has_state(next, State::Behind) {
                    index.set(next, State::Waits(Instant::START));
                }
            }),
        }
        if turns.is_empty() {
            behind.remove(destination);
        }
    }
}
