//! One report for all recipients of a message with the same result.
//!
//! An entry of the outbox is for at most eight recipients of one domain. So a message may have
//! several entries. An entry with failed recipients waits for a short time until the other entries
//! of the message have been tried. Then the attempt of one entry *joins* the others: it writes the
//! report about the failed recipients of all of them. A report of a delay joins all other entries
//! of the message that wait. If this machine has no space for the message, its report is due at
//! once, and joins only the entries that wait for space. A report of success names the recipients
//! of one entry. They usually succeed together, and no other entry is waited for.
//!
//! ```text
//!   entry A: tried, bob fails ──▸ waits ────────────────────────────▸ is marked, removed
//!   entry B: tried, carol fails ──▸ no entry is left to be tried: ──▸ is marked, removed
//!                                   B joins A, and reports bob and carol
//! ```
//! Entries of one message are recognized by a keyed hash of their envelope and header, which they
//! share. They came together, so their UIDs are close to each other.
//!
//! Invariants:
//! - Failures that wait are only in memory, and their recipients are not marked. If the power
//!   fails, these recipients are tried again.
//! - A failure or success report has an origin for each recipient that it names, in the recipient's
//!   own entry (`arrivals`). A delay report has one for each entry. The store notes all these
//!   origins together with the report. An attempt that finds the note of a recipient marks the
//!   recipient, and neither tries nor reports it again. So each recipient is reported once,
//!   whenever the power fails.
//! - An entry that is joined is [`State::Claimed`] until the report is stored or refused, so no
//!   attempt has it. Then it is [`State::Reported`], so its next attempt marks its recipients.
//! - An entry that an administrator changes is no longer joined.

use alloc::vec::Vec;

use machine::{Instant, Micros};
use relay::report::ReportKind;
use store::{ARRIVALS_OF_MESSAGE_MAX, MessageInfo, OUTBOX, OutboxEntry, Refusal, SentId};

use super::arrivals::origin_of;
use super::attempt_context::AttemptCx;
use super::entry::{Entry, RecordedState, recorded_state};
use super::index::{EntryStatus, MessageMark, State};
use super::round::{JoinedEntry, JoinedRecipients, Round};
use super::stages::{DeliveryKind, bits};
use super::waiting::Place;

/// How long a failed recipient waits for the results of other recipients of its message.
const PATIENCE: Micros = Micros::from_secs(120);
/// How long the report of a delay waits for other entries of its message. Hosts that do not answer
/// are tried for minutes.
const DELAY_PATIENCE: Micros = Micros::from_secs(900);
/// The time between the ends of the waits of two entries of a message, so that the first entry that
/// reports the delay joins the others.
const APART: Micros = Micros::from_secs(15);

/// Why the report of a delay is due.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum DelayCause {
    /// The message has waited for hours.
    Age,
    /// This machine has no space for the message.
    NoSpace,
}

impl DelayCause {
    /// How long the report waits for other entries of the message.
    fn patience(self) -> Micros {
        match self {
            DelayCause::Age => DELAY_PATIENCE,
            DelayCause::NoSpace => PATIENCE,
        }
    }

    /// Whether the report covers another entry of the message that waits. All entries of a message
    /// have the same age.
    fn covers(self, status: EntryStatus) -> bool {
        self == DelayCause::Age || status.lacks_space
    }
}

/// What an attempt does next about a report.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ReportStep {
    /// Some recipients need no report. They are to be marked.
    Mark,
    /// The report is to be delivered.
    Report,
    /// The report waits for other entries of the message.
    Wait,
}

/// Takes what is known about an entry that an attempt has opened: the reports that have arrived
/// about it, and the failures that wait to be reported.
pub(super) fn take_up(entry: &Entry, round: &mut Round, cx: &mut AttemptCx<'_, '_>) {
    let Some(record) = cx.record() else { return };
    let done = record.done(entry.packing());
    for bit in bits(entry.all() & !done) {
        if has_arrived(DeliveryKind::FailureReport(bit), cx) {
            round.reported(bit);
        }
    }
    if !record.is_delay_reported() && has_arrived(DeliveryKind::DelayReport, cx) {
        round.delivered_locally(DeliveryKind::DelayReport);
    }
    if has_arrived(DeliveryKind::Replacement, cx) {
        round.replaced(entry.all() & !done);
    }
    cx.queue.index.set_message(cx.place, entry.mark());
    take_waiting(entry, round, cx);
}

/// Takes the waiting failures of an entry, so that they are reported with further ones. They have
/// waited since an earlier attempt, or since an earlier step of this attempt.
fn take_waiting(entry: &Entry, round: &mut Round, cx: &mut AttemptCx<'_, '_>) {
    let Some(mark) = entry.mark() else { return };
    if let Some((failed, due)) = cx.queue.failures.take(mark, cx.place) {
        round.failures_are_due(due);
        failed.into_iter().for_each(|(bit, why)| round.fail(bit, why));
    }
}

fn has_arrived(kind: DeliveryKind, cx: &AttemptCx<'_, '_>) -> bool {
    let store = &cx.parts.store.own.store;
    kind.origin(cx).is_ok_and(|origin| store.has_arrived(cx.place.0, origin))
}

/// The next step for the failed recipients of an entry. Before the report, the other entries of the
/// message are joined.
pub(super) fn next_step(
    entry: &Entry,
    round: &mut Round,
    cx: &mut AttemptCx<'_, '_>,
) -> ReportStep {
    take_waiting(entry, round, cx);
    for bit in round.failed_bits() {
        let is_wanted = entry.wants_report(bit, ReportKind::Failed, cx);
        if !is_wanted || has_arrived(DeliveryKind::FailureReport(bit), cx) {
            round.reported(bit);
        }
    }
    if round.to_mark().is_some() {
        return ReportStep::Mark;
    }
    let Some(mark) = entry.mark() else { return ReportStep::Report };
    let now = cx.parts.turn.now;
    let due = round.failures_due().unwrap_or(now + PATIENCE);
    let is_due = due <= now || cx.queue.failures.is_due(mark, now);
    // An entry that is to be replaced does not wait: the new entry has its other recipients.
    if !is_due
        && !round.has_to_rewrite()
        && cx.queue.index.has_untried(mark, cx.place, now)
        && cx.queue.failures.add(mark, cx.place, round.failed(), due)
    {
        round.failures_wait(due);
        return ReportStep::Wait;
    }
    join_failed(mark, round, cx);
    ReportStep::Report
}

/// Takes the recipients with these bits, which have the message, into a success report. A recipient
/// needs no report if the sender wants none about it, or has one.
pub(super) fn take_successes(
    entry: &Entry,
    unreported: u16,
    round: &mut Round,
    cx: &AttemptCx<'_, '_>,
) {
    let is_due = |bit: &u8| {
        entry.wants_report(*bit, ReportKind::Delivered, cx)
            && !has_arrived(DeliveryKind::SuccessReport(*bit), cx)
    };
    let succeeded = bits(unreported).filter(is_due).fold(0, |set, bit| set | 1 << bit);
    bits(unreported & !succeeded).for_each(|bit| round.reported(bit));
    round.set_succeeded(succeeded);
}

/// Joins the other entries of the message that have failures, as far as one report can name them.
fn join_failed(mark: MessageMark, round: &mut Round, cx: &mut AttemptCx<'_, '_>) {
    let own = round.failed().len();
    let mut left = arrivals_left(cx).saturating_sub(own);
    for place in cx.queue.failures.entries(mark).collect::<Vec<_>>() {
        let Some(status) = cx.queue.index.of(place) else { continue };
        let Some(record) = record_of(place, cx) else { continue };
        let State::Waits(_) = status.state else { continue };
        let Some((failed, due)) = cx.queue.failures.take(mark, place) else { continue };
        if failed.len() > left {
            let is_back = cx.queue.failures.add(mark, place, &failed, due);
            assert!(is_back, "the failures were there");
            continue;
        }
        left -= failed.len();
        let recipients = JoinedRecipients::Failed(failed);
        join(JoinedEntry { place, record, recipients, before: status.state }, round, cx);
    }
}

/// The next step for the report of a delay, which is due. Before the report, the other entries of
/// the message that wait are joined.
pub(super) fn next_step_of_delay(
    entry: &Entry,
    cause: DelayCause,
    round: &mut Round,
    cx: &mut AttemptCx<'_, '_>,
) -> ReportStep {
    let (Some(mark), Ok(info)) = (entry.mark(), cx.info()) else { return ReportStep::Report };
    let now = cx.parts.turn.now;
    if cx.queue.index.has_untried(mark, cx.place, now) {
        let others = cx.queue.index.of_message(mark, cx.place);
        let last = others.iter().filter_map(|(_, status)| status.delay_report_due).max();
        let due = last.map_or(Instant::START, |last| last + APART).max(now + cause.patience());
        let due = cx.queue.index.delay_report_due(cx.place, due);
        if due > now {
            round.wait_until(due);
            return ReportStep::Wait;
        }
    }
    join_delayed(entry, cause, (mark, info), round, cx);
    ReportStep::Report
}

/// Joins the other entries of the message that wait.
fn join_delayed(
    entry: &Entry,
    cause: DelayCause,
    (mark, info): (MessageMark, MessageInfo),
    round: &mut Round,
    cx: &mut AttemptCx<'_, '_>,
) {
    let mut left = arrivals_left(cx).saturating_sub(1);
    for (place, status) in cx.queue.index.of_message(mark, cx.place) {
        let Some(record) = record_of(place, cx).filter(|_| left > 0) else { continue };
        let recipients = entry.of_message(&record);
        let packing =
            recipients.first().map_or_else(Default::default, accounts::entries::packing_of);
        let done = record.done(packing);
        let waiting = recipients.iter().enumerate().filter(|(bit, recipient)| {
            done >> bit & 1 == 0 && entry.wants_report_for(recipient, entry.delayed(info), cx)
        });
        let delayed = waiting.fold(0, |bits, (bit, _)| bits | 1 << bit);
        let is_told = record.is_delay_reported()
            || cx.queue.failures.has(mark, place)
            || origin_at(DeliveryKind::DelayReport, place, cx)
                .is_none_or(|origin| cx.parts.store.own.store.has_arrived(place.0, origin));
        let waits = matches!(status.state, State::Waits(_) | State::Behind)
            && recorded_state(Some(record)) == RecordedState::Leaves;
        if delayed != 0 && waits && !is_told && cause.covers(status) {
            left -= 1;
            let recipients = JoinedRecipients::Delayed(delayed);
            join(JoinedEntry { place, record, recipients, before: status.state }, round, cx);
        }
    }
}

fn join(joined: JoinedEntry, round: &mut Round, cx: &mut AttemptCx<'_, '_>) {
    cx.queue.index.set(joined.place, State::Claimed);
    round.join(joined);
}

/// The number of origins that a report of this account can have.
fn arrivals_left(cx: &AttemptCx<'_, '_>) -> usize {
    cx.parts.store.own.store.arrivals_left(cx.place.0).min(ARRIVALS_OF_MESSAGE_MAX)
}

fn record_of((account, uid): Place, cx: &AttemptCx<'_, '_>) -> Option<OutboxEntry> {
    cx.parts.store.own.store.outbox_entry(account, uid)
}

fn origin_at(kind: DeliveryKind, (account, uid): Place, cx: &AttemptCx<'_, '_>) -> Option<SentId> {
    let info = cx.parts.store.own.store.message(account, OUTBOX, uid)?;
    Some(origin_of(kind, account, info.guid))
}

/// The origins of a report, beside the origin of its delivery: one for each further recipient, or
/// for each further entry.
pub(super) fn other_origins(
    kind: DeliveryKind,
    round: &Round,
    cx: &AttemptCx<'_, '_>,
) -> Result<Vec<SentId>, Refusal> {
    let of = |kind, place| origin_at(kind, place, cx).ok_or(Refusal::NoSuchMessage);
    let mut origins = Vec::new();
    if let DeliveryKind::FailureReport(first) = kind {
        for bit in round.failed_bits().into_iter().filter(|bit| *bit != first) {
            origins.push(of(DeliveryKind::FailureReport(bit), cx.place)?);
        }
    }
    if let DeliveryKind::SuccessReport(first) = kind {
        for bit in bits(round.succeeded()).filter(|bit| *bit != first) {
            origins.push(of(DeliveryKind::SuccessReport(bit), cx.place)?);
        }
    }
    for JoinedEntry { place, recipients, .. } in round.joined() {
        match recipients {
            JoinedRecipients::Failed(failed) => {
                for (bit, _) in failed {
                    origins.push(of(DeliveryKind::FailureReport(*bit), *place)?);
                }
            }
            JoinedRecipients::Delayed(_) => origins.push(of(DeliveryKind::DelayReport, *place)?),
        }
    }
    Ok(origins)
}

/// Notes that a report is stored: the joined entries are to be marked.
pub(super) fn report_stored(round: &mut Round, cx: &mut AttemptCx<'_, '_>) {
    for joined in round.take_joined() {
        cx.queue.index.set(joined.place, State::Reported);
    }
}

/// Notes that a report was refused: the joined entries wait, those with failures until `again`.
pub(super) fn report_refused(round: &mut Round, again: Instant, cx: &mut AttemptCx<'_, '_>) {
    for JoinedEntry { place, recipients, before, .. } in round.take_joined() {
        let state = match (recipients, before) {
            (JoinedRecipients::Delayed(_), State::Waits(at)) => State::Waits(at),
            (JoinedRecipients::Delayed(_), _) => State::Waits(Instant::START),
            (JoinedRecipients::Failed(_), _) => State::Waits(again),
        };
        cx.queue.index.set(place, state);
    }
}
