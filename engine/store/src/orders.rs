//! Changes that are made with the index as it is: mailboxes made, renamed and removed, messages filed into another one, notes of an account.
//!
//! Other changes become records at once, whatever else is on its way. These must look first: whether a name is free, which flags a
//! message has, where its body lies, how many notes there are. So they wait in their shard as orders until a group is made: then nothing is in flight, and the
//! index is what the disk has. Section 6 of `docs/format.md`.
//!
//! Invariants:
//! - One order an account and group: none overlooks what another is about to change.
//! - A record `filed` says all that is known of its message: replay may come to it before it knows the mailbox that the message
//!   leaves.

use crate::account::{Account, OWN_MAILBOX_MIN};
use crate::block::RECORDS_MAX;
use crate::chunk::CHUNKS_MAX;
use crate::group::{Pending, blocks_of};
use crate::index::Index;
use crate::layout::ShardId;
use crate::notes::{self, NoteChange};
use crate::outcome::{Outcome, Refusal};
use crate::record::{self, REMOVED_RANGES};
use crate::store::Store;
use crate::types::{AccountId, Filed, MailboxId, OUTBOX, Origin, Place, Uid, UidRange};
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use machine::UnixTime;
use tasks::Continuation;

/// The most mailboxes of an account.
pub const MAILBOXES_MAX: usize = 256;
/// The most bytes of a mailbox's name.
pub const MAILBOX_NAME_MAX: usize = 255;

/// Orders that wait in one shard.
const ORDERS_MAX: usize = 64;
/// Bytes of records that orders make in one group, the last message's not counted.
const ORDERS_BYTES: usize = 12 * 1024;
/// Blocks that they take at most: a block may lack as much as the record that did not fit.
const ORDERS_BLOCKS: u32 = ((ORDERS_BYTES + CHUNKS_MAX as usize * 4) * 2 / RECORDS_MAX) as u32 + 2;

/// A change that waits for the next group.
#[derive(Debug)]
pub(crate) struct Order {
    account: AccountId,
    what: What,
    continuation: Continuation,
}

#[derive(Debug)]
enum What {
    Create { name: Box<str>, now: u32 },
    Rename { mailbox: u32, name: Box<str> },
    Delete { mailbox: u32 },
    File { from: u32, uids: Box<[UidRange]>, to: u32 },
    Note { changes: Box<[NoteChange]> },
}

impl Store {
    /// Makes a mailbox; `continuation` is woken with [`Outcome::MailboxCreated`], or refused with `NameTaken`, `TooMany` or
    /// `NoSuchAccount`. Names are compared as they are: whoever calls brings them into one form first.
    ///
    /// Errors: `TooLarge` for an empty name or one of more than [`MAILBOX_NAME_MAX`] bytes, `DiskFull`, `Busy`, `NotServing`, `ReadOnly`.
    pub fn create_mailbox(
        &mut self,
        account: AccountId,
        name: &str,
        now: UnixTime,
        continuation: Continuation,
    ) -> Result<(), Refusal> {
        let now = u32::try_from(now.seconds()).unwrap_or(u32::MAX);
        self.order(account, What::Create { name: checked(name)?, now }, continuation)
    }

    /// Gives a mailbox another name; `continuation` is woken with [`Outcome::Changed`], or refused with `NameTaken`, `BuiltIn` or
    /// `NoSuchMailbox`.
    ///
    /// Errors: as [`Store::create_mailbox`].
    pub fn rename_mailbox(
        &mut self,
        account: AccountId,
        MailboxId(mailbox): MailboxId,
        name: &str,
        continuation: Continuation,
    ) -> Result<(), Refusal> {
        self.order(account, What::Rename { mailbox, name: checked(name)? }, continuation)
    }

    /// Removes an empty mailbox; `continuation` is woken with [`Outcome::Changed`], or refused with `NotEmpty`, `BuiltIn` or
    /// `NoSuchMailbox`.
    ///
    /// Errors: `DiskFull`, `Busy`, `NotServing`, `ReadOnly`.
    pub fn delete_mailbox(
        &mut self,
        account: AccountId,
        MailboxId(mailbox): MailboxId,
        continuation: Continuation,
    ) -> Result<(), Refusal> {
        self.order(account, What::Delete { mailbox }, continuation)
    }

    /// Files the messages with these UIDs, in ascending order, into another mailbox of the account, with their flags and GUIDs: each of them is
    /// at every moment in one of the two. `continuation` is woken with [`Outcome::Filed`], which says how far it went, or refused with `NoSuchMailbox` or
    /// `NoSuchMessage` (none of them is there).
    ///
    /// Errors: `BuiltIn` for the outbox, into which nothing gets but by a delivery; `TooLarge` for more than 400 ranges, `DiskFull`, `Busy`, `NotServing`, `ReadOnly`.
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
        self.order(account, What::File { from, uids: uids.into(), to }, continuation)
    }

    /// Changes notes of an account, all or none; `continuation` is woken with [`Outcome::Changed`], or refused with `TooMany` for more of them than
    /// [`crate::NOTES_MAX`], or [`crate::NOTES_BYTES_MAX`], `NoSuchNote`
    /// where nothing is there to be replaced or removed, or `NoSuchAccount`.
    ///
    /// Errors: `TooLarge` for a key or a value that is too long or empty, or too many changes, `DiskFull`, `Busy`, `NotServing`, `ReadOnly`.
    pub fn change_notes(
        &mut self,
        account: AccountId,
        changes: Vec<NoteChange>,
        continuation: Continuation,
    ) -> Result<(), Refusal> {
        notes::check(&changes)?;
        self.order(account, What::Note { changes: changes.into() }, continuation)
    }

    /// Nobody brings this letter to the account any more: that it has arrived need not be known any longer. `continuation` is woken as by [`Store::change_notes`].
    ///
    /// Errors: `DiskFull`, `Busy`, `NotServing`, `ReadOnly`.
    pub fn forget_arrival(
        &mut self,
        account: AccountId,
        origin: Origin,
        continuation: Continuation,
    ) -> Result<(), Refusal> {
        let forgotten = NoteChange::Remove(Box::from(&origin.key()[..]));
        self.order(account, What::Note { changes: [forgotten].into() }, continuation)
    }

    /// Whether it is noted that this letter has arrived.
    pub fn has_arrived(&self, account: AccountId, origin: Origin) -> bool {
        let shard = self.shards.get(account.shard().index());
        let known = shard.and_then(|shard| shard.index.accounts.get(&account));
        known.is_some_and(|known| known.notes.contains_key(&origin.key()[..]))
    }

    fn order(&mut self, account: AccountId, what: What, continuation: Continuation) -> Result<(), Refusal> {
        self.check_serving()?;
        let shard = self.room_in(account, RECORDS_MAX)?;
        if shard.orders.len() >= ORDERS_MAX {
            return Err(Refusal::Busy);
        }
        shard.orders.push_back(Order { account, what, continuation });
        Ok(())
    }

    /// Makes records of the orders of a shard, as far as they find space; nothing is in flight.
    pub(crate) fn carry_out_orders(&mut self, number: ShardId, out: &mut Vec<u8>) {
        let Some(shard) = self.shard(number).filter(|shard| !shard.orders.is_empty()) else { return };
        let others = blocks_of(out) + blocks_of(&shard.gathered) + 1;
        if !self.has_places(number, others + ORDERS_BLOCKS) {
            return;
        }
        let Some(shard) = self.shards.get_mut(number.index()) else { return };
        let limit = out.len() + ORDERS_BYTES;
        let (mut served, mut later, mut refused) = (Vec::new(), VecDeque::new(), Vec::new());
        for order in shard.orders.drain(..) {
            if out.len() >= limit || served.contains(&order.account) {
                later.push_back(order);
                continue;
            }
            match order.carry_out(&mut shard.index, limit, out) {
                Ok(pending) => {
                    served.push(order.account);
                    shard.pending.push(pending);
                }
                Err(refusal) => refused.push((order.continuation, refusal)),
            }
        }
        shard.orders = later;
        for (continuation, refusal) in refused {
            self.wake(continuation, Outcome::Refused(refusal));
        }
    }

    pub(crate) fn refuse_orders(&mut self) {
        let orders: Vec<Order> = self.shards.iter_mut().flat_map(|shard| shard.orders.drain(..)).collect();
        for order in orders {
            self.refuse_change(order.continuation);
        }
    }
}

impl Order {
    /// Appends the records. The index changes when they are durable; only the numbers that are given out are taken from it now.
    fn carry_out(&self, index: &mut Index, limit: usize, out: &mut Vec<u8>) -> Result<Pending, Refusal> {
        let account = index.accounts.get_mut(&self.account).filter(|account| account.is_named());
        let account = account.ok_or(Refusal::NoSuchAccount)?;
        match &self.what {
            What::Create { name, now } => {
                let id = create(account, name, *now, out)?;
                Ok(Pending::Mailbox(self.continuation, id))
            }
            What::Rename { mailbox, name } => rename(account, *mailbox, name, out).map(|()| self.done()),
            What::Delete { mailbox } => delete(account, *mailbox, out).map(|()| self.done()),
            What::File { from, uids, to } => {
                let filed = file(index, self.account, (*from, uids, *to), limit, out)?;
                Ok(Pending::Filed(self.continuation, filed))
            }
            What::Note { changes } => notes::change(account.id, &account.notes, changes, out).map(|()| self.done()),
        }
    }

    fn done(&self) -> Pending {
        Pending::Change(self.continuation)
    }
}

fn create(account: &Account, name: &str, now: u32, out: &mut Vec<u8>) -> Result<MailboxId, Refusal> {
    check_free(account, name)?;
    if account.mailboxes.len() >= MAILBOXES_MAX {
        return Err(Refusal::TooMany);
    }
    let id = account.mailbox_next;
    // Numbers and time only grow: a mailbox that is made again with the same name is never taken for the one before.
    let uid_validity = now.saturating_add(id);
    record::put_mailbox(out, account.id, id, uid_validity, (1, 0), name);
    Ok(MailboxId(id))
}

fn rename(account: &Account, id: u32, name: &str, out: &mut Vec<u8>) -> Result<(), Refusal> {
    let mailbox = account.mailbox(id).ok_or(Refusal::NoSuchMailbox)?;
    check_own(id)?;
    check_free(account, name)?;
    let counts = (mailbox.uid_next, mailbox.highest_modseq);
    record::put_mailbox(out, account.id, id, mailbox.uid_validity, counts, name);
    Ok(())
}

fn delete(account: &Account, id: u32, out: &mut Vec<u8>) -> Result<(), Refusal> {
    let mailbox = account.mailbox(id).ok_or(Refusal::NoSuchMailbox)?;
    check_own(id)?;
    if mailbox.messages.len() > 0 {
        return Err(Refusal::NotEmpty);
    }
    record::put_gone(out, account.id, id);
    Ok(())
}

fn file(
    index: &mut Index,
    account: AccountId,
    (from, uids, to): (u32, &[UidRange], u32),
    limit: usize,
    out: &mut Vec<u8>,
) -> Result<Filed, Refusal> {
    let source = index.mailbox(account, from).ok_or(Refusal::NoSuchMailbox)?;
    let target = index.mailbox(account, to).ok_or(Refusal::NoSuchMailbox)?;
    let modseq = source.given_modseq.max(target.given_modseq) + 1;
    let first = target.given_uid_next;
    let (mut last, mut next) = (0, first);
    for range in uids {
        let asked = source.messages.iter_from(range.first.0.max(last + 1));
        for entry in asked.take_while(|entry| entry.uid <= range.last.0) {
            if out.len() >= limit {
                break;
            }
            let placed = index.placed.get(&entry.guid());
            record::put_chunks(out, entry.guid(), placed.map_or(&[entry.page], |placed| &placed.pages));
            let place = Place { mailbox: from, uid: entry.uid };
            let filed = entry.filed(next, modseq);
            record::put_filed(out, account, (place, modseq), (to, target.uid_validity), &filed);
            (last, next) = (entry.uid, next.checked_add(1).ok_or(Refusal::Busy)?);
        }
    }
    if next == first {
        return Err(Refusal::NoSuchMessage);
    }
    if let Some(source) = index.mailbox_mut(account, from) {
        source.given_modseq = modseq;
    }
    if let Some(target) = index.mailbox_mut(account, to) {
        (target.given_uid_next, target.given_modseq) = (next, modseq);
    }
    Ok(Filed { last: Uid(last), count: next - first, now: UidRange { first: Uid(first), last: Uid(next - 1) } })
}

fn check_own(mailbox: u32) -> Result<(), Refusal> {
    if mailbox < OWN_MAILBOX_MIN { Err(Refusal::BuiltIn) } else { Ok(()) }
}

fn check_free(account: &Account, name: &str) -> Result<(), Refusal> {
    let is_taken = account.mailboxes.values().any(|mailbox| *mailbox.name == *name);
    if is_taken { Err(Refusal::NameTaken) } else { Ok(()) }
}

fn checked(name: &str) -> Result<Box<str>, Refusal> {
    let fits = (1..=MAILBOX_NAME_MAX).contains(&name.len());
    if fits { Ok(name.into()) } else { Err(Refusal::TooLarge) }
}
