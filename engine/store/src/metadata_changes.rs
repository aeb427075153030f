//! Pending metadata changes: creating, renaming and removing mailboxes, moving messages between
//! mailboxes, and notes of an account.
//!
//! Other changes become records at once, even while a group is in flight. The changes in this file
//! depend on the index: on free names, on flags of a message, on the place of its body, or on the
//! number of notes. So they wait in their shard until a group is made. At that time no group is in
//! flight, and the index is equal to the disk. Section 6 of `docs/format.md`.
//!
//! Invariants:
//! - A group has at most one such change for each account. So each change sees the effects of all
//!   earlier changes.
//! - A `filed` record has all the fields of its message. The replay may reach this record before it
//!   knows the mailbox that the message leaves.

use crate::account::{Account, OWN_MAILBOX_MIN};
use crate::block::RECORDS_MAX;
use crate::chunk::CHUNKS_MAX;
use crate::index::Index;
use crate::notes::{self, NoteChange};
use crate::outcome::{Refusal, Wakes};
use crate::pending::Pending;
use crate::record;
use crate::types::{AccountId, Filed, MailboxId, Place, Uid, UidRange};
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use tasks::Continuation;

/// The most mailboxes of an account.
pub const MAILBOXES_MAX: usize = 256;
/// The most bytes of a mailbox name.
pub const MAILBOX_NAME_MAX: usize = 255;

/// The most changes that wait in one shard.
pub(crate) const METADATA_CHANGES_MAX: usize = 64;
/// The most bytes of records that these changes make in one group. The records of the last message
/// are not included.
const METADATA_CHANGES_BYTES: usize = 12 * 1024;
/// The most blocks that these records take. The end of a block may stay unused, if the next record
/// is longer than this end.
pub(crate) const METADATA_CHANGES_BLOCKS: u32 =
    ((METADATA_CHANGES_BYTES + CHUNKS_MAX as usize * 4) * 2 / RECORDS_MAX) as u32 + 2;

/// A change that waits for the next group.
#[derive(Debug)]
pub(crate) struct MetadataChange {
    account: AccountId,
    kind: ChangeKind,
    continuation: Continuation,
}

#[derive(Debug)]
pub(crate) enum ChangeKind {
    Create { name: Box<str>, now: u32 },
    Rename { mailbox: u32, name: Box<str> },
    Delete { mailbox: u32 },
    Move { from: u32, uids: Box<[UidRange]>, to: u32 },
    Note { changes: Box<[NoteChange]> },
}

impl MetadataChange {
    pub(crate) fn new(
        account: AccountId,
        kind: ChangeKind,
        continuation: Continuation,
    ) -> MetadataChange {
        MetadataChange { account, kind, continuation }
    }

    pub(crate) fn into_continuation(self) -> Continuation {
        self.continuation
    }

    /// Appends the records of the change. The index changes when the records are durable. Only new
    /// UIDs and MODSEQs are assigned in the index at once.
    fn carry_out(
        &self,
        index: &mut Index,
        limit: usize,
        out: &mut Vec<u8>,
    ) -> Result<Pending, Refusal> {
        let account = index.account_mut(self.account).filter(|account| account.is_named());
        let account = account.ok_or(Refusal::NoSuchAccount)?;
        match &self.kind {
            ChangeKind::Create { name, now } => {
                let id = create(account, name, *now, out)?;
                Ok(Pending::Mailbox(self.continuation, id))
            }
            ChangeKind::Rename { mailbox, name } => {
                rename(account, *mailbox, name, out).map(|()| self.done())
            }
            ChangeKind::Delete { mailbox } => delete(account, *mailbox, out).map(|()| self.done()),
            ChangeKind::Move { from, uids, to } => {
                let filed = move_messages(index, self.account, (*from, uids, *to), limit, out)?;
                Ok(Pending::Filed(self.continuation, filed))
            }
            ChangeKind::Note { changes } => {
                notes::change(account.id(), account.notes(), changes, out).map(|()| self.done())
            }
        }
    }

    fn done(&self) -> Pending {
        Pending::Change(self.continuation)
    }
}

/// Turns the pending changes of a shard into records, one change for each account, until the
/// records fill their part of a group. The remaining changes wait. The caller of a refused change
/// is woken.
pub(crate) fn carry_out(
    changes: &mut VecDeque<MetadataChange>,
    index: &mut Index,
    out: &mut Vec<u8>,
    pending: &mut Vec<Pending>,
    wakes: &mut Wakes,
) {
    let limit = out.len() + METADATA_CHANGES_BYTES;
    let (mut served, mut later) = (Vec::new(), VecDeque::new());
    for change in changes.drain(..) {
        if out.len() >= limit || served.contains(&change.account) {
            later.push_back(change);
            continue;
        }
        match change.carry_out(index, limit, out) {
            Ok(operation) => {
                served.push(change.account);
                pending.push(operation);
            }
            Err(refusal) => wakes.refuse(change.continuation, refusal),
        }
    }
    *changes = later;
}

fn create(
    account: &Account,
    name: &str,
    now: u32,
    out: &mut Vec<u8>,
) -> Result<MailboxId, Refusal> {
    check_free(account, name)?;
    let id = account.mailbox_next();
    // The last number is never used, because no number could follow it.
    if account.mailboxes().count() >= MAILBOXES_MAX || id == u32::MAX {
        return Err(Refusal::TooMany);
    }
    // The number and the time only grow, and so does UIDVALIDITY. So clients never mistake a new
    // mailbox for an old mailbox with the same name.
    let uid_validity = now.saturating_add(id);
    record::put_mailbox(out, account.id(), id, uid_validity, (1, 0), name);
    Ok(MailboxId(id))
}

fn rename(account: &Account, id: u32, name: &str, out: &mut Vec<u8>) -> Result<(), Refusal> {
    let mailbox = account.mailbox(id).ok_or(Refusal::NoSuchMailbox)?;
    check_own(id)?;
    check_free(account, name)?;
    let counts = mailbox.counts();
    record::put_mailbox(out, account.id(), id, mailbox.uid_validity(), counts, name);
    Ok(())
}

fn delete(account: &Account, id: u32, out: &mut Vec<u8>) -> Result<(), Refusal> {
    let mailbox = account.mailbox(id).ok_or(Refusal::NoSuchMailbox)?;
    check_own(id)?;
    if mailbox.messages().len() > 0 {
        return Err(Refusal::NotEmpty);
    }
    record::put_gone(out, account.id(), id);
    Ok(())
}

fn move_messages(
    index: &mut Index,
    account: AccountId,
    (from, uids, to): (u32, &[UidRange], u32),
    limit: usize,
    out: &mut Vec<u8>,
) -> Result<Filed, Refusal> {
    let source = index.mailbox(account, from).ok_or(Refusal::NoSuchMailbox)?;
    let target = index.mailbox(account, to).ok_or(Refusal::NoSuchMailbox)?;
    let (first, target_modseq) = target.assigned();
    let modseq = source.assigned().1.max(target_modseq) + 1;
    if target.uids_left() == 0 {
        return Err(Refusal::TooMany);
    }
    let (mut last, mut next, end) = (0u32, first, first + target.uids_left());
    for range in uids {
        // The ranges may overlap. The highest possible UID may have been moved: then nothing is
        // above it.
        let Some(above) = last.checked_add(1) else { break };
        let requested = source.messages().iter_from(range.first.0.max(above));
        for entry in requested.take_while(|entry| entry.uid <= range.last.0) {
            if out.len() >= limit || next == end {
                break;
            }
            let placed = index.placed(entry.guid());
            record::put_chunks(
                out,
                entry.guid(),
                placed.map_or(&[entry.page], |placed| &placed.pages),
            );
            let place = Place { mailbox: from, uid: entry.uid };
            let filed = entry.filed(next, modseq);
            record::put_filed(out, account, (place, modseq), (to, target.uid_validity()), &filed);
            (last, next) = (entry.uid, next + 1);
        }
    }
    if next == first {
        return Err(Refusal::NoSuchMessage);
    }
    let Some(source) = index.mailbox_mut(account, from) else {
        unreachable!("a mailbox that has disappeared")
    };
    source.set_assigned(source.assigned().0, modseq);
    let Some(target) = index.mailbox_mut(account, to) else {
        unreachable!("a mailbox that has disappeared")
    };
    target.set_assigned(next, modseq);
    Ok(Filed {
        last: Uid(last),
        count: next - first,
        now: UidRange { first: Uid(first), last: Uid(next - 1) },
    })
}

fn check_own(mailbox: u32) -> Result<(), Refusal> {
    if mailbox < OWN_MAILBOX_MIN { Err(Refusal::BuiltIn) } else { Ok(()) }
}

fn check_free(account: &Account, name: &str) -> Result<(), Refusal> {
    let is_taken = account.mailboxes().any(|mailbox| mailbox.name() == name);
    if is_taken { Err(Refusal::NameTaken) } else { Ok(()) }
}
