//! An account and its mailboxes in memory, and what users of the store are told of them.
//!
//! Invariants:
//! - UIDNEXT and HIGHESTMODSEQ of a mailbox never fall, and no UID and no MODSEQ is given out
//!   twice.
//! - The number of a mailbox is never used again.

use crate::conversations::Conversations;
use crate::messages::Messages;
use crate::notes::Notes;
use crate::quotas::Quota;
use crate::record::AccountTexts;
use crate::types::{AccountId, BUILT_IN, MailboxId, MailboxInfo, Modseq, Uid};
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// An account to be made. Addresses are compared as they are: whoever calls brings them into one
/// form first.
#[derive(Clone, Copy, Debug)]
pub struct NewAccount<'a> {
    /// Its address.
    pub address: &'a str,
    /// Further addresses whose mail it gets.
    pub aliases: &'a [&'a str],
    /// What a password is checked against, in the caller's form.
    pub password_hash: &'a str,
    /// What a proof is checked against by who knows the password and does not say it, in the
    /// caller's form; empty: nothing is.
    pub verifier: &'a str,
}

/// A password that takes another's place, as far as the store knows it.
#[derive(Clone, Copy, Debug)]
pub struct NewPassword<'a> {
    /// As [`NewAccount::password_hash`].
    pub hash: &'a str,
    /// As [`NewAccount::verifier`].
    pub verifier: &'a str,
    /// The hash of the configuration's in whose place it is; empty: it is the configuration's.
    pub replaced: &'a str,
}

/// What is known of an account.
#[derive(Clone, Copy, Debug)]
pub struct AccountInfo<'a> {
    pub(crate) account: &'a Account,
}

impl<'a> AccountInfo<'a> {
    /// Its id.
    pub fn id(&self) -> AccountId {
        self.account.id
    }

    /// Its address.
    pub fn address(&self) -> &'a str {
        &self.account.address
    }

    /// Its further addresses.
    pub fn aliases(&self) -> impl Iterator<Item = &'a str> {
        self.account.aliases.iter().map(|alias| &**alias)
    }

    /// What a password is checked against.
    pub fn password_hash(&self) -> &'a str {
        &self.account.password_hash
    }

    /// What a proof of knowing the password is checked against; empty: nothing is.
    pub fn verifier(&self) -> &'a str {
        &self.account.verifier
    }

    /// The password hash of the configuration's that the present one took the place of; empty where
    /// the present one is the configuration's.
    pub fn replaced(&self) -> &'a str {
        &self.account.replaced
    }

    /// A note of the account's.
    pub fn note(&self, key: &[u8]) -> Option<&'a [u8]> {
        self.account.notes.get(key).map(|value| &**value)
    }

    /// All its notes: keys, in their order, and values.
    pub fn notes(&self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> {
        self.account.notes.iter().map(|(key, value)| (&**key, &**value))
    }

    /// Its mailboxes and their names.
    pub fn mailboxes(&self) -> impl Iterator<Item = (MailboxId, &'a str)> {
        self.account.mailboxes.values().map(|mailbox| (MailboxId(mailbox.id), &*mailbox.name))
    }

    /// Octets of the messages in its mailboxes, but for the outbox.
    pub fn taken(&self) -> u64 {
        self.account.quota.taken()
    }

    /// Whether its outbox holds as much as it may: half of the quota.
    pub fn is_outbox_full(&self) -> bool {
        self.account.quota.is_outbox_full()
    }

    /// How many they may be. `None`: as many as there is room for.
    pub fn allowed(&self) -> Option<u64> {
        self.account.quota.allowed()
    }
}

/// A mailbox of an account.
#[derive(Debug)]
pub(crate) struct Mailbox {
    pub(crate) id: u32,
    pub(crate) name: Box<str>,
    pub(crate) uid_validity: u32,
    pub(crate) uid_next: u32,
    pub(crate) highest_modseq: u64,
    /// The next UID and the last MODSEQ that were given out, durable or not.
    pub(crate) given_uid_next: u32,
    pub(crate) given_modseq: u64,
    pub(crate) messages: Messages,
}

impl Mailbox {
    fn new(id: u32) -> Mailbox {
        let built_in = BUILT_IN.iter().find(|(known, _)| known.0 == id);
        Mailbox {
            id,
            name: Box::from(built_in.map_or("", |(_, name)| name)),
            uid_validity: UID_VALIDITY_LOST,
            uid_next: 1,
            highest_modseq: 0,
            given_uid_next: 1,
            given_modseq: 0,
            messages: Messages::default(),
        }
    }

    /// What users of the store are told of it.
    pub(crate) fn info(&self) -> MailboxInfo {
        MailboxInfo {
            uid_validity: self.uid_validity,
            uid_next: Uid(self.uid_next),
            highest_modseq: Modseq(self.highest_modseq),
            messages: self.messages.len(),
            unseen: self.messages.unseen(),
            octets: self.messages.octets(),
        }
    }

    pub(crate) fn saw(&mut self, uid_next: u32, modseq: u64) {
        self.uid_next = self.uid_next.max(uid_next);
        self.highest_modseq = self.highest_modseq.max(modseq);
        self.given_uid_next = self.given_uid_next.max(self.uid_next);
        self.given_modseq = self.given_modseq.max(self.highest_modseq);
    }

    pub(crate) fn next_uid(&mut self) -> u32 {
        let uid = self.given_uid_next;
        self.given_uid_next = uid.saturating_add(1);
        uid
    }

    pub(crate) fn next_modseq(&mut self) -> u64 {
        self.given_modseq += 1;
        self.given_modseq
    }
}

/// An account.
#[derive(Debug)]
pub(crate) struct Account {
    pub(crate) id: AccountId,
    /// Empty while no record of it is known.
    pub(crate) address: Box<str>,
    pub(crate) aliases: Vec<Box<str>>,
    pub(crate) password_hash: Box<str>,
    pub(crate) verifier: Box<str>,
    /// The password hash of the configuration's in whose place `password_hash` is; empty where that
    /// one is the configuration's.
    pub(crate) replaced: Box<str>,
    pub(crate) notes: Notes,
    pub(crate) mailboxes: BTreeMap<u32, Mailbox>,
    pub(crate) conversations: Conversations,
    pub(crate) quota: Quota,
    /// The number of the mailbox that is made next: none is ever used again.
    pub(crate) mailbox_next: u32,
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
            conversations: Conversations::default(),
            quota: Quota::NONE,
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

    /// Password hash, verifier and what the hash has replaced.
    pub(crate) fn swap_password(&mut self, [hash, verifier, replaced]: &mut [Box<str>; 3]) {
        core::mem::swap(&mut self.password_hash, hash);
        core::mem::swap(&mut self.verifier, verifier);
        core::mem::swap(&mut self.replaced, replaced);
    }

    /// What a record says of it.
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

    pub(crate) fn mailbox_or_new(&mut self, id: u32, uid_validity: u32) -> &mut Mailbox {
        self.mailbox_next = self.mailbox_next.max(id.saturating_add(1));
        let mailbox = self.mailboxes.entry(id).or_insert_with(|| Mailbox::new(id));
        mailbox.uid_validity = mailbox.uid_validity.max(uid_validity);
        mailbox
    }
}

/// The UIDVALIDITY of a mailbox that is known by its messages or its account alone, for the moment
/// or for good.
pub(crate) const UID_VALIDITY_LOST: u32 = 1;

/// The number of the first mailbox that is not built in.
pub(crate) const OWN_MAILBOX_MIN: u32 = 16;
