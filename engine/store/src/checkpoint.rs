//! Checkpoints: a walk over a shard's index that appends its state to its own journal. Section 7 of `docs/format.md`.
//!
//! Invariants:
//! - The state is read when no group is in flight, and stands before the changes of the same group.
//! - The root moves only after everything behind the new one is durable; the old segments are free only after that is.

use crate::group::blocks_of;
use crate::index::Index;
use crate::layout::{SegmentIndex, ShardId};
use crate::record::{self, RANGE_ENTRIES};
use crate::store::{Journal, Store};
use crate::superblock::Root;
use crate::types::AccountId;
use alloc::vec::Vec;
use core::ops::ControlFlow;
use sometimes::{buggify, sometimes};

/// Bytes of records after which the walk pauses until the next group.
const STEP_BYTES: usize = 11 * 1024;
/// Bytes of records `chunks` after which a range ends.
const RANGE_CHUNKS_BYTES: usize = 4 * 1024;
/// The most blocks by which a journal may outgrow its index before a checkpoint is due, and the pages of the disk for each of
/// them; two segments are allowed on any disk.
const SLACK_BLOCKS: u32 = 256;
const SLACK_PAGES: u32 = 2048;

/// A checkpoint under way.
#[derive(Debug)]
pub(crate) struct Checkpoint {
    shard: ShardId,
    root: Root,
    old: Vec<SegmentIndex>,
    cursor: Cursor,
}

/// What the walk comes to next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Cursor {
    Shard,
    /// The first account with this id or a higher one.
    Account(AccountId),
    /// The first mailbox of the account with this id or a higher one.
    Mailbox(AccountId, u32),
    /// The mailbox's messages from this UID on.
    Messages(AccountId, u32, u32),
    End,
}

impl Checkpoint {
    pub(crate) fn shard(&self) -> ShardId {
        self.shard
    }

    /// The disk has failed: the journal begins where it began before, and another walk begins at
    /// the beginning.
    pub(crate) fn give_up(self, journal: &mut Journal) {
        let Checkpoint { mut old, .. } = self;
        old.append(&mut journal.chain);
        journal.chain = old;
    }

    /// Whether nothing is left of the walk but to make its last records durable.
    pub(crate) fn is_at_end(&self) -> bool {
        self.cursor == Cursor::End
    }
}

impl Store {
    /// The next records of the checkpoint under way, or of one that is due.
    pub(crate) fn checkpoint_records(&mut self, out: &mut Vec<u8>) -> Option<ShardId> {
        if self.checkpoint.is_none() {
            self.begin_checkpoint_if_due()?;
        }
        let checkpoint = self.checkpoint.as_ref()?;
        let number = checkpoint.shard;
        let shard = self.shards.get(number.index())?;
        let mut cursor = checkpoint.cursor;
        while out.len() < STEP_BYTES && cursor != Cursor::End {
            cursor = step(&shard.index, cursor, out);
        }
        let blocks = blocks_of(out) + blocks_of(&shard.gathered) + 1;
        if !self.has_places(number, blocks) {
            out.clear();
            return None;
        }
        self.checkpoint.as_mut()?.cursor = cursor;
        if out.is_empty() {
            // What came before is durable already: no group needs to carry the end.
            self.checkpoint_flushed();
            return None;
        }
        Some(number)
    }

    /// Looks only at shards that are to be written to anyway, and at those that are to be mended.
    fn begin_checkpoint_if_due(&mut self) -> Option<()> {
        let mut candidates = self.dirty | self.heal;
        while candidates != 0 {
            let number = ShardId(candidates.trailing_zeros() as u8);
            candidates &= candidates - 1;
            if self.is_due(number) {
                return self.begin_checkpoint(number);
            }
        }
        None
    }

    /// A body finds no segment: what journals have beyond their index's need is given back, also by those that nobody writes to.
    pub(crate) fn shorten_journals(&mut self) {
        let due = ShardId::all().filter(|number| self.is_due(*number)).fold(0, |bits, number| bits | 1 << number.0);
        self.heal |= due;
    }

    fn is_due(&self, number: ShardId) -> bool {
        let bit = 1 << number.0;
        let Some(shard) = self.shard(number) else { return false };
        let Some(journal) = &shard.journal else { return false };
        if self.heal & bit != 0 {
            return true;
        }
        let geometry = self.segments.geometry;
        let places = geometry.places();
        let slack = (geometry.pages / SLACK_PAGES).max(2 * places).min(SLACK_BLOCKS);
        let needed = shard.index.checkpoint_blocks();
        let scarce = self.segments.free() <= self.segments.reserve;
        if scarce {
            journal.chain.len() as u32 > needed.div_ceil(places - 1)
        } else {
            journal.blocks > 2 * needed + slack || journal.blocks > needed && buggify!(CheckpointEarly)
        }
    }

    fn begin_checkpoint(&mut self, shard: ShardId) -> Option<()> {
        let needed = self.shard(shard)?.index.checkpoint_blocks();
        if !self.has_places(shard, needed) || !self.extend_journal(shard) {
            return None;
        }
        let journal = self.shards.get_mut(shard.index())?.journal.as_mut()?;
        let segment = journal.chain.pop()?;
        let old = core::mem::replace(&mut journal.chain, alloc::vec![segment]);
        journal.blocks = 0;
        let place = u16::try_from(journal.place).ok()?;
        let root = Root { segment, place, started: true, sequence: journal.sequence, previous: journal.previous };
        sometimes!(CheckpointBegun);
        self.checkpoint = Some(Checkpoint { shard, root, old, cursor: Cursor::Shard });
        self.heal &= !(1 << shard.0);
        Some(())
    }

    /// A group is durable: if it ended the walk, the root moves with the next one.
    pub(crate) fn checkpoint_flushed(&mut self) {
        let Some(checkpoint) = self.checkpoint.take_if(|checkpoint| checkpoint.cursor == Cursor::End) else { return };
        self.released_by_superblock.extend(checkpoint.old);
        self.superblock_due = true;
        self.root_changed(checkpoint.shard, checkpoint.root);
    }
}

/// Appends what the cursor points at; returns where it points next.
fn step(index: &Index, cursor: Cursor, out: &mut Vec<u8>) -> Cursor {
    match cursor {
        Cursor::Shard => {
            record::put_shard(out, index.guid_next);
            Cursor::Account(AccountId(0))
        }
        Cursor::Account(from) => match index.accounts.range(from..).next() {
            Some((id, account)) => {
                if account.is_named() {
                    record::put_account(out, account.texts());
                }
                account.notes.iter().for_each(|(key, value)| record::put_note(out, *id, key, value));
                // The number that was given last, where its mailbox does not say it. One that is there must not be told to be gone: what is told is done, also here.
                let last = account.mailbox_next - 1;
                if account.mailbox(last).is_none() {
                    record::put_gone(out, *id, last);
                }
                Cursor::Mailbox(*id, 0)
            }
            None => Cursor::End,
        },
        Cursor::Mailbox(id, from) => {
            let mailboxes = index.accounts.get(&id).map(|account| &account.mailboxes);
            match mailboxes.and_then(|mailboxes| mailboxes.range(from..).next()) {
                Some((number, mailbox)) => {
                    let counts = (mailbox.uid_next, mailbox.highest_modseq);
                    record::put_mailbox(out, id, *number, mailbox.uid_validity, counts, &mailbox.name);
                    Cursor::Messages(id, *number, 1)
                }
                None => id.0.checked_add(1).map_or(Cursor::End, |next| Cursor::Account(AccountId(next))),
            }
        }
        Cursor::Messages(id, number, from) => messages(index, (id, number, from), out),
        Cursor::End => Cursor::End,
    }
}

/// Appends one range of messages, and before it the chunks of those whose place must be told.
fn messages(index: &Index, (id, number, from): (AccountId, u32, u32), out: &mut Vec<u8>) -> Cursor {
    let next_mailbox = Cursor::Mailbox(id, number.saturating_add(1));
    let Some(mailbox) = index.mailbox(id, number) else { return next_mailbox };
    let entries = || mailbox.messages.iter_from(from).take(RANGE_ENTRIES);
    let limit = out.len() + RANGE_CHUNKS_BYTES;
    let (mut count, mut last) = (0, None);
    let _ = entries().try_for_each(|entry| {
        if let Some(placed) = index.placed.get(&entry.guid()) {
            record::put_chunks(out, entry.guid(), &placed.pages);
        }
        (count, last) = (count + 1, Some(entry.uid));
        if out.len() > limit { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    let Some(last) = last else { return next_mailbox };
    record::put_range(out, id, number, (from, last), entries().take(count));
    match last.checked_add(1) {
        Some(next) => Cursor::Messages(id, number, next),
        None => next_mailbox,
    }
}
