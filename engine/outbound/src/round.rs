//! The results for the recipients of an entry in one round: from the beginning of an attempt until
//! the entry is left to wait.
//!
//! Invariants:
//! - A recipient that is deferred, or that cannot get the message, is not tried again in this
//!   round: [`Round::open`] leaves it out.
//! - A result is in `to_mark` until it is durable. Nothing else begins before that time.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use relay::schedule::NextTry;
use store::{EntryChange, Refusal};

use super::failure::FailureReason;
use super::stages::{Acceptance, DeliveryKind, DeliveryResult, Reporter};

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
    failed: VecDeque<(u8, FailureReason)>,
    /// Remote recipients that must be reported as successful. Their hosts have accepted the message
    /// since the core began to serve.
    taken: Vec<(u8, Acceptance)>,
    /// Whether the delay report is deferred to a later round.
    is_delay_report_deferred: bool,
    /// Whether the mailbox or the disk had no space for a delivery.
    has_no_room: bool,
    /// Whether a part of the entry could not be read in this round.
    is_damaged: bool,
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
        self.failed.push_back((bit, why));
    }

    /// Records that a local delivery is durable.
    pub(super) fn delivered_locally(&mut self, kind: DeliveryKind) {
        match kind {
            DeliveryKind::Message(bit, _) | DeliveryKind::Forward(bit) => {
                self.failed.retain(|(failed, _)| *failed != bit);
                self.to_mark.done(bit);
            }
            DeliveryKind::FailureReport(bit) | DeliveryKind::SuccessReport(bit) => {
                self.failed.retain(|(failed, _)| *failed != bit);
                self.taken.retain(|(taken, _)| *taken != bit);
                self.to_mark.done_and_reported(bit);
            }
            DeliveryKind::DelayReport => self.to_mark.delay_reported(),
            DeliveryKind::Notice => self.to_mark.damage_reported(),
        }
    }

    /// Defers recipients to a later round.
    pub(super) fn defer(&mut self, recipients: u16) {
        self.defer |= recipients;
    }

    /// Defers a recipient, and its failure report, to a later round.
    pub(super) fn defer_one(&mut self, bit: u8) {
        self.defer |= 1 << bit;
        self.failed.retain(|(failed, _)| *failed != bit);
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

    /// The first recipient with a failure that must be reported.
    pub(super) fn first_failed(&self) -> Option<u8> {
        self.failed.front().map(|(bit, _)| *bit)
    }

    /// Why a recipient does not get the message.
    pub(super) fn why_failed(&self, bit: u8) -> Option<&FailureReason> {
        self.failed.iter().find(|(failed, _)| *failed == bit).map(|(_, why)| why)
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
