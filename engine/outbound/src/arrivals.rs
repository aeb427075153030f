//! Local deliveries that arrive at most once. Each delivery has an origin: an identifier that is
//! the same when the delivery is repeated. When the delivery arrives, the core that owns the
//! account stores a note with this origin, and refuses another delivery with it. Later a mark in
//! the entry's record prevents a repetition, and the note is removed when the mark is durable. So
//! neither the message nor a report arrives twice, even if the power fails.
//!
//! Invariant: no two deliveries of an outbox have the same origin.

use alloc::vec::Vec;

use store::{AccountId, Guid, OutboxEntry, Refusal, SentId};

use super::OutboundWaitPoint;
use super::attempt_context::AttemptCx;
use super::entry::{Entry, RECIPIENTS};
use super::stages::{DeliveryKind, bits};

/// The number of a notice in its origin. Only the number of a replacement is greater.
const NOTICE: u128 = 2 + RECIPIENTS as u128 + u16::BITS as u128;

/// The number of low bits of a message's GUID that an origin keeps unchanged. The bits above them
/// identify the delivery.
const GUID_BITS: u32 = 48;

/// The notes that are to be removed, because their deliveries cannot be repeated.
#[derive(Default)]
pub(super) struct ArrivalNotes {
    notes: Vec<(AccountId, SentId)>,
    /// The results for which notes were looked up, as bits: recipients that are done, recipients
    /// that are reported, and the delay report.
    looked_for: u32,
}

impl ArrivalNotes {
    /// Whether a note is to be removed.
    pub(super) fn has_some(&self) -> bool {
        !self.notes.is_empty()
    }

    /// Looks up the notes of deliveries that cannot be repeated, because the recipient is marked as
    /// done or as reported. `waiting`: recipients that are not done.
    pub(super) fn look_up(
        &mut self,
        entry: &Entry,
        waiting: u16,
        record: OutboxEntry,
        cx: &AttemptCx<'_, '_>,
    ) {
        let (done, reported) = (record.done(entry.packing()), record.reported(entry.packing()));
        let is_delay_reported = u32::from(record.is_delay_reported());
        let settled = u32::from(done)
            | u32::from(reported) << RECIPIENTS
            | is_delay_reported << (2 * RECIPIENTS);
        let new = settled & !self.looked_for;
        if self.has_some() || new == 0 {
            return;
        }
        self.looked_for = settled;
        let own = entry.account();
        for bit in bits(new as u16 & done) {
            if !entry.is_posted() {
                self.note(entry.delivery_for(bit), own, cx);
            } else if let Some(account) = account_at(entry, bit, cx) {
                // Two recipient addresses may belong to one account, which has the message when one
                // of them is done. The note stays until both are done. Forwarding addresses need no
                // such check: each has its own origin.
                if bits(waiting).any(|other| account_at(entry, other, cx) == Some(account)) {
                    self.looked_for &= !(1 << bit);
                } else {
                    self.note(DeliveryKind::Message(bit, account), account, cx);
                }
            }
        }
        bits((new >> RECIPIENTS) as u16 & reported)
            .for_each(|bit| self.note(DeliveryKind::FailureReport(bit), own, cx));
        if entry.all() & !done == 0 {
            self.note(DeliveryKind::Replacement, own, cx);
        }
        if new >> (2 * RECIPIENTS) != 0 {
            self.note(DeliveryKind::DelayReport, own, cx);
        }
    }

    /// Queues the account's note of this delivery for removal, if there may be one.
    pub(super) fn note(&mut self, kind: DeliveryKind, account: AccountId, cx: &AttemptCx<'_, '_>) {
        let Ok(origin) = kind.origin(cx) else { return };
        if cx.parts.store.may_have_arrived(account, origin) {
            self.notes.push((account, origin));
        }
    }

    /// Asks the store to remove the next note.
    pub(super) fn forget(&mut self, cx: &mut AttemptCx<'_, '_>) -> Result<(), Refusal> {
        let Some((account, origin)) = self.notes.last().copied() else {
            unreachable!("there is a note to forget")
        };
        let continuation = cx.continuation(OutboundWaitPoint::Attempt);
        cx.parts.store.forget_arrival(account, origin, continuation)
    }

    /// Drops the note that the store has removed, or does not have.
    pub(super) fn forgotten(&mut self) {
        let note = self.notes.pop();
        assert!(note.is_some(), "the store removes only a note that it was asked to remove");
    }
}

/// The account of this machine that gets the message for a recipient.
fn account_at(entry: &Entry, bit: u8, cx: &AttemptCx<'_, '_>) -> Option<AccountId> {
    cx.parts.directory.recipient_at(cx.parts.store, entry.address(bit)).ok()
}

impl DeliveryKind {
    /// The origin of the delivery.
    ///
    /// Errors: `NoSuchMessage` if the entry is gone.
    pub(super) fn origin(self, cx: &AttemptCx<'_, '_>) -> Result<SentId, Refusal> {
        Ok(origin_of(self, cx.place.0, cx.info()?.guid))
    }
}

/// The origin of a delivery from the entry with this GUID in the outbox of `account`.
pub(super) fn origin_of(kind: DeliveryKind, account: AccountId, Guid(guid): Guid) -> SentId {
    let number = match kind {
        DeliveryKind::Message(..) => 0,
        // A recipient gets only one of these reports. A report about several recipients has the
        // origin of each.
        DeliveryKind::FailureReport(bit) | DeliveryKind::SuccessReport(bit) => 1 + u128::from(bit),
        DeliveryKind::DelayReport => 1 + RECIPIENTS as u128,
        DeliveryKind::Forward(bit) => 2 + RECIPIENTS as u128 + u128::from(bit),
        DeliveryKind::Notice => NOTICE,
        DeliveryKind::Replacement => NOTICE + 1,
    };
    SentId::of(account, Guid(guid ^ number << GUID_BITS))
}
