//! The results for the recipients of an entry in one round: from the beginning of an attempt until
//! the entry is left to wait.
//!
//! Invariants:
//! - A recipient that is deferred, or that cannot get the message, is not tried again in this
//!   round: [`Round::open`] leaves it out.
//! - A result is in `to_mark` until it is durable. Nothing else begins before that time.

use alloc::vec::Vec;

use machine::Instant;
use relay::schedule::NextTry;
use store::{EntryChange, OutboxEntry, Refusal};

use super::failure::FailureReason;
use super::index::State;
use super::stages::{Acceptance, DeliveryKind, DeliveryResult, Reporter, bits};
use super::waiting::Place;
use super::waiting_failures::Failures;

/// The results for the recipients. Each recipient is known by its bit: its position in the
/// envelope.
#[derive(Default)]
pub(super) struct Round {
    /// Recipients that are not tried again in this round.
    defer: u16,
    /// The changes of the entry that are not durable yet.
    to_mark: EntryChange,
    /// Recipients that may get the message in a later round, with the reason for the delay.
    later: Vec<(u8, FailureReason)>,
    /// Recipients that cannot get the message, with the reason. Each must be reported.
    failed: Failures,
    /// The time at which failed recipients are reported, if they have waited for others.
    failures_due: Option<Instant>,
    /// Failed recipients that wait to be reported together with others.
    waiting_failures: u16,
    /// The time until which a report waits for other entries of the message.
    report_due: Option<Instant>,
    /// Other entries of the message that the report under way is about.
    joined: Vec<JoinedEntry>,
    /// The bits of the recipients that the success report under way names.
    succeeded: u16,
    /// Remote recipients that must be reported as successful. Their hosts have accepted the message
    /// since the core began to serve.
    taken: Vec<(u8, Acceptance)>,
    /// Whether the delay report is deferred to a later round.
    is_delay_report_deferred: bool,
    /// Whether the mailbox or the disk had no space for a delivery.
    has_no_room: bool,
    /// Recipients at a host that does not accept the message as it is, with the reason.
    to_rewrite: Failures,
    /// Whether the message cannot be written in the required form.
    is_rewriting_impossible: bool,
    /// Whether a part of the entry could not be read in this round.
    is_damaged: bool,
}

/// An entry that a report joins.
pub(super) struct JoinedEntry {
    pub(super) place: Place,
    pub(super) record: OutboxEntry,
    /// The recipients that the report names.
    pub(super) recipients: JoinedRecipients,
    /// The state of the entry before it was joined.
    pub(super) before: State,
}

/// The recipients of a joined entry that a report names.
pub(super) enum JoinedRecipients {
    /// Recipients that do not get the message.
    Failed(Failures),
    /// The bits of recipients that do not have it yet.
    Delayed(u16),
}

impl Round {
    /// Records the result for a recipient. `next`: when the entry would be tried again.
    pub(super) fn settle(&mut self, bit: u8, result: DeliveryResult, next: NextTry) {
        match result {
            DeliveryResult::Delivered(taken) if taken.reporter == Reporter::Us => {
                self.to_mark.done(bit);
                self.taken.push((bit, taken));
            }
            DeliveryResult::Delivered(_) => self.to_mark.done_and_reported(bit),
            DeliveryResult::Later(why) if next == NextTry::GiveUp => self.fail(bit, why),
            DeliveryResult::Later(why) => {
                self.defer |= 1 << bit;
                self.later.push((bit, why));
            }
            DeliveryResult::Never(why) => self.fail(bit, why),
        }
    }

    /// Records that a recipient does not get the message.
    pub(super) fn fail(&mut self, bit: u8, why: FailureReason) {
        self.failed.push((bit, why));
    }

    /// Records that a local delivery is durable.
    pub(super) fn delivered_locally(&mut self, kind: DeliveryKind) {
        match kind {
            DeliveryKind::Message(bit, _) | DeliveryKind::Forward(bit) => {
                self.failed.retain(|(failed, _)| *failed != bit);
                self.to_mark.done(bit);
            }
            DeliveryKind::FailureReport(_) => {
                core::mem::take(&mut self.failed).iter().for_each(|(bit, _)| self.reported(*bit));
            }
            DeliveryKind::SuccessReport(_) => {
                bits(core::mem::take(&mut self.succeeded)).for_each(|bit| self.reported(bit));
            }
            // The caller marks the recipients that the replacement is for.
            DeliveryKind::Replacement => self.to_rewrite.clear(),
            DeliveryKind::DelayReport => self.to_mark.delay_reported(),
            DeliveryKind::Notice => self.to_mark.damage_reported(),
        }
    }

    /// Records that a recipient needs no report any more.
    pub(super) fn reported(&mut self, bit: u8) {
        self.failed.retain(|(failed, _)| *failed != bit);
        self.taken.retain(|(taken, _)| *taken != bit);
        self.to_mark.done_and_reported(bit);
    }

    /// Records that the failed recipients wait until `due` to be reported together with others.
    pub(super) fn failures_wait(&mut self, due: Instant) {
        let bits = self.failed_bits().into_iter().fold(0, |bits, bit| bits | 1 << bit);
        self.defer |= bits;
        self.waiting_failures |= bits;
        self.failed.clear();
        self.wait_until(due);
    }

    /// Records that a report waits until `due`. If several reports wait, the earliest time counts.
    pub(super) fn wait_until(&mut self, due: Instant) {
        self.report_due = Some(self.report_due.map_or(due, |earlier| earlier.min(due)));
    }

    /// Records the time at which recipients that waited to be reported are due.
    pub(super) fn failures_are_due(&mut self, due: Instant) {
        self.failures_due = Some(due);
    }

    /// The time at which the failed recipients are due, if they have waited already.
    pub(super) fn failures_due(&self) -> Option<Instant> {
        self.failures_due
    }

    /// The time until which a report waits.
    pub(super) fn report_due(&self) -> Option<Instant> {
        self.report_due
    }

    /// The bits of `recipients` without the failed recipients that wait to be reported.
    pub(super) fn not_failed(&self, recipients: u16) -> u16 {
        recipients & !self.waiting_failures
    }

    /// Records that a host needs the message written anew for this recipient.
    pub(super) fn rewrite(&mut self, bit: u8, why: FailureReason) {
        self.to_rewrite.push((bit, why));
    }

    /// Records that another entry replaces this one for these recipients.
    pub(super) fn replaced(&mut self, recipients: u16) {
        bits(recipients).for_each(|bit| self.reported(bit));
    }

    /// Whether a host needs the message written anew.
    pub(super) fn has_to_rewrite(&self) -> bool {
        !self.to_rewrite.is_empty()
    }

    /// Records that the message cannot be written anew. So these recipients do not get it.
    pub(super) fn cannot_rewrite(&mut self) {
        self.is_rewriting_impossible = true;
        self.failed.append(&mut self.to_rewrite);
    }

    /// Whether the message may be written anew.
    pub(super) fn may_rewrite(&self) -> bool {
        !self.is_rewriting_impossible
    }

    /// Adds an entry to those that the report under way is about.
    pub(super) fn join(&mut self, entry: JoinedEntry) {
        self.joined.push(entry);
    }

    /// The other entries of the message that the report under way is about.
    pub(super) fn joined(&self) -> &[JoinedEntry] {
        &self.joined
    }

    /// Takes the other entries of the message that the report under way is about.
    pub(super) fn take_joined(&mut self) -> Vec<JoinedEntry> {
        core::mem::take(&mut self.joined)
    }

    /// Defers recipients to a later round.
    pub(super) fn defer(&mut self, recipients: u16) {
        self.defer |= recipients;
    }

    /// Defers the failed recipients, and the report about them, to a later round.
    pub(super) fn defer_failed(&mut self) {
        self.failed_bits().into_iter().for_each(|bit| self.defer |= 1 << bit);
        self.failed.clear();
    }

    /// Sets the recipients that the success report under way names.
    pub(super) fn set_succeeded(&mut self, recipients: u16) {
        self.succeeded = recipients;
    }

    /// The bits of the recipients that the success report under way names.
    pub(super) fn succeeded(&self) -> u16 {
        self.succeeded
    }

    /// Defers the recipients of the success report, and that report, to a later round.
    pub(super) fn defer_succeeded(&mut self) {
        self.defer |= core::mem::take(&mut self.succeeded);
    }

    /// Defers the delay report to a later round.
    pub(super) fn defer_delay_report(&mut self) {
        self.is_delay_report_deferred = true;
    }

    /// Whether the delay report is deferred to a later round.
    pub(super) fn is_delay_report_deferred(&self) -> bool {
        self.is_delay_report_deferred
    }

    /// The bits of `recipients` that are to be tried in this round.
    pub(super) fn open(&self, recipients: u16) -> u16 {
        let failed = self.failed.iter().fold(0, |bits, (bit, _)| bits | 1 << bit);
        recipients & !self.defer & !failed
    }

    /// The bits of `recipients` that were not deferred.
    pub(super) fn not_deferred(&self, recipients: u16) -> u16 {
        recipients & !self.defer
    }

    /// The changes of the entry that are not durable yet.
    pub(super) fn to_mark(&self) -> Option<EntryChange> {
        (!self.to_mark.is_empty()).then_some(self.to_mark)
    }

    /// Clears `to_mark`: the changes are durable.
    pub(super) fn marked(&mut self) {
        self.to_mark = EntryChange::default();
    }

    /// The recipients that do not get the message, with the reasons.
    pub(super) fn failed(&self) -> &Failures {
        &self.failed
    }

    /// The bits of the recipients that do not get the message.
    pub(super) fn failed_bits(&self) -> Vec<u8> {
        self.failed.iter().map(|(bit, _)| *bit).collect()
    }

    /// Why a recipient was deferred.
    pub(super) fn why_later(&self, bit: u8) -> Option<&FailureReason> {
        self.later.iter().rev().find(|(later, _)| *later == bit).map(|(_, why)| why)
    }

    /// The reason for the last deferral.
    pub(super) fn last_reason(&self) -> Option<&FailureReason> {
        self.later.last().map(|(_, why)| why)
    }

    /// The acceptance of the message for a recipient by a host.
    pub(super) fn taken(&self, bit: u8) -> Option<&Acceptance> {
        self.taken.iter().find(|(taken, _)| *taken == bit).map(|(_, taken)| taken)
    }

    /// Notes a refusal of the store.
    pub(super) fn refused(&mut self, refusal: Refusal) {
        self.is_damaged |= matches!(refusal, Refusal::Damaged | Refusal::Unreadable);
    }

    /// Whether a part of the entry could not be read.
    pub(super) fn is_damaged(&self) -> bool {
        self.is_damaged
    }

    /// Notes that the store has refused a local delivery.
    pub(super) fn delivery_refused(&mut self, refusal: Refusal) {
        self.has_no_room |= means_no_space(refusal);
    }

    /// Whether there was no space for a delivery.
    pub(super) fn has_no_room(&self) -> bool {
        self.has_no_room
    }
}

/// Whether a mailbox or the disk has no space. This lasts until messages are deleted. If a mailbox
/// has no UID left, it lasts for ever.
fn means_no_space(refusal: Refusal) -> bool {
    matches!(
        refusal,
        Refusal::OverQuota
            | Refusal::LargerThanQuota
            | Refusal::DiskFull
            | Refusal::IndexFull
            | Refusal::TooMany
    )
}
