//! The index of one shard in memory: accounts, mailboxes, messages, and the places of their bodies.
//!
//! Invariants:
//! - Only durable records change the index. The same code applies them while the store serves and
//!   during a replay.
//! - UIDNEXT and HIGHESTMODSEQ never fall.
//! - A message with several chunks, or one that was moved to another mailbox, is in `placed` with
//!   the pages of its chunks. The chunks of such a message may still name the mailbox of its
//!   delivery. The chunk of every other message names the mailbox that has the message.

use crate::account::{Account, OWN_MAILBOX_MIN};
use crate::chunk::{CHUNKS_MAX, chunks_of, pages_of_chunk};
use crate::conversations::CONVERSED_BYTES;
use crate::layout::{Page, ShardId};
use crate::mailbox::Mailbox;
use crate::messages::{ENTRY_BYTES, MessageEntry};
use crate::notes::{self, bytes_of_note};
use crate::outbox::RESIDENT_BYTES_QUEUED;
use crate::outcome::Refusal;
use crate::record::{AccountTexts, Record};
use crate::types::{AccountId, MailboxId, Place, Recipient};
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// The most memory that a message takes: twice its entry, because half of an index block may be
/// unused, and its place in the set of conversations.
pub const RESIDENT_BYTES_PER_MESSAGE: usize = 2 * ENTRY_BYTES + CONVERSED_BYTES;

const _: () = assert!(RESIDENT_BYTES_PER_MESSAGE <= 128);

/// The additional memory of a message that was moved to another mailbox or has several chunks. For
/// each chunk, 4 bytes are added.
pub const RESIDENT_BYTES_PLACED: usize = 112;

/// Bytes of the record of an outbox entry.
const QUEUED_RECORD_BYTES: u64 = 32;

/// The most bytes of unreadable records that a shard keeps.
const KEPT_BYTES_MAX: usize = 8 * 1024;

/// The place of a message that cannot be found by the fields of its chunks.
#[derive(Debug)]
pub(crate) struct Placed {
    pub(crate) account: AccountId,
    pub(crate) place: Place,
    pub(crate) pages: Vec<u32>,
}

/// Pages that became live or dead.
#[derive(Clone, Copy, Debug)]
pub(crate) enum PageChange {
    Live(Page, u32),
    Dead(Page, u32),
}

/// The index of a shard.
#[derive(Debug, Default)]
pub(crate) struct Index {
    accounts: BTreeMap<AccountId, Account>,
    placed: BTreeMap<u64, Placed>,
    guid_next: u64,
    messages: u64,
    /// The number of outbox entries.
    queued: usize,
    placed_chunks: u64,
    /// Records that this program cannot read, in their form on the disk.
    kept: Vec<Box<[u8]>>,
    /// Memory of notes, as [`bytes_of_note`] counts it.
    note_bytes: u64,
    /// The pages of chunks, by GUID number, until the record of their message follows in the group.
    announced: BTreeMap<u64, Vec<u32>>,
    /// The new places of messages that this group has moved to another mailbox. Later records of
    /// the group may still name the old places.
    forwards: BTreeMap<(AccountId, Place), Place>,
}

impl Index {
    /// The empty index of a shard, with its own range of GUID numbers.
    pub(crate) fn of_shard(shard: ShardId) -> Index {
        Index { guid_next: u64::from(shard.0) << 42, ..Index::default() }
    }

    pub(crate) fn account(&self, id: AccountId) -> Option<&Account> {
        self.accounts.get(&id)
    }

    pub(crate) fn account_mut(&mut self, id: AccountId) -> Option<&mut Account> {
        self.accounts.get_mut(&id)
    }

    /// All accounts, ascending.
    pub(crate) fn accounts(&self) -> impl Iterator<Item = &Account> {
        self.accounts.values()
    }

    pub(crate) fn accounts_mut(&mut self) -> impl Iterator<Item = &mut Account> {
        self.accounts.values_mut()
    }

    /// The account with this id, or with the next higher id.
    pub(crate) fn account_from(&self, id: AccountId) -> Option<&Account> {
        self.accounts.range(id..).next().map(|(_, account)| account)
    }

    /// The message with this GUID number, if it is in `placed`.
    pub(crate) fn placed(&self, guid: u64) -> Option<&Placed> {
        self.placed.get(&guid)
    }

    #[cfg(test)]
    pub(crate) fn all_placed(&self) -> impl Iterator<Item = &Placed> {
        self.placed.values()
    }

    /// The next GUID number.
    pub(crate) fn guid_next(&self) -> u64 {
        self.guid_next
    }

    /// Skips `count` GUID numbers.
    pub(crate) fn skip_guids(&mut self, count: u64) {
        self.guid_next += count;
    }

    /// The most memory that messages, entries, notes and kept records take.
    pub(crate) fn resident_bytes(&self) -> u64 {
        let others =
            self.placed.len() * RESIDENT_BYTES_PLACED + self.queued * RESIDENT_BYTES_QUEUED;
        let messages = self.messages * RESIDENT_BYTES_PER_MESSAGE as u64;
        messages + (others + self.kept_bytes()) as u64 + self.placed_chunks * 4 + self.note_bytes
    }

    /// Keeps an unreadable record, unless it is kept already. Returns false if there is no space.
    pub(crate) fn keep(&mut self, record: &[u8]) -> bool {
        if self.kept.iter().any(|known| **known == *record) {
            return true;
        }
        let fits = self.kept_bytes() + record.len() <= KEPT_BYTES_MAX;
        if fits {
            self.kept.push(record.into());
        }
        fits
    }

    /// The unreadable records that are kept.
    pub(crate) fn kept(&self) -> impl Iterator<Item = &[u8]> {
        self.kept.iter().map(|record| &**record)
    }

    fn kept_bytes(&self) -> usize {
        self.kept().map(<[u8]>::len).sum()
    }

    /// The approximate number of blocks in a checkpoint of this shard.
    pub(crate) fn checkpoint_blocks(&self) -> u32 {
        let (placed, accounts) = (self.placed.len() as u64, self.accounts.len() as u64);
        let bytes = self.messages * 36
            + placed * 16
            + self.placed_chunks * 5
            + accounts * 1000
            + self.note_bytes;
        let bytes = bytes + self.queued as u64 * QUEUED_RECORD_BYTES;
        let bytes = bytes + self.kept_bytes() as u64;
        (bytes / 3500 + 1).min(u64::from(u32::MAX)) as u32
    }

    pub(crate) fn mailbox(&self, account: AccountId, mailbox: u32) -> Option<&Mailbox> {
        self.accounts.get(&account)?.mailbox(mailbox)
    }

    pub(crate) fn mailbox_mut(&mut self, account: AccountId, mailbox: u32) -> Option<&mut Mailbox> {
        self.accounts.get_mut(&account)?.mailbox_mut(mailbox)
    }

    /// The GUID number for a new message to `recipient`.
    ///
    /// Errors: `NoSuchAccount`; the errors of [`check_takes_mail`]; `Arrived` and `TooMany` if
    /// `recipient.once` is set.
    pub(crate) fn guid_for(&mut self, recipient: &Recipient) -> Result<u64, Refusal> {
        let account = self.accounts.get(&recipient.account).ok_or(Refusal::NoSuchAccount)?;
        // A message that has arrived before gets `Arrived`, even if it took the last UID at that
        // time.
        if let Some(origin) = recipient.once {
            notes::check_arrival(account.notes(), origin)?;
        }
        check_takes_mail(account, recipient.mailbox)?;
        let guid = self.guid_next;
        self.guid_next += 1;
        Ok(guid)
    }

    /// Whether mail may be delivered to a mailbox.
    pub(crate) fn takes_mail(&self, account: AccountId, mailbox: MailboxId) -> bool {
        self.accounts
            .get(&account)
            .is_some_and(|account| check_takes_mail(account, mailbox).is_ok())
    }

    /// The place of the chunk with `index` of a message, and its number of pages.
    pub(crate) fn chunk(&self, entry: &MessageEntry, index: u32) -> Option<(Page, u32)> {
        let chunks = chunks_of(entry.octets);
        if index >= chunks {
            return None;
        }
        let page = match chunks {
            1 => entry.page,
            _ => *self.placed.get(&entry.guid())?.pages.get(index as usize)?,
        };
        Some((Page(page), pages_of_chunk(entry.octets, index)))
    }

    /// All chunks of a message.
    pub(crate) fn chunks(&self, entry: &MessageEntry) -> impl Iterator<Item = (Page, u32)> {
        (0..chunks_of(entry.octets)).filter_map(move |index| self.chunk(entry, index))
    }

    /// Applies one record. Calls `space` with the pages that become live or dead.
    pub(crate) fn apply(&mut self, record: &Record<'_>, space: &mut impl FnMut(PageChange)) {
        match *record {
            Record::Account { .. } => self.apply_account(record),
            Record::Mailbox { account, mailbox, uid_validity, uid_next, highest_modseq, name } => {
                let mailbox = account_or_unnamed(&mut self.accounts, account)
                    .mailbox_or_new(mailbox, uid_validity);
                mailbox.rename(name);
                mailbox.raise_counters(uid_next, highest_modseq);
            }
            Record::Delivered { account, mailbox, uid_validity, entry, .. } => {
                if self.insert(account, mailbox, uid_validity, entry) {
                    self.chunks(&entry)
                        .for_each(|(page, pages)| space(PageChange::Live(page, pages)));
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
                for (first, last) in ranges.pairs() {
                    self.remove(account, mailbox, &[(first, last)], space);
                    self.remove_forwarded(account, mailbox, (first, last), space);
                }
                if let Some(mailbox) = self.mailbox_mut(account, mailbox) {
                    mailbox.raise_counters(0, modseq);
                }
            }
            Record::Marked { account, place, modseq, change } => {
                if let Some(mailbox) = self.mailbox_mut(account, place.mailbox) {
                    mailbox.raise_counters(0, modseq);
                }
                let place = self.forwards.get(&(account, place)).copied().unwrap_or(place);
                if let Some(account) = self.accounts.get_mut(&account) {
                    change_counted(account, &mut self.queued, |account| {
                        account.mark(place.mailbox, place.uid, change, modseq);
                    });
                }
            }
            Record::Moved { account, mailbox, uid, guid, index, from, to } => {
                if let Some(pages) =
                    self.moved((account, Place { mailbox, uid }), guid, index, from, to)
                {
                    space(PageChange::Live(to, pages));
                    space(PageChange::Dead(from, pages));
                }
            }
            Record::Life => {}
            Record::Shard { guid_next } => self.guid_next = self.guid_next.max(guid_next),
            Record::Filed { account, from, modseq, to, uid_validity, entry } => {
                self.file(account, (from, modseq), (to, uid_validity), entry);
            }
            Record::Gone { account, mailbox } => {
                let account = account_or_unnamed(&mut self.accounts, account);
                change_counted(account, &mut self.queued, |account| {
                    account.remove_mailbox(mailbox)
                });
            }
            Record::Note { account, key, value } => self.note(account, key, value),
            Record::Queued(ref record) => {
                if let Some(account) = self.accounts.get_mut(&record.account) {
                    change_counted(account, &mut self.queued, |account| account.put_entry(record));
                }
            }
            Record::Progress(ref record) => {
                if let Some(account) = self.accounts.get_mut(&record.account) {
                    account.change_entry(record);
                }
            }
        }
    }

    /// Sets a note, or removes it if the value is empty.
    fn note(&mut self, account: AccountId, key: &[u8], value: &[u8]) {
        let before = account_or_unnamed(&mut self.accounts, account).note(key, value);
        let bytes = |value: &[u8]| if value.is_empty() { 0 } else { bytes_of_note(key, value) };
        self.note_bytes =
            self.note_bytes + bytes(value) - before.map_or(0, |before| bytes(&before));
    }

    /// Removes the notes of a message's arrival, as if the message had never arrived. Returns the
    /// keys of the notes.
    pub(crate) fn take_back_arrivals(&mut self, account: AccountId, guid: u64) -> Vec<Box<[u8]>> {
        let known = self.accounts.get(&account);
        let keys = known.map_or(Vec::new(), |known| notes::arrivals_of(known.notes(), guid));
        keys.iter().for_each(|key| self.note(account, key, &[]));
        keys
    }

    fn apply_account(&mut self, record: &Record<'_>) {
        let Record::Account { id, address, aliases, password_hash, verifier, replaced } = *record
        else {
            unreachable!("a record that is not of an account")
        };
        let aliases: Vec<Box<str>> = aliases.iter().map(Box::from).collect();
        let texts =
            AccountTexts { id, address, aliases: &aliases, password_hash, verifier, replaced };
        account_or_unnamed(&mut self.accounts, id).apply_texts(texts);
    }

    /// Makes a message visible. Returns false if it is visible already, or if some of its chunks
    /// are unknown.
    pub(crate) fn insert(
        &mut self,
        account: AccountId,
        mailbox: u32,
        uid_validity: u32,
        entry: MessageEntry,
    ) -> bool {
        let guid = entry.guid();
        self.guid_next = self.guid_next.max(guid + 1);
        let chunks = chunks_of(entry.octets);
        let pages = self.announced.remove(&guid).filter(|pages| pages.len() == chunks as usize);
        if chunks > 1 && pages.is_none() {
            return false;
        }
        let known = account_or_unnamed(&mut self.accounts, account);
        if !change_counted(known, &mut self.queued, |known| {
            known.insert(mailbox, uid_validity, entry)
        }) {
            return false;
        }
        self.messages += 1;
        if let Some(pages) = pages {
            self.placed_chunks += u64::from(chunks);
            self.placed
                .insert(guid, Placed { account, place: Place { mailbox, uid: entry.uid }, pages });
        }
        true
    }

    /// Moves a message from one mailbox to another. In a replay, the first mailbox may not have the
    /// message yet.
    fn file(
        &mut self,
        account: AccountId,
        (from, modseq): (Place, u64),
        (to, uid_validity): (u32, u32),
        entry: MessageEntry,
    ) {
        let known = self
            .mailbox(account, from.mailbox)
            .and_then(|mailbox| mailbox.messages().find(from.uid));
        if known.is_some_and(|known| known.guid() == entry.guid()) {
            self.remove(account, from.mailbox, &[(from.uid, from.uid)], &mut |_| {});
        }
        if let Some(mailbox) = self.mailbox_mut(account, from.mailbox) {
            mailbox.raise_counters(0, modseq);
        }
        self.forwards.insert((account, from), Place { mailbox: to, uid: entry.uid });
        self.insert(account, to, uid_validity, entry);
    }

    /// Ends a group: all of its records have been applied.
    pub(crate) fn group_ended(&mut self) {
        self.forwards.clear();
    }

    /// Records the places of a message's chunks, beginning with the chunk `first`. The record of
    /// the message follows.
    pub(crate) fn announce(&mut self, guid: u64, first: u32, pages: impl Iterator<Item = u32>) {
        let known = self.announced.entry(guid).or_default();
        known.truncate(first as usize);
        known.extend(pages.take(CHUNKS_MAX as usize - known.len().min(CHUNKS_MAX as usize)));
    }

    /// Forgets the announced chunks. Their messages are visible already, or never will be.
    pub(crate) fn forget_announced(&mut self) {
        self.announced.clear();
    }

    /// Removes the messages in `ranges` of UIDs.
    pub(crate) fn remove(
        &mut self,
        account: AccountId,
        mailbox: u32,
        ranges: &[(u32, u32)],
        space: &mut impl FnMut(PageChange),
    ) {
        let Some(account) = self.accounts.get_mut(&account) else { return };
        let (placed, messages, placed_chunks) =
            (&mut self.placed, &mut self.messages, &mut self.placed_chunks);
        let mut removed = |entry: &MessageEntry| {
            *messages -= 1;
            let Some(gone) = placed.remove(&entry.guid()) else {
                return space(PageChange::Dead(Page(entry.page), pages_of_chunk(entry.octets, 0)));
            };
            *placed_chunks -= gone.pages.len() as u64;
            for (page, index) in gone.pages.iter().zip(0..) {
                space(PageChange::Dead(Page(*page), pages_of_chunk(entry.octets, index)));
            }
        };
        change_counted(account, &mut self.queued, |account| {
            ranges
                .iter()
                .for_each(|(first, last)| account.remove(mailbox, *first, *last, &mut removed));
        });
    }

    /// Removes the messages that had these UIDs before they were moved to another mailbox in this
    /// group.
    fn remove_forwarded(
        &mut self,
        account: AccountId,
        mailbox: u32,
        (first, last): (u32, u32),
        space: &mut impl FnMut(PageChange),
    ) {
        let of = |uid| (account, Place { mailbox, uid });
        if first > last || self.forwards.is_empty() {
            return;
        }
        let gone: Vec<Place> =
            self.forwards.range(of(first)..=of(last)).map(|(_, place)| *place).collect();
        for place in gone {
            self.remove(account, place.mailbox, &[(place.uid, place.uid)], space);
        }
    }

    /// Records the new place of a chunk, if the chunk is still at `from`. Returns its number of
    /// pages. After the record was made, the message may have been moved to another mailbox.
    fn moved(
        &mut self,
        (account, place): (AccountId, Place),
        guid: u64,
        index: u32,
        from: Page,
        to: Page,
    ) -> Option<u32> {
        let mut placed = self.placed.get_mut(&guid).filter(|placed| placed.account == account);
        let place = placed.as_ref().map_or(place, |placed| placed.place);
        let mailbox = self.accounts.get_mut(&account)?.mailbox_mut(place.mailbox)?;
        let entry = mailbox.find_mut(place.uid).filter(|entry| entry.guid() == guid)?;
        let known = match &mut placed {
            Some(placed) => placed.pages.get_mut(index as usize)?,
            None => &mut entry.page,
        };
        if *known != from.0 {
            return None;
        }
        *known = to.0;
        if index == 0 {
            entry.page = to.0;
        }
        Some(pages_of_chunk(entry.octets, index))
    }
}

fn account_or_unnamed(accounts: &mut BTreeMap<AccountId, Account>, id: AccountId) -> &mut Account {
    accounts.entry(id).or_insert_with(|| Account::unnamed(id))
}

/// Changes an account, and keeps the count of outbox entries up to date.
fn change_counted<T>(
    account: &mut Account,
    queued: &mut usize,
    change: impl FnOnce(&mut Account) -> T,
) -> T {
    let before = account.outbox().len();
    let changed = change(account);
    *queued = *queued + account.outbox().len() - before;
    changed
}

/// Checks that mail may be delivered to a mailbox.
///
/// Errors: `NoSuchMailbox`, also for a mailbox that the user could remove before the message
/// arrives; `TooMany` if the mailbox has no UID left.
fn check_takes_mail(account: &Account, MailboxId(mailbox): MailboxId) -> Result<(), Refusal> {
    let known = account
        .mailbox(mailbox)
        .filter(|_| mailbox < OWN_MAILBOX_MIN)
        .ok_or(Refusal::NoSuchMailbox)?;
    if known.uids_left() > 0 { Ok(()) } else { Err(Refusal::TooMany) }
}
