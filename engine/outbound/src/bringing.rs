//! What is brought to somebody here: the letter, or a report; or into his outbox, from where it goes on to somebody else. It arrives once, however often it is brought, until that is forgotten.

use alloc::vec::Vec;

use relay::report::Kind;
use store::{AccountId, Guid, Origin, OutboxEntry, Recipient, Refusal};

use super::Point;
use super::attempt::AttemptCx;
use super::context::Context;
use super::courier::Courier;
use super::entry::RECIPIENTS;
use super::stages::{Deed, Stage, bits};

/// What an origin says of a notice: more than of all else.
const NOTICE: u128 = 2 + RECIPIENTS as u128 + u16::BITS as u128;

/// Bits of a message's number; above them an origin says what a report is of.
const GUID_BITS: u32 = 48;

impl Courier {
    /// What is brought comes from here: the letter for who is here, each report, and that it takes long.
    fn origin(&self, deed: Deed, cx: &AttemptCx<'_, '_>) -> Result<Origin, Refusal> {
        let Guid(guid) = self.info(cx)?.guid;
        let number = match deed {
            Deed::Letter(..) => 0,
            // Of one recipient one of these is told.
            Deed::Report(bit) | Deed::Arrival(bit) => 1 + u128::from(bit),
            Deed::Delay => 1 + RECIPIENTS as u128,
            Deed::SentOn(bit) => 2 + RECIPIENTS as u128 + u128::from(bit),
            Deed::Notice => NOTICE,
        };
        Ok(Origin::of(self.place.0, Guid(guid ^ number << GUID_BITS)))
    }

    /// Whether a delivery is still noted that cannot be repeated: all who are here are done with, or what was reported is marked.
    pub(super) fn look_for_arrivals(&mut self, open: u16, record: OutboxEntry, cx: &AttemptCx<'_, '_>) -> bool {
        let Context { directory, store, .. } = &*cx.parts;
        let packing = self.packing();
        let (done, told) = (record.done(packing), record.reported(packing));
        let is_delay_told = u32::from(record.is_delay_reported());
        let settled = u32::from(done) | u32::from(told) << RECIPIENTS | is_delay_told << (2 * RECIPIENTS);
        // Two addresses may be one account's, who has it when either is done with. Whoever has it sent on has an origin for each.
        let is_open = self.is_posted() && bits(open).any(|bit| directory.has_domain_of(self.address(bit)));
        if !self.delivery.arrivals.is_empty() || is_open {
            return !self.delivery.arrivals.is_empty();
        }
        let new = settled & !core::mem::replace(&mut self.delivery.looked_for, settled);
        let mut deeds: Vec<(AccountId, Deed)> = Vec::new();
        for bit in bits(new as u16 & done) {
            if self.is_posted() {
                let account = directory.recipient_at(store, self.address(bit));
                deeds.extend(account.map(|account| (account, Deed::Letter(bit, account))));
            } else {
                deeds.push((self.place.0, self.deed_for(bit)));
            }
        }
        deeds.extend(bits((new >> RECIPIENTS) as u16 & told).map(|bit| (self.place.0, Deed::Report(bit))));
        deeds.extend((new >> (2 * RECIPIENTS) != 0).then_some((self.place.0, Deed::Delay)));
        self.delivery.arrivals =
            deeds.into_iter().filter_map(|(account, deed)| self.noted(deed, account, cx)).collect();
        !self.delivery.arrivals.is_empty()
    }

    /// By what it is noted that an account has this, if it may be.
    pub(super) fn noted(&self, deed: Deed, account: AccountId, cx: &AttemptCx<'_, '_>) -> Option<(AccountId, Origin)> {
        let origin = self.origin(deed, cx).ok()?;
        cx.parts.store.may_have_arrived(account, origin).then_some((account, origin))
    }

    /// Begins a letter to somebody here, or a report.
    pub(super) fn bring(&mut self, deed: Deed, cx: &mut AttemptCx<'_, '_>) -> Result<(), Refusal> {
        if self.is_untold(deed, cx) {
            self.came(deed);
            return Ok(());
        }
        let (recipient, above) = match deed {
            Deed::Letter(_, account) => (self.entrance(account, cx), self.return_path()),
            Deed::SentOn(bit) => self.sent_on(bit, cx)?,
            Deed::Report(_) | Deed::Arrival(_) | Deed::Delay | Deed::Notice => match self.reports_to(cx) {
                Some(sender) => self.reported_to(&sender)?,
                None => (Recipient::inbox(self.place.0), b"Return-Path: <>\r\n".to_vec()),
            },
        };
        let once = Some(self.origin(deed, cx)?);
        self.delivery.letter = Some(cx.parts.store.begin(&[Recipient { once, ..recipient }])?);
        self.rewind();
        let (report, behind) = match deed {
            Deed::Letter(..) | Deed::SentOn(_) => (Vec::new(), Some(Vec::new())),
            Deed::Report(bit) => self.report(bit, cx)?,
            Deed::Arrival(bit) => (self.arrival_report(bit, cx)?, None),
            Deed::Delay => (self.delay_report(cx)?, None),
            Deed::Notice => (self.notice_text(cx)?, None),
        };
        let signatures = if behind.is_some() { &self.reader.signatures[..] } else { &[] };
        (self.reader.rest, self.delivery.behind) = ([&above, &report, signatures].concat(), behind);
        self.stage = Stage::Handed(deed);
        Ok(())
    }

    /// Where it comes in for somebody here; of what came for himself, his inbox.
    fn entrance(&self, account: AccountId, cx: &AttemptCx<'_, '_>) -> Recipient {
        let Context { directory, store, .. } = &*cx.parts;
        if self.is_posted() { directory.entrance(store, account) } else { Recipient::inbox(account) }
    }

    /// What stands above the letter when it comes to somebody here.
    fn return_path(&self) -> Vec<u8> {
        let reverse_path = self.envelope().map_or("", |envelope| &envelope.reverse_path);
        let mut field = [0; message::RETURN_PATH_BYTES_MAX];
        let length = message::return_path(reverse_path, &mut field).unwrap_or(0);
        field.get(..length).unwrap_or_default().to_vec()
    }

    /// Whether it is a report that nobody wants to have.
    fn is_untold(&self, deed: Deed, cx: &AttemptCx<'_, '_>) -> bool {
        match deed {
            Deed::Report(bit) => !self.is_told(bit, Kind::Failed, cx),
            Deed::Arrival(bit) => !self.is_told(bit, Kind::Delivered, cx),
            Deed::Letter(..) | Deed::SentOn(_) | Deed::Delay | Deed::Notice => false,
        }
    }

    /// Hands on what was read, or reads on; what is complete is delivered.
    pub(super) fn hand(&mut self, deed: Deed, cx: &mut AttemptCx<'_, '_>) -> Result<(), Refusal> {
        let letter = self.delivery.letter.ok_or(Refusal::NoSuchDelivery)?;
        let continuation = cx.continuation(Point::Attempt);
        if !self.reader.rest.is_empty() {
            let taken =
                cx.parts.store.append(letter, &self.reader.rest, continuation).map_err(Refusal::of_begun_delivery)?;
            self.reader.rest.drain(..taken);
            // The store wakes us when it takes more.
            self.wait.is_waiting = !self.reader.rest.is_empty();
            return Ok(());
        }
        if self.delivery.behind.is_some() && self.read_on(cx)? {
            return Ok(());
        }
        if let Some(behind) = self.delivery.behind.take_if(|behind| !behind.is_empty()) {
            self.reader.rest = behind;
            return Ok(());
        }
        cx.parts.store.commit(letter, cx.parts.turn.wall, continuation).map_err(Refusal::of_begun_delivery)?;
        (self.stage, self.wait.is_waiting) = (Stage::Delivered(deed), true);
        Ok(())
    }

    /// Somebody here has what was brought to him.
    pub(super) fn came(&mut self, deed: Deed) {
        match deed {
            Deed::Letter(bit, _) | Deed::SentOn(bit) => {
                self.round.failed.retain(|(failed, _)| *failed != bit);
                self.round.to_mark.done(bit);
            }
            Deed::Report(bit) | Deed::Arrival(bit) => {
                self.round.failed.retain(|(failed, _)| *failed != bit);
                self.round.taken.retain(|(taken, _)| *taken != bit);
                self.round.to_mark.done_and_reported(bit);
            }
            Deed::Delay => self.round.to_mark.delay_reported(),
            Deed::Notice => self.round.to_mark.damage_reported(),
        }
        self.stage = Stage::Sorted;
    }
}
