//! What submission works with: the parts of a core, and what a job asks of them.

use alloc::string::String;

use accounts::entries::Posting;
use accounts::{Directory, entries};
use machine::Turn;
use shards::{Archive, LetterId};
use store::{AccountId, Closing, Origin, Recipient, Refusal, Store};
use tasks::Continuation;

/// The parts of a core that submission uses.
pub struct Context<'c> {
    /// The clocks of this turn.
    pub turn: Turn,
    /// The stores of all cores, as one.
    pub store: &'c mut Archive,
    /// Addresses and their accounts.
    pub directory: &'c Directory,
}

/// The same for one job, with the message that it has on its way.
pub(super) struct JobHost<'a, 'c> {
    pub(super) cx: &'a mut Context<'c>,
    pub(super) continuation: Continuation,
    pub(super) letter: &'a mut Option<LetterId>,
}

/// The account here that gets what is sent to this address.
pub fn recipient(address: &str, directory: &Directory, store: &Archive) -> Option<AccountId> {
    directory.recipient_at(store, address).filter(|account| !directory.forwards(store, *account))
}

/// Whether what is sent to this address may leave by an outbox.
pub fn may_post(address: &str, directory: &Directory, store: &Archive) -> bool {
    let may_leave = match directory.recipient_at(store, address) {
        Some(account) => directory.forwards(store, account),
        None => !directory.has_domain_of(address),
    };
    may_leave && entries::may_be_posted(address)
}

/// How an account's message for these addresses is in its outbox.
pub fn posting(account: AccountId, addresses: &[String], store: &Store) -> Posting {
    let known = store.account(account);
    entries::posting(account, known.map_or("", |known| known.address()), addresses)
}

impl JobHost<'_, '_> {
    /// The mail of this core's accounts.
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

    pub(super) fn posting(&self, account: AccountId, addresses: &[String]) -> Posting {
        posting(account, addresses, self.store())
    }

    /// Begins a copy for these recipients, on whatever core they are.
    pub(super) fn begin(&mut self, recipients: &[Recipient]) -> Result<(), Refusal> {
        *self.letter = Some(self.cx.store.begin(recipients)?);
        Ok(())
    }

    /// Gives the copy more octets. Returns how many were taken.
    pub(super) fn append(&mut self, octets: &[u8]) -> Result<usize, Refusal> {
        let letter = self.letter.ok_or(Refusal::NoSuchDelivery)?;
        self.cx.store.append(letter, octets, self.continuation)
    }

    /// The copy is complete.
    pub(super) fn commit(&mut self, closing: Closing) -> Result<(), Refusal> {
        let letter = self.letter.take().ok_or(Refusal::NoSuchDelivery)?;
        self.cx.store.commit(letter, closing, self.continuation)
    }

    /// Gives up the copy, if one is on its way.
    pub(super) fn abort(&mut self) {
        if let Some(letter) = self.letter.take() {
            self.cx.store.abort(letter);
        }
    }

    pub(super) fn forget_arrival(
        &mut self,
        account: AccountId,
        origin: Origin,
    ) -> Result<(), Refusal> {
        self.cx.store.forget_arrival(account, origin, self.continuation)
    }
}
