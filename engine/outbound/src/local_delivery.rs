//! A delivery to an account of this machine: the message, a report, or a forwarded message into the
//! outbox.
//!
//! Invariants:
//! - One delivery is under way at a time.
//! - The octets that follow the message are given to the store only after the whole message.

use alloc::boxed::Box;
use alloc::vec::Vec;

use shards::DeliveryHandle;
use store::{Closing, Recipient, Refusal, SentId};

use super::OutboundWaitPoint;
use super::attempt_context::AttemptCx;
use super::reader::EntryReader;
use super::rewriting::{Rewriting, RewritingStep};

/// A delivery to an account of this machine.
#[derive(Default)]
pub(super) struct LocalDelivery {
    under_way: Option<DeliveryHandle>,
    rest: FollowingContent,
}

/// The content after the first bytes of a delivery.
#[derive(Default)]
pub(super) enum FollowingContent {
    /// No more content.
    #[default]
    Nothing,
    /// The message, and then these bytes.
    Message(Vec<u8>),
    /// The message, written anew and with new signatures.
    Rewritten(Box<Rewriting>),
}

/// The result of a step of a delivery.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum HandoverStep {
    /// The store has taken all bytes so far.
    Taken,
    /// The attempt waits. The store wakes it when the store can take more, or when more of the
    /// message was read.
    Waits,
    /// The message cannot be written in the required form. The delivery must be given up.
    Impossible,
    /// The store has all bytes, and wakes the attempt when they are durable.
    Complete,
}

impl LocalDelivery {
    /// Begins a delivery.
    pub(super) fn begin(
        &mut self,
        recipient: Recipient,
        cx: &mut AttemptCx<'_, '_>,
    ) -> Result<(), Refusal> {
        self.under_way = Some(cx.parts.store.begin(&[recipient])?);
        Ok(())
    }

    /// Lets the delivery that has begun stand for further deliveries with these origins.
    pub(super) fn stand_for(
        &mut self,
        origins: &[SentId],
        cx: &mut AttemptCx<'_, '_>,
    ) -> Result<(), Refusal> {
        match self.under_way {
            Some(delivery) if !origins.is_empty() => cx.parts.store.stand_for(delivery, origins),
            _ => Ok(()),
        }
    }

    /// Sets the content of the delivery that has begun: the first bytes, and the content that
    /// follows them.
    pub(super) fn holds(
        &mut self,
        first: Vec<u8>,
        rest: FollowingContent,
        reader: &mut EntryReader,
    ) {
        let signatures =
            if let FollowingContent::Message(_) = rest { reader.signatures() } else { &[] };
        let first = [&first, signatures].concat();
        reader.rewind_behind(first);
        self.rest = rest;
    }

    /// Gives the store the bytes that were read, or requests the next part. Commits a complete
    /// delivery.
    pub(super) fn hand_over(
        &mut self,
        reader: &mut EntryReader,
        cx: &mut AttemptCx<'_, '_>,
    ) -> Result<HandoverStep, Refusal> {
        let Some(delivery_id) = self.under_way else {
            unreachable!("a delivery is handed over that has not begun")
        };
        let continuation = cx.continuation(OutboundWaitPoint::Attempt);
        if let FollowingContent::Rewritten(rewriting) = &mut self.rest {
            rewriting.write_read(reader);
        }
        if !reader.octets().is_empty() {
            let taken = cx.parts.store.append(delivery_id, reader.octets(), continuation);
            reader.used(taken.map_err(Refusal::of_begun_delivery)?);
            return Ok(if reader.octets().is_empty() {
                HandoverStep::Taken
            } else {
                HandoverStep::Waits
            });
        }
        if let FollowingContent::Message(behind) = &mut self.rest {
            if reader.read_on(cx)? {
                return Ok(HandoverStep::Waits);
            }
            let behind = core::mem::take(behind);
            self.rest = FollowingContent::Nothing;
            if !behind.is_empty() {
                reader.put(behind);
                return Ok(HandoverStep::Taken);
            }
        }
        let mut closing = Closing::from(cx.parts.turn.wall);
        if let FollowingContent::Rewritten(rewriting) = &mut self.rest {
            match rewriting.go_on(reader, cx)? {
                RewritingStep::Bytes => return Ok(HandoverStep::Taken),
                RewritingStep::Waits => return Ok(HandoverStep::Waits),
                RewritingStep::Impossible => return Ok(HandoverStep::Impossible),
                RewritingStep::Over(known) => closing = known,
            }
        }
        cx.parts
            .store
            .commit(delivery_id, closing, continuation)
            .map_err(Refusal::of_begun_delivery)?;
        Ok(HandoverStep::Complete)
    }

    /// Takes a signature of a message that is written anew. Returns false if none was asked for.
    pub(super) fn signature_made(&mut self, cx: &mut AttemptCx<'_, '_>) -> bool {
        let FollowingContent::Rewritten(rewriting) = &mut self.rest else { return false };
        rewriting.signature_made(cx);
        true
    }

    /// Notes that the delivery is durable.
    pub(super) fn committed(&mut self) {
        (self.under_way, self.rest) = (None, FollowingContent::Nothing);
    }

    /// Gives the delivery up, if there is one.
    pub(super) fn abort(&mut self, cx: &mut AttemptCx<'_, '_>) {
        self.rest = FollowingContent::Nothing;
        if let Some(delivery_id) = self.under_way.take() {
            cx.parts.store.abort(delivery_id);
        }
    }
}
