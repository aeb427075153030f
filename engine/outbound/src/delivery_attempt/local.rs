//! Deliveries to accounts of this machine: the message, a report, or a forwarded message into the
//! outbox. Each arrives once, however often it is begun (`arrivals`).

use alloc::boxed::Box;
use alloc::vec::Vec;

use message::RequiredForm;
use store::{AccountId, Recipient, Refusal};

use crate::attempt_context::AttemptCx;
use crate::context::OutboundContext;
use crate::failure::FailureReason;
use crate::forwarding::reported_to;
use crate::joint_reports;
use crate::local_delivery::{FollowingContent, HandoverStep};
use crate::reports::ReportWriter;
use crate::rewriting::Rewriting;
use crate::sealing::SealProgress;
use crate::stages::{AttemptProgress, DeliveryKind, DeliveryResult, Stage, StepResult, bits};
use crate::unreadable::notice_text;

use super::DeliveryAttempt;

impl DeliveryAttempt {
    /// Begins a delivery to an account of this machine.
    pub(super) fn begin_local_delivery(
        &mut self,
        kind: DeliveryKind,
        cx: &mut AttemptCx<'_, '_>,
    ) -> Result<StepResult, Refusal> {
        let (recipient, above) = self.destination(kind, cx)?;
        let once = Some(kind.origin(cx)?);
        self.delivery.begin(Recipient { once, ..recipient }, cx)?;
        self.delivery.stand_for(&joint_reports::other_origins(kind, &self.round, cx)?, cx)?;
        let (report, rest) = self.content(kind, cx)?;
        self.delivery.holds([above, report].concat(), rest, &mut self.reader);
        self.stage = Stage::HandOver(kind);
        Ok(StepResult::GoesOn)
    }

    /// The recipient of a delivery, and the fields above its content.
    fn destination(
        &self,
        kind: DeliveryKind,
        cx: &AttemptCx<'_, '_>,
    ) -> Result<(Recipient, Vec<u8>), Refusal> {
        match kind {
            DeliveryKind::Message(_, account) => {
                Ok((self.entrance(account, cx), self.entry().return_path()))
            }
            DeliveryKind::Forward(bit) => self.entry().forwarded(bit, self.seal.fields(), cx),
            DeliveryKind::Replacement => {
                self.entry().replacement(cx.record().ok_or(Refusal::NoSuchMessage)?)
            }
            DeliveryKind::FailureReport(_)
            | DeliveryKind::SuccessReport(_)
            | DeliveryKind::DelayReport
            | DeliveryKind::Notice => {
                match self.entry.as_ref().and_then(|entry| entry.reports_to(cx)) {
                    Some(sender) => reported_to(self.place.0, &sender),
                    None => Ok((Recipient::inbox(self.place.0), b"Return-Path: <>\r\n".to_vec())),
                }
            }
        }
    }

    /// The text of a report, and the part of the message that is delivered after it.
    fn content(
        &self,
        kind: DeliveryKind,
        cx: &mut AttemptCx<'_, '_>,
    ) -> Result<(Vec<u8>, FollowingContent), Refusal> {
        match kind {
            DeliveryKind::Message(..) | DeliveryKind::Forward(_) => {
                Ok((Vec::new(), FollowingContent::Message(Vec::new())))
            }
            DeliveryKind::Replacement => {
                let form = self.required_form().ok_or(Refusal::NoSuchMessage)?;
                let date = cx.info()?.internal_date;
                cx.queue.index.begin_replacement(self.place(), date);
                let rewriting = Rewriting::new(form, date, cx);
                Ok((Vec::new(), FollowingContent::Rewritten(Box::new(rewriting))))
            }
            DeliveryKind::FailureReport(_) => {
                let (report, end) = self.reports().report(cx)?;
                Ok((report, end.map_or(FollowingContent::Nothing, FollowingContent::Message)))
            }
            DeliveryKind::SuccessReport(first) => {
                Ok((self.reports().success_report(first, cx)?, FollowingContent::Nothing))
            }
            DeliveryKind::DelayReport => {
                Ok((self.reports().delay_report(cx)?, FollowingContent::Nothing))
            }
            DeliveryKind::Notice => {
                Ok((notice_text(&self.why_unreadable(), cx)?, FollowingContent::Nothing))
            }
        }
    }

    fn reports(&self) -> ReportWriter<'_> {
        ReportWriter { entry: self.entry(), round: &self.round, reader: &self.reader }
    }

    /// The mailbox of a local account that gets the message. A message that the account itself
    /// forwards goes into its inbox.
    fn entrance(&self, account: AccountId, cx: &AttemptCx<'_, '_>) -> Recipient {
        let OutboundContext { directory, store, .. } = &*cx.parts;
        if self.entry().is_posted() {
            directory.entrance(store, account)
        } else {
            Recipient::inbox(account)
        }
    }

    /// Gives the store the bytes that were read, or requests the next part. Commits a complete
    /// delivery.
    pub(super) fn hand_over(
        &mut self,
        kind: DeliveryKind,
        cx: &mut AttemptCx<'_, '_>,
    ) -> Result<StepResult, Refusal> {
        Ok(match self.delivery.hand_over(&mut self.reader, cx)? {
            HandoverStep::Taken => StepResult::GoesOn,
            HandoverStep::Waits => StepResult::Waits,
            HandoverStep::Impossible => {
                self.delivery.abort(cx);
                self.rewriting_impossible();
                StepResult::GoesOn
            }
            HandoverStep::Complete => {
                self.stage = Stage::Commit(kind);
                StepResult::Waits
            }
        })
    }

    /// Takes the requested signature.
    pub(crate) fn signature_made(&mut self, cx: &mut AttemptCx<'_, '_>) -> AttemptProgress {
        self.is_waiting = false;
        if !self.delivery.signature_made(cx) {
            assert!(self.stage == Stage::Sign, "a signature comes only to an attempt that waits");
            self.sealed(cx);
        }
        self.go_on(cx)
    }

    /// The bits of the recipients that are not done.
    fn waiting(&self, cx: &AttemptCx<'_, '_>) -> u16 {
        let entry = self.entry();
        entry.all() & !cx.record().map_or(0, |record| record.done(entry.packing()))
    }

    /// The form in which the message is sent, if it has to be written anew and may be.
    pub(super) fn required_form(&self) -> Option<RequiredForm> {
        if self.round.has_to_rewrite() {
            return Some(RequiredForm::SevenBit);
        }
        self.entry().required_form().filter(|_| self.round.may_rewrite())
    }

    /// Whether a recipient gets the message if it is written in ASCII. Only a message that this
    /// server has signed may be written anew.
    pub(super) fn may_become_ascii(&self, why: &FailureReason) -> bool {
        why.is_eight_bit()
            && self.entry().is_posted()
            && !self.reader.signatures().is_empty()
            && self.round.may_rewrite()
    }

    /// Notes that the message cannot be written as it is needed.
    fn rewriting_impossible(&mut self) {
        self.round.cannot_rewrite();
        self.stage = Stage::Choose;
    }

    /// Acts on the store's refusal of a message that was written anew. An encoded message is longer
    /// than before, and may become too long.
    pub(super) fn replacement_refused(&mut self, refusal: Refusal, cx: &AttemptCx<'_, '_>) {
        if refusal == Refusal::TooLarge {
            return self.rewriting_impossible();
        }
        let is_damaged = matches!(refusal, Refusal::Damaged | Refusal::Unreadable);
        self.round.delivery_refused(refusal);
        for bit in bits(self.round.open(self.waiting(cx))) {
            let why = if is_damaged { FailureReason::Damaged } else { FailureReason::NoRoom };
            self.settle(bit, DeliveryResult::Later(why), cx);
        }
        self.stage = Stage::Choose;
    }

    /// Records the result for a local recipient.
    pub(super) fn settle_here(&mut self, bit: u8, result: DeliveryResult, cx: &AttemptCx<'_, '_>) {
        self.settle(bit, result, cx);
        self.stage = Stage::Choose;
    }

    /// Records that this machine had no space for the message to a local recipient. The sender gets
    /// a delay report at once: space is often made only when people ask for it.
    pub(super) fn found_no_space(
        &mut self,
        bit: u8,
        why: FailureReason,
        cx: &mut AttemptCx<'_, '_>,
    ) {
        cx.queue.index.tried(self.place());
        cx.queue.index.found_no_space(self.place());
        self.settle_here(bit, DeliveryResult::Later(why), cx);
    }

    /// Why the entry cannot be read.
    pub(super) fn why_unreadable(&self) -> FailureReason {
        if self.round.is_damaged() { FailureReason::Damaged } else { FailureReason::Unreadable }
    }

    /// Notes that a local delivery is durable.
    pub(super) fn delivered_locally(&mut self, kind: DeliveryKind, cx: &mut AttemptCx<'_, '_>) {
        if kind == DeliveryKind::Replacement {
            self.round.replaced(self.waiting(cx));
        }
        self.round.delivered_locally(kind);
        joint_reports::report_stored(&mut self.round, cx);
        self.stage = Stage::Choose;
    }

    /// Hashes a message that is forwarded, for its ARC set.
    pub(super) fn hash(&mut self, cx: &mut AttemptCx<'_, '_>) -> Result<StepResult, Refusal> {
        let DeliveryAttempt { entry: Some(entry), reader, seal, .. } = self else {
            unreachable!("the entry was not opened")
        };
        Ok(match seal.hash(entry, reader, cx)? {
            SealProgress::Reads => StepResult::Waits,
            SealProgress::Signs => {
                self.stage = Stage::Sign;
                StepResult::GoesOn
            }
            SealProgress::Over => {
                self.stage = Stage::Choose;
                StepResult::GoesOn
            }
        })
    }

    /// Takes a signature of the ARC set.
    pub(super) fn sealed(&mut self, cx: &mut AttemptCx<'_, '_>) {
        if self.seal.signature_made(cx) == SealProgress::Over {
            self.stage = Stage::Choose;
        }
    }
}
