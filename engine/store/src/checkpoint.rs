//! Checkpoints: a walk over a shard's index that appends its state to the shard's own journal.
//! Section 7 of `docs/format.md`.
//!
//! Invariants:
//! - The state is read from the index while no group is in flight. So in the journal, this state
//!   precedes the changes of its group.
//! - The root moves only when the whole checkpoint is durable. The old segments become free only
//!   when two versions of the superblock have the new root.
//! - An interrupted checkpoint continues after its last durable group, even in a later life. So
//!   interruptions do not fill the disk with parts of checkpoints.

use crate::account::Account;
use crate::format4::QueuedRecord;
use crate::group::Superseded;
use crate::index::Index;
use crate::journal::Journal;
use crate::journals::{Journals, blocks_of};
use crate::layout::{SegmentIndex, ShardId};
use crate::messages::MessageEntry;
use crate::parts::StoreParts;
use crate::record::{self, RANGE_ENTRIES};
use crate::shards::ShardSet;
use crate::superblock::{Format, Root};
use crate::types::{AccountId, OUTBOX, Uid};
use crate::walk::{UnfinishedCheckpoint, WalkCursor};
use crate::writing::{extend_journal, has_places};
use alloc::vec::Vec;
use core::ops::ControlFlow;
use sometimes::sometimes;

/// The number of bytes of records after which the walk pauses until the next group.
const STEP_BYTES: usize = 11 * 1024;
/// The number of bytes of `chunks` records after which a range of messages ends.
const RANGE_CHUNKS_BYTES: usize = 4 * 1024;

/// A checkpoint in progress.
#[derive(Debug)]
struct Checkpoint {
    shard: ShardId,
    root: Root,
    old: Vec<SegmentIndex>,
    cursor: WalkCursor,
    /// The cursor after the records that are durable.
    durable: WalkCursor,
}

/// The checkpoint in progress. At most one checkpoint is in progress at a time.
#[derive(Debug)]
pub(crate) struct Checkpointer(Option<Checkpoint>);

impl Checkpointer {
    pub(crate) fn new() -> Checkpointer {
        Checkpointer(None)
    }

    /// Whether a checkpoint is in progress.
    #[inline]
    pub(crate) fn is_busy(&self) -> bool {
        self.0.is_some()
    }

    /// Whether the walk is complete, but its last records are not durable yet.
    pub(crate) fn is_at_end(&self) -> bool {
        self.0.as_ref().is_some_and(|checkpoint| checkpoint.cursor == WalkCursor::End)
    }

    /// Appends the next records of the checkpoint in progress to `out`. If none is in progress,
    /// begins a checkpoint that is due. Returns the shard of the records.
    pub(crate) fn records(&mut self, parts: &mut StoreParts, out: &mut Vec<u8>) -> Option<ShardId> {
        if self.0.is_none() {
            self.0 = begin_if_due(parts);
        }
        let checkpoint = self.0.as_mut()?;
        let number = checkpoint.shard;
        let index = parts.indexes.of(number);
        let mut cursor = checkpoint.cursor;
        while out.len() < STEP_BYTES && cursor != WalkCursor::End {
            cursor = step(index, parts.superblock.format, cursor, out);
        }
        put_progress(cursor, out);
        let blocks = blocks_of(out) + parts.journals.gathered_blocks(number) + 1;
        if !has_places(parts, number, blocks) {
            out.clear();
            return None;
        }
        checkpoint.cursor = cursor;
        if out.is_empty() {
            // All records of the walk are durable already. So the checkpoint ends without a group.
            self.flushed(parts);
            return None;
        }
        Some(number)
    }

    /// Notes that a group is durable. If the walk ended in this group, the next superblock gets the
    /// new root.
    pub(crate) fn flushed(&mut self, parts: &mut StoreParts) {
        if let Some(checkpoint) = &mut self.0 {
            checkpoint.durable = checkpoint.cursor;
        }
        let Some(checkpoint) = self.0.take_if(|checkpoint| checkpoint.cursor == WalkCursor::End)
        else {
            return;
        };
        let Checkpoint { shard, root, old: segments, .. } = checkpoint;
        parts.commit.release_by_superblock(Superseded {
            shard,
            segments,
            is_in_one_version: false,
        });
        parts.role.root_changed(&mut parts.superblock, shard, root);
    }

    /// Interrupts the checkpoint after a failure of the disk. The journal keeps its old root. A
    /// later checkpoint continues after the last durable record.
    pub(crate) fn give_up(&mut self, journals: &mut Journals) {
        let Some(Checkpoint { shard, root, old, durable, .. }) = self.0.take() else { return };
        let unfinished = UnfinishedCheckpoint { root, cursor: durable, blocks_before: 0 };
        journals.interrupt_checkpoint(shard, old, unfinished);
    }

    /// Takes out the checkpoint if it belongs to a shard of `theirs`.
    pub(crate) fn split_off(&mut self, theirs: ShardSet) -> Checkpointer {
        Checkpointer(self.0.take_if(|checkpoint| theirs.has(checkpoint.shard)))
    }
}

/// Begins a checkpoint that is due, or continues an unfinished checkpoint. Unfinished checkpoints
/// have precedence, because their parts take space in the journals. If one checkpoint finds no
/// space, others can still begin.
fn begin_if_due(parts: &mut StoreParts) -> Option<Checkpoint> {
    let journals = &parts.journals;
    let may_begin = |shard: &ShardId| {
        let index = parts.indexes.of(*shard);
        if !journals.unfinished().has(*shard) && !journals.is_due(*shard, index, &parts.segments) {
            return false;
        }
        let written = journals.of(*shard).map_or(0, Journal::unfinished_blocks);
        has_places(parts, *shard, index.checkpoint_blocks().saturating_sub(written))
    };
    let shard = journals.unfinished().iter().chain(journals.candidates().iter()).find(may_begin)?;
    if !extend_journal(parts, shard) {
        return None;
    }
    let (root, cursor, old) = parts.journals.begin_anew(shard);
    sometimes!(CheckpointBegun);
    Some(Checkpoint { shard, root, old, cursor, durable: cursor })
}

/// Appends the cursor as a range without messages, unless the last range already shows the cursor.
/// So a later life can continue at the cursor, even if many groups have no messages.
fn put_progress(cursor: WalkCursor, out: &mut Vec<u8>) {
    let (account, mailbox) = match cursor {
        WalkCursor::Mailbox(account, 0) => (account, 0),
        WalkCursor::Messages(account, mailbox, 1) => (account, mailbox),
        _ => return,
    };
    record::put_range(out, account, mailbox, (1, 0), core::iter::empty());
}

/// Appends the state at the cursor. Returns the next cursor.
fn step(index: &Index, format: Format, cursor: WalkCursor, out: &mut Vec<u8>) -> WalkCursor {
    match cursor {
        WalkCursor::Shard => {
            record::put_shard(out, index.guid_next());
            index.kept().for_each(|record| out.extend_from_slice(record));
            WalkCursor::Account(AccountId(0))
        }
        WalkCursor::Account(from) => match index.account_from(from) {
            Some(account) => {
                if account.is_named() {
                    record::put_account(out, account.texts());
                }
                account
                    .notes()
                    .iter()
                    .for_each(|(key, value)| record::put_note(out, account.id(), key, value));
                // The last assigned mailbox number is recorded as removed, if no mailbox has it. A
                // number in use must not be recorded so, because the replay would remove the
                // mailbox.
                let last = account.mailbox_next() - 1;
                if account.mailbox(last).is_none() {
                    record::put_gone(out, account.id(), last);
                }
                WalkCursor::Mailbox(account.id(), 0)
            }
            None => WalkCursor::End,
        },
        WalkCursor::Mailbox(id, from) => match known(index, id).mailbox_from(from) {
            Some(mailbox) => {
                let counts = mailbox.counts();
                record::put_mailbox(
                    out,
                    id,
                    mailbox.id(),
                    mailbox.uid_validity(),
                    counts,
                    mailbox.name(),
                );
                WalkCursor::Messages(id, mailbox.id(), 1)
            }
            None => WalkCursor::after_account(id),
        },
        WalkCursor::Messages(id, number, from) => messages(index, format, (id, number, from), out),
        WalkCursor::End => WalkCursor::End,
    }
}

/// An account that the walk has reached. Accounts are never removed.
fn known(index: &Index, id: AccountId) -> &Account {
    match index.account(id) {
        Some(account) => account,
        None => unreachable!("an account that is gone"),
    }
}

/// Appends one range of messages. Before the range are the chunks of messages that were moved or
/// have several chunks. After the range are the outbox entries of its messages. All of this is in
/// one group, because a replay drops these entries when it reaches the range.
fn messages(
    index: &Index,
    format: Format,
    (id, number, from): (AccountId, u32, u32),
    out: &mut Vec<u8>,
) -> WalkCursor {
    let next_mailbox = WalkCursor::after_mailbox(id, number);
    let account = known(index, id);
    // A client may have removed the mailbox since the walk paused.
    let Some(mailbox) = account.mailbox(number) else { return next_mailbox };
    let entries = || mailbox.messages().iter_from(from).take(RANGE_ENTRIES);
    let limit = out.len() + RANGE_CHUNKS_BYTES;
    let (mut count, mut last) = (0, None);
    let _ = entries().try_for_each(|entry| {
        if let Some(placed) = index.placed(entry.guid()) {
            record::put_chunks(out, entry.guid(), &placed.pages);
        }
        (count, last) = (count + 1, Some(entry.uid));
        if out.len() > limit { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    let Some(last) = last else { return next_mailbox };
    let recorded = |entry: &MessageEntry| {
        if format == Format::Three { account.recorded(number, entry) } else { *entry }
    };
    record::put_range(out, id, number, (from, last), entries().take(count).map(recorded));
    if format == Format::Four && number == OUTBOX.0 {
        for message in entries().take(count) {
            let Some(entry) = account.outbox().get(&message.uid).copied() else { continue };
            let record = QueuedRecord {
                account: id,
                uid: Uid(message.uid),
                modseq: message.modseq(),
                entry,
            };
            record::put_queued(out, &record);
        }
    }
    WalkCursor::after(id, number, last)
}
