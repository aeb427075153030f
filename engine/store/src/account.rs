//! An account and its mailboxes in memory, and the view of them that callers get.
//!
//! Invariants:
//! - UIDNEXT and HIGHESTMODSEQ of a mailbox never fall. No UID and no MODSEQ is assigned twice.
//! - A mailbox number is never reused.
//! - Each outbox entry has its message in the outbox.

use crate::conversations::Conversations;
use crate::format3;
use crate::format4::{ProgressRecord, QueuedRecord};
use crate::mailbox::{Mailbox, UID_VALIDITY_LOST};
use crate::messages::MessageEntry;
use crate::notes::Notes;
use crate::outbox::OutboxEntry;
use crate::outcome::Refusal;
use crate::quotas::AccountQuota;
use crate::record::AccountTexts;
use crate::types::{AccountId, BUILT_IN, Flags, MailboxId, MarkChange, Marks, OUTBOX, Uid};
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// An account to create. Addresses are compared byte by byte: the caller normalizes them first.
#[derive(Clone, Copy, Debug)]
pub struct NewAccount<'a> {
    /// The address of the account.
    pub address: &'a str,
    /// Further addresses of the account.
    pub aliases: &'a [&'a str],
    /// The hash that a password is checked against, in the caller's form.
    pub password_hash: &'a str,
    /// The verifier that a proof of the password is checked against (SCRAM), in the caller's form.
    /// Empty: the account has none.
    pub verifier: &'a str,
}

/// The stored form of a new password.
#[derive(Clone, Copy, Debug)]
pub struct NewPassword<'a> {
    /// As [`NewAccount::password_hash`].
    pub hash: &'a str,
    /// As [`NewAccount::verifier`].
    pub verifier: &'a str,
    /// The hash in the configuration that this password overrides. Empty: the password is the one
    /// in the configuration.
    pub replaced: &'a str,
}

/// A read-only view of an account.
#[derive(Clone, Copy, Debug)]
pub struct AccountInfo<'a> {
    pub(crate) account: &'a Account,
}

impl<'a> AccountInfo<'a> {
    /// The id of the account.
    pub fn id(&self) -> AccountId {
        self.account.id
    }

    /// The address of the account.
    pub fn address(&self) -> &'a str {
        &self.account.address
    }

    /// The further addresses of the account.
    pub fn aliases(&self) -> impl Iterator<Item = &'a str> {
        self.account.aliases.iter().map(|alias| &**alias)
    }

    /// The hash that a password is checked against.
    pub fn password_hash(&self) -> &'a str {
        &self.account.password_hash
    }

    /// The verifier that a proof of the password is checked against. Empty: the account has none.
    pub fn verifier(&self) -> &'a str {
        &self.account.verifier
    }

    /// The hash in the configuration that the present password overrides. Empty if the
    /// configuration has the present password.
    pub fn replaced(&self) -> &'a str {
        &self.account.replaced
    }

    /// The value of a note of the account.
    pub fn note(&self, key: &[u8]) -> Option<&'a [u8]> {
        self.account.notes.get(key).map(|value| &**value)
    }

    /// All notes of the account, as keys and values in the order of the keys.
    pub fn notes(&self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> {
        self.account.notes.iter().map(|(key, value)| (&**key, &**value))
    }

    /// The mailboxes of the account and their names.
    pub fn mailboxes(&self) -> impl Iterator<Item = (MailboxId, &'a str)> {
        self.account.mailboxes.values().map(|mailbox| (MailboxId(mailbox.id()), mailbox.name()))
    }

    /// Octets of the messages in all mailboxes except the outbox.
    pub fn taken(&self) -> u64 {
        self.account.quota.taken()
    }

    /// Whether the outbox has reached its limit, which is half of the quota.
    pub fn is_outbox_full(&self) -> bool {
        self.account.quota.is_outbox_full()
    }

    /// The quota in octets. `None`: limited only by the disk.
    pub fn allowed(&self) -> Option<u64> {
        self.account.quota.allowed()
    }
}

/// An account in the index.
#[derive(Debug)]
pub(crate) struct Account {
    id: AccountId,
    /// Empty until a record of the account is known.
    address: Box<str>,
    aliases: Vec<Box<str>>,
    password_hash: Box<str>,
    verifier: Box<str>,
    /// The hash in the configuration that `password_hash` overrides. Empty if the configuration has
    /// `password_hash`.
    replaced: Box<str>,
    notes: Notes,
    mailboxes: BTreeMap<u32, Mailbox>,
    /// The entries of the outbox, by the UIDs of their messages.
    outbox: BTreeMap<u32, OutboxEntry>,
    conversations: Conversations,
    quota: AccountQuota,
    /// The number for the next mailbox that is created. A number is never reused.
    mailbox_next: u32,
}

impl Account {
    pub(crate) fn unnamed(id: AccountId) -> Account {
        let empty = || Box::from("");
        Account {
            id,
            address: empty(),
            aliases: Vec::new(),
            password_hash: empty(),
            verifier: empty(),
            replaced: empty(),
            notes: Notes::new(),
            mailboxes: BTreeMap::new(),
            outbox: BTreeMap::new(),
            conversations: Conversations::default(),
            quota: AccountQuota::NONE,
            mailbox_next: OWN_MAILBOX_MIN,
        }
    }

    pub(crate) fn is_named(&self) -> bool {
        !self.address.is_empty()
    }

    pub(crate) fn mailbox(&self, id: u32) -> Option<&Mailbox> {
        self.mailboxes.get(&id)
    }

    pub(crate) fn mailbox_mut(&mut self, id: u32) -> Option<&mut Mailbox> {
        self.mailboxes.get_mut(&id)
    }

    /// The fields of the account's record.
    pub(crate) fn texts(&self) -> AccountTexts<'_> {
        AccountTexts {
            id: self.id,
            address: &self.address,
            aliases: &self.aliases,
            password_hash: &self.password_hash,
            verifier: &self.verifier,
            replaced: &self.replaced,
        }
    }

    pub(crate) fn id(&self) -> AccountId {
        self.id
    }

    pub(crate) fn notes(&self) -> &Notes {
        &self.notes
    }

    pub(crate) fn conversations(&self) -> &Conversations {
        &self.conversations
    }

    pub(crate) fn quota(&self) -> &AccountQuota {
        &self.quota
    }

    /// The addresses of the account: none until a record of the account is known.
    pub(crate) fn addresses(&self) -> impl Iterator<Item = &Box<str>> {
        core::iter::once(&self.address).chain(&self.aliases).filter(|address| !address.is_empty())
    }

    /// The mailboxes of the account, ascending.
    pub(crate) fn mailboxes(&self) -> impl Iterator<Item = &Mailbox> {
        self.mailboxes.values()
    }

    pub(crate) fn mailboxes_mut(&mut self) -> impl Iterator<Item = &mut Mailbox> {
        self.mailboxes.values_mut()
    }

    /// The mailbox with the number `id`, or with the next higher number.
    pub(crate) fn mailbox_from(&self, id: u32) -> Option<&Mailbox> {
        self.mailboxes.range(id..).next().map(|(_, mailbox)| mailbox)
    }

    /// The number for the next mailbox that is created.
    pub(crate) fn mailbox_next(&self) -> u32 {
        self.mailbox_next
    }

    /// Applies an account record. Afterwards the built-in mailboxes exist, even if their own
    /// records are lost.
    pub(crate) fn apply_texts(&mut self, texts: AccountTexts<'_>) {
        self.address = texts.address.into();
        self.aliases = texts.aliases.into();
        self.password_hash = texts.password_hash.into();
        self.verifier = texts.verifier.into();
        self.replaced = texts.replaced.into();
        for (mailbox, _) in BUILT_IN {
            self.mailbox_or_new(mailbox.0, UID_VALIDITY_LOST);
        }
    }

    /// Sets a note, or removes it if the value is empty. Returns the previous value.
    pub(crate) fn note(&mut self, key: &[u8], value: &[u8]) -> Option<Box<[u8]>> {
        match value {
            [] => self.notes.remove(key),
            _ => self.notes.insert(key.into(), value.into()),
        }
    }

    /// Reserves space for an arriving message: see [`AccountQuota::reserve`].
    pub(crate) fn reserve(&mut self, mailbox: MailboxId, octets: u32) -> Result<(), Refusal> {
        self.quota.reserve(mailbox, octets)
    }

    /// Releases the reservation when the delivery is over.
    pub(crate) fn release(&mut self, mailbox: MailboxId, octets: u32) {
        self.quota.release(mailbox, octets);
    }

    /// Sets the quota in octets. `None`: limited only by the disk.
    pub(crate) fn allow(&mut self, octets: Option<u64>) {
        self.quota.set_allowed(octets);
    }

    pub(crate) fn mailbox_or_new(&mut self, id: u32, uid_validity: u32) -> &mut Mailbox {
        self.mailbox_next = self.mailbox_next.max(id.saturating_add(1));
        let mailbox = self.mailboxes.entry(id).or_insert_with(|| Mailbox::new(id));
        mailbox.raise_uid_validity(uid_validity);
        mailbox
    }

    /// Puts a message into a mailbox. Returns false if its UID is taken.
    pub(crate) fn insert(&mut self, mailbox: u32, uid_validity: u32, entry: MessageEntry) -> bool {
        let known = self.mailbox_or_new(mailbox, uid_validity);
        known.raise_counters(entry.uid.saturating_add(1), entry.modseq());
        let (entry, queued) = if mailbox == OUTBOX.0 { taken_apart(entry) } else { (entry, None) };
        if !known.messages_mut().insert(entry) {
            return false;
        }
        if let Some(queued) = queued {
            self.outbox.insert(entry.uid, queued);
        }
        self.conversations.insert(mailbox, &entry);
        self.quota.add(mailbox, entry.octets);
        true
    }

    /// Removes the messages with UIDs from `first` to `last` from a mailbox, and calls `removed`
    /// with each of them.
    pub(crate) fn remove(
        &mut self,
        mailbox: u32,
        first: u32,
        last: u32,
        removed: &mut impl FnMut(&MessageEntry),
    ) {
        let Account { mailboxes, outbox, conversations, quota, .. } = self;
        let Some(known) = mailboxes.get_mut(&mailbox) else { return };
        known.messages_mut().remove(first, last, &mut |entry| {
            if mailbox == OUTBOX.0 {
                outbox.remove(&entry.uid);
            }
            conversations.remove(mailbox, entry);
            quota.remove(mailbox, entry.octets);
            removed(entry);
        });
    }

    /// Changes the marks that a message has on the disk, if the message exists.
    pub(crate) fn mark(&mut self, mailbox: u32, uid: u32, change: MarkChange, modseq: u64) {
        let Some(known) = self.mailboxes.get_mut(&mailbox) else { return };
        let Some(entry) = known.messages().find(uid).filter(|_| mailbox == OUTBOX.0) else {
            return known.mark(uid, change, modseq);
        };
        if self.outbox.get(&uid).is_some_and(|queued| !queued.is_in_marks) {
            return known.mark(uid, format3::marks_of_client(change, false), modseq);
        }
        let before = format3::join(entry.marks(), self.outbox.get(&uid).copied());
        let (marks, queued) = format3::split(change.applied(before));
        known.mark(
            uid,
            MarkChange { clear: Marks { flags: Flags(u8::MAX), keywords: u16::MAX }, set: marks },
            modseq,
        );
        match queued {
            Some(queued) => self.outbox.insert(uid, queued),
            None => self.outbox.remove(&uid),
        };
    }

    /// Sets the outbox entry of a message, if the message exists.
    pub(crate) fn put_entry(
        &mut self,
        QueuedRecord { uid: Uid(uid), modseq, entry, .. }: &QueuedRecord,
    ) {
        let Some(outbox) = self.mailboxes.get_mut(&OUTBOX.0) else { return };
        outbox.raise_counters(0, *modseq);
        if outbox.messages().find(*uid).is_some() {
            outbox.mark(*uid, MarkChange::default(), *modseq);
            self.outbox.insert(*uid, *entry);
        }
    }

    /// Applies a progress record to an outbox entry, if the entry exists.
    pub(crate) fn change_entry(&mut self, progress: &ProgressRecord) {
        let Some(outbox) = self.mailboxes.get_mut(&OUTBOX.0) else { return };
        outbox.raise_counters(0, progress.modseq);
        if let Some(entry) = self.outbox.get_mut(&progress.uid.0) {
            outbox.mark(progress.uid.0, MarkChange::default(), progress.modseq);
            progress.apply(entry);
        }
    }

    /// The entries of the account's outbox.
    pub(crate) fn outbox(&self) -> &BTreeMap<u32, OutboxEntry> {
        &self.outbox
    }

    /// A message of a mailbox in the form that format 3 stores.
    pub(crate) fn recorded(&self, mailbox: u32, entry: &MessageEntry) -> MessageEntry {
        let queued = if mailbox == OUTBOX.0 { self.outbox.get(&entry.uid).copied() } else { None };
        entry.with_marks(format3::join(entry.marks(), queued))
    }

    /// Removes a mailbox. Its number is never reused.
    pub(crate) fn remove_mailbox(&mut self, mailbox: u32) {
        if let Some(gone) = self.mailboxes.remove(&mailbox) {
            gone.messages().iter().for_each(|entry| self.conversations.remove(mailbox, entry));
            gone.messages().iter().for_each(|entry| self.quota.remove(mailbox, entry.octets));
        }
        if mailbox == OUTBOX.0 {
            self.outbox.clear();
        }
        self.mailbox_next = self.mailbox_next.max(mailbox.saturating_add(1));
    }
}

/// Splits an outbox message as it is stored on the disk into the message and its entry.
fn taken_apart(entry: MessageEntry) -> (MessageEntry, Option<OutboxEntry>) {
    let (marks, queued) = format3::split(entry.marks());
    (entry.with_marks(marks), queued)
}

/// The number of the first mailbox that is not built in.
pub(crate) const OWN_MAILBOX_MIN: u32 = 16;
