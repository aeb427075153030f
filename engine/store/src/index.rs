//! The index of one shard in memory: accounts, mailboxes, messages, and where their bodies lie.
//!
//! Invariants:
//! - It changes only by applying records that are durable: the same code serves while running and while replaying.
//! - UIDNEXT and HIGHESTMODSEQ never fall.
//! - A message of several chunks has its list of pages in `large`; one of a single chunk has none.

pub(crate) use crate::messages::{ENTRY_BYTES, Entry, Messages};

use crate::chunk::{CHUNKS_MAX, chunks_of, pages_of_chunk};
use crate::layout::{Page, ShardId};
use crate::record::Record;
use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// Names an account: the keyed hash of its canonical address.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct AccountId(pub(crate) u64);

impl AccountId {
    /// The id in one number.
    pub const fn to_bits(self) -> u64 {
        self.0
    }

    /// The inverse of [`AccountId::to_bits`].
    pub const fn from_bits(bits: u64) -> AccountId {
        AccountId(bits)
    }

    pub(crate) fn shard(self) -> ShardId {
        ShardId((self.0 % crate::layout::SHARDS as u64) as u8)
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
    fn new(id: u32, uid_validity: u32) -> Mailbox {
        Mailbox {
            id,
            name: Box::from(""),
            uid_validity,
            uid_next: 1,
            highest_modseq: 0,
            given_uid_next: 1,
            given_modseq: 0,
            messages: Messages::default(),
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
    pub(crate) settings: Box<str>,
    pub(crate) mailboxes: BTreeMap<u32, Mailbox>,
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
            settings: empty(),
            mailboxes: BTreeMap::new(),
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

    pub(crate) fn mailbox_or_new(&mut self, id: u32, uid_validity: u32) -> &mut Mailbox {
        self.mailboxes.entry(id).or_insert_with(|| Mailbox::new(id, uid_validity))
    }
}

/// A message of several chunks.
#[derive(Debug)]
pub(crate) struct Large {
    pub(crate) account: AccountId,
    pub(crate) mailbox: u32,
    pub(crate) uid: u32,
    pub(crate) pages: Vec<u32>,
}

/// Pages that came to hold something living, or ceased to.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Space {
    Lives(Page, u32),
    Died(Page, u32),
}

/// All that a shard knows.
#[derive(Debug, Default)]
pub(crate) struct Index {
    pub(crate) accounts: BTreeMap<AccountId, Account>,
    pub(crate) large: BTreeMap<u64, Large>,
    pub(crate) guid_next: u64,
    pub(crate) messages: u64,
    pub(crate) large_chunks: u64,
    /// The chunks of large messages whose own record comes later in the group.
    announced: BTreeMap<u64, Vec<u32>>,
}

impl Index {
    /// The empty index of a shard, whose GUID numbers are its own.
    pub(crate) fn of_shard(shard: ShardId) -> Index {
        Index { guid_next: u64::from(shard.0) << 42, ..Index::default() }
    }

    pub(crate) fn mailbox(&self, account: AccountId, mailbox: u32) -> Option<&Mailbox> {
        self.accounts.get(&account)?.mailbox(mailbox)
    }

    pub(crate) fn mailbox_mut(&mut self, account: AccountId, mailbox: u32) -> Option<&mut Mailbox> {
        self.accounts.get_mut(&account)?.mailbox_mut(mailbox)
    }

    /// Where the chunk with `index` of a message lies, and in how many pages.
    pub(crate) fn chunk(&self, entry: &Entry, index: u32) -> Option<(Page, u32)> {
        let chunks = chunks_of(entry.octets);
        if index >= chunks {
            return None;
        }
        let page = match chunks {
            1 => entry.page,
            _ => *self.large.get(&entry.guid())?.pages.get(index as usize)?,
        };
        Some((Page(page), pages_of_chunk(entry.octets, index)))
    }

    /// All chunks of a message.
    pub(crate) fn chunks(&self, entry: &Entry) -> impl Iterator<Item = (Page, u32)> {
        (0..chunks_of(entry.octets)).filter_map(move |index| self.chunk(entry, index))
    }

    /// Applies one record. `space` is told which pages live and die by it.
    pub(crate) fn apply(&mut self, record: &Record<'_>, space: &mut impl FnMut(Space)) {
        match *record {
            Record::Account { .. } => self.apply_account(record),
            Record::Mailbox { account, mailbox, uid_validity, uid_next, highest_modseq, name } => {
                let mailbox = self.account_or_unnamed(account).mailbox_or_new(mailbox, uid_validity);
                mailbox.name = name.into();
                mailbox.uid_validity = uid_validity;
                mailbox.saw(uid_next, highest_modseq);
            }
            Record::Delivered { account, mailbox, uid_validity, entry, .. } => {
                if self.insert(account, mailbox, uid_validity, entry) {
                    self.chunks(&entry).for_each(|(page, pages)| space(Space::Lives(page, pages)));
                }
            }
            Record::Chunks { guid, first, pages, .. } => self.announce(guid, first, pages.iter()),
            Record::Range { account, mailbox, first, last, entries } => {
                self.remove(account, mailbox, &[(first, last)], &mut |_| {});
                entries.iter().for_each(|entry| {
                    self.insert(account, mailbox, 0, entry);
                });
                self.forget_announced();
            }
            Record::Removed { account, mailbox, modseq, ranges } => {
                for range in ranges.pairs() {
                    self.remove(account, mailbox, &[range], space);
                }
                if let Some(mailbox) = self.mailbox_mut(account, mailbox) {
                    mailbox.saw(0, modseq);
                }
            }
            Record::Flags { account, mailbox, uid, modseq, flags, keywords } => {
                let Some(mailbox) = self.mailbox_mut(account, mailbox) else { return };
                mailbox.saw(0, modseq);
                if let Some(entry) = mailbox.messages.find_mut(uid) {
                    entry.set_flags(flags, keywords, modseq);
                }
            }
            Record::Moved { account, mailbox, uid, guid, index, from, to } => {
                if let Some(pages) = self.moved((account, mailbox, uid), guid, index, from, to) {
                    space(Space::Lives(to, pages));
                    space(Space::Died(from, pages));
                }
            }
            Record::Shard { guid_next } => self.guid_next = self.guid_next.max(guid_next),
        }
    }

    fn apply_account(&mut self, record: &Record<'_>) {
        let Record::Account { id, address, aliases, password_hash, verifier, settings } = *record else { return };
        let account = self.account_or_unnamed(id);
        account.address = address.into();
        account.aliases = aliases.iter().map(|alias| alias.to_owned().into_boxed_str()).collect();
        account.password_hash = password_hash.into();
        account.verifier = verifier.into();
        account.settings = settings.into();
    }

    /// Makes a message visible; false when it was already, or when not all its chunks are known.
    pub(crate) fn insert(&mut self, account: AccountId, mailbox: u32, uid_validity: u32, entry: Entry) -> bool {
        let guid = entry.guid();
        self.guid_next = self.guid_next.max(guid + 1);
        let chunks = chunks_of(entry.octets);
        let pages = if chunks > 1 { self.announced.remove(&guid) } else { None };
        if chunks > 1 && pages.as_ref().is_none_or(|pages| pages.len() != chunks as usize) {
            return false;
        }
        let known = self.account_or_unnamed(account).mailbox_or_new(mailbox, uid_validity);
        known.saw(entry.uid.saturating_add(1), entry.modseq());
        if !known.messages.insert(entry) {
            return false;
        }
        self.messages += 1;
        if let Some(pages) = pages {
            self.large_chunks += u64::from(chunks);
            self.large.insert(guid, Large { account, mailbox, uid: entry.uid, pages });
        }
        true
    }

    /// Where the chunks from `first` on of a message lie that is to be made visible next.
    pub(crate) fn announce(&mut self, guid: u64, first: u32, pages: impl Iterator<Item = u32>) {
        let known = self.announced.entry(guid).or_default();
        known.truncate(first as usize);
        known.extend(pages.take(CHUNKS_MAX as usize - known.len().min(CHUNKS_MAX as usize)));
    }

    /// What was announced is visible already, or never will be.
    pub(crate) fn forget_announced(&mut self) {
        self.announced.clear();
    }

    /// Takes out the messages in `ranges` of UIDs.
    pub(crate) fn remove(
        &mut self,
        account: AccountId,
        mailbox: u32,
        ranges: &[(u32, u32)],
        space: &mut impl FnMut(Space),
    ) {
        let Some(known) = self.accounts.get_mut(&account).and_then(|account| account.mailbox_mut(mailbox)) else {
            return;
        };
        let (large, messages, large_chunks) = (&mut self.large, &mut self.messages, &mut self.large_chunks);
        for (first, last) in ranges {
            known.messages.remove(*first, *last, &mut |entry| {
                *messages -= 1;
                if chunks_of(entry.octets) == 1 {
                    return space(Space::Died(Page(entry.page), pages_of_chunk(entry.octets, 0)));
                }
                let Some(gone) = large.remove(&entry.guid()) else { return };
                *large_chunks -= gone.pages.len() as u64;
                for (page, index) in gone.pages.iter().zip(0..) {
                    space(Space::Died(Page(*page), pages_of_chunk(entry.octets, index)));
                }
            });
        }
    }

    /// Notes a chunk's new place, if it still is where it was moved from; how many pages it takes.
    fn moved(
        &mut self,
        (account, mailbox, uid): (AccountId, u32, u32),
        guid: u64,
        index: u32,
        from: Page,
        to: Page,
    ) -> Option<u32> {
        let entry = self.accounts.get_mut(&account)?.mailbox_mut(mailbox)?.messages.find_mut(uid)?;
        if entry.guid() != guid {
            return None;
        }
        let octets = entry.octets;
        if chunks_of(octets) > 1 {
            let place = self.large.get_mut(&guid)?.pages.get_mut(index as usize)?;
            if *place != from.0 {
                return None;
            }
            *place = to.0;
        } else if entry.page != from.0 {
            return None;
        }
        if index == 0 {
            entry.page = to.0;
        }
        Some(pages_of_chunk(octets, index))
    }

    fn account_or_unnamed(&mut self, id: AccountId) -> &mut Account {
        self.accounts.entry(id).or_insert_with(|| Account::unnamed(id))
    }
}
