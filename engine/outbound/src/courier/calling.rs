//! How an attempt finds the hosts of its destination, and its conversation with one of them. A
//! connection may be kept for the next message to the same destination.
//!
//! Invariants:
//! - A connection is kept only while an entry waits for one to this destination, and no other core
//!   with fewer connections waits (`calls`).
//! - While the marks of a message are on their way to the disk, nothing is sent on the connection.
//!   If the peer sends something meanwhile, the connection is ended.
//! - If a kept connection turns out to be over, its message goes by another connection at once,
//!   provided that no host has seen it.

use connections::Stir;
use relay::destinations::{Ended, Leave};
use relay::{Letter, Lost};
use shards::{DestinationEvent, DomainPolicy};
use store::Refusal;

use crate::Point;
use crate::attempt::AttemptCx;
use crate::connection::{ConversationStep, KEPT_PATIENCE, OutboundConnection};
use crate::inquiring::Fetching;
use crate::road::{HostAnswer, HostLookup, NextHost, Readability, Road, come_of};
use crate::stages::{Come, Stage, StepResult, Way};
use crate::standing::State;
use crate::state::DestinationTry;
use crate::waiting::Place;
use crate::why::Why;

use super::Courier;

impl Courier {
    fn road(&mut self) -> &mut Road {
        let Some(road) = &mut self.road else { unreachable!("the attempt is on no road") };
        road
    }

    /// Asks the owner of the destination for leave to make a connection.
    pub(super) fn ask_to_call(&mut self, cx: &mut AttemptCx<'_, '_>) -> StepResult {
        let (key, at) = (self.road().key(), cx.continuation(Point::Leave));
        match cx.parts.store.ask_to_connect(key, at, cx.parts.turn.now) {
            Some((leave, policy)) => {
                self.take_leave(leave, policy, cx);
                StepResult::GoesOn
            }
            None => StepResult::Waits,
        }
    }

    /// The owner of a destination has replied. If this attempt does not wait for the reply, the
    /// caller keeps `leave`.
    pub(crate) fn leave_told(
        &mut self,
        key: u64,
        leave: &mut Option<Leave>,
        policy: DomainPolicy,
        cx: &mut AttemptCx<'_, '_>,
    ) -> Way {
        if self.stage == Stage::Permitted
            && self.road().key() == key
            && let Some(leave) = leave.take()
        {
            self.is_waiting = false;
            self.take_leave(leave, policy, cx);
            return self.go_on(cx);
        }
        Way::Waits
    }

    fn take_leave(&mut self, leave: Leave, policy: DomainPolicy, cx: &mut AttemptCx<'_, '_>) {
        match leave {
            Leave::Granted(grant) => {
                self.road().granted(policy);
                self.destination_try = DestinationTry::OnRoad;
                self.stage = Stage::Sought;
                cx.queue.standings.tried(self.place);
                cx.queue.leave_granted(self.road().destination(), grant);
            }
            Leave::NotFor(span) => {
                let until = cx.parts.turn.now + span;
                let Some(road) = self.road.take() else {
                    unreachable!("the attempt is on no road")
                };
                cx.queue.is_down(road.destination(), until);
                self.stage = self.not_before(until, road.together(), cx);
            }
        }
    }

    /// Finds the hosts that accept the mail.
    pub(super) fn seek(&mut self, cx: &mut AttemptCx<'_, '_>) -> StepResult {
        match self.road().seek(cx) {
            HostLookup::Asked => return StepResult::Waits,
            HostLookup::Inquiry(inquiry) => {
                (self.inquiry, self.stage) = (Some(inquiry), Stage::Inquired)
            }
            HostLookup::Hosts => self.stage = Stage::Called,
            HostLookup::Nowhere(why) => {
                let come = if why.is_temporary() { Come::Later } else { Come::Never };
                self.settle_all(&come(Why::Nowhere(why)), Ended::Unknown, cx);
            }
        }
        StepResult::GoesOn
    }

    /// Goes on with fetching the domain's policy.
    pub(super) fn inquire(&mut self, cx: &mut AttemptCx<'_, '_>) -> StepResult {
        let Some(inquiry) = &mut self.inquiry else { unreachable!("no policy is fetched") };
        match inquiry.go_on(cx) {
            Fetching::Waits => return StepResult::Waits,
            Fetching::NextAddress => {}
            Fetching::Over(fetched) => {
                self.road().policy_fetched(&fetched);
                cx.parts
                    .store
                    .report_destination(self.road().key(), DestinationEvent::Fetched(fetched));
                (self.inquiry, self.stage) = (None, Stage::Sought);
            }
        }
        StepResult::GoesOn
    }

    /// Calls the next host.
    pub(super) fn call(&mut self, cx: &mut AttemptCx<'_, '_>) -> StepResult {
        match self.road().call(cx) {
            NextHost::Connecting(connection) => {
                self.connection = Some(connection);
                return StepResult::Waits;
            }
            NextHost::Missed => {}
            NextHost::NoneLeft(come) => self.settle_all(&come, Ended::Failed, cx),
        }
        StepResult::GoesOn
    }

    /// Goes on with the SMTP conversation.
    pub(super) fn speak(&mut self, cx: &mut AttemptCx<'_, '_>) -> Result<StepResult, Refusal> {
        let Courier { connection: Some(connection), reader, .. } = self else {
            unreachable!("nothing is said without a connection")
        };
        match connection.speak(reader, cx)? {
            ConversationStep::Waits => return Ok(StepResult::Waits),
            ConversationStep::Computes => return Ok(StepResult::Computes),
            ConversationStep::MessageOver => self.message_over(cx),
            ConversationStep::HangUp => self.hang_up(cx),
        }
        Ok(StepResult::GoesOn)
    }

    /// Something has happened to the connection to a host.
    pub(super) fn host_stirred(&mut self, stir: Stir, cx: &mut AttemptCx<'_, '_>) {
        match stir {
            Stir::Made | Stir::Room if self.stage == Stage::Called => self.open_connection(cx),
            Stir::Made | Stir::Room => {}
            Stir::Bytes => self.connected().hear(cx.parts),
            Stir::Turn => self.connected().step(cx.parts),
            Stir::Over => self.lost(Lost::Closed, cx),
        }
    }

    /// The connection to a host, where there must be one.
    fn connected(&mut self) -> &mut OutboundConnection {
        let Some(connection) = &mut self.connection else {
            unreachable!("the attempt has no connection")
        };
        connection
    }

    /// The message, for the recipients of this route.
    fn message_for_host(&mut self) -> Letter {
        let together = self.road().together();
        self.entry().for_host(together, self.reader.message_octets())
    }

    /// The host has accepted the connection, and now gets the message.
    fn open_connection(&mut self, cx: &mut AttemptCx<'_, '_>) {
        let message = self.message_for_host();
        self.connected().opened(message, cx.parts);
        self.reader.rewind();
        self.stage = Stage::Spoken;
    }

    /// Nothing more comes from the host.
    pub(super) fn lost(&mut self, lost: Lost, cx: &mut AttemptCx<'_, '_>) {
        if self.connected().is_open() { self.connected().lost(lost) } else { self.hang_up(cx) }
    }

    /// The rest of the message cannot be read.
    pub(super) fn body_lost(&mut self) {
        self.connected().lost(Lost::GivenUp);
    }

    /// Ends the connection at once.
    pub(super) fn hang_up(&mut self, cx: &mut AttemptCx<'_, '_>) {
        self.connected().end(cx.parts.connections);
        self.connection_is_over(cx);
    }

    /// What the host said counts, unless it said nothing and there is another host.
    fn connection_is_over(&mut self, cx: &mut AttemptCx<'_, '_>) {
        self.reader.want_nothing();
        self.is_waiting = false;
        cx.queue.deadlines.cancel(cx.frame);
        let condition =
            if self.round.is_damaged() { Readability::Damaged } else { Readability::Whole };
        let Courier { connection, road: Some(road), .. } = self else {
            unreachable!("the attempt is on no road")
        };
        let Some(mut connection) = connection.take() else {
            unreachable!("the attempt has no connection")
        };
        road.count_tls(&connection, cx);
        match road.heard(&mut connection, condition) {
            HostAnswer::Anew => self.stage = Stage::Sought,
            HostAnswer::Next => self.stage = Stage::Called,
            HostAnswer::Settled(all) => {
                all.into_iter().for_each(|(bit, come)| self.settle(bit, come, cx));
                self.arrive(Ended::Reached, cx);
            }
        }
    }

    /// Settles all recipients of this route with the same result.
    fn settle_all(&mut self, come: &Come, how: Ended, cx: &mut AttemptCx<'_, '_>) {
        self.road().for_all(come).into_iter().for_each(|(bit, come)| self.settle(bit, come, cx));
        self.arrive(how, cx);
    }

    /// The attempt at the destination ends. An entry that waits for that is next.
    pub(super) fn leave_road(&mut self, how: Ended, cx: &mut AttemptCx<'_, '_>) {
        if let Some(road) = self.road.take() {
            if road.has_leave() {
                let event =
                    DestinationEvent::Ended { how, now: cx.parts.turn.now, random: road.random() };
                cx.parts.store.report_destination(road.key(), event);
            }
            cx.queue.road_left(road.destination(), road.has_leave());
        }
    }

    /// Whether it has a connection that waits for another message.
    pub(super) fn keeps_connection(&self) -> bool {
        self.connection.as_ref().is_some_and(|connection| connection.is_kept())
    }

    /// The host has answered for all recipients: the connection is kept for another message, or
    /// closed.
    fn message_over(&mut self, cx: &mut AttemptCx<'_, '_>) {
        if self.may_keep_connection(cx) {
            self.keep_connection(cx);
        } else {
            self.connected().say_goodbye(cx.parts);
            self.connection_is_over(cx);
        }
    }

    fn may_keep_connection(&mut self, cx: &AttemptCx<'_, '_>) -> bool {
        self.connected().may_be_kept(cx.parts.turn.now)
            && cx.queue.is_serving
            && cx.queue.behind.contains_key(self.road().destination())
            && cx.queue.calls.may_keep(self.road().destination())
    }

    /// Takes in the results of the message, and keeps the connection.
    fn keep_connection(&mut self, cx: &mut AttemptCx<'_, '_>) {
        let Courier { connection: Some(connection), road: Some(road), .. } = self else {
            unreachable!("a connection is kept where there is none")
        };
        road.count_tls(connection, cx);
        let is_first = connection.has_first_message();
        let (came, host, reporter) =
            (connection.keep(), connection.host().cloned(), connection.reporter());
        came.into_iter().for_each(|(bit, outcome)| {
            self.settle(bit, come_of(outcome, host.as_ref(), reporter), cx)
        });
        self.stage = Stage::Sorted;
        cx.queue.deadlines.set(cx.frame, cx.parts.turn.now + KEPT_PATIENCE);
        if is_first {
            cx.parts.store.report_destination(self.road().key(), DestinationEvent::Reached);
        }
        cx.queue.road_is_good(self.road().destination());
    }

    /// Sends the message on the kept connection. False: there is none.
    pub(super) fn resume(&mut self, together: u16) -> bool {
        if !self.keeps_connection() {
            return false;
        }
        self.road().is_for(together);
        let message = self.message_for_host();
        self.connected().reuse(message);
        self.reader.rewind();
        true
    }

    /// Ends a kept connection at once.
    pub(super) fn drop_kept(&mut self, cx: &mut AttemptCx<'_, '_>) {
        if self.keeps_connection() {
            self.connected().end(cx.parts.connections);
            self.kept_is_over(cx);
        }
    }

    fn kept_is_over(&mut self, cx: &mut AttemptCx<'_, '_>) {
        self.connection = None;
        cx.queue.deadlines.cancel(cx.frame);
        self.leave_road(Ended::Reached, cx);
    }

    /// The next entry for the kept connection. If there is none, the connection is ended.
    pub(super) fn next_by_connection(&mut self, cx: &mut AttemptCx<'_, '_>) -> Option<Place> {
        if !self.keeps_connection() {
            return None;
        }
        let (queue, destination) = (&mut *cx.queue, self.road().destination());
        let may = queue.is_serving && queue.calls.may_keep(destination);
        let next = if may { queue.next_behind(destination) } else { None };
        match next {
            Some(place) => queue.standings.set(place, State::UnderWay),
            None => {
                self.connected().say_goodbye(cx.parts);
                self.kept_is_over(cx);
            }
        }
        next
    }
}
