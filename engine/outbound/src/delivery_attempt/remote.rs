//! The remote part of an attempt: it finds the hosts of its destination, and talks with one of
//! them. A connection may be kept for the next message to the same destination.
//!
//! Invariants:
//! - A connection is kept only while an entry of this core waits for its destination. If another
//!   core with fewer connections waits for leave, the connection is not kept (`calls`).
//! - Until the marks of a message are durable, nothing is sent on the connection. If the peer sends
//!   something in that time, the connection is ended.
//! - If a kept connection turns out to be closed and no host has seen the message, another
//!   connection sends the message at once.

use connections::TransportEvent;
use relay::destinations::{ConnectionOutcome, Leave};
use relay::{Lost, OutgoingMessage};
use shards::{DestinationEvent, DomainPolicy};
use store::Refusal;

use crate::OutboundWaitPoint;
use crate::attempt_context::AttemptCx;
use crate::connection::{ConversationStep, KEPT_PATIENCE, OutboundConnection};
use crate::destination_route::{
    DestinationRoute, HostAnswer, HostLookup, NextHost, Readability, result_of,
};
use crate::failure::FailureReason;
use crate::index::State;
use crate::policy_fetch::FetchStep;
use crate::stages::{AttemptProgress, DeliveryResult, Stage, StepResult};
use crate::state::DestinationTry;
use crate::waiting::Place;

use super::DeliveryAttempt;

impl DeliveryAttempt {
    fn route(&mut self) -> &mut DestinationRoute {
        let Some(route) = &mut self.route else { unreachable!("the attempt has no route") };
        route
    }

    /// Asks the owner of the destination for leave to make a connection.
    pub(super) fn ask_to_call(&mut self, cx: &mut AttemptCx<'_, '_>) -> StepResult {
        let (key, at) = (self.route().key(), cx.continuation(OutboundWaitPoint::Leave));
        match cx.parts.store.ask_to_connect(key, at, cx.parts.turn.now) {
            Some((leave, policy)) => {
                self.take_leave(leave, policy, cx);
                StepResult::GoesOn
            }
            None => StepResult::Waits,
        }
    }

    /// Takes the reply of a destination's owner. If this attempt does not wait for the reply,
    /// `leave` stays `Some`, and the caller returns the leave.
    pub(crate) fn leave_arrived(
        &mut self,
        key: u64,
        leave: &mut Option<Leave>,
        policy: DomainPolicy,
        cx: &mut AttemptCx<'_, '_>,
    ) -> AttemptProgress {
        if self.stage == Stage::AskLeave
            && self.route().key() == key
            && let Some(leave) = leave.take()
        {
            self.is_waiting = false;
            self.take_leave(leave, policy, cx);
            return self.go_on(cx);
        }
        AttemptProgress::Waits
    }

    /// Continues with the leave to make a connection, or settles the recipients if the destination
    /// is down.
    fn take_leave(&mut self, leave: Leave, policy: DomainPolicy, cx: &mut AttemptCx<'_, '_>) {
        match leave {
            Leave::Granted(grant) => {
                self.route().granted(policy);
                self.destination_try = DestinationTry::Tried;
                self.stage = Stage::LookUpHosts;
                cx.queue.index.tried(self.place);
                cx.queue.leave_granted(self.route().destination(), grant);
            }
            Leave::NotFor(span) => {
                let until = cx.parts.turn.now + span;
                let Some(route) = self.route.take() else {
                    unreachable!("the attempt has no route")
                };
                cx.queue.destination_down(route.destination(), until);
                self.stage = self.not_before(until, route.recipient_bits(), cx);
            }
        }
    }

    /// Finds the hosts that accept the mail.
    pub(super) fn look_up_hosts(&mut self, cx: &mut AttemptCx<'_, '_>) -> StepResult {
        match self.route().look_up_hosts(cx) {
            HostLookup::Asked => return StepResult::Waits,
            HostLookup::PolicyFetch(policy_fetch) => {
                (self.policy_fetch, self.stage) = (Some(policy_fetch), Stage::FetchPolicy)
            }
            HostLookup::Hosts => self.stage = Stage::Connect,
            HostLookup::Nowhere(why) => {
                let settled =
                    if why.is_temporary() { DeliveryResult::Later } else { DeliveryResult::Never };
                self.settle_all(
                    &settled(FailureReason::NoRoute(why)),
                    ConnectionOutcome::Unknown,
                    cx,
                );
            }
        }
        StepResult::GoesOn
    }

    /// Continues to fetch the domain's policy.
    pub(super) fn fetch_policy(&mut self, cx: &mut AttemptCx<'_, '_>) -> StepResult {
        let Some(policy_fetch) = &mut self.policy_fetch else {
            unreachable!("no policy is fetched")
        };
        match policy_fetch.go_on(cx) {
            FetchStep::Waits => return StepResult::Waits,
            FetchStep::NextAddress => {}
            FetchStep::Over(fetched) => {
                self.route().policy_fetched(&fetched);
                cx.parts
                    .store
                    .report_destination(self.route().key(), DestinationEvent::Fetched(fetched));
                (self.policy_fetch, self.stage) = (None, Stage::LookUpHosts);
            }
        }
        StepResult::GoesOn
    }

    /// Calls the next host.
    pub(super) fn call(&mut self, cx: &mut AttemptCx<'_, '_>) -> StepResult {
        match self.route().call(cx) {
            NextHost::Connecting(connection) => {
                self.connection = Some(connection);
                return StepResult::Waits;
            }
            NextHost::Missed => {}
            NextHost::NoneLeft(result) => self.settle_all(&result, ConnectionOutcome::Failed, cx),
        }
        StepResult::GoesOn
    }

    /// Continues the SMTP conversation.
    pub(super) fn converse(&mut self, cx: &mut AttemptCx<'_, '_>) -> Result<StepResult, Refusal> {
        let DeliveryAttempt { connection: Some(connection), reader, .. } = self else {
            unreachable!("a conversation needs a connection")
        };
        match connection.converse(reader, cx)? {
            ConversationStep::Waits => return Ok(StepResult::Waits),
            ConversationStep::Computes => return Ok(StepResult::Computes),
            ConversationStep::MessageOver => self.message_over(cx),
            ConversationStep::HangUp => self.hang_up(cx),
        }
        Ok(StepResult::GoesOn)
    }

    /// Processes an event of the connection to a host.
    pub(super) fn host_event(&mut self, event: TransportEvent, cx: &mut AttemptCx<'_, '_>) {
        match event {
            TransportEvent::Made | TransportEvent::Room if self.stage == Stage::Connect => {
                self.open_connection(cx)
            }
            TransportEvent::Made | TransportEvent::Room => {}
            TransportEvent::Bytes => self.connected().receive(cx.parts),
            TransportEvent::Turn => self.connected().step(cx.parts),
            TransportEvent::Over => self.lost(Lost::Closed, cx),
        }
    }

    /// The connection to a host. It must exist.
    fn connected(&mut self) -> &mut OutboundConnection {
        let Some(connection) = &mut self.connection else {
            unreachable!("the attempt has no connection")
        };
        connection
    }

    /// The message, for the recipients of this route.
    fn message_for_host(&mut self) -> OutgoingMessage {
        let recipient_bits = self.route().recipient_bits();
        self.entry().for_host(recipient_bits, self.reader.message_octets())
    }

    /// Begins the conversation: the host has accepted the connection, and now gets the message.
    fn open_connection(&mut self, cx: &mut AttemptCx<'_, '_>) {
        let message = self.message_for_host();
        self.connected().opened(message, cx.parts);
        self.reader.rewind();
        self.stage = Stage::Converse;
    }

    /// Ends the conversation: nothing more comes from the host.
    pub(super) fn lost(&mut self, lost: Lost, cx: &mut AttemptCx<'_, '_>) {
        if self.connected().is_open() { self.connected().lost(lost) } else { self.hang_up(cx) }
    }

    /// Ends the conversation: the rest of the message cannot be read.
    pub(super) fn body_unreadable(&mut self) {
        self.connected().lost(Lost::GivenUp);
    }

    /// Ends the connection at once.
    pub(super) fn hang_up(&mut self, cx: &mut AttemptCx<'_, '_>) {
        self.connected().end(cx.parts.connections);
        self.connection_is_over(cx);
    }

    /// Takes the result of a connection that has ended. If the host gave no result and another host
    /// remains, the next host is called.
    fn connection_is_over(&mut self, cx: &mut AttemptCx<'_, '_>) {
        self.reader.want_nothing();
        self.is_waiting = false;
        cx.queue.deadlines.cancel(cx.frame);
        let condition =
            if self.round.is_damaged() { Readability::Damaged } else { Readability::Whole };
        let DeliveryAttempt { connection, route: Some(route), .. } = self else {
            unreachable!("the attempt has no route")
        };
        let Some(mut connection) = connection.take() else {
            unreachable!("the attempt has no connection")
        };
        route.count_tls(&connection, cx);
        match route.connection_ended(&mut connection, condition) {
            HostAnswer::Anew => self.stage = Stage::LookUpHosts,
            HostAnswer::Next => self.stage = Stage::Connect,
            HostAnswer::Settled(all) => {
                all.into_iter().for_each(|(bit, result)| self.settle(bit, result, cx));
                self.finish_route(ConnectionOutcome::Reached, cx);
            }
        }
    }

    /// Settles all recipients of this route with the same result.
    fn settle_all(
        &mut self,
        result: &DeliveryResult,
        how: ConnectionOutcome,
        cx: &mut AttemptCx<'_, '_>,
    ) {
        self.route()
            .for_all(result)
            .into_iter()
            .for_each(|(bit, result)| self.settle(bit, result, cx));
        self.finish_route(how, cx);
    }

    /// Ends the attempt at the destination. The next entry that waits for this destination may
    /// start.
    pub(super) fn end_route(&mut self, how: ConnectionOutcome, cx: &mut AttemptCx<'_, '_>) {
        if let Some(route) = self.route.take() {
            if route.has_leave() {
                let event =
                    DestinationEvent::Ended { how, now: cx.parts.turn.now, random: route.random() };
                cx.parts.store.report_destination(route.key(), event);
            }
            cx.queue.attempt_left(route.destination(), route.has_leave());
        }
    }

    /// Whether the attempt has a connection that waits for another message.
    pub(super) fn keeps_connection(&self) -> bool {
        self.connection.as_ref().is_some_and(|connection| connection.is_kept())
    }

    /// Keeps the connection for another message, or closes it. The host has replied for all
    /// recipients.
    fn message_over(&mut self, cx: &mut AttemptCx<'_, '_>) {
        if self.may_keep_connection(cx) {
            self.keep_connection(cx);
        } else {
            self.connected().say_goodbye(cx.parts);
            self.connection_is_over(cx);
        }
    }

    /// Whether the connection can be kept, and another entry of this core waits for it.
    fn may_keep_connection(&mut self, cx: &AttemptCx<'_, '_>) -> bool {
        self.connected().may_be_kept(cx.parts.turn.now)
            && cx.queue.is_serving
            && cx.queue.behind.contains_key(self.route().destination())
            && cx.queue.calls.may_keep(self.route().destination())
    }

    /// Records the results of the message, and keeps the connection.
    fn keep_connection(&mut self, cx: &mut AttemptCx<'_, '_>) {
        let DeliveryAttempt { connection: Some(connection), route: Some(route), .. } = self else {
            unreachable!("a connection is kept that does not exist")
        };
        route.count_tls(connection, cx);
        let is_first = connection.has_first_message();
        let (outcomes, host, reporter) =
            (connection.keep(), connection.host().cloned(), connection.reporter());
        outcomes.into_iter().for_each(|(bit, outcome)| {
            self.settle(bit, result_of(outcome, host.as_ref(), reporter), cx)
        });
        self.stage = Stage::Choose;
        cx.queue.deadlines.set(cx.frame, cx.parts.turn.now + KEPT_PATIENCE);
        if is_first {
            cx.parts.store.report_destination(self.route().key(), DestinationEvent::Reached);
        }
        cx.queue.destination_reached(self.route().destination());
    }

    /// Sends the message on the kept connection. Returns false if there is none.
    pub(super) fn resume(&mut self, recipient_bits: u16) -> bool {
        if !self.keeps_connection() {
            return false;
        }
        self.route().set_recipients(recipient_bits);
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

    /// Ends the route, since the kept connection is over.
    fn kept_is_over(&mut self, cx: &mut AttemptCx<'_, '_>) {
        self.connection = None;
        cx.queue.deadlines.cancel(cx.frame);
        self.end_route(ConnectionOutcome::Reached, cx);
    }

    /// Takes the next entry for the kept connection. If there is none, the connection is closed.
    pub(super) fn next_by_connection(&mut self, cx: &mut AttemptCx<'_, '_>) -> Option<Place> {
        if !self.keeps_connection() {
            return None;
        }
        let (queue, destination) = (&mut *cx.queue, self.route().destination());
        let may = queue.is_serving && queue.calls.may_keep(destination);
        let next = if may { queue.next_behind(destination) } else { None };
        match next {
            Some(place) => queue.index.set(place, State::UnderWay),
            None => {
                self.connected().say_goodbye(cx.parts);
                self.kept_is_over(cx);
            }
        }
        next
    }
}
