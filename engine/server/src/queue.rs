//! The queue: letters for somebody elsewhere, and the couriers who bring them there.
//!
//! A letter for somebody elsewhere lies in the outbox of whoever sends it, on the core that owns his account, until everybody whom it is for has it or it is known that he
//! never will. So what is to leave is what the store says, and this table is made anew from the outboxes when the core begins to serve. An entry is one message of an
//! outbox and stands for up to [`entry::RECIPIENTS`] of a letter's recipients, who are of one domain; its keywords say who of them is done with (`entry`).
//!
//! | file | what |
//! |---|---|
//! | `entry` | what an outbox holds: envelope and marks |
//! | `head` | how its signatures and its envelope are read |
//! | `courier` | one entry from its beginning to its end |
//! | `parts` | what is read of it |
//! | `sorting` | what comes next for whom, and what of it is durable |
//! | `bringing` | what comes to somebody here: the letter, or a report |
//! | `forwarding` | what comes for an account whose mail is sent on |
//! | `authentic` | whether such a message came from its sender |
//! | `sealing` | what is said of that to who gets it |
//! | `reports` | that somebody does not get it, or that he has it |
//! | `unreadable` | an entry with a head that cannot be read: who is told |
//! | `road` | to which hosts it goes |
//! | `demand` | what the hosts' domains demand of who brings mail there |
//! | `policies` | what these domains say of their hosts, and how that is fetched |
//! | `smarthosts` | the hosts that send it on instead, where the configuration names such |
//! | `secrecy` | the connection to one of them, over TLS where that can be had |
//! | `keeping` | the next letter by the same connection |
//! | `tallying` | how often TLS was had with hosts, and why not |
//! | `standing` | how it stands with each entry |
//! | `orders` | what administrators want to know of the entries, and want done with them |
//! | `showing` | how they see it |
//! | `waiting` | whose turn it is |
//!
//! Invariants:
//! - An entry is in one place at most: it waits, or a courier has it. At most [`COURIERS_MAX`] couriers of a core are at work; each has one connection at most.
//! - Nobody's letters have more couriers than are left for others: so whoever writes to many hosts that are slow is held up by them, and others are not. Whoever is alone has half of them.
//! - A connection is one courier's. Who goes on with it after him has a frame of his own, so that nothing that was asked for before comes to him.
//! - A destination that is down is left alone with all that goes there, and at one that is slow there are few at a time; others go on.
//! - Who waits behind others waits for somebody who is on the road, or is about to try it. Whoever comes to neither lets others try in his place.
//! - What waits takes a few words an entry, and the store bounds how many there are. However many there are, no turn looks at more than [`LOOKED_AT_MAX`] of them, when the core begins to serve and later. Who has come just now goes before those who were tried already.
//! - Nothing is begun that is not durable before: what a recipient's letter came to is marked before anything else is done for him, and he whose mark is there is never tried again.
//! - A core that stops begins with none. What is on its way then is given up, but for letters of which the peer has every byte: for its answer we wait as long as for sessions.

mod authentic;
mod bringing;
mod courier;
mod demand;
mod entry;
mod forwarding;
mod head;
mod keeping;
mod orders;
mod parts;
mod policies;
mod reports;
mod road;
mod sealing;
mod secrecy;
mod showing;
mod smarthosts;
mod sorting;
mod standing;
mod tallying;
mod unreadable;
mod waiting;

#[cfg(test)]
mod tests;

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use core::num::NonZeroU64;

use connections::{Owner, Stir};
use machine::{Instant, Micros};
use relay::destinations::{Destinations, Ended, Limits};
use relay::tally::Tally;
use resolver::{Known, QuestionNumber};
use store::{AccountId, OUTBOX, Outcome, Store, Uid};
use tasks::{DelayQueue, Entry, FrameId, FrameTable};

use crate::common::Common;
use crate::engine::Engine;
use crate::subsystem::Subsystem;

use courier::{Courier, Hands, Way};
use orders::Orders;
use policies::Policies;
use reports::Why;
use standing::{DomainMark, Standings, State};
use waiting::Turns;

pub(crate) use entry::{
    ENVELOPE_BYTES_MAX, RECIPIENTS_MAX, arriving, entries_for, envelope_of, is_fully_qualified, may_be_posted, posting,
    together_by_kind,
};

tasks::points! {
    /// Where the queue waits for the store.
    pub(crate) enum Point of Subsystem::Outbound;
    /// A delivery attempt: something was asked for.
    Attempt,
    /// The same: a part of the message is read.
    AttemptRead,
    /// Administration of the queue: something was asked for.
    Order,
    /// A delivery attempt: a signature is computed.
    Signed,
    /// A delivery attempt: it is known what was asked about a name.
    NameKnown,
}

/// Entries of a core that leave at a time.
const COURIERS_MAX: usize = 32;

/// Messages of outboxes that a core looks at in a turn when it begins to serve.
const LOOKED_AT_MAX: usize = 1024;

/// Destinations of which something is known, and connections to each.
const DESTINATIONS: Limits = Limits { destinations: 4096, connections: 4 };

/// When the store is asked again at the latest that has refused something.
const INSISTENCE: Micros = Micros::from_secs(1);

/// Those who are at work.
type Couriers = FrameTable<Option<Box<Courier>>>;

/// Whose, and which message of his outbox.
type Place = (AccountId, Uid);

/// What is to leave from the outboxes of a core.
pub(crate) struct Queue {
    standings: Standings,
    orders: Orders,
    couriers: Couriers,
    deadlines: DelayQueue,
    /// Those who go on in the next turn, and at this time at the latest: whom the store has refused something that they ask for again, and who has more to compute.
    again: Vec<FrameId>,
    again_at: Instant,
    destinations: Destinations,
    policies: Policies,
    tally: Tally,
    /// What waits until somebody leaves the road to this destination.
    behind: BTreeMap<String, Turns>,
    /// What waited so at destinations that are left alone, and is to be looked at for that.
    released: Vec<Turns>,
    is_to_look: bool,
    /// The outboxes that were not looked through since the core serves, from these messages on.
    unlooked: Vec<Place>,
    is_serving: bool,
}

impl Queue {
    pub(crate) fn new(now: Instant) -> Queue {
        Queue {
            standings: Standings::default(),
            orders: Orders::new(),
            couriers: FrameTable::with_capacity(COURIERS_MAX),
            deadlines: DelayQueue::with_capacity(COURIERS_MAX, now),
            again: Vec::new(),
            again_at: now,
            destinations: Destinations::new(DESTINATIONS),
            policies: Policies::default(),
            tally: Tally::default(),
            behind: BTreeMap::new(),
            released: Vec::new(),
            is_to_look: false,
            unlooked: Vec::new(),
            is_serving: false,
        }
    }

    /// The core serves: letters may leave.
    pub(crate) fn begin(&mut self) {
        (self.is_to_look, self.is_serving) = (true, true);
    }

    /// Couriers at work, and orders.
    pub(crate) fn under_way(&self) -> usize {
        self.couriers.len() + self.orders.under_way()
    }

    /// Whether there is something to do.
    #[inline]
    pub(crate) fn has_work(&self, store: &Store, now: Instant) -> bool {
        self.is_serving && (self.has_to_look() || store.has_posted())
            || !self.again.is_empty()
            || self.orders.are_to_go_on()
            || self.next_deadline().is_some_and(|at| at <= now)
    }

    /// When there is, whatever happens.
    #[inline]
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        // It is asked for in each turn, and in most there is none.
        let is_any = !self.couriers.is_empty() || self.standings.do_some_wait();
        if is_any { self.first_deadline() } else { None }
    }

    fn first_deadline(&self) -> Option<Instant> {
        let begins = self.next_waiting().map(|(at, _)| at);
        let again = (!self.again.is_empty()).then_some(self.again_at);
        [begins, again, self.deadlines.next_deadline()].into_iter().flatten().min()
    }

    /// Whether the outboxes are to be looked through, or orders go on, which no event announces.
    pub(crate) fn has_to_look(&self) -> bool {
        self.is_serving && (self.is_to_look || !self.unlooked.is_empty() || !self.released.is_empty())
            || self.orders.are_to_go_on()
    }

    /// The first entry that waits of those who may have another courier.
    fn next_waiting(&self) -> Option<(Instant, Place)> {
        // While one is free all may have it but those who have some: so few are looked at.
        let is_any_free = self.is_serving && self.couriers.len() < COURIERS_MAX;
        is_any_free.then(|| self.standings.next(|account| has_share(account, &self.couriers))).flatten()
    }

    /// What has come into the outboxes waits from now on.
    fn take_in(&mut self, store: &mut Store, now: Instant) {
        if !self.is_serving {
            return;
        }
        if core::mem::take(&mut self.is_to_look) {
            let all = store.accounts().map(|account| account.id());
            let has_some = |account: &AccountId| store.mailbox(*account, OUTBOX).is_some_and(|own| own.messages > 0);
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
                self.standings.found((account, info.uid), entry::fate(info.flags).state(now));
            }
        }
    }

    /// A courier for the next entry that is due.
    fn next_to_leave(&mut self, now: Instant) -> Option<FrameId> {
        let (_, place) = self.next_waiting().filter(|(at, _)| *at <= now)?;
        let frame = self.couriers.insert(Some(Box::new(Courier::new(place)))).ok()?;
        self.standings.set(place, State::UnderWay);
        Some(frame)
    }

    /// A destination is left alone. What waits for others to leave the road there is looked at, and waits for the same time if it is not too old for that.
    fn leave_alone(&mut self, destination: &str) {
        self.released.extend(self.behind.remove(destination));
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
    fn is_for(&mut self, place: Place, domain: &str, store: &Store) {
        self.standings.is_for(place, Queue::mark_of(domain, store));
    }

    /// By what a domain is known.
    fn mark_of(domain: &str, store: &Store) -> DomainMark {
        let hash = u128::from_le_bytes(store.secret(domain.as_bytes())) as u64;
        DomainMark(NonZeroU64::new(hash).unwrap_or(NonZeroU64::MIN))
    }

    /// Somebody leaves a road. Who waits for that is next.
    fn road_left(&mut self, destination: &str, how: Ended, now: Instant, random: u64) {
        self.destinations.ended(destination, how, now, random);
        self.let_next_try(destination);
    }

    /// A courier goes on in the next turn, which is to come by then.
    fn go_on_later(&mut self, frame: FrameId, at: Instant) {
        self.again_at = if self.again.is_empty() { at } else { self.again_at.min(at) };
        self.again.push(frame);
    }

    /// What becomes of an entry whose courier is done with it.
    fn put_back(&mut self, courier: Courier, next: Option<Instant>) {
        let (place, has_set_out, waits) = (courier.place(), courier.has_set_out, courier.waits_behind.is_some());
        // Where no delivery was tried, an earlier reason stays.
        let is_news = |why: &&Why| has_set_out || matches!(why, Why::Full);
        let why = courier.later.last().map(|(_, why)| why).filter(is_news);
        let is_unread = courier.is_damaged || courier.notice.is_some();
        let why = if is_unread { Some(courier.why_unreadable()) } else { why.cloned() };
        if let Some(why) = why {
            self.standings.said(place, why.words());
        }
        let is_left = courier.is_left_unreadable();
        match (next, courier.waits_behind) {
            (None, _) => self.standings.gone(place),
            (Some(_), Some(destination)) => {
                self.standings.set(place, State::Behind);
                self.behind.entry(destination.clone()).or_default().push(place);
                // Those behind whom it is to wait may have left meanwhile.
                self.let_try_where_nobody_is(&destination);
            }
            (Some(_), None) if is_left => self.standings.set(place, State::LeftAlone),
            (Some(at), None) => self.standings.set(place, State::Waits(at)),
        }
        if !has_set_out && !waits {
            self.let_others_try();
        }
    }

    fn let_try_where_nobody_is(&mut self, destination: &str) {
        if !self.destinations.is_called(destination) {
            self.let_next_try(destination);
        }
    }

    /// Who was to try a road has not, and nobody knows which. Where nobody is the next one may, who else would wait for nobody.
    fn let_others_try(&mut self) {
        let Queue { behind, destinations, .. } = self;
        let free: Vec<String> = behind.keys().filter(|name| !destinations.is_called(name)).cloned().collect();
        free.iter().for_each(|destination| self.let_next_try(destination));
    }
}

/// Whether there is a courier for another letter of an account's, beside those whom it has: there are more that are free.
fn has_share(account: AccountId, couriers: &Couriers) -> bool {
    let is_own = |courier: &Option<Box<Courier>>| courier.as_ref().is_some_and(|courier| courier.place().0 == account);
    let own = couriers.iter().filter(|(_, courier)| is_own(courier)).count();
    own < COURIERS_MAX - couriers.len()
}

/// A courier does something, and if that was all, who goes on with his connection does.
fn step(mut frame: FrameId, common: &mut Common, act: impl FnOnce(&mut Courier, &mut Hands<'_>) -> Way) {
    let Some(mut courier) = common.queue.couriers.get_mut(frame).and_then(Option::take) else { return };
    let mut way = act(&mut courier, &mut Hands { frame, common });
    while let Way::Over(next) = way {
        let follower = courier.follower(&mut Hands { frame, common });
        let queue = &mut common.queue;
        queue.couriers.remove(frame);
        queue.deadlines.cancel(frame);
        queue.put_back(*courier, next);
        let Some(follower) = follower else { return };
        // What was asked for in the frame of the one before, and still comes, is for nobody.
        let Ok(new) = queue.couriers.insert(None) else { return };
        if let Some(line) = &follower.line {
            common.connections.hand_over(line.connection(), Owner::Outbound(new));
        }
        queue.deadlines.set(new, common.turn.now + keeping::PAUSE);
        (frame, courier) = (new, Box::new(follower));
        way = courier.go_on(&mut Hands { frame, common });
    }
    let queue = &mut common.queue;
    if let Some(place) = queue.couriers.get_mut(frame) {
        *place = Some(courier);
    }
    match way {
        Way::Turn => queue.go_on_later(frame, common.turn.now + INSISTENCE),
        Way::Computes => queue.go_on_later(frame, common.turn.now),
        Way::Waits | Way::Over(_) => {}
    }
}

impl Engine {
    /// Phase 4 too: letters leave whose time has come, and couriers who can go on do.
    #[inline(never)]
    pub(crate) fn let_mail_leave(&mut self) {
        self.carry_out_orders();
        let common = &mut self.common;
        common.queue.take_in(&mut common.store.own.store, common.turn.now);
        while let Some(frame) = common.queue.deadlines.next_due(common.turn.now) {
            step(frame, common, |courier, hands| courier.stirred(hands, Courier::deadline_expired));
        }
        for frame in core::mem::take(&mut common.queue.again) {
            step(frame, common, Courier::go_on);
        }
        while let Some(frame) = common.queue.next_to_leave(common.turn.now) {
            step(frame, common, Courier::go_on);
        }
    }

    /// Entries of this core's outboxes that are shown to administrators: all that wait to leave.
    pub fn queue_entries(&self) -> usize {
        self.common.queue.standings.count()
    }

    /// Whether the queue shows this entry of an outbox.
    pub fn is_in_queue(&self, account: AccountId, uid: Uid) -> bool {
        self.common.queue.standings.of((account, uid)).is_some()
    }

    /// The machine stops.
    pub(crate) fn stop_mail(&mut self) {
        let common = &mut self.common;
        common.queue.is_serving = false;
        common.connections.end_closing(Instant::NEVER);
        let all: Vec<FrameId> = common.queue.couriers.iter().map(|(frame, _)| frame).collect();
        all.into_iter().for_each(|frame| step(frame, common, Courier::stopping));
    }

    #[inline(never)]
    pub(crate) fn queue_woken(&mut self, frame: FrameId, entry: Entry, outcome: Outcome) {
        let common = &mut self.common;
        match (Point::of(entry), common.queue.couriers.get(frame)) {
            (Some(Point::Order), _) => orders::go_on(frame, common, |order, common| order.woken(outcome, common)),
            (_, None) | (None, _) => common.store.forget(outcome),
            (Some(Point::Signed | Point::NameKnown), _) => unreachable!("the store has not been asked for that"),
            (Some(Point::AttemptRead), _) => step(frame, common, |courier, hands| courier.part_arrived(outcome, hands)),
            (Some(Point::Attempt), _) => step(frame, common, |courier, hands| courier.woken(outcome, hands)),
        }
    }

    /// This came of a question of the courier of this frame.
    pub(crate) fn courier_name_known(&mut self, frame: FrameId, number: QuestionNumber, known: Known) {
        step(frame, &mut self.common, |courier, hands| courier.name_known(number, known, hands));
    }

    /// Something has happened to the connection of the courier of this frame.
    #[cold]
    pub(crate) fn line_stirred(&mut self, frame: FrameId, stir: Stir) {
        step(frame, &mut self.common, |courier, hands| match stir {
            Stir::Made | Stir::Room => courier.unless_kept(hands, Courier::line_goes_on),
            Stir::Bytes => courier.stirred(hands, Courier::bytes_wait),
            Stir::Turn => courier.handshake_resumed(hands),
            Stir::Over => courier.stirred(hands, Courier::line_ended),
        });
    }

    /// The signature that this delivery attempt has asked for was computed.
    pub(crate) fn courier_seals(&mut self, frame: FrameId) {
        step(frame, &mut self.common, Courier::signature_made);
    }
}
