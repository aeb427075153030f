//! Deliveries to accounts of this machine: the message, a report, or a forwarded message into the
//! outbox. Each arrives once, however often it is begun (`arrivals`).

use alloc::vec::Vec;

use relay::report::Kind;
use store::{AccountId, Recipient, Refusal};

use crate::attempt::AttemptCx;
use crate::context::Context;
use crate::forwarding::reported_to;
use crate::local_delivery::{FollowingContent, HandoverStep};
use crate::reports::ReportWriter;
use crate::sealing::SealProgress;
use crate::stages::{Deed, Stage, StepResult};
use crate::unreadable::notice_text;

use super::Courier;

impl Courier {
    /// Begins a delivery to an account of this machine.
    pub(super) fn bring(
        &mut self,
        deed: Deed,
        cx: &mut AttemptCx<'_, '_>,
    ) -> Result<StepResult, Refusal> {
        if self.is_untold(deed, cx) {
            self.came(deed);
            return Ok(StepResult::GoesOn);
        }
        let (recipient, above) = self.destination(deed, cx)?;
        let once = Some(deed.origin(cx)?);
        self.delivery.begin(Recipient { once, ..recipient }, cx)?;
        let (report, rest) = self.content(deed, cx)?;
        self.delivery.holds([above, report].concat(), rest, &mut self.reader);
        self.stage = Stage::Handed(deed);
        Ok(StepResult::GoesOn)
    }

    /// Where something is delivered, and the fields above it.
    fn destination(
        &self,
        deed: Deed,
        cx: &AttemptCx<'_, '_>,
    ) -> Result<(Recipient, Vec<u8>), Refusal> {
        match deed {
            Deed::Letter(_, account) => {
                Ok((self.entrance(account, cx), self.entry().return_path()))
            }
            Deed::SentOn(bit) => self.entry().sent_on(bit, self.seal.fields(), cx),
            Deed::Report(_) | Deed::Arrival(_) | Deed::Delay | Deed::Notice => {
                match self.entry.as_ref().and_then(|entry| entry.reports_to(cx)) {
                    Some(sender) => reported_to(self.place.0, &sender),
                    None => Ok((Recipient::inbox(self.place.0), b"Return-Path: <>\r\n".to_vec())),
                }
            }
        }
    }

    /// The text of a report, and the part of the message that is delivered behind it.
    fn content(
        &self,
        deed: Deed,
        cx: &mut AttemptCx<'_, '_>,
    ) -> Result<(Vec<u8>, FollowingContent), Refusal> {
        match deed {
            Deed::Letter(..) | Deed::SentOn(_) => {
                Ok((Vec::new(), FollowingContent::Message(Vec::new())))
            }
            Deed::Report(bit) => {
                let (report, end) = self.reports().report(bit, cx)?;
                Ok((report, end.map_or(FollowingContent::Nothing, FollowingContent::Message)))
            }
            Deed::Arrival(bit) => {
                Ok((self.reports().arrival_report(bit, cx)?, FollowingContent::Nothing))
            }
            Deed::Delay => Ok((self.reports().delay_report(cx)?, FollowingContent::Nothing)),
            Deed::Notice => {
                Ok((notice_text(&self.why_unreadable(), cx)?, FollowingContent::Nothing))
            }
        }
    }

    fn reports(&self) -> ReportWriter<'_> {
        ReportWriter { entry: self.entry(), round: &self.round, reader: &self.reader }
    }

    /// The mailbox into which the message comes for an account of this machine. A message that came
    /// for the account itself goes into its inbox.
    fn entrance(&self, account: AccountId, cx: &AttemptCx<'_, '_>) -> Recipient {
        let Context { directory, store, .. } = &*cx.parts;
        if self.entry().is_posted() {
            directory.entrance(store, account)
        } else {
            Recipient::inbox(account)
        }
    }

    /// Whether it is a report that the sender does not want.
    fn is_untold(&self, deed: Deed, cx: &AttemptCx<'_, '_>) -> bool {
        match deed {
            Deed::Report(bit) => !self.entry().is_told(bit, Kind::Failed, cx),
            Deed::Arrival(bit) => !self.entry().is_told(bit, Kind::Delivered, cx),
            Deed::Letter(..) | Deed::SentOn(_) | Deed::Delay | Deed::Notice => false,
        }
    }

    /// Hands the store what was read, or reads on. A complete delivery is committed.
    pub(super) fn hand(
        &mut self,
        deed: Deed,
        cx: &mut AttemptCx<'_, '_>,
    ) -> Result<StepResult, Refusal> {
        Ok(match self.delivery.hand(&mut self.reader, cx)? {
            HandoverStep::Taken => StepResult::GoesOn,
            HandoverStep::Waits => StepResult::Waits,
            HandoverStep::Complete => {
                self.stage = Stage::Delivered(deed);
                StepResult::Waits
            }
        })
    }

    /// The delivery to an account of this machine is durable.
    pub(super) fn came(&mut self, deed: Deed) {
        self.round.came(deed);
        self.stage = Stage::Sorted;
    }

    /// Hashes a message that is forwarded, for its ARC set.
    pub(super) fn hash(&mut self, cx: &mut AttemptCx<'_, '_>) -> Result<StepResult, Refusal> {
        let Courier { entry: Some(entry), reader, seal, .. } = self else {
            unreachable!("the entry was not opened")
        };
        Ok(match seal.hash(entry, reader, cx)? {
            SealProgress::Reads => StepResult::Waits,
            SealProgress::Signs => {
                self.stage = Stage::Sealed;
                StepResult::GoesOn
            }
            SealProgress::Over => {
                self.stage = Stage::Sorted;
                StepResult::GoesOn
            }
        })
    }

    /// A signature of the ARC set was computed.
    pub(super) fn sealed(&mut self, cx: &mut AttemptCx<'_, '_>) {
        if self.seal.signature_made(cx) == SealProgress::Over {
            self.stage = Stage::Sorted;
        }
    }
}
