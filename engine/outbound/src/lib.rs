//! The queue: messages for other servers, and the attempts to deliver them.
//!
//! A message for another server is stored in its sender's outbox, on the core that owns the
//! account. The message stays there until each recipient has it or cannot get it. So the store
//! knows what is to be sent, and the tables here are rebuilt from the outboxes when the core begins
//! to serve. An entry is one message of an outbox, for up to [`entry::RECIPIENTS`] recipients of
//! one domain. The record of the entry says which of them are done (`entry`).
//!
//! | file | content |
//! |---|---|
//! | `delivery_attempt` | a delivery attempt for one entry, from stage to stage |
//! | `delivery_attempt/next_stage` | the choice of the next stage |
//! | `delivery_attempt/{local, remote}` | the stages of local and of remote delivery |
//! | `stages`, `attempt_context` | the stages and their results, and the context of an attempt |
//! | `entry`, `head`, `opening` | an entry: its envelope and record, and how they are read |
//! | `reader` | reads an entry, part by part |
//! | `round` | the results for the recipients |
//! | `failure` | why a recipient does not get a message |
//! | `local_delivery` | a delivery to an account of this machine |
//! | `arrivals` | local deliveries that arrive once |
//! | `forwarding` | forwarded messages |
//! | `authentic` | whether a forwarded message came from its sender |
//! | `sealing` | the ARC set of a forwarded message |
//! | `rewriting` | a message that is written anew for other servers |
//! | `reports` | reports to senders: failure, success, delay |
//! | `joint_reports`, `waiting_failures` | one report for all recipients of a message |
//! | `unreadable` | an entry with a head that cannot be read |
//! | `destination_route` | the hosts of a destination, one after the other |
//! | `host`, `tls_policy` | a host, and the TLS that its domain demands |
//! | `policy_fetch` | fetches the MTA-STS policy of a domain |
//! | `smarthosts` | the smarthosts of the configuration |
//! | `connection` | the connection to a host, for one message or more |
//! | `tls_statistics` | how often TLS succeeded, and why it failed |
//! | `calls` | the connections of this core, and the destinations that are down |
//! | `state` | which entry waits for what, and which is next |
//! | `shares` | how many attempts an account may have |
//! | `context` | the parts of a core that outgoing mail uses, and its configuration |
//! | `index` | the state of each entry |
//! | `administration` | the requests of administrators |
//! | `questions` | the questions of administrators, and the replies |
//! | `administration/change` | a change of entries: hold, release, retry, return, delete |
//! | `listing` | the state of an entry on the administrators' page |
//! | `waiting` | the order of waiting entries |
//!
//! Invariants:
//! - An entry waits, or one delivery attempt has it, but never both. A core has at most
//!   [`shares::ATTEMPTS_MAX`] attempts under way, and each attempt has at most one connection.
//! - An account begins another attempt only if it has fewer attempts than there are free places
//!   (`shares`).
//! - A connection belongs to one attempt. The attempt that uses the connection next gets a new
//!   frame, so it never receives an answer that the earlier attempt asked for.
//! - No attempt is made at a destination that is down. A slow destination gets few attempts at a
//!   time, so that mail for other destinations continues.
//! - An entry queued behind a destination always waits for an active delivery attempt, or for one
//!   that is about to start. An attempt that ends without a try at its destination lets others try.
//! - A waiting entry takes a few words of memory, and the store bounds the number of entries. No
//!   turn examines more than [`state::EXAMINED_MAX`] of them, at the start or later. A new entry
//!   is tried before entries that were tried already.
//! - The earlier results are durable before anything else begins: the result for a recipient is
//!   marked before any other action for that recipient. A marked recipient is never tried again.
//! - A core that stops begins no attempt, and gives up the attempts under way. If a message was
//!   sent completely, the core waits for the reply, as long as it waits for sessions.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod administration;
mod arrivals;
mod attempt_context;
mod authentic;
mod calls;
mod connection;
mod context;
mod delivery_attempt;
mod destination_route;
mod entry;
mod failure;
mod forwarding;
mod head;
mod host;
mod index;
mod joint_reports;
mod listing;
mod local_delivery;
mod opening;
mod policy_fetch;
mod questions;
mod reader;
mod reports;
mod rewriting;
mod round;
mod sealing;
mod shares;
mod smarthosts;
mod stages;
mod state;
mod tls_policy;
mod tls_statistics;
mod unreadable;
mod waiting;
mod waiting_failures;

use alloc::boxed::Box;
use alloc::vec::Vec;

use channel::Ticket;
use connections::{Owner, TransportEvent};
use machine::{Instant, Micros};
use relay::QueueIds;
use relay::destinations::{ConnectionOutcome, Leave};
use resolver::{Known, QuestionNumber};
use shards::{DestinationEvent, DestinationNotice};
use store::{AccountId, Outcome, Store, Uid};
use tasks::{EntryPoint, FrameId, FrameTable, Subsystem};

use administration::{AdminCx, Administration};
use attempt_context::AttemptCx;
use delivery_attempt::DeliveryAttempt;
use shares::ATTEMPTS_MAX;
use stages::AttemptProgress;
use state::Queue;
use waiting::Place;

pub use context::{Config, OutboundContext};
pub use questions::{
    Handled, LINES, NoEntry, QueueAction, QueueCounts, QueueEntryId, QueueLine, QueueQuery,
    QueueReply, QueueState, TlsCount, Which,
};

tasks::points! {
    /// The events that the queue waits for.
    pub(crate) enum OutboundWaitPoint of Subsystem::Outbound;
    /// A delivery attempt: the store has answered.
    Attempt,
    /// A delivery attempt: a part of the message was read.
    AttemptRead,
    /// Administration of the queue: the store has answered.
    AdminRequest,
    /// A delivery attempt: a signature is computed.
    Signed,
    /// A delivery attempt: the answer about a name has come.
    NameKnown,
    /// A delivery attempt: it has leave to make a connection, or the destination is down.
    Leave,
}

/// The longest delay before a request that the store has refused is repeated.
const REPEAT_DELAY_MAX: Micros = Micros::from_secs(1);

/// The delivery attempts of a core.
type Attempts = FrameTable<Box<DeliveryAttempt>>;

/// The outgoing mail of a core: waiting entries, delivery attempts, and administration.
pub struct Outbound {
    attempts: Attempts,
    queue: Queue,
    administration: Administration,
}

impl Outbound {
    /// `queue_ids`: the identifiers that reports use.
    pub fn new(now: Instant, config: Config, queue_ids: QueueIds) -> Outbound {
        Outbound {
            attempts: FrameTable::with_capacity(ATTEMPTS_MAX),
            queue: Queue::new(now, config, queue_ids),
            administration: Administration::new(),
        }
    }

    /// Begins to serve: messages may be sent from now on.
    pub fn begin(&mut self) {
        self.queue.begin();
    }

    /// The number of attempts and administrative requests under way.
    pub fn under_way(&self) -> usize {
        self.attempts.len() + self.administration.under_way()
    }

    /// Whether [`Outbound::work`] has something to do now.
    #[inline]
    pub fn has_work(&self, store: &Store, now: Instant) -> bool {
        self.queue.has_work(store, now) || self.administration.has_requests_to_continue()
    }

    /// The next time at which there is work even without an event.
    #[inline]
    pub fn next_deadline(&self) -> Option<Instant> {
        self.queue.next_deadline()
    }

    /// Whether the next turn has work that no event announces.
    #[inline]
    pub fn has_unannounced_work(&self) -> bool {
        self.queue.has_unannounced_work() || self.administration.has_requests_to_continue()
    }

    /// The number of entries that administrators see: all that this core has found in its outboxes.
    pub fn entries(&self) -> usize {
        self.queue.index.count()
    }

    /// Whether administrators see this entry.
    pub fn has(&self, account: AccountId, uid: Uid) -> bool {
        self.queue.index.of((account, uid)).is_some()
    }

    /// Queues an administrator's question. `asker`: the ticket for the reply.
    pub fn enqueue(&mut self, asker: Ticket, query: QueueQuery) {
        self.administration.enqueue(asker, query);
    }

    /// Takes the next reply of this core, with its ticket.
    pub fn next_reply(&mut self) -> Option<(Ticket, QueueReply)> {
        self.administration.next_reply()
    }

    /// Continues administration, begins the attempts that are due, and continues the attempts that
    /// can continue.
    pub fn work(&mut self, parts: &mut OutboundContext<'_>) {
        let Outbound { attempts, queue, administration } = self;
        administration.work(attempts, queue, parts);
        queue.take_in(&mut parts.store.own.store, parts.turn.now);
        while let Some(frame) = queue.deadlines.next_due(parts.turn.now) {
            step(frame, attempts, queue, parts, DeliveryAttempt::deadline_expired);
        }
        for frame in queue.take_again() {
            step(frame, attempts, queue, parts, DeliveryAttempt::go_on);
        }
        while let Some(place) = queue.next_due(parts.turn.now) {
            let frame = begin(DeliveryAttempt::new(place), attempts);
            step(frame, attempts, queue, parts, DeliveryAttempt::go_on);
        }
    }

    /// Ends the attempts under way as far as possible, since the machine stops.
    pub fn stop(&mut self, parts: &mut OutboundContext<'_>) {
        let Outbound { attempts, queue, .. } = self;
        queue.is_serving = false;
        parts.connections.end_closing(Instant::NEVER);
        let all: Vec<FrameId> = attempts.iter().map(|(frame, _)| frame).collect();
        all.into_iter()
            .for_each(|frame| step(frame, attempts, queue, parts, DeliveryAttempt::stopping));
    }

    /// Gives a frame the store's answer to its request.
    pub fn woken(
        &mut self,
        frame: FrameId,
        entry: EntryPoint,
        outcome: Outcome,
        parts: &mut OutboundContext<'_>,
    ) {
        let Outbound { attempts, queue, administration } = self;
        match (OutboundWaitPoint::of(entry), attempts.get(frame)) {
            (Some(OutboundWaitPoint::AdminRequest), _) => {
                administration.step(AdminCx { frame, attempts, queue, parts }, |request, cx| {
                    request.woken(outcome, cx)
                });
            }
            (Some(OutboundWaitPoint::Attempt | OutboundWaitPoint::AttemptRead), None) => {
                parts.store.forget(outcome)
            }
            (Some(OutboundWaitPoint::AttemptRead), Some(_)) => {
                step(frame, attempts, queue, parts, |attempt, cx| {
                    attempt.part_arrived(outcome, cx)
                });
            }
            (Some(OutboundWaitPoint::Attempt), Some(_)) => {
                step(frame, attempts, queue, parts, |attempt, cx| attempt.woken(outcome, cx));
            }
            (
                Some(
                    OutboundWaitPoint::Signed
                    | OutboundWaitPoint::NameKnown
                    | OutboundWaitPoint::Leave,
                )
                | None,
                _,
            ) => {
                unreachable!("the store was not asked at {entry:?}")
            }
        }
    }

    /// Gives an attempt the answer to its question to name servers.
    pub fn name_known(
        &mut self,
        frame: FrameId,
        number: QuestionNumber,
        known: Known,
        parts: &mut OutboundContext<'_>,
    ) {
        self.step(frame, parts, |attempt, cx| attempt.name_known(number, known, cx));
    }

    /// Processes the notices from the owners of destinations.
    pub fn hear(&mut self, parts: &mut OutboundContext<'_>) {
        hear(&mut self.attempts, &mut self.queue, parts);
    }

    /// Gives an attempt an event of its connection.
    pub fn transport_event(
        &mut self,
        frame: FrameId,
        event: TransportEvent,
        parts: &mut OutboundContext<'_>,
    ) {
        self.step(frame, parts, |attempt, cx| attempt.transport_event(event, cx));
    }

    /// Tells an attempt that its signature was computed.
    pub fn signature_made(&mut self, frame: FrameId, parts: &mut OutboundContext<'_>) {
        self.step(frame, parts, DeliveryAttempt::signature_made);
    }

    fn step(
        &mut self,
        frame: FrameId,
        parts: &mut OutboundContext<'_>,
        act: impl FnOnce(&mut DeliveryAttempt, &mut AttemptCx<'_, '_>) -> AttemptProgress,
    ) {
        step(frame, &mut self.attempts, &mut self.queue, parts, act);
    }
}

/// Lets an attempt act, and then processes the notices from the owners of destinations.
fn step(
    frame: FrameId,
    attempts: &mut Attempts,
    queue: &mut Queue,
    parts: &mut OutboundContext<'_>,
    act: impl FnOnce(&mut DeliveryAttempt, &mut AttemptCx<'_, '_>) -> AttemptProgress,
) {
    step_one(frame, attempts, queue, parts, act);
    hear(attempts, queue, parts);
}

/// Processes the notices from the owners of destinations. Returns leave for which no attempt waits.
fn hear(attempts: &mut Attempts, queue: &mut Queue, parts: &mut OutboundContext<'_>) {
    while let Some(notice) = parts.store.next_destination_notice() {
        let (at, destination, leave, policy) = match notice {
            DestinationNotice::Keeps(destination, keeps) => {
                let has_more = queue.calls.keeps(destination, keeps);
                let calling = attempts.iter().find(|(_, attempt)| attempt.is_calling(destination));
                if let Some(frame) = calling.map(|(frame, _)| frame).filter(|_| has_more) {
                    step_one(frame, attempts, queue, parts, DeliveryAttempt::give_way);
                }
                continue;
            }
            DestinationNotice::Leave(at, destination, leave, policy) => {
                (at, destination, leave, policy)
            }
        };
        let mut leave = Some(leave);
        step_one(at.frame, attempts, queue, parts, |attempt, cx| {
            attempt.leave_arrived(destination, &mut leave, policy, cx)
        });
        if let Some(Leave::Granted(_)) = leave {
            let event = DestinationEvent::Ended {
                how: ConnectionOutcome::Unknown,
                now: parts.turn.now,
                random: 0,
            };
            parts.store.report_destination(destination, event);
        }
    }
}

/// Lets an attempt act. If the attempt ends and has a kept connection, the attempt that takes over
/// the connection acts too.
fn step_one(
    mut frame: FrameId,
    attempts: &mut Attempts,
    queue: &mut Queue,
    parts: &mut OutboundContext<'_>,
    act: impl FnOnce(&mut DeliveryAttempt, &mut AttemptCx<'_, '_>) -> AttemptProgress,
) {
    // An answer may come after the attempt that asked for it is over.
    let Some(attempt) = attempts.get_mut(frame) else { return };
    let place = attempt.place();
    queue.shares.begin_acting(place.0);
    let mut progress = act(attempt, &mut AttemptCx { frame, place, queue, parts });
    while let AttemptProgress::Over(next) = progress {
        let Some(mut attempt) = attempts.remove(frame) else {
            unreachable!("an attempt that acts has a frame")
        };
        let place = attempt.place();
        let follower = attempt.follower(&mut AttemptCx { frame, place, queue, parts });
        queue.deadlines.cancel(frame);
        queue.ended(attempt.ended(next), parts.turn.now);
        let Some(follower) = follower else { return };
        let (place, connection) = (follower.place(), follower.connection());
        queue.take_up(place);
        queue.shares.begin_acting(place.0);
        // An answer that comes later to the frame of the earlier attempt is discarded.
        frame = begin(follower, attempts);
        if let Some(connection) = connection {
            parts.connections.hand_over(connection, Owner::Outbound(frame));
        }
        queue.deadlines.set(frame, parts.turn.now + connection::KEPT_PATIENCE);
        let Some(attempt) = attempts.get_mut(frame) else {
            unreachable!("the attempt has just begun")
        };
        progress = attempt.go_on(&mut AttemptCx { frame, place, queue, parts });
    }
    queue.shares.end_acting();
    match progress {
        AttemptProgress::Turn => queue.go_on_later(frame, parts.turn.now + REPEAT_DELAY_MAX),
        AttemptProgress::Computes => queue.go_on_later(frame, parts.turn.now),
        AttemptProgress::Waits | AttemptProgress::Over(_) => {}
    }
}

/// Gives a new attempt its frame. The attempt has a place in `Queue::shares`, so a frame is free.
fn begin(attempt: DeliveryAttempt, attempts: &mut Attempts) -> FrameId {
    let Ok(frame) = attempts.insert(Box::new(attempt)) else {
        unreachable!("there are as many frames as places")
    };
    frame
}
