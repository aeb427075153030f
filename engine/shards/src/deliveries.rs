//! The deliveries of a session. The recipients belong to this core, to another core, or to several.
//!
//! A delivery gets its kind when the message begins. The [`DeliveryHandle`] contains the kind.

use machine::CoreId;
use store::{AccountId, Closing, Guid, Recipient, Refusal, SentId};
use tasks::Continuation;

use crate::messages::DeliveryHandle;
use crate::sharded_store::ShardedStore;

impl ShardedStore {
    /// Begins a message. Errors: as [`store::Store::begin`], if this core finds the error. If
    /// another core finds an error, the message ends with a refusal later.
    pub fn begin(&mut self, recipients: &[Recipient]) -> Result<DeliveryHandle, Refusal> {
        let owner = recipients.first().map_or(self.core, |first| self.owners.of(first.account));
        if recipients.iter().skip(1).all(|recipient| self.owners.of(recipient.account) == owner) {
            return self.begin_at(owner, recipients);
        }
        self.begin_parts(recipients)
    }

    fn begin_at(
        &mut self,
        owner: CoreId,
        recipients: &[Recipient],
    ) -> Result<DeliveryHandle, Refusal> {
        match self.remote_at(owner) {
            None => self.own.store.begin(recipients).map(DeliveryHandle::Local),
            Some(remote) => remote.begin(owner, recipients).map(DeliveryHandle::Remote),
        }
    }

    /// Whether a core that gets a part of the message is short of buffers or of places for
    /// messages.
    pub fn is_short_for(&self, delivery: DeliveryHandle) -> bool {
        match (delivery, &self.others) {
            (DeliveryHandle::Local(_), _) => self.is_local_short_of_buffers(),
            (DeliveryHandle::Remote(delivery), Some(others)) => {
                others.remote.is_owner_short(delivery)
            }
            (DeliveryHandle::MultiShard(delivery), Some(others)) => {
                others.multi_shard.parts_of(delivery).any(|part| self.is_short_for(part))
            }
            _ => false,
        }
    }

    /// As [`store::Store::append`].
    pub fn append(
        &mut self,
        delivery: DeliveryHandle,
        octets: &[u8],
        continuation: Continuation,
    ) -> Result<usize, Refusal> {
        match (delivery, &mut self.others) {
            (DeliveryHandle::Local(local), _) => self.own.store.append(local, octets, continuation),
            (DeliveryHandle::Remote(delivery), Some(others)) => {
                others.remote.append(delivery, octets, continuation)
            }
            (DeliveryHandle::MultiShard(delivery), Some(_)) => {
                self.append_parts(delivery, octets, continuation)
            }
            _ => Err(Refusal::NoSuchDelivery),
        }
    }

    /// As [`store::Store::commit`].
    pub fn commit(
        &mut self,
        delivery: DeliveryHandle,
        closing: impl Into<Closing>,
        continuation: Continuation,
    ) -> Result<(), Refusal> {
        let closing = closing.into();
        match (delivery, &mut self.others) {
            (DeliveryHandle::Local(local), _) => {
                self.own.store.commit(local, closing, continuation)
            }
            (DeliveryHandle::Remote(delivery), Some(others)) => {
                others.remote.commit(delivery, closing, continuation)
            }
            (DeliveryHandle::MultiShard(delivery), Some(_)) => {
                self.complete_parts(delivery, closing, continuation)
            }
            _ => Err(Refusal::NoSuchDelivery),
        }
    }

    /// As [`store::Store::abort`].
    pub fn abort(&mut self, delivery: DeliveryHandle) {
        match (delivery, &mut self.others) {
            (DeliveryHandle::Local(local), _) => self.own.store.abort(local),
            (DeliveryHandle::Remote(delivery), Some(others)) => others.remote.abort(delivery),
            (DeliveryHandle::MultiShard(delivery), Some(_)) => self.abort_parts(delivery),
            _ => {}
        }
    }

    /// As [`store::Store::forget_arrival`].
    pub fn forget_arrival(
        &mut self,
        account: AccountId,
        origin: SentId,
        continuation: Continuation,
    ) -> Result<(), Refusal> {
        let owner = self.owners.of(account);
        match self.remote_at(owner) {
            None => self.own.store.forget_arrival(account, origin, continuation),
            Some(remote) => {
                remote.forget_arrival(owner, account, origin, continuation);
                Ok(())
            }
        }
    }

    /// Whether the account has a note that a message with this origin has arrived. Also returns
    /// true if another core owns the account, because this core cannot know.
    pub fn may_have_arrived(&self, account: AccountId, origin: SentId) -> bool {
        self.owners.of(account) != self.core || self.own.store.has_arrived(account, origin)
    }

    /// As [`store::Store::stand_for`], for an account of this core.
    pub fn stand_for(
        &mut self,
        delivery: DeliveryHandle,
        origins: &[SentId],
    ) -> Result<(), Refusal> {
        let DeliveryHandle::Local(local) = delivery else { return Err(Refusal::NoSuchDelivery) };
        self.own.store.stand_for(local, origins)
    }

    /// The GUID for a message's first recipient, if this core owns all recipients.
    pub fn guid(&self, delivery: DeliveryHandle) -> Option<Guid> {
        if let DeliveryHandle::Local(local) = delivery { self.own.store.guid(local) } else { None }
    }
}
