//! Chooses the next stage of an attempt by the results so far, and writes the results to the
//! entry's record.
//!
//! Invariants:
//! - The results so far are marked (durable in the record of the entry) before anything else
//!   begins.
//! - Local recipients come first, then reports, then recipients at other servers.
//! - Nothing begins for a held message before the hold ends. From then on the message counts as
//!   new: its age starts at the end of the hold. The age decides when the message is tried and
//!   given up.
//! - The mark that a recipient has the message is durable before a report is begun. An entry is
//!   removed only when all reports are delivered.

use accounts::entries;
use machine::{Instant, Micros, Turn};
use relay::destinations::ConnectionOutcome;
use relay::schedule::{self, NextTry};
use smtp::RecipientRefusal;
use store::{MessageInfo, OUTBOX, OutboxEntry, Packing, Refusal, State, UidRange};

use crate::attempt_context::AttemptCx;
use crate::calls::AttemptAdmission;
use crate::destination_route::{DestinationRoute, no_host_reached};
use crate::entry::{self, Entry, EntryKind, RecordedState};
use crate::failure::FailureReason;
use crate::joint_reports::{self, DelayCause, ReportStep};
use crate::stages::{AGAIN, DeliveryKind, DeliveryResult, ROOM_AGAIN, Stage, StepResult, bits};
use crate::state::DestinationTry;
use crate::unreadable::NoticeStep;
use crate::{OutboundWaitPoint, smarthosts};

use super::DeliveryAttempt;

/// The longest time until a held message is examined again. Without this limit, a jump of the clock
/// could make the wait much too long.
const HOLD_LOOK: Micros = Micros::from_secs(24 * 60 * 60);

impl DeliveryAttempt {
    /// Chooses the next stage.
    pub(super) fn choose_stage(
        &mut self,
        cx: &mut AttemptCx<'_, '_>,
    ) -> Result<StepResult, Refusal> {
        let info = cx.info()?;
        self.stage = match (cx.record(), self.notice) {
            // An entry without a record was found by a rebuild of the store. It stays.
            (None, _) => Stage::Over(None),
            (Some(record), Some(_)) => self.next_of_unreadable(record, cx),
            (Some(record), None) => self.next_stage(info, record, cx),
        };
        Ok(StepResult::GoesOn)
    }

    fn next_stage(
        &mut self,
        info: MessageInfo,
        record: OutboxEntry,
        cx: &mut AttemptCx<'_, '_>,
    ) -> Stage {
        let recorded = entry::recorded_state(Some(record));
        let held_until = self.entry().envelope().held_until;
        let to_wait = held_until.map_or(0, |until| until.0.saturating_sub(cx.parts.turn.wall.0));
        if to_wait > 0 && recorded != RecordedState::Returned {
            let until = cx.parts.turn.now + Micros(to_wait).min(HOLD_LOOK);
            cx.queue.index.hold(self.place, until);
            return Stage::Over(Some(until));
        }
        if self.round.to_mark().is_some() {
            return Stage::Mark;
        }
        let (all, packing) = (self.entry().all(), self.packing());
        let (done, reported) = (record.done(packing), record.reported(packing));
        let waiting = all & !done;
        let open = self.round.open(waiting);
        if recorded == RecordedState::Returned && open != 0 {
            bits(open).for_each(|bit| self.round.fail(bit, FailureReason::Returned));
            return Stage::Choose;
        }
        if let Some(next) = self.next_here(open, cx) {
            return next;
        }
        if let Some(next) = self.next_of_failures(cx) {
            return next;
        }
        if let Some(next) = self.next_of_successes(done & !reported, cx) {
            return next;
        }
        let DeliveryAttempt { entry: Some(entry), notes, .. } = self else {
            unreachable!("the entry was not opened")
        };
        notes.look_up(entry, waiting, record, cx);
        if notes.has_some() {
            return Stage::ForgetNote;
        }
        if reported & all == all {
            return Stage::Remove;
        }
        if open != 0 && cx.queue.is_serving && can_be_marked(cx) {
            if self.required_form().is_some() {
                return Stage::BeginDelivery(DeliveryKind::Replacement);
            }
            return self.start_remote_delivery(open, info, cx);
        }
        let delayed = self.round.not_failed(waiting);
        if let Some(cause) = self.cause_of_delay_report(delayed, info, record, cx) {
            let DeliveryAttempt { entry: Some(entry), round, .. } = self else {
                unreachable!("the entry was not opened")
            };
            if joint_reports::next_step_of_delay(entry, cause, round, cx) == ReportStep::Report {
                return Stage::BeginDelivery(DeliveryKind::DelayReport);
            }
        }
        let after = match self.next_attempt(cx) {
            NextTry::After(after) => after,
            // Here no recipient was given up, although the time for attempts is over: the store has
            // refused a local delivery. A recipient that is given up is in `failed`.
            NextTry::GiveUp if self.round.has_no_room() => ROOM_AGAIN,
            NextTry::GiveUp => AGAIN,
        };
        let at = cx.parts.turn.now + after;
        let at = self.round.report_due().map_or(at, |until| until.min(at));
        Stage::Over(Some(if let DestinationTry::NotBefore(until) = self.destination_try {
            until.min(at)
        } else {
            at
        }))
    }

    /// The next stage for recipients that have the message, and are not reported. `None`: none is
    /// left, or the report is deferred.
    fn next_of_successes(&mut self, unreported: u16, cx: &AttemptCx<'_, '_>) -> Option<Stage> {
        let DeliveryAttempt { entry: Some(entry), round, .. } = self else {
            unreachable!("the entry was not opened")
        };
        let unreported = round.not_deferred(unreported);
        if unreported == 0 {
            return None;
        }
        joint_reports::take_successes(entry, unreported, round, cx);
        Some(match bits(round.succeeded()).next() {
            Some(first) if round.to_mark().is_none() => {
                Stage::BeginDelivery(DeliveryKind::SuccessReport(first))
            }
            _ => Stage::Choose,
        })
    }

    /// The next stage for the failed recipients. `None`: there are none, or they wait.
    fn next_of_failures(&mut self, cx: &mut AttemptCx<'_, '_>) -> Option<Stage> {
        let DeliveryAttempt { entry: Some(entry), round, .. } = self else {
            unreachable!("the entry was not opened")
        };
        let first = round.failed_bits().first().copied()?;
        match joint_reports::next_step(entry, round, cx) {
            ReportStep::Mark => Some(Stage::Choose),
            ReportStep::Report => Some(Stage::BeginDelivery(DeliveryKind::FailureReport(first))),
            ReportStep::Wait => None,
        }
    }

    /// The next stage for an entry that cannot be read.
    fn next_of_unreadable(&mut self, record: OutboxEntry, cx: &mut AttemptCx<'_, '_>) -> Stage {
        if self.round.to_mark().is_some() {
            return Stage::Mark;
        }
        if self.notes.has_some() {
            return Stage::ForgetNote;
        }
        let Some(notice) = &mut self.notice else { unreachable!("the entry can be read") };
        match notice.next(record) {
            NoticeStep::Deliver => Stage::BeginDelivery(DeliveryKind::Notice),
            NoticeStep::ForgetNote => {
                self.notes.note(DeliveryKind::Notice, self.place.0, cx);
                Stage::Choose
            }
            NoticeStep::WaitForRoom => Stage::Over(Some(cx.parts.turn.now + ROOM_AGAIN)),
            NoticeStep::ReadAgain => Stage::Over(Some(self.after_damage(cx))),
        }
    }

    /// The next stage for a recipient at a domain of ours. `None`: no such recipient is left. The
    /// sender gets a failure report for an address that does not exist. If an account is not set up
    /// yet, its address is tried again later.
    fn next_here(&mut self, open: u16, cx: &mut AttemptCx<'_, '_>) -> Option<Stage> {
        if !self.entry().is_posted() {
            return self.next_of_arrival(open);
        }
        let (directory, entry) = (cx.parts.directory, self.entry());
        let own = bits(open).find(|bit| directory.has_domain_of(entry.address(*bit)))?;
        match directory.recipient_at(cx.parts.store, entry.address(own)) {
            Ok(account) => Some(Stage::BeginDelivery(DeliveryKind::Message(own, account))),
            Err(RecipientRefusal::Unavailable) => {
                cx.queue.index.tried(self.place);
                self.settle_here(own, DeliveryResult::Later(FailureReason::NotSetUp), cx);
                Some(Stage::Choose)
            }
            Err(_) => {
                self.round.fail(own, FailureReason::UnknownAddress);
                Some(Stage::Choose)
            }
        }
    }

    /// The next stage as in [`Self::next_here`], for a message that came for an account that
    /// forwards its mail.
    fn next_of_arrival(&mut self, open: u16) -> Option<Stage> {
        let bit = bits(open).next()?;
        if self.entry().kind() == EntryKind::Looped {
            self.round.fail(bit, FailureReason::Loop);
            return Some(Stage::Choose);
        }
        let kind = self.entry().delivery_for(bit);
        let is_unsealed = matches!(kind, DeliveryKind::Forward(_)) && self.seal.is_open();
        Some(if is_unsealed { Stage::Hash } else { Stage::BeginDelivery(kind) })
    }

    /// The data that the entry's record stores for each recipient. An entry that cannot be read
    /// gets no marks for recipients.
    fn packing(&self) -> Packing {
        self.entry.as_ref().map_or(Packing::Done, Entry::packing)
    }

    /// Writes the results to the entry's record.
    pub(super) fn mark(&mut self, cx: &mut AttemptCx<'_, '_>) -> Result<StepResult, Refusal> {
        let Some(change) = self.round.to_mark() else { unreachable!("there is nothing to mark") };
        let ((account, uid), continuation) =
            (self.place, cx.continuation(OutboundWaitPoint::Attempt));
        cx.parts.store.own.store.change_entry(
            account,
            uid,
            (change, self.packing()),
            continuation,
        )?;
        Ok(StepResult::Waits)
    }

    /// Removes the entry.
    pub(super) fn remove(&mut self, cx: &mut AttemptCx<'_, '_>) -> Result<StepResult, Refusal> {
        let ((account, uid), continuation) =
            (self.place, cx.continuation(OutboundWaitPoint::Attempt));
        cx.parts.store.own.store.remove(account, OUTBOX, &[UidRange::one(uid)], continuation)?;
        Ok(StepResult::Waits)
    }

    /// Starts the delivery to these recipients, if their destination may be tried now.
    fn start_remote_delivery(
        &mut self,
        recipient_bits: u16,
        info: MessageInfo,
        cx: &mut AttemptCx<'_, '_>,
    ) -> Stage {
        if self.resume(recipient_bits) {
            self.destination_try = DestinationTry::Tried;
            cx.queue.index.tried(self.place);
            return Stage::Converse;
        }
        let domain = entries::domain_of(self.entry().address(0));
        let leaving = cx.queue.config.way_to(&domain).clone();
        let destination = smarthosts::destination(&domain, &leaving);
        let key = cx.parts.store.own.facts.destination(&destination);
        match cx.queue.calls.admit(&destination, key, cx.parts.turn.now) {
            AttemptAdmission::Ask => {
                self.route = Some(DestinationRoute::to(
                    destination,
                    key,
                    leaving,
                    recipient_bits,
                    random(info, cx),
                ));
                Stage::AskLeave
            }
            AttemptAdmission::WaitUntil(until) => {
                cx.queue.release_entries_behind(&destination);
                self.not_before(until, recipient_bits, cx)
            }
            AttemptAdmission::Busy => {
                self.round.defer(recipient_bits);
                self.destination_try = DestinationTry::Behind(destination);
                Stage::Choose
            }
        }
    }

    /// Settles these recipients as unreachable, without a try: their destination is down until
    /// `until`.
    pub(super) fn not_before(
        &mut self,
        until: Instant,
        recipient_bits: u16,
        cx: &AttemptCx<'_, '_>,
    ) -> Stage {
        bits(recipient_bits).for_each(|bit| self.settle(bit, no_host_reached(), cx));
        self.destination_try = DestinationTry::NotBefore(until);
        Stage::Choose
    }

    /// The time since the message was first to be delivered, by the dates. The time that the
    /// machine has run with the entry bounds the result.
    fn age(&self, info: MessageInfo, cx: &AttemptCx<'_, '_>) -> Micros {
        let Turn { now, wall } = cx.parts.turn;
        let released = self.entry.as_ref().map_or(info.internal_date, |entry| entry.released(info));
        let dated = Micros(wall.0.saturating_sub(released.0));
        cx.queue.index.age(self.place, dated, now)
    }

    /// The delay until the next attempt, or the decision that the time for attempts is over.
    pub(super) fn next_attempt(&self, cx: &AttemptCx<'_, '_>) -> NextTry {
        let Ok(info) = cx.info() else { return NextTry::After(AGAIN) };
        schedule::next_attempt(self.age(info, cx), random(info, cx))
    }

    /// Why a delay report about `waiting` recipients is due. `None`: it is not due.
    fn cause_of_delay_report(
        &self,
        waiting: u16,
        info: MessageInfo,
        record: OutboxEntry,
        cx: &AttemptCx<'_, '_>,
    ) -> Option<DelayCause> {
        let (entry, kind) = (self.entry(), self.entry().delayed(info));
        let is_wanted = bits(waiting).any(|bit| entry.wants_report(bit, kind, cx));
        let is_over = record.is_delay_reported() || self.round.is_delay_report_deferred();
        if is_over || !is_wanted {
            return None;
        }
        if schedule::is_delay_report_due(self.age(info, cx)) {
            return Some(DelayCause::Age);
        }
        let lacks_space = cx.queue.index.of(self.place).is_some_and(|status| status.lacks_space);
        lacks_space.then_some(DelayCause::NoSpace)
    }

    /// Records the result for a recipient.
    pub(super) fn settle(&mut self, bit: u8, result: DeliveryResult, cx: &AttemptCx<'_, '_>) {
        match result {
            DeliveryResult::Never(why) if self.may_become_ascii(&why) => {
                self.round.rewrite(bit, why);
            }
            result => self.round.settle(bit, result, self.next_attempt(cx)),
        }
    }

    /// Ends the attempt at the destination: all recipients of the route are settled.
    pub(super) fn finish_route(&mut self, how: ConnectionOutcome, cx: &mut AttemptCx<'_, '_>) {
        self.end_route(how, cx);
        self.stage = Stage::Choose;
    }
}

/// A number for this message and this moment, independent of other messages' numbers.
fn random(info: MessageInfo, cx: &AttemptCx<'_, '_>) -> u64 {
    let number = info.guid.0 ^ u128::from(cx.parts.turn.now.0) << u64::BITS;
    u128::from_le_bytes(cx.parts.store.own.store.secret(&number.to_le_bytes())) as u64
}

/// Whether the store can mark results.
fn can_be_marked(cx: &AttemptCx<'_, '_>) -> bool {
    cx.parts.store.own.store.state() == State::Serving
}
