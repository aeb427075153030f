//! A delivery attempt for one entry of an outbox. It runs from stage to stage until all recipients
//! of the entry are done, or the entry is left to wait.
//!
//! ```text
//!   ReadHead ─▸ Choose ─┬─▸ BeginDelivery, HandOver, Commit: a local delivery ───▸ Mark ─┐
//!                 ▴     ├─▸ Hash, Sign: the ARC set of a forwarded message ──────────────┤
//!                 │     ├─▸ AskLeave, LookUpHosts, FetchPolicy, Connect,                 │
//!                 │     │   Converse: remote delivery ─────────────────────────▸ Mark ─┤
//!                 │     ├─▸ ForgetNote: of a delivery that cannot be repeated ───────────┤
//!                 │     └─▸ Remove, or left to wait                                      │
//!                 └──────────────────────────────────────────────────────────────────────┘
//! ```
//! Invariants:
//! - Local deliveries arrive at most once: the message at an account of this machine, a forwarded
//!   message in its outbox, and a report at the sender. Each has an origin. The note of the origin
//!   is removed only when the mark that prevents another delivery is durable (`arrivals`). So no
//!   delivery arrives twice, whenever the power fails.
//! - A mark is requested until the store makes it. While the store makes no marks, no host is
//!   called: a message without its mark would be sent again and again.
//! - A recipient at another server gets the message twice in one case: the machine stops after the
//!   host has accepted it and before the mark is durable. SMTP cannot find this out (RFC 5321
//!   section 4.5.3.2.6, RFC 1047).
//! - Memory holds only one part of a message, the bytes that wait to be sent, and the header while
//!   the ARC set is computed.
//! - A message with a part that cannot be read is tried as long as a message that no host accepts.
//!   Its failure report contains only the header. An entry with an envelope that cannot be read
//!   stays, and its account gets a notice (`unreadable`).
//! - A message without a reverse path is never reported.

use alloc::boxed::Box;

use connections::TransportEvent;
use machine::{Instant, Micros};
use net::ConnectionId;
use relay::{Lost, destinations, schedule::NextTry};
use resolver::{Known, QuestionNumber};
use store::{Outcome, Refusal};

use super::Place;
use super::arrivals::ArrivalNotes;
use super::attempt_context::AttemptCx;
use super::connection::OutboundConnection;
use super::destination_route::DestinationRoute;
use super::entry::{Entry, OpenedEntry};
use super::failure::FailureReason;
use super::head::EntryExtent;
use super::joint_reports;
use super::local_delivery::LocalDelivery;
use super::opening;
use super::policy_fetch::PolicyFetch;
use super::reader::{EntryReader, PartArrival};
use super::round::Round;
use super::sealing::ArcSeal;
use super::stages::{
    AGAIN, AttemptProgress, DeliveryKind, DeliveryResult, ROOM_AGAIN, Stage, StepResult,
};
use super::state::{AttemptOutcome, DestinationTry};
use super::unreadable::{Notice, tell_operator};

mod local;
mod next_stage;
mod remote;

/// The longest delay before an entry with an unreadable beginning is read again. The delay grows by
/// a minute each time.
const DAMAGED_AGAIN_MAX: Micros = Micros::from_secs(60 * 60);

/// A delivery attempt for one entry. Its parts (`reader`, `round`, `delivery` and so on) do the
/// work, and do not know each other's state. The attempt chooses the next stage by their results.
pub(super) struct DeliveryAttempt {
    place: Place,
    stage: Stage,
    /// Whether the stage waits for an answer.
    is_waiting: bool,
    reader: EntryReader,
    /// `None` until the entry is opened, and for an entry that cannot be read.
    entry: Option<Entry>,
    round: Round,
    /// The state of the notice to the account, if the head of the entry cannot be read.
    notice: Option<Notice>,
    delivery: LocalDelivery,
    notes: ArrivalNotes,
    /// The ARC set of a forwarded message.
    seal: ArcSeal,
    /// `Some` from [`Stage::AskLeave`] until all its recipients are settled, and while a connection
    /// is kept.
    route: Option<DestinationRoute>,
    destination_try: DestinationTry,
    /// `Some` in [`Stage::FetchPolicy`].
    policy_fetch: Option<Box<PolicyFetch>>,
    connection: Option<Box<OutboundConnection>>,
}

impl DeliveryAttempt {
    pub(super) fn new(place: Place) -> DeliveryAttempt {
        DeliveryAttempt {
            place,
            stage: Stage::ReadHead,
            is_waiting: false,
            reader: EntryReader::new(),
            entry: None,
            round: Round::default(),
            notice: None,
            delivery: LocalDelivery::default(),
            notes: ArrivalNotes::default(),
            seal: ArcSeal::new(),
            route: None,
            destination_try: DestinationTry::NotTried,
            policy_fetch: None,
            connection: None,
        }
    }

    pub(super) fn place(&self) -> Place {
        self.place
    }

    /// The connection to a host, if there is one.
    pub(super) fn connection(&self) -> Option<ConnectionId> {
        self.connection.as_ref().map(|connection| connection.connection())
    }

    /// The outcome of the attempt for its entry. `next`: the time at which the entry is tried
    /// again.
    pub(super) fn ended(self, next: Option<Instant>) -> AttemptOutcome {
        assert!(self.route.is_none() && self.connection.is_none(), "an ended attempt has no route");
        // If no delivery was tried, the queue page keeps an earlier reason.
        let is_tried = self.destination_try == DestinationTry::Tried;
        let is_news = |why: &&FailureReason| is_tried || why.is_of_mailbox();
        let has_no_room = self.round.has_no_room().then_some(&FailureReason::NoRoom);
        let why = self.round.last_reason().filter(is_news).or(has_no_room);
        let is_unread = self.round.is_damaged() || self.notice.is_some();
        let words = if is_unread {
            Some(self.why_unreadable().words())
        } else {
            why.map(FailureReason::words_and_reply)
        };
        // A damaged head may become readable later, but an invalid head stays invalid.
        let is_left = self.notice.is_some_and(Notice::is_delivered) && !self.round.is_damaged();
        let DeliveryAttempt { place, destination_try, .. } = self;
        AttemptOutcome { place, next, destination_try, is_left, words }
    }

    /// Runs stages until the attempt has to wait.
    pub(super) fn go_on(&mut self, cx: &mut AttemptCx<'_, '_>) -> AttemptProgress {
        while !self.is_waiting {
            let result = match self.stage {
                Stage::ReadHead => self.reader.read_beginning(cx).map(|()| StepResult::Waits),
                Stage::Choose => self.choose_stage(cx),
                Stage::BeginDelivery(kind) => self.begin_local_delivery(kind, cx),
                Stage::HandOver(kind) => self.hand_over(kind, cx),
                Stage::Commit(_) | Stage::Sign => Ok(StepResult::Waits),
                Stage::Hash => self.hash(cx),
                Stage::Mark => self.mark(cx),
                Stage::ForgetNote => self.notes.forget(cx).map(|()| StepResult::Waits),
                Stage::AskLeave => Ok(self.ask_to_call(cx)),
                Stage::LookUpHosts => Ok(self.look_up_hosts(cx)),
                Stage::FetchPolicy => Ok(self.fetch_policy(cx)),
                Stage::Connect => Ok(self.call(cx)),
                Stage::Converse => self.converse(cx),
                Stage::Remove => self.remove(cx),
                Stage::Over(next) => {
                    self.delivery.abort(cx);
                    return AttemptProgress::Over(next);
                }
            };
            match result {
                Ok(StepResult::GoesOn) => {}
                Ok(StepResult::Waits) => self.is_waiting = true,
                Ok(StepResult::Computes) => return AttemptProgress::Computes,
                Err(refusal) if self.must_repeat(refusal) => {
                    return self.repeat_request(refusal, cx);
                }
                Err(refusal) => self.refused(refusal, cx),
            }
        }
        AttemptProgress::Waits
    }

    /// Takes the store's answer, and continues the attempt. An attempt has one request at a time,
    /// and gives a delivery up only after the store has refused it. So no other answer arrives.
    pub(super) fn woken(
        &mut self,
        outcome: Outcome,
        cx: &mut AttemptCx<'_, '_>,
    ) -> AttemptProgress {
        assert!(self.is_waiting, "the store answers what it was asked");
        self.is_waiting = false;
        match (outcome, self.stage) {
            (Outcome::Changed, Stage::Mark) => {
                self.round.marked();
                self.stage = Stage::Choose;
            }
            (Outcome::Changed, Stage::ForgetNote) => {
                self.notes.forgotten();
                self.stage = Stage::Choose;
            }
            (Outcome::Changed, Stage::Remove) => self.stage = Stage::Over(None),
            (Outcome::DeliveryReady, Stage::HandOver(_)) => {}
            (Outcome::Delivered, Stage::Commit(kind)) => {
                self.delivery.committed();
                self.delivered_locally(kind, cx);
            }
            (
                Outcome::Refused(refusal),
                Stage::Mark
                | Stage::ForgetNote
                | Stage::Remove
                | Stage::HandOver(_)
                | Stage::Commit(_),
            ) => {
                if self.must_repeat_outcome(refusal) {
                    return self.repeat_request(refusal, cx);
                }
                self.refused(refusal, cx);
            }
            (_, stage) => unreachable!("at {stage:?} the store was not asked for this"),
        }
        self.go_on(cx)
    }

    /// Takes the requested part of the entry, or the refusal to read it.
    pub(super) fn part_arrived(
        &mut self,
        outcome: Outcome,
        cx: &mut AttemptCx<'_, '_>,
    ) -> AttemptProgress {
        let arrival = self.reader.arrived(outcome, cx);
        // An unwanted part ends no wait, because the attempt may wait for another event by now.
        self.is_waiting &= arrival == PartArrival::Unwanted;
        match arrival {
            PartArrival::Beginning => self.open(self.reader.extent(cx), cx),
            PartArrival::Refused(refusal) => self.refused(refusal, cx),
            PartArrival::Message | PartArrival::Another | PartArrival::Unwanted => {}
        }
        self.go_on(cx)
    }

    /// Opens the entry, if enough of its beginning was read.
    fn open(&mut self, extent: EntryExtent, cx: &mut AttemptCx<'_, '_>) {
        let Ok(info) = cx.info() else { return self.stage = Stage::Over(None) };
        match opening::open(self.reader.beginning(), extent, cx) {
            OpenedEntry::Partial => {}
            OpenedEntry::Whole { entry, signatures, message_at } => {
                self.reader.opened(signatures, message_at, info.octets);
                joint_reports::take_up(&entry, &mut self.round, cx);
                (self.entry, self.stage) = (Some(entry), Stage::Choose);
            }
            OpenedEntry::Unreadable => self.cannot_be_read(cx),
            OpenedEntry::Gone => self.stage = Stage::Over(None),
        }
    }

    /// Tells the operator that the head of the entry cannot be read, and plans the notice.
    fn cannot_be_read(&mut self, cx: &mut AttemptCx<'_, '_>) {
        tell_operator(&self.why_unreadable(), cx);
        (self.notice, self.stage) = (Some(Notice::Wanted), Stage::Choose);
    }

    /// Takes the name servers' answer to a question of this attempt.
    pub(super) fn name_known(
        &mut self,
        number: QuestionNumber,
        known: Known,
        cx: &mut AttemptCx<'_, '_>,
    ) -> AttemptProgress {
        if self.stage == Stage::LookUpHosts
            && self.route.as_mut().is_some_and(|route| route.learn(number, known))
        {
            self.is_waiting = false;
        }
        self.go_on(cx)
    }

    /// Processes a connection event. Any event except new buffer space ends a kept connection.
    pub(super) fn transport_event(
        &mut self,
        event: TransportEvent,
        cx: &mut AttemptCx<'_, '_>,
    ) -> AttemptProgress {
        if self.keeps_connection() {
            if !matches!(event, TransportEvent::Made | TransportEvent::Room) {
                self.drop_kept(cx);
            }
            return AttemptProgress::Waits;
        }
        match &mut self.policy_fetch {
            Some(policy_fetch) => policy_fetch.transport_event(event, cx),
            None => self.host_event(event, cx),
        }
        self.is_waiting = false;
        self.go_on(cx)
    }

    /// Ends a wait that took too long: for a host, a web server, or the next message.
    pub(super) fn deadline_expired(&mut self, cx: &mut AttemptCx<'_, '_>) -> AttemptProgress {
        if self.keeps_connection() || self.policy_fetch.is_some() {
            return self.transport_event(TransportEvent::Over, cx);
        }
        self.lost(Lost::Silence, cx);
        self.is_waiting = false;
        self.go_on(cx)
    }

    /// Ends the attempt, since the machine stops. It still waits for the disk, and for the reply to
    /// a message that was sent completely.
    pub(super) fn stopping(&mut self, cx: &mut AttemptCx<'_, '_>) -> AttemptProgress {
        self.drop_kept(cx);
        if self.stage == Stage::ReadHead { AttemptProgress::Waits } else { self.recall(cx) }
    }

    /// Takes the entry back from the attempt. The attempt ends without an effect, unless a host may
    /// have the message, or a change is on its way to the disk.
    pub(super) fn recall(&mut self, cx: &mut AttemptCx<'_, '_>) -> AttemptProgress {
        match self.stage {
            Stage::ReadHead | Stage::Hash | Stage::Sign => {
                AttemptProgress::Over(Some(Instant::START))
            }
            Stage::Converse
                if self.connection.as_ref().is_some_and(|connection| connection.is_sent()) =>
            {
                AttemptProgress::Waits
            }
            Stage::AskLeave
            | Stage::LookUpHosts
            | Stage::FetchPolicy
            | Stage::Connect
            | Stage::Converse => {
                if let Some(policy_fetch) = &mut self.policy_fetch {
                    policy_fetch.hang_up(cx);
                }
                if self.connection.is_some() {
                    self.hang_up(cx);
                }
                self.end_route(destinations::ConnectionOutcome::Unknown, cx);
                AttemptProgress::Over(Some(Instant::START))
            }
            _ => AttemptProgress::Waits,
        }
    }

    /// Whether the attempt may try this destination, and no host has accepted a connection.
    pub(super) fn is_calling(&self, key: u64) -> bool {
        matches!(self.stage, Stage::LookUpHosts | Stage::FetchPolicy | Stage::Connect)
            && self.route.as_ref().is_some_and(|route| route.key() == key)
    }

    /// Gives up the connection that is being made, since another core needs it. The entry waits.
    pub(super) fn give_way(&mut self, cx: &mut AttemptCx<'_, '_>) -> AttemptProgress {
        let Some(route) = &self.route else { unreachable!("the attempt has no route") };
        self.destination_try = DestinationTry::Behind(route.destination().into());
        self.recall(cx)
    }

    /// The attempt that takes over the kept connection of this attempt, which is over.
    pub(super) fn follower(&mut self, cx: &mut AttemptCx<'_, '_>) -> Option<DeliveryAttempt> {
        let place = self.next_by_connection(cx)?;
        Some(DeliveryAttempt {
            connection: self.connection.take(),
            route: self.route.take(),
            ..DeliveryAttempt::new(place)
        })
    }

    /// Whether to repeat the request: the store is busy, or it cannot write a mark because the disk
    /// is full or fails. Without the mark, a later attempt would deliver everything again.
    fn must_repeat(&self, refusal: Refusal) -> bool {
        let is_mark = self.stage == Stage::Mark;
        refusal == Refusal::Busy
            || is_mark && matches!(refusal, Refusal::DiskFull | Refusal::ReadOnly)
    }

    /// As `must_repeat`, for a refusal that arrives later, as the answer to the request. A refused
    /// delivery begins anew instead.
    fn must_repeat_outcome(&self, refusal: Refusal) -> bool {
        !matches!(self.stage, Stage::HandOver(_) | Stage::Commit(_)) && self.must_repeat(refusal)
    }

    /// Repeats the request in the next turn. The queue page shows why a mark is not made.
    fn repeat_request(&self, refusal: Refusal, cx: &mut AttemptCx<'_, '_>) -> AttemptProgress {
        if refusal != Refusal::Busy {
            cx.queue.index.remember_result(self.place, FailureReason::Unmarked.words());
        }
        AttemptProgress::Turn
    }

    fn refused(&mut self, refusal: Refusal, cx: &mut AttemptCx<'_, '_>) {
        self.round.refused(refusal);
        match (self.stage, refusal) {
            (Stage::BeginDelivery(kind) | Stage::HandOver(kind) | Stage::Commit(kind), refusal) => {
                self.delivery.abort(cx);
                self.reader.want_nothing();
                self.delivery_refused(kind, refusal, cx);
            }
            (Stage::ForgetNote, Refusal::NoSuchNote | Refusal::NoSuchAccount) => {
                self.notes.forgotten();
                self.stage = Stage::Choose;
            }
            (Stage::Converse, _) => self.body_unreadable(),
            (_, Refusal::NoSuchMessage) => self.stage = Stage::Over(None),
            // The disk may be able to read the message later. Now not even its body could be sent.
            (Stage::Hash, Refusal::Unreadable) if self.next_attempt(cx) != NextTry::GiveUp => {
                self.stage = Stage::Over(Some(self.after_damage(cx)));
            }
            (Stage::Hash, Refusal::Damaged | Refusal::Unreadable) => {
                // The message is forwarded without an ARC set, as far as it can be read.
                self.seal.leave_out();
                self.stage = Stage::Choose;
            }
            (stage, Refusal::Damaged | Refusal::Unreadable) => match stage {
                Stage::ReadHead if opening::has_head(self.reader.beginning(), cx) => {
                    self.open(EntryExtent::Whole, cx)
                }
                Stage::ReadHead if self.next_attempt(cx) == NextTry::GiveUp => {
                    self.cannot_be_read(cx)
                }
                _ => self.stage = Stage::Over(Some(self.after_damage(cx))),
            },
            _ => self.stage = Stage::Over(Some(cx.parts.turn.now + AGAIN)),
        }
    }

    /// Acts on the store's refusal of a local delivery, which is given up.
    fn delivery_refused(
        &mut self,
        kind: DeliveryKind,
        refusal: Refusal,
        cx: &mut AttemptCx<'_, '_>,
    ) {
        match (kind, refusal) {
            // The recipients that a report has arrived for are marked, and the others reported.
            (DeliveryKind::FailureReport(_) | DeliveryKind::SuccessReport(_), Refusal::Arrived) => {
                joint_reports::report_refused(&mut self.round, Instant::START, cx);
                self.stage = Stage::Choose;
            }
            (_, Refusal::Arrived) => self.delivered_locally(kind, cx),
            (DeliveryKind::Message(bit, _), Refusal::OverQuota) => {
                self.found_no_space(bit, FailureReason::MailboxFull, cx);
            }
            (DeliveryKind::Message(bit, _), Refusal::DiskFull | Refusal::IndexFull) => {
                self.found_no_space(bit, FailureReason::DiskFull, cx);
            }
            (DeliveryKind::Message(bit, _) | DeliveryKind::Forward(bit), Refusal::TooMany) => {
                cx.queue.index.tried(self.place);
                self.settle_here(bit, DeliveryResult::Later(FailureReason::MailboxClosed), cx);
            }
            (DeliveryKind::Message(bit, _), Refusal::LargerThanQuota) => {
                self.settle_here(bit, DeliveryResult::Never(FailureReason::NeverFits), cx);
            }
            (
                DeliveryKind::Message(bit, _) | DeliveryKind::Forward(bit),
                Refusal::Damaged | Refusal::Unreadable,
            ) => {
                self.settle_here(bit, DeliveryResult::Later(FailureReason::Damaged), cx);
            }
            (DeliveryKind::Replacement, refusal) => self.replacement_refused(refusal, cx),
            // The report was to contain the message, and is written again without the message.
            (DeliveryKind::FailureReport(_), Refusal::Damaged | Refusal::Unreadable) => {
                self.stage = Stage::BeginDelivery(kind)
            }
            _ => {
                self.round.delivery_refused(refusal);
                let again = cx.parts.turn.now + ROOM_AGAIN;
                joint_reports::report_refused(&mut self.round, again, cx);
                self.defer(kind);
            }
        }
    }

    /// Defers a local delivery to a later round.
    fn defer(&mut self, kind: DeliveryKind) {
        match kind {
            DeliveryKind::Message(bit, _) | DeliveryKind::Forward(bit) => {
                self.round.defer(1 << bit)
            }
            DeliveryKind::FailureReport(_) => self.round.defer_failed(),
            DeliveryKind::SuccessReport(_) => self.round.defer_succeeded(),
            DeliveryKind::DelayReport => self.round.defer_delay_report(),
            DeliveryKind::Notice => self.notice = Some(Notice::Deferred),
            DeliveryKind::Replacement => unreachable!("its recipients are settled"),
        }
        self.stage = Stage::Choose;
    }

    /// The time of the next read of an unreadable entry. A disk may recover, but seldom does.
    fn after_damage(&self, cx: &mut AttemptCx<'_, '_>) -> Instant {
        cx.queue.index.tried(self.place);
        let tries = cx.queue.index.of(self.place).map_or(0, |status| status.tries);
        cx.parts.turn.now + Micros(AGAIN.0.saturating_mul(tries.into())).min(DAMAGED_AGAIN_MAX)
    }

    /// The opened entry.
    fn entry(&self) -> &Entry {
        let Some(entry) = &self.entry else { unreachable!("the entry was not opened") };
        entry
    }
}
