//! The context of submission: the parts of a core, and the requests of a job to them.

use alloc::string::String;

use accounts::entries::OutboxDelivery;
use accounts::{Directory, entries};
use machine::Turn;
use shards::{DeliveryHandle, ShardedStore};
use smtp::RecipientRefusal;
use store::{AccountId, Closing, Recipient, Refusal, SentId, Store};
use tasks::Continuation;

/// The parts of a core that submission uses.
pub struct SubmissionContext<'c> {
    /// The clocks of this turn.
    pub turn: Turn,
    /// The stores of all cores, used as one store.
    pub store: &'c mut ShardedStore,
    /// Addresses and their accounts.
    pub directory: &'c Directory,
}

/// The context of one job, with the delivery that it has begun.
pub(super) struct JobHost<'a, 'c> {
    pub(super) cx: &'a mut SubmissionContext<'c>,
    pub(super) continuation: Continuation,
    pub(super) delivery: &'a mut Option<DeliveryHandle>,
}

/// The local account that receives mail for this address. An account with forwarding does not
/// count.
pub fn recipient(address: &str, directory: &Directory, store: &ShardedStore) -> Option<AccountId> {
    let account = directory.recipient_at(store, address).ok()?;
    (!directory.forwards(store, account)).then_some(account)
}

/// Whether mail for this address may be sent by an outbox: it is remote, its account forwards, or
/// its account is not set up yet.
pub fn may_post(address: &str, directory: &Directory, store: &ShardedStore) -> bool {
    let may_leave = match directory.recipient_at(store, address) {
        Ok(account) => directory.forwards(store, account),
        Err(refusal) => {
            matches!(refusal, RecipientRefusal::NotLocal | RecipientRefusal::Unavailable)
        }
    };
    may_leave && entries::may_be_posted(address)
}

/// The outbox entries of an account's message to these addresses.
pub fn posting(account: AccountId, addresses: &[String], store: &Store) -> OutboxDelivery {
    let known = store.account(account);
    entries::posting(account, known.map_or("", |known| known.address()), addresses)
}

impl JobHost<'_, '_> {
    /// The store of this core.
    pub(super) fn store(&self) -> &Store {
        &self.cx.store.own.store
    }

    pub(super) fn store_mut(&mut self) -> &mut Store {
        &mut self.cx.store.own.store
    }

    pub(super) fn recipient(&self, address: &str) -> Option<AccountId> {
        recipient(address, self.cx.directory, self.cx.store)
    }

    pub(super) fn may_post(&self, address: &str) -> bool {
        may_post(address, self.cx.directory, self.cx.store)
    }

    pub(super) fn posting(&self, account: AccountId, addresses: &[String]) -> OutboxDelivery {
        posting(account, addresses, self.store())
    }

    /// Begins a delivery to these recipients. Any core may own them.
    pub(super) fn begin(&mut self, recipients: &[Recipient]) -> Result<(), Refusal> {
        *self.delivery = Some(self.cx.store.begin(recipients)?);
        Ok(())
    }

    /// Appends octets to the delivery. Returns the number of octets taken.
    pub(super) fn append(&mut self, octets: &[u8]) -> Result<usize, Refusal> {
        let delivery = self.delivery.ok_or(Refusal::NoSuchDelivery)?;
        self.cx.store.append(delivery, octets, self.continuation)
    }

    /// Commits the delivery.
    pub(super) fn commit(&mut self, closing: Closing) -> Result<(), Refusal> {
        let delivery = self.delivery.take().ok_or(Refusal::NoSuchDelivery)?;
        self.cx.store.commit(delivery, closing, self.continuation)
    }

    /// Aborts the delivery, if one was begun.
    pub(super) fn abort(&mut self) {
        if let Some(delivery) = self.delivery.take() {
            self.cx.store.abort(delivery);
        }
    }

    pub(super) fn forget_arrival(
        &mut self,
        account: AccountId,
        origin: SentId,
    ) -> Result<(), Refusal> {
        self.cx.store.forget_arrival(account, origin, self.continuation)
    }
}
