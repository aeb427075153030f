//! The indexes of all shards, and the state that follows from all of them.
//!
//! Invariants:
//! - The resident bytes are the sum over all indexes.
//! - An address belongs to its account as soon as the record that gives it the address is gathered,
//!   and until a record that takes it away is durable. So two accounts cannot get the same address.

use crate::account::Account;
use crate::finding::{Damage, Findings};
use crate::hash::DiskRandom;
use crate::index::{Index, PageChange};
use crate::layout::ShardId;
use crate::outcome::Refusal;
use crate::record::{self, Record};
use crate::segments::Segments;
use crate::shards::{PerShard, ShardSet};
use crate::types::{AccountId, MailboxId, OUTBOX, Recipient, Uid};
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use machine::Sector;

pub(crate) struct Indexes {
    shards: PerShard<Index>,
    directory: BTreeMap<Box<str>, AccountId>,
    resident_bytes: u64,
    resident_bytes_max: u64,
    /// The shards that have changed since the last call of `take_changes`.
    changed: ShardSet,
    /// Messages that arrived in outboxes, until [`Indexes::next_posted`] returns them.
    posted: Vec<(AccountId, Uid)>,
}

impl Indexes {
    pub(crate) fn new(resident_bytes_max: u64) -> Indexes {
        Indexes {
            shards: PerShard::new(|_| Index::default()),
            directory: BTreeMap::new(),
            resident_bytes: 0,
            resident_bytes_max,
            changed: ShardSet::EMPTY,
            posted: Vec::new(),
        }
    }

    #[inline]
    pub(crate) fn of(&self, shard: ShardId) -> &Index {
        self.shards.of(shard)
    }

    #[inline]
    pub(crate) fn of_mut(&mut self, shard: ShardId) -> &mut Index {
        self.shards.of_mut(shard)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Index> {
        self.shards.iter().map(|(_, index)| index)
    }

    pub(crate) fn account(&self, id: AccountId) -> Option<&Account> {
        self.of(id.shard()).account(id)
    }

    /// The account of a delivery in progress. It exists, because accounts are never removed.
    fn known_mut(&mut self, id: AccountId) -> &mut Account {
        match self.of_mut(id.shard()).account_mut(id) {
            Some(account) => account,
            None => unreachable!("an account that is gone"),
        }
    }

    pub(crate) fn accounts(&self) -> impl Iterator<Item = &Account> {
        self.iter().flat_map(Index::accounts)
    }

    pub(crate) fn accounts_mut(&mut self) -> impl Iterator<Item = &mut Account> {
        self.shards.iter_mut().flat_map(|(_, index)| index.accounts_mut())
    }

    /// Whether messages have reached their limit of memory.
    pub(crate) fn are_full(&self) -> bool {
        self.resident_bytes >= self.resident_bytes_max
    }

    pub(crate) fn resident_bytes(&self) -> u64 {
        self.resident_bytes
    }

    pub(crate) fn resident_bytes_max(&self) -> u64 {
        self.resident_bytes_max
    }

    pub(crate) fn set_resident_bytes_max(&mut self, bytes: u64) {
        self.resident_bytes_max = bytes;
    }

    /// The account that an address belongs to, even if the account is not durable yet.
    pub(crate) fn owner_of(&self, address: &str) -> Option<AccountId> {
        self.directory.get(address).copied()
    }

    /// Assigns these addresses to an account that is being created, or that gets them as aliases.
    pub(crate) fn give_addresses(
        &mut self,
        id: AccountId,
        addresses: impl Iterator<Item = Box<str>>,
    ) {
        self.directory.extend(addresses.map(|address| (address, id)));
    }

    /// Makes the durable addresses of an account its only ones, after a change of its addresses is
    /// durable or was refused.
    pub(crate) fn renew_addresses(&mut self, id: AccountId) {
        self.directory.retain(|_, owner| *owner != id);
        if let Some(account) = self.shards.of(id.shard()).account(id) {
            self.directory.extend(account.addresses().map(|address| (address.clone(), id)));
        }
    }

    /// Reserves space in the account of each recipient for a complete message.
    ///
    /// Errors: `OverQuota`, `LargerThanQuota`: one recipient has no space, and none gets the
    /// message.
    pub(crate) fn reserve(&mut self, recipients: &[Recipient], octets: u32) -> Result<(), Refusal> {
        for (number, recipient) in recipients.iter().enumerate() {
            if let Err(refusal) =
                self.known_mut(recipient.account).reserve(recipient.mailbox, octets)
            {
                self.release(recipients.iter().take(number), octets);
                return Err(refusal);
            }
        }
        Ok(())
    }

    /// Releases the reservations at the end of a delivery. If the delivery was successful, the
    /// message itself counts now.
    pub(crate) fn release<'a>(
        &mut self,
        recipients: impl IntoIterator<Item = &'a Recipient>,
        octets: u32,
    ) {
        for recipient in recipients {
            self.known_mut(recipient.account).release(recipient.mailbox, octets);
        }
    }

    /// Applies the records of a block in order. A group may have several blocks.
    pub(crate) fn apply(&mut self, shard: ShardId, records: &[u8], segments: &mut Segments) {
        let index = self.shards.of_mut(shard);
        let before = index.resident_bytes();
        for record in record::records(records) {
            if let Record::Range { .. } = record {
                // A range is a part of a checkpoint, which repeats what the index has. The messages
                // of the chunks announced before it are visible already.
                index.forget_announced();
                continue;
            }
            if let Record::Delivered { account, mailbox, entry, .. } = record
                && MailboxId(mailbox) == OUTBOX
            {
                self.posted.push((account, Uid(entry.uid)));
            }
            index.apply(&record, &mut |space| match space {
                PageChange::Live(page, pages) => segments.lives(page, pages),
                PageChange::Dead(page, pages) => segments.died(page, pages),
            });
        }
        self.resident_bytes = self.resident_bytes + index.resident_bytes() - before;
    }

    /// Ends a group: all of its records, which are of `shards`, have been applied.
    pub(crate) fn group_ended(&mut self, shards: ShardSet) {
        self.changed = self.changed.or(shards);
        shards.iter().for_each(|shard| self.of_mut(shard).group_ended());
    }

    pub(crate) fn has_changes(&self) -> bool {
        !self.changed.is_empty()
    }

    pub(crate) fn take_changes(&mut self) -> ShardSet {
        core::mem::take(&mut self.changed)
    }

    pub(crate) fn next_posted(&mut self) -> Option<(AccountId, Uid)> {
        self.posted.pop()
    }

    pub(crate) fn has_posted(&self) -> bool {
        !self.posted.is_empty()
    }

    /// While opening: makes all indexes empty. Their journals will be replayed.
    pub(crate) fn begin(&mut self) {
        self.shards = PerShard::new(Index::of_shard);
    }

    /// While opening: takes an index out to replay a journal into it, or puts it back.
    pub(crate) fn swap(&mut self, shard: ShardId, index: Index) -> Index {
        core::mem::replace(self.of_mut(shard), index)
    }

    /// Ends the opening. Skips the GUID numbers that lost records may have used, and collects the
    /// addresses.
    pub(crate) fn opened(&mut self, random: &mut DiskRandom, findings: &mut Findings) {
        let mut nameless = Vec::new();
        for (_, index) in self.shards.iter_mut() {
            index.skip_guids(1 + (random.number() & 0xFFFF));
            self.resident_bytes += index.resident_bytes();
            for account in index.accounts() {
                if !account.is_named() {
                    nameless.push(account.id());
                }
                self.directory.extend(account.addresses().map(|name| (name.clone(), account.id())));
            }
        }
        nameless.into_iter().for_each(|id| findings.note(Sector(0), Damage::Nameless(id)));
    }

    /// Takes out the indexes of the shards `theirs`.
    pub(crate) fn split_off(&mut self, theirs: ShardSet) -> PerShard<Index> {
        let mut others = PerShard::new(|_| Index::default());
        theirs.iter().for_each(|shard| core::mem::swap(self.of_mut(shard), others.of_mut(shard)));
        self.recount();
        others
    }

    pub(crate) fn take_over(&mut self, shards: PerShard<Index>) {
        self.shards = shards;
        self.recount();
    }

    fn recount(&mut self) {
        self.resident_bytes = self.iter().map(Index::resident_bytes).sum();
    }
}
