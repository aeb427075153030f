//! Messages for accounts of several cores. Each of these cores gets a part: the message for its own
//! accounts. The parts end together.
//!
//! Each core limits the messages in progress: each needs a place. The parts take their places in
//! the order of their cores, and octets are accepted when all parts have a place. A message with
//! places waits only for cores with higher numbers. So two messages never wait for each other.
//!
//! The message has taken the octets that all parts have taken. A part that is ahead skips the
//! octets that it has. A complete message is first prepared on all cores: each core has all octets,
//! and disk space for them. Then it is committed on all cores. Only a disk error can make a commit
//! fail.
//!
//! Invariants:
//! - The end is reported when all parts have ended: delivered if all are delivered, else refused.
//! - If a part is refused before all are prepared, all are refused, and no part is ever visible.

use alloc::boxed::Box;
use alloc::vec::Vec;

use machine::CoreId;
use sometimes::sometimes;
use store::{Closing, Outcome, Recipient, Refusal, Wake};
use tasks::{Continuation, FrameId, FrameTable};

use crate::messages::{DeliveryHandle, RemoteDeliveryId, refused};
use crate::point::ShardWaitPoint;
use crate::sharded_store::{OtherCores, ShardedStore};

#[cfg(test)]
mod tests;

/// The number of recipients that an unused record keeps capacity for.
const OWN_KEPT: usize = 8;

/// The multi-shard messages that have begun on this core.
pub(crate) struct MultiShardDeliveries {
    deliveries: FrameTable<Box<DeliveryParts>>,
    /// Unused records.
    #[expect(clippy::vec_box, reason = "they are handed on as pointers")]
    idle: Vec<Box<DeliveryParts>>,
}

#[derive(Default)]
struct DeliveryParts {
    /// The parts that have a place, or wait for one.
    parts: Vec<CorePart>,
    /// The parts that have not requested a place yet. The last part in the list is the next one.
    coming: Vec<Unplaced>,
    /// The recipients of this core's part, until it has a place.
    own: Vec<Recipient>,
    /// Octets that all parts have taken, modulo 2^32.
    taken: u32,
    stage: Stage,
    /// The facts that came with the completion of the message.
    closing: Option<Closing>,
    /// Parts that are not prepared yet, or that were committed and have not ended.
    outstanding: usize,
    refused: Option<Refusal>,
    /// The continuation that waits for space, or for the end.
    continuation: Option<Continuation>,
}

/// The progress of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Stage {
    /// Not all parts have a place.
    #[default]
    Beginning,
    /// The octets of the message arrive.
    Octets,
    /// The message is complete, but not all parts are known to have space.
    Preparing,
    /// All parts are committed.
    Committed,
}

/// A part that has no place yet.
#[derive(Clone, Copy)]
enum Unplaced {
    Local,
    Remote(RemoteDeliveryId),
}

/// The part of one core.
struct CorePart {
    delivery: DeliveryHandle,
    taken: u32,
}

impl MultiShardDeliveries {
    pub(crate) fn new(deliveries: usize) -> MultiShardDeliveries {
        MultiShardDeliveries {
            deliveries: FrameTable::with_capacity(deliveries),
            idle: (0..deliveries).map(|_| Box::new(DeliveryParts::with_room())).collect(),
        }
    }

    fn begin(&mut self) -> Result<FrameId, Refusal> {
        let parts = self.idle.pop().ok_or(Refusal::Busy)?;
        self.deliveries.insert(parts).map_err(|parts| {
            self.idle.push(parts);
            Refusal::Busy
        })
    }

    fn get(&mut self, delivery: FrameId) -> Option<&mut DeliveryParts> {
        self.deliveries.get_mut(delivery).map(|parts| &mut **parts)
    }

    /// Removes a message.
    fn remove(&mut self, delivery: FrameId) {
        let Some(mut parts) = self.deliveries.remove(delivery) else {
            unreachable!("a message that has ended")
        };
        parts.clear();
        self.idle.push(parts);
    }

    fn stage(&self, delivery: FrameId) -> Option<Stage> {
        self.deliveries.get(delivery).map(|parts| parts.stage)
    }

    /// The parts of a message that have a place, or wait for one.
    pub(crate) fn parts_of(&self, delivery: FrameId) -> impl Iterator<Item = DeliveryHandle> {
        self.deliveries
            .get(delivery)
            .into_iter()
            .flat_map(|parts| parts.parts.iter().map(|part| part.delivery))
    }

    pub(crate) fn len(&self) -> usize {
        self.deliveries.len()
    }

    /// Handles an event of a part. Returns the result for the session, if there is one.
    pub(crate) fn woken(&mut self, wake: Wake) -> Option<Wake> {
        let delivery = wake.continuation.frame;
        let parts = self.deliveries.get_mut(delivery)?;
        if ShardWaitPoint::of(wake.continuation.entry) == Some(ShardWaitPoint::PartRoom) {
            // All octets may have been taken since the request. Then the session waits for the end.
            let continuation = parts.continuation.take_if(|_| parts.stage == Stage::Octets)?;
            return Some(Wake { continuation, outcome: Outcome::DeliveryReady });
        }
        if let Outcome::Refused(refusal) = wake.outcome {
            parts.refused = Some(refusal);
        }
        parts.outstanding -= 1;
        if parts.outstanding > 0 {
            return None;
        }
        let outcome = parts.refused.map_or(Outcome::Delivered, Outcome::Refused);
        let continuation = parts.continuation.take();
        self.remove(delivery);
        Some(Wake { continuation: continuation?, outcome })
    }
}

impl DeliveryParts {
    fn with_room() -> DeliveryParts {
        let (parts, coming) = (Vec::with_capacity(4), Vec::with_capacity(4));
        let own = Vec::with_capacity(OWN_KEPT);
        DeliveryParts { parts, coming, own, ..DeliveryParts::default() }
    }

    fn clear(&mut self) {
        let DeliveryParts { parts, coming, own, .. } = core::mem::take(self);
        *self = DeliveryParts { parts, coming, own, ..DeliveryParts::default() };
        self.parts.clear();
        self.coming.clear();
        self.forget_own();
    }

    /// Clears the recipients of this core's part.
    fn forget_own(&mut self) {
        self.own.clear();
        self.own.shrink_to(OWN_KEPT);
    }

    fn add(&mut self, delivery: DeliveryHandle) {
        self.parts.push(CorePart { delivery, taken: 0 });
    }

    /// Gives every part the `octets` that it does not have yet. Returns the number of octets that
    /// all parts have. While a part has no place, this is 0.
    fn append(
        &mut self,
        octets: &[u8],
        continuation: Continuation,
        mut append: impl FnMut(DeliveryHandle, &[u8]) -> Result<usize, Refusal>,
    ) -> Result<usize, Refusal> {
        if let Some(refusal) = self.refused {
            return Err(refusal);
        }
        if self.stage == Stage::Beginning {
            self.continuation = Some(continuation);
            return Ok(0);
        }
        let mut taken_by_all = octets.len();
        for part in &mut self.parts {
            let ahead = part.taken.wrapping_sub(self.taken) as usize;
            let rest = octets.get(ahead..).unwrap_or_default();
            let taken = if rest.is_empty() { 0 } else { append(part.delivery, rest)? };
            part.taken = part.taken.wrapping_add(taken as u32);
            taken_by_all = taken_by_all.min(ahead + taken);
        }
        self.taken = self.taken.wrapping_add(taken_by_all as u32);
        self.continuation = (taken_by_all < octets.len()).then_some(continuation);
        Ok(taken_by_all)
    }

    /// Completes the message. Preparing begins when all parts have a place.
    ///
    /// Errors: a core has refused its part, so nothing would end the message.
    fn complete(&mut self, closing: Closing, continuation: Continuation) -> Result<(), Refusal> {
        if let Some(refusal) = self.refused {
            return Err(refusal);
        }
        (self.closing, self.continuation) = (Some(closing), Some(continuation));
        if self.stage == Stage::Octets {
            self.stage = Stage::Preparing;
        }
        Ok(())
    }
}

impl ShardedStore {
    /// Begins a part for each core that owns some of the recipients.
    pub(crate) fn begin_parts(
        &mut self,
        recipients: &[Recipient],
    ) -> Result<DeliveryHandle, Refusal> {
        sometimes!(MultiShardMessage);
        let delivery = self.others.as_mut().ok_or(Refusal::NoSuchAccount)?.multi_shard.begin()?;
        let mut owners = (0..self.owners.count()).rev().map(CoreId);
        let noted = owners.try_for_each(|owner| self.note_part(delivery, owner, recipients));
        match noted.and_then(|()| self.take_places(delivery)) {
            Ok(()) => Ok(DeliveryHandle::MultiShard(delivery)),
            Err(refusal) => {
                self.abort(DeliveryHandle::MultiShard(delivery));
                Err(refusal)
            }
        }
    }

    /// Notes the part of a message for the recipients that `owner` owns, if it owns any.
    fn note_part(
        &mut self,
        delivery: FrameId,
        owner: CoreId,
        recipients: &[Recipient],
    ) -> Result<(), Refusal> {
        let (owners, is_own) = (self.owners, owner == self.core);
        let Some(OtherCores { remote, multi_shard, recipients: theirs, .. }) = &mut self.others
        else {
            unreachable!("a multi-shard message without other cores")
        };
        let Some(parts) = multi_shard.get(delivery) else { unreachable!("a new message") };
        let owned = recipients.iter().filter(|recipient| owners.of(recipient.account) == owner);
        let coming = if is_own {
            parts.own.extend(owned);
            (!parts.own.is_empty()).then_some(Unplaced::Local)
        } else {
            theirs.extend(owned);
            let begun = (!theirs.is_empty()).then(|| remote.begin(owner, theirs));
            theirs.clear();
            begun.transpose()?.map(Unplaced::Remote)
        };
        parts.coming.extend(coming);
        Ok(())
    }

    /// Takes a place for each part of a message in turn, until one part must wait for its place.
    ///
    /// Errors: this core's store refuses its part.
    fn take_places(&mut self, delivery: FrameId) -> Result<(), Refusal> {
        let Some(OtherCores { remote, multi_shard, .. }) = &mut self.others else {
            unreachable!("a multi-shard message without other cores")
        };
        let Some(parts) = multi_shard.get(delivery) else {
            unreachable!("a message that has ended takes no place")
        };
        while let Some(coming) = parts.coming.pop() {
            match coming {
                Unplaced::Local => {
                    let begun = self.own.store.begin(&parts.own);
                    parts.forget_own();
                    parts.add(DeliveryHandle::Local(begun?));
                }
                Unplaced::Remote(part) => {
                    parts.add(DeliveryHandle::Remote(part));
                    remote.ask_for_place(part, part_at(delivery, ShardWaitPoint::PartBegun));
                    return Ok(());
                }
            }
        }
        parts.stage = Stage::Octets;
        Ok(())
    }

    /// Handles the answer to the last request for a place. The next part then takes its place.
    pub(crate) fn place_taken(&mut self, delivery: FrameId) -> Option<Wake> {
        let OtherCores { remote, multi_shard, .. } = self.others.as_mut()?;
        let refusal = match multi_shard.get(delivery)?.parts.last()?.delivery {
            DeliveryHandle::Remote(part) => remote.refusal(part),
            _ => unreachable!("this core's part waits for no place"),
        };
        let taken = refusal.map_or_else(|| self.take_places(delivery), Err);
        let parts = self.parts(delivery)?;
        parts.refused = taken.err();
        if parts.stage == Stage::Beginning && parts.refused.is_none() {
            return None;
        }
        if parts.closing.is_none() {
            let continuation = parts.continuation.take()?;
            return Some(Wake { continuation, outcome: Outcome::DeliveryReady });
        }
        // The message has no octets, so it is complete already.
        parts.stage = Stage::Preparing;
        match taken {
            Ok(()) => self.prepare_parts(delivery),
            Err(refusal) => {
                self.refuse_preparing(delivery, refusal);
            }
        }
        None
    }

    /// Whether some parts of a message have no place yet.
    pub fn is_beginning(&self, delivery: FrameId) -> bool {
        self.others
            .as_ref()
            .is_some_and(|others| others.multi_shard.stage(delivery) == Some(Stage::Beginning))
    }

    pub(crate) fn append_parts(
        &mut self,
        delivery: FrameId,
        octets: &[u8],
        continuation: Continuation,
    ) -> Result<usize, Refusal> {
        let Some(others) = &mut self.others else { return Err(Refusal::NoSuchDelivery) };
        let (own, remote) = (&mut self.own.store, &mut others.remote);
        let room = part_at(delivery, ShardWaitPoint::PartRoom);
        let parts = others.multi_shard.get(delivery).ok_or(Refusal::NoSuchDelivery)?;
        parts.append(octets, continuation, |part, octets| match part {
            DeliveryHandle::Local(local) => own.append(local, octets, room),
            DeliveryHandle::Remote(delivery) => remote.append(delivery, octets, room),
            DeliveryHandle::MultiShard(_) => Err(Refusal::NoSuchDelivery),
        })
    }

    /// Asks all cores to prepare their parts of a message. If all can, all parts are committed
    /// later. Otherwise none is committed.
    ///
    /// Errors: the message is aborted.
    pub(crate) fn complete_parts(
        &mut self,
        delivery: FrameId,
        closing: Closing,
        continuation: Continuation,
    ) -> Result<(), Refusal> {
        let parts = self.parts(delivery).ok_or(Refusal::NoSuchDelivery)?;
        match parts.complete(closing, continuation) {
            Ok(()) if parts.stage == Stage::Preparing => self.prepare_parts(delivery),
            Ok(()) => {}
            Err(refusal) => {
                self.abort(DeliveryHandle::MultiShard(delivery));
                return Err(refusal);
            }
        }
        Ok(())
    }

    fn prepare_parts(&mut self, delivery: FrameId) {
        let Some(parts) = self.parts(delivery) else { unreachable!("a message that is complete") };
        parts.outstanding = parts.parts.len();
        for number in 0..parts.parts.len() {
            let Some(part) = self.parts(delivery).and_then(|parts| parts.parts.get(number)) else {
                break;
            };
            let prepared = match (part.delivery, &mut self.others) {
                (DeliveryHandle::Local(_), _) => {
                    self.part_has_space(delivery);
                    Ok(())
                }
                (DeliveryHandle::Remote(part), Some(others)) => {
                    others.remote.prepare(part, part_at(delivery, ShardWaitPoint::PartPrepared))
                }
                _ => Err(Refusal::NoSuchDelivery),
            };
            if let Err(refusal) = prepared {
                self.refuse_preparing(delivery, refusal);
                break;
            }
        }
    }

    /// Prepares this core's part of a message, if the part finds space now.
    pub(crate) fn part_has_space(&mut self, delivery: FrameId) {
        let own = |parts: &mut DeliveryParts| {
            parts.parts.iter().find_map(|part| {
                if let DeliveryHandle::Local(own) = part.delivery { Some(own) } else { None }
            })
        };
        let Some(own) =
            self.parts(delivery).filter(|parts| parts.stage == Stage::Preparing).and_then(own)
        else {
            return;
        };
        match self.own.store.prepare(own, part_at(delivery, ShardWaitPoint::PartSpace)) {
            Ok(true) => self.part_prepared(delivery),
            Ok(false) => {}
            Err(refusal) => {
                self.refuse_preparing(delivery, refusal);
            }
        }
    }

    /// Counts a prepared part of a message. After the last part, commits all parts.
    pub(crate) fn part_prepared(&mut self, delivery: FrameId) {
        let Some(parts) = self.parts(delivery).filter(|parts| parts.stage == Stage::Preparing)
        else {
            return;
        };
        parts.outstanding -= 1;
        if parts.outstanding > 0 {
            return;
        }
        (parts.stage, parts.outstanding) = (Stage::Committed, parts.parts.len());
        let Some(closing) = parts.closing else {
            unreachable!("a message that is prepared and not complete")
        };
        for number in 0..parts.parts.len() {
            let Some(part) = self.parts(delivery).and_then(|parts| parts.parts.get(number)) else {
                unreachable!("a message that is being stored")
            };
            let stored = part_at(delivery, ShardWaitPoint::PartStored);
            match (part.delivery, &mut self.others) {
                (DeliveryHandle::Local(local), Some(others)) => {
                    if let Err(refusal) = self.own.store.commit(local, closing, stored) {
                        others.remote.wake(refused(stored, refusal));
                    }
                }
                (DeliveryHandle::Remote(delivery), Some(others)) => {
                    others.remote.commit_prepared(delivery, closing, stored)
                }
                _ => unreachable!("a part is of one core"),
            }
        }
    }

    /// Refuses a message that is being prepared. Returns false if no such message exists.
    pub fn refuse_preparing(&mut self, delivery: FrameId, refusal: Refusal) -> bool {
        let Some(parts) = self.parts(delivery).filter(|parts| parts.stage == Stage::Preparing)
        else {
            return false;
        };
        let continuation = parts.continuation.take();
        self.abort(DeliveryHandle::MultiShard(delivery));
        if let (Some(continuation), Some(others)) = (continuation, &mut self.others) {
            others.remote.wake(refused(continuation, refusal));
        }
        true
    }

    /// Whether a multi-shard message is complete, but not prepared on all cores yet.
    pub fn is_preparing(&self, delivery: FrameId) -> bool {
        self.others
            .as_ref()
            .is_some_and(|others| others.multi_shard.stage(delivery) == Some(Stage::Preparing))
    }

    fn parts(&mut self, delivery: FrameId) -> Option<&mut DeliveryParts> {
        self.others.as_mut()?.multi_shard.get(delivery)
    }

    /// Aborts a message. If the message is committed, only its continuation is removed.
    pub(crate) fn abort_parts(&mut self, delivery: FrameId) {
        let Some(parts) = self.parts(delivery) else { return };
        parts.continuation = None;
        if parts.stage == Stage::Committed {
            return;
        }
        let (parts, coming) =
            (core::mem::take(&mut parts.parts), core::mem::take(&mut parts.coming));
        let Some(others) = &mut self.others else { return };
        others.multi_shard.remove(delivery);
        for coming in coming {
            if let Unplaced::Remote(part) = coming {
                others.remote.abort(part);
            }
        }
        parts.into_iter().for_each(|part| self.abort(part.delivery));
    }
}

/// The continuation of a part of `delivery`.
fn part_at(delivery: FrameId, point: ShardWaitPoint) -> Continuation {
    Continuation { frame: delivery, entry: point.entry() }
}
