//! Changes without a body: accounts, removals, flags, mailboxes, notes. Each change makes at least
//! one record. The change is durable when its continuation is woken. Some changes depend on the
//! index: these wait as pending metadata changes, in `metadata_changes`.
//!
//! Invariant: a change is gathered only while the store serves, and only if it will find space on
//! the disk.

use crate::account::{Account, NewAccount, NewPassword};
use crate::block::RECORDS_MAX;
use crate::format3;
use crate::format4::ProgressRecord;
use crate::hash::{Hash, HashKey};
use crate::mailbox::{Mailbox, UID_VALIDITY_LOST};
use crate::metadata_changes::{ChangeKind, MAILBOX_NAME_MAX, MetadataChange};
use crate::notes::{self, NoteChange};
use crate::outbox::{EntryChange, Packing};
use crate::outcome::Refusal;
use crate::pending::Pending;
use crate::record::{self, AccountTexts, REMOVED_RANGES};
use crate::segments::Want;
use crate::store::Store;
use crate::superblock::Format;
use crate::types::{
    AccountId, BUILT_IN, MailboxId, MarkChange, OUTBOX, Place, SentId, Uid, UidRange,
};
use alloc::boxed::Box;
use alloc::vec::Vec;
use machine::UnixTime;
use tasks::Continuation;

impl Store {
    /// Whether something has changed since the last call of [`Store::take_changes`].
    pub fn has_changes(&self) -> bool {
        self.parts.indexes.has_changes()
    }

    /// Returns a function that tells whether an account may have changed since the last call. The
    /// function returns true for every changed account, and perhaps for other accounts.
    pub fn take_changes(&mut self) -> impl Fn(AccountId) -> bool + use<> {
        let changed = self.parts.indexes.take_changes();
        move |account| changed.has(account.shard())
    }

    /// The next message that has arrived in an outbox since the store began to serve. Each message
    /// is returned once. When it is returned, the message may be removed already.
    pub fn next_posted(&mut self) -> Option<(AccountId, Uid)> {
        self.parts.indexes.next_posted()
    }

    /// Whether [`Store::next_posted`] has a message to return.
    pub fn has_posted(&self) -> bool {
        self.parts.indexes.has_posted()
    }

    /// Sets the quota of each account in octets, by its address. `None`: limited only by the disk.
    /// An account above its quota keeps its messages, and gets new messages only when it is below
    /// the quota again.
    pub fn set_quotas(&mut self, quota: impl Fn(&str) -> Option<u64>) {
        for account in self.parts.indexes.accounts_mut() {
            account.allow(quota(account.texts().address));
        }
    }

    /// Creates an account with its empty built-in mailboxes. `continuation` is woken with
    /// [`crate::Outcome::AccountCreated`].
    ///
    /// Errors: `AddressTaken` for the address or an alias, `TooLarge`, `DiskFull`, `Busy`,
    /// `NotServing`, `ReadOnly`.
    pub fn create_account(
        &mut self,
        new: &NewAccount<'_>,
        now: UnixTime,
        continuation: Continuation,
    ) -> Result<AccountId, Refusal> {
        self.condition.check_serving()?;
        let parts = &mut self.parts;
        let addresses = || core::iter::once(new.address).chain(new.aliases.iter().copied());
        if addresses().any(|address| parts.indexes.owner_of(address).is_some()) {
            return Err(Refusal::AddressTaken);
        }
        check_texts(new)?;
        let id = account_id(&parts.superblock.key, new.address);
        let uid_validity = u32::try_from(now.seconds()).unwrap_or(u32::MAX).max(1);
        if !parts.segments.may_take(Want::Delivery) {
            return Err(Refusal::DiskFull);
        }
        let shard = id.shard();
        parts.journals.make_room(shard, RECORDS_MAX + BUILT_IN.len() * 64, &parts.segments)?;
        if parts.indexes.account(id).is_some_and(Account::is_named) {
            return Err(Refusal::AddressTaken);
        }
        let aliases: Vec<Box<str>> = new.aliases.iter().map(|alias| Box::from(*alias)).collect();
        let NewAccount { address, password_hash, verifier, .. } = *new;
        let texts =
            AccountTexts { id, address, aliases: &aliases, password_hash, verifier, replaced: "" };
        record::put_account(parts.journals.gather(shard), texts);
        for (mailbox, name) in BUILT_IN {
            let known = parts.indexes.of(shard).mailbox(id, mailbox.0);
            let counts = known.map_or((1, 0), Mailbox::counts);
            let kept = known.map(Mailbox::uid_validity).filter(|kept| *kept > UID_VALIDITY_LOST);
            let uid_validity = kept.unwrap_or(uid_validity);
            record::put_mailbox(
                parts.journals.gather(shard),
                id,
                mailbox.0,
                uid_validity,
                counts,
                name,
            );
        }
        parts.journals.wait(shard, Pending::Account(continuation, id));
        parts.indexes.give_addresses(id, addresses().map(Box::from));
        Ok(id)
    }

    /// Replaces the aliases of an account. An alias that the account loses is free once
    /// `continuation` is woken with [`crate::Outcome::Changed`]. Until then no other change of the
    /// account may be requested.
    ///
    /// Errors: `AddressTaken`, `NoSuchAccount`, `TooLarge`, `DiskFull`, `Busy`, `NotServing`,
    /// `ReadOnly`.
    pub fn set_aliases(
        &mut self,
        id: AccountId,
        aliases: &[&str],
        continuation: Continuation,
    ) -> Result<(), Refusal> {
        self.condition.check_serving()?;
        let parts = &mut self.parts;
        let is_taken =
            |alias: &&str| parts.indexes.owner_of(alias).is_some_and(|owner| owner != id);
        if aliases.iter().any(is_taken) {
            return Err(Refusal::AddressTaken);
        }
        let shard = id.shard();
        parts.journals.make_room(shard, RECORDS_MAX, &parts.segments)?;
        let account = parts.indexes.account(id).filter(|account| account.is_named());
        let account = account.ok_or(Refusal::NoSuchAccount)?;
        if !are_addresses_sound(account.texts().address, aliases) {
            return Err(Refusal::TooLarge);
        }
        let aliases: Vec<Box<str>> = aliases.iter().map(|alias| Box::from(*alias)).collect();
        let texts = AccountTexts { aliases: &aliases, ..account.texts() };
        record::put_account(parts.journals.gather(shard), texts);
        parts.journals.wait(shard, Pending::Aliases(continuation, id));
        parts.indexes.give_addresses(id, aliases.into_iter());
        Ok(())
    }

    /// Changes an account's password hash and verifier. Both change together, because they belong
    /// to one password. `continuation` is woken with [`crate::Outcome::Changed`].
    ///
    /// Errors: `NoSuchAccount`, `TooLarge`, `DiskFull`, `Busy`, `NotServing`, `ReadOnly`.
    pub fn set_password(
        &mut self,
        id: AccountId,
        new: &NewPassword<'_>,
        continuation: Continuation,
    ) -> Result<(), Refusal> {
        self.condition.check_serving()?;
        let parts = &mut self.parts;
        let NewPassword { hash, verifier, replaced } = *new;
        if hash.len().max(replaced.len()) > PASSWORD_HASH_MAX || verifier.len() > VERIFIER_MAX {
            return Err(Refusal::TooLarge);
        }
        let shard = id.shard();
        parts.journals.make_room(shard, RECORDS_MAX, &parts.segments)?;
        let account = parts.indexes.account(id).filter(|account| account.is_named());
        let account = account.ok_or(Refusal::NoSuchAccount)?;
        // The record has the account's new state. The index changes when the record is durable.
        let texts = AccountTexts { password_hash: hash, verifier, replaced, ..account.texts() };
        record::put_account(parts.journals.gather(shard), texts);
        parts.journals.wait(shard, Pending::Password(continuation, id));
        Ok(())
    }

    /// Whether a new password of this account is not durable yet.
    pub fn is_password_pending(&self, id: AccountId) -> bool {
        self.parts.journals.has_password_of(id) || self.parts.commit.has_password_of(id)
    }

    /// Removes the messages with these UIDs permanently, all or none. `continuation` is woken with
    /// [`crate::Outcome::Changed`].
    ///
    /// Errors: `TooLarge` for more than 400 ranges, `NoSuchMailbox`, `DiskFull`, `Busy`,
    /// `NotServing`, `ReadOnly`.
    pub fn remove(
        &mut self,
        account: AccountId,
        mailbox: MailboxId,
        uids: &[UidRange],
        continuation: Continuation,
    ) -> Result<(), Refusal> {
        self.condition.check_serving()?;
        let parts = &mut self.parts;
        if uids.len() > REMOVED_RANGES {
            return Err(Refusal::TooLarge);
        }
        let shard = account.shard();
        parts.journals.make_room(shard, 32 + uids.len() * 8, &parts.segments)?;
        let known = parts
            .indexes
            .of_mut(shard)
            .mailbox_mut(account, mailbox.0)
            .ok_or(Refusal::NoSuchMailbox)?;
        let modseq = known.next_modseq();
        let ranges: Vec<(u32, u32)> =
            uids.iter().map(|range| (range.first.0, range.last.0)).collect();
        record::put_removed(parts.journals.gather(shard), account, mailbox.0, modseq, &ranges);
        parts.journals.wait(shard, Pending::Change(continuation));
        Ok(())
    }

    /// Changes flags and keywords of a message. `continuation` is woken with
    /// [`crate::Outcome::Changed`].
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
        let entry = self.outbox_entry(account, uid).filter(|_| mailbox == OUTBOX);
        let is_in_marks = entry.is_some_and(|entry| entry.is_in_marks);
        let change =
            if mailbox == OUTBOX { format3::marks_of_client(change, is_in_marks) } else { change };
        self.change_marks((account, mailbox, uid), change, continuation)
    }

    /// Changes an outbox entry. The packing is the form of the results on the disk. The caller
    /// knows it from the envelope of the message. `continuation` is woken with
    /// [`crate::Outcome::Changed`].
    ///
    /// Errors: `NoSuchMessage` if the message has no entry, `DiskFull`, `Busy`, `NotServing`,
    /// `ReadOnly`.
    pub fn change_entry(
        &mut self,
        account: AccountId,
        uid: Uid,
        (change, packing): (EntryChange, Packing),
        continuation: Continuation,
    ) -> Result<(), Refusal> {
        let entry = self.outbox_entry(account, uid).ok_or(Refusal::NoSuchMessage)?;
        if self.parts.superblock.format == Format::Three {
            return self.change_marks(
                (account, OUTBOX, uid),
                format3::marks_of(&change, packing),
                continuation,
            );
        }
        let results = change.results_for(entry.results, packing);
        let EntryChange { state, is_delay_reported, is_damage_reported, .. } = change;
        self.change((account, OUTBOX, uid), continuation, |out, modseq| {
            let record = ProgressRecord {
                account,
                uid,
                modseq,
                results,
                state,
                is_delay_reported,
                is_damage_reported,
            };
            record::put_progress(out, &record);
        })
    }

    fn change_marks(
        &mut self,
        (account, mailbox, uid): (AccountId, MailboxId, Uid),
        change: MarkChange,
        continuation: Continuation,
    ) -> Result<(), Refusal> {
        self.change((account, mailbox, uid), continuation, |out, modseq| {
            record::put_marked(
                out,
                account,
                Place { mailbox: mailbox.0, uid: uid.0 },
                modseq,
                change,
            );
        })
    }

    /// Gathers a record, of at most 64 bytes, that changes a message.
    fn change(
        &mut self,
        (account, mailbox, uid): (AccountId, MailboxId, Uid),
        continuation: Continuation,
        put: impl FnOnce(&mut Vec<u8>, u64),
    ) -> Result<(), Refusal> {
        self.condition.check_serving()?;
        let parts = &mut self.parts;
        let shard = account.shard();
        parts.journals.make_room(shard, 64, &parts.segments)?;
        let known = parts
            .indexes
            .of_mut(shard)
            .mailbox_mut(account, mailbox.0)
            .ok_or(Refusal::NoSuchMailbox)?;
        known.messages().find(uid.0).ok_or(Refusal::NoSuchMessage)?;
        let modseq = known.next_modseq();
        put(parts.journals.gather(shard), modseq);
        parts.journals.wait(shard, Pending::Change(continuation));
        Ok(())
    }

    /// Creates a mailbox. `continuation` is woken with [`crate::Outcome::MailboxCreated`], or
    /// refused with `NameTaken`, `TooMany` or `NoSuchAccount`. Names are compared byte by byte: the
    /// caller normalizes them first.
    ///
    /// Errors: `TooLarge` for a name that is empty or has more than [`MAILBOX_NAME_MAX`] bytes,
    /// `DiskFull`, `Busy`, `NotServing`, `ReadOnly`.
    pub fn create_mailbox(
        &mut self,
        account: AccountId,
        name: &str,
        now: UnixTime,
        continuation: Continuation,
    ) -> Result<(), Refusal> {
        let now = u32::try_from(now.seconds()).unwrap_or(u32::MAX);
        self.queue_change(account, ChangeKind::Create { name: checked(name)?, now }, continuation)
    }

    /// Renames a mailbox. `continuation` is woken with [`crate::Outcome::Changed`], or refused with
    /// `NameTaken`, `BuiltIn` or `NoSuchMailbox`.
    ///
    /// Errors: as [`Store::create_mailbox`].
    pub fn rename_mailbox(
        &mut self,
        account: AccountId,
        MailboxId(mailbox): MailboxId,
        name: &str,
        continuation: Continuation,
    ) -> Result<(), Refusal> {
        self.queue_change(
            account,
            ChangeKind::Rename { mailbox, name: checked(name)? },
            continuation,
        )
    }

    /// Removes an empty mailbox. `continuation` is woken with [`crate::Outcome::Changed`], or
    /// refused with `NotEmpty`, `BuiltIn` or `NoSuchMailbox`.
    ///
    /// Errors: `DiskFull`, `Busy`, `NotServing`, `ReadOnly`.
    pub fn delete_mailbox(
        &mut self,
        account: AccountId,
        MailboxId(mailbox): MailboxId,
        continuation: Continuation,
    ) -> Result<(), Refusal> {
        self.queue_change(account, ChangeKind::Delete { mailbox }, continuation)
    }

    /// Moves the messages with these UIDs, in ascending order, to another mailbox of the account,
    /// with their flags and GUIDs. At any moment each message is in exactly one of the two
    /// mailboxes. `continuation` is woken with [`crate::Outcome::Filed`], which has the number of
    /// moved messages. Or it is refused with `NoSuchMailbox`, `NoSuchMessage` (none of the messages
    /// exists) or `TooMany` (the other mailbox has no UID left).
    ///
    /// Errors: `BuiltIn` if `to` is the outbox, to which only deliveries add messages; `TooLarge`
    /// for more than 400 ranges, `DiskFull`, `Busy`, `NotServing`, `ReadOnly`.
    pub fn file(
        &mut self,
        account: AccountId,
        MailboxId(from): MailboxId,
        uids: &[UidRange],
        MailboxId(to): MailboxId,
        continuation: Continuation,
    ) -> Result<(), Refusal> {
        if MailboxId(to) == OUTBOX {
            return Err(Refusal::BuiltIn);
        }
        if uids.len() > REMOVED_RANGES {
            return Err(Refusal::TooLarge);
        }
        self.queue_change(account, ChangeKind::Move { from, uids: uids.into(), to }, continuation)
    }

    /// Changes notes of an account, all or none. `continuation` is woken with
    /// [`crate::Outcome::Changed`], or refused. The refusal is `TooMany` for more than
    /// [`crate::NOTES_MAX`] notes or [`crate::NOTES_BYTES_MAX`] bytes, `NoSuchNote` if there is
    /// nothing to replace or remove, or `NoSuchAccount`.
    ///
    /// Errors: `TooLarge` for a key or a value that is too long or empty, or too many changes,
    /// `DiskFull`, `Busy`, `NotServing`, `ReadOnly`.
    pub fn change_notes(
        &mut self,
        account: AccountId,
        changes: Vec<NoteChange>,
        continuation: Continuation,
    ) -> Result<(), Refusal> {
        notes::check(&changes)?;
        self.queue_change(account, ChangeKind::Note { changes: changes.into() }, continuation)
    }

    /// Forgets that the message `origin` has arrived. The caller knows that no further attempt will
    /// deliver this message to the account. `continuation` is woken as by [`Store::change_notes`].
    ///
    /// Errors: `DiskFull`, `Busy`, `NotServing`, `ReadOnly`.
    pub fn forget_arrival(
        &mut self,
        account: AccountId,
        origin: SentId,
        continuation: Continuation,
    ) -> Result<(), Refusal> {
        let forgotten = NoteChange::Remove(Box::from(&origin.key()[..]));
        self.queue_change(account, ChangeKind::Note { changes: [forgotten].into() }, continuation)
    }

    fn queue_change(
        &mut self,
        account: AccountId,
        kind: ChangeKind,
        continuation: Continuation,
    ) -> Result<(), Refusal> {
        self.condition.check_serving()?;
        let parts = &mut self.parts;
        parts.journals.make_room(account.shard(), RECORDS_MAX, &parts.segments)?;
        parts
            .journals
            .queue_change(account.shard(), MetadataChange::new(account, kind, continuation))
    }
}

/// The id of the account with this address.
fn account_id(key: &HashKey, address: &str) -> AccountId {
    let Hash(bytes) = key.hash_name(address.as_bytes());
    AccountId(Hash(bytes).short())
}

fn checked(name: &str) -> Result<Box<str>, Refusal> {
    let fits = (1..=MAILBOX_NAME_MAX).contains(&name.len());
    if fits { Ok(name.into()) } else { Err(Refusal::TooLarge) }
}

const ADDRESS_MAX: usize = 254;
const ALIASES_MAX: usize = 64;
/// The most bytes of the address and all aliases in the record of an account, including the length
/// field of each. They fit into a block together with the passwords.
const ADDRESSES_BYTES_MAX: usize = RECORDS_MAX - 2 * PASSWORD_HASH_MAX - VERIFIER_MAX - 32;
const PASSWORD_HASH_MAX: usize = 256;
const VERIFIER_MAX: usize = 256;

fn check_texts(new: &NewAccount<'_>) -> Result<(), Refusal> {
    let sound = are_addresses_sound(new.address, new.aliases)
        && new.password_hash.len() <= PASSWORD_HASH_MAX
        && new.verifier.len() <= VERIFIER_MAX;
    if sound { Ok(()) } else { Err(Refusal::TooLarge) }
}

fn are_addresses_sound(address: &str, aliases: &[&str]) -> bool {
    let all = || core::iter::once(&address).chain(aliases);
    let bytes: usize = all().map(|address| 2 + address.len()).sum();
    aliases.len() <= ALIASES_MAX
        && bytes <= ADDRESSES_BYTES_MAX
        && all().all(|address| (1..=ADDRESS_MAX).contains(&address.len()))
}
