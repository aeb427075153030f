//! Changes that need no body: accounts, removals, flags. Each is one record, durable when its continuation is woken.
//!
//! Invariant: an address belongs to one account from the moment its creation is gathered, so no two can win it.

use crate::account::{Account, AccountInfo, NewAccount, NewPassword, UID_VALIDITY_LOST};
use crate::group::Pending;
use crate::hash::Hash;
use crate::outcome::{Outcome, Refusal};
use crate::record::{self, REMOVED_RANGES};
use crate::segments::Reason as Want;
use crate::store::{Shard, Store};
use crate::types::{AccountId, BUILT_IN, MailboxId, MarkChange, Place, Uid, UidRange};
use alloc::boxed::Box;
use alloc::vec::Vec;
use machine::UnixTime;
use tasks::Continuation;

/// The most bytes of records that gather in one shard; more waits for the next group.
const GATHERED_BYTES_MAX: usize = 24 * 1024;

impl Shard {
    /// Whether records of `bytes` may gather. A shard with nothing gathered takes the largest message's.
    pub(crate) fn has_room_for(&self, bytes: usize) -> bool {
        self.gathered.is_empty() || self.gathered.len() + bytes <= GATHERED_BYTES_MAX
    }
}

impl Store {
    /// The account that mail for `address` goes to.
    pub fn find(&self, address: &str) -> Option<AccountId> {
        let id = *self.directory.get(address)?;
        self.account(id).map(|_| id)
    }

    /// What is known of an account.
    pub fn account(&self, id: AccountId) -> Option<AccountInfo<'_>> {
        let account = self.shard(id.shard())?.index.accounts.get(&id)?;
        account.is_named().then_some(AccountInfo { account })
    }

    /// Whether something has changed since [`Store::take_changes`] was asked.
    pub fn has_changes(&self) -> bool {
        self.changed != 0
    }

    /// Whose mail may have changed since this was asked last: nobody is missing, and some may be there of whose nothing has.
    pub fn take_changes(&mut self) -> impl Fn(AccountId) -> bool + use<> {
        let changed = core::mem::take(&mut self.changed);
        move |account| changed >> account.shard().0 & 1 == 1
    }

    /// A message that has come into an outbox since the store serves, each once; it may be gone already.
    pub fn next_posted(&mut self) -> Option<(AccountId, Uid)> {
        self.posted.pop()
    }

    /// Whether there is one.
    pub fn has_posted(&self) -> bool {
        !self.posted.is_empty()
    }

    /// All accounts, in no particular order.
    pub fn accounts(&self) -> impl Iterator<Item = AccountInfo<'_>> {
        let all = self.shards.iter().flat_map(|shard| shard.index.accounts.values());
        all.filter(|account| account.is_named()).map(|account| AccountInfo { account })
    }

    /// Makes an account with its built-in mailboxes, empty; `continuation` is woken with [`Outcome::AccountCreated`].
    ///
    /// Errors: `AddressTaken` for the address or an alias, `TooLarge`, `DiskFull`, `Busy`, `NotServing`, `ReadOnly`.
    pub fn create_account(
        &mut self,
        new: &NewAccount<'_>,
        now: UnixTime,
        continuation: Continuation,
    ) -> Result<AccountId, Refusal> {
        self.check_serving()?;
        let addresses = || core::iter::once(new.address).chain(new.aliases.iter().copied());
        if addresses().any(|address| self.directory.contains_key(address)) {
            return Err(Refusal::AddressTaken);
        }
        check_texts(new)?;
        let id = self.account_id(new.address);
        let uid_validity = u32::try_from(now.seconds()).unwrap_or(u32::MAX).max(1);
        if !self.segments.may_take(Want::Delivery) {
            return Err(Refusal::DiskFull);
        }
        let shard = self.room_in(id, crate::block::RECORDS_MAX + BUILT_IN.len() * 64)?;
        if shard.index.accounts.get(&id).is_some_and(Account::is_named) {
            return Err(Refusal::AddressTaken);
        }
        let mut account = Account::unnamed(id);
        account.address = new.address.into();
        account.aliases = new.aliases.iter().map(|alias| Box::from(*alias)).collect();
        account.password_hash = new.password_hash.into();
        account.verifier = new.verifier.into();
        record::put_account(&mut shard.gathered, account.texts());
        for (mailbox, name) in BUILT_IN {
            let known = shard.index.mailbox(id, mailbox.0);
            let counts = known.map_or((1, 0), |known| (known.uid_next, known.highest_modseq));
            let kept = known.map(|known| known.uid_validity).filter(|kept| *kept > UID_VALIDITY_LOST);
            let uid_validity = kept.unwrap_or(uid_validity);
            record::put_mailbox(&mut shard.gathered, id, mailbox.0, uid_validity, counts, name);
        }
        shard.pending.push(Pending::Account(continuation, id));
        let addresses: Vec<Box<str>> = addresses().map(Box::from).collect();
        self.directory.extend(addresses.into_iter().map(|address| (address, id)));
        Ok(id)
    }

    /// Changes what an account's password and proofs of knowing it are checked against: both, since they are of one password. `continuation` is woken with
    /// [`Outcome::Changed`].
    ///
    /// Errors: `NoSuchAccount`, `TooLarge`, `DiskFull`, `Busy`, `NotServing`, `ReadOnly`.
    pub fn set_password(
        &mut self,
        id: AccountId,
        new: &NewPassword<'_>,
        continuation: Continuation,
    ) -> Result<(), Refusal> {
        self.check_serving()?;
        let NewPassword { hash, verifier, replaced } = *new;
        if hash.len().max(replaced.len()) > PASSWORD_HASH_MAX || verifier.len() > VERIFIER_MAX {
            return Err(Refusal::TooLarge);
        }
        let shard = self.room_in(id, crate::block::RECORDS_MAX)?;
        let account = shard.index.accounts.get_mut(&id).filter(|account| account.is_named());
        let account = account.ok_or(Refusal::NoSuchAccount)?;
        // The record is made from the account as it will be; the index itself changes when the record is durable.
        let mut texts = [hash, verifier, replaced].map(Box::from);
        account.swap_password(&mut texts);
        record::put_account(&mut shard.gathered, account.texts());
        account.swap_password(&mut texts);
        shard.pending.push(Pending::Change(continuation));
        Ok(())
    }

    /// Removes the messages with these UIDs for good, all or none; `continuation` is woken with [`Outcome::Changed`].
    ///
    /// Errors: `TooLarge` for more than 400 ranges, `NoSuchMailbox`, `DiskFull`, `Busy`, `NotServing`, `ReadOnly`.
    pub fn remove(
        &mut self,
        account: AccountId,
        mailbox: MailboxId,
        uids: &[UidRange],
        continuation: Continuation,
    ) -> Result<(), Refusal> {
        self.check_serving()?;
        if uids.len() > REMOVED_RANGES {
            return Err(Refusal::TooLarge);
        }
        let shard = self.room_in(account, 32 + uids.len() * 8)?;
        let known = shard.index.mailbox_mut(account, mailbox.0).ok_or(Refusal::NoSuchMailbox)?;
        let modseq = known.next_modseq();
        let ranges: Vec<(u32, u32)> = uids.iter().map(|range| (range.first.0, range.last.0)).collect();
        record::put_removed(&mut shard.gathered, account, mailbox.0, modseq, &ranges);
        shard.pending.push(Pending::Change(continuation));
        Ok(())
    }

    /// Changes flags and keywords of a message; `continuation` is woken with [`Outcome::Changed`].
    ///
    /// Errors: `NoSuchMailbox`, `NoSuchMessage`, `DiskFull`, `Busy`, `NotServing`, `ReadOnly`.
    pub fn mark(
        &mut self,
        account: AccountId,
        mailbox: MailboxId,
        uid: Uid,
        change: MarkChange,
        continuation: Continuation,
    ) -> Result<(), Refusal> {
        self.check_serving()?;
        let shard = self.room_in(account, 64)?;
        let known = shard.index.mailbox_mut(account, mailbox.0).ok_or(Refusal::NoSuchMailbox)?;
        known.messages.find(uid.0).ok_or(Refusal::NoSuchMessage)?;
        let modseq = known.next_modseq();
        let place = Place { mailbox: mailbox.0, uid: uid.0 };
        record::put_marked(&mut shard.gathered, account, place, modseq, change);
        shard.pending.push(Pending::Change(continuation));
        Ok(())
    }

    /// The account's shard, if records of `bytes` can gather in it and will find space on the disk.
    pub(crate) fn room_in(&mut self, account: AccountId, bytes: usize) -> Result<&mut Shard, Refusal> {
        let geometry = self.segments.geometry;
        let has_segment = self.segments.may_take(Want::Journal);
        let shard = self.shards.get_mut(account.shard().index()).ok_or(Refusal::NoSuchAccount)?;
        if !shard.has_room_for(bytes) {
            return Err(Refusal::Busy);
        }
        let places = shard.journal.as_ref().map_or(0, |journal| geometry.link_place() - journal.place);
        if !has_segment && (places as usize) * crate::block::RECORDS_MAX / 2 < shard.gathered.len() + bytes {
            return Err(Refusal::DiskFull);
        }
        self.dirty |= 1 << account.shard().0;
        Ok(shard)
    }

    /// The id that an account with this address has.
    fn account_id(&self, address: &str) -> AccountId {
        let Hash(bytes) = self.superblock.key.hash_name(address.as_bytes());
        AccountId(Hash(bytes).short())
    }

    /// An account was not made: its addresses are free.
    pub(crate) fn forget_addresses(&mut self, id: AccountId) {
        if self.account(id).is_none() {
            self.directory.retain(|_, owner| *owner != id);
        }
    }

    pub(crate) fn refuse_change(&mut self, continuation: Continuation) {
        self.wake(continuation, Outcome::Refused(Refusal::ReadOnly));
    }
}

const ADDRESS_MAX: usize = 254;
const ALIASES_MAX: usize = 8;
const PASSWORD_HASH_MAX: usize = 256;
const VERIFIER_MAX: usize = 256;

fn check_texts(new: &NewAccount<'_>) -> Result<(), Refusal> {
    let fits = |text: &str, most: usize| !text.is_empty() && text.len() <= most;
    let sound = fits(new.address, ADDRESS_MAX)
        && new.aliases.len() <= ALIASES_MAX
        && new.aliases.iter().all(|alias| fits(alias, ADDRESS_MAX))
        && new.password_hash.len() <= PASSWORD_HASH_MAX
        && new.verifier.len() <= VERIFIER_MAX;
    if sound { Ok(()) } else { Err(Refusal::TooLarge) }
}

const _: () = assert!(
    (ADDRESS_MAX + 2) * (ALIASES_MAX + 1) + 2 * PASSWORD_HASH_MAX + VERIFIER_MAX + 32 <= crate::block::RECORDS_MAX,
    "the largest account fits into a block"
);
