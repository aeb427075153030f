//! The messages of one mailbox in memory: entries of 40 bytes in blocks, ascending by UID.
//!
//! Invariants:
//! - UIDs ascend strictly, within a block and from block to block; no block is empty.
//! - Neither a removal nor an insertion at the end leaves two neighbouring blocks that fit into
//!   one. So at most half of the places are unused, except after insertions between other UIDs.

mod by_date;

use crate::types::{Flags, Guid, HeadSize, MarkChange, Marks, MessageInfo, Modseq, Uid};
use alloc::vec::Vec;
use machine::UnixTime;

/// Bytes of one message, in memory and in the journal.
pub(crate) const ENTRY_BYTES: usize = 40;
const BLOCK_ENTRIES: usize = 64;

const LOW_48: u64 = (1 << 48) - 1;
const FLAGS_SHIFT: u32 = 48;
const FLAGS_MASK: u64 = 0xff << FLAGS_SHIFT;
const HEAD_SHIFT: u32 = 56;

/// The entry of one message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct MessageEntry {
    pub(crate) uid: u32,
    pub(crate) octets: u32,
    /// The page of the first chunk.
    pub(crate) page: u32,
    /// INTERNALDATE, seconds since 1970.
    pub(crate) date: u32,
    modseq_and_keywords: u64,
    /// The GUID, the flags and the head.
    guid_and_flags: u64,
    /// The number of the conversation. All messages of a conversation have the same number.
    pub(crate) conversation: u64,
}

const _: () = assert!(size_of::<MessageEntry>() == ENTRY_BYTES);

impl MessageEntry {
    /// A message that is a conversation by itself.
    pub(crate) fn new(
        uid: u32,
        octets: u32,
        page: u32,
        date: u32,
        modseq: u64,
        guid: u64,
    ) -> MessageEntry {
        let modseq_and_keywords = modseq & LOW_48;
        MessageEntry {
            uid,
            octets,
            page,
            date,
            modseq_and_keywords,
            guid_and_flags: guid & LOW_48,
            conversation: guid,
        }
    }

    /// The same message in another conversation.
    pub(crate) fn in_conversation(self, conversation: u64) -> MessageEntry {
        MessageEntry { conversation, ..self }
    }

    /// The same message with this head.
    pub(crate) fn with_head(self, HeadSize(head): HeadSize) -> MessageEntry {
        MessageEntry {
            guid_and_flags: self.guid_and_flags & !(0xff << HEAD_SHIFT)
                | u64::from(head) << HEAD_SHIFT,
            ..self
        }
    }

    pub(crate) fn head(&self) -> HeadSize {
        HeadSize((self.guid_and_flags >> HEAD_SHIFT) as u8)
    }

    /// The position of the octet at `offset` in the stored body. Also the end of the octets that
    /// follow this octet without a break, both in the body and in the message.
    pub(crate) fn position_of(&self, offset: u32) -> (u32, u32) {
        let head_start = self.octets.saturating_sub(self.head().octets());
        match offset.checked_sub(self.head().octets()) {
            Some(position) => (position, head_start),
            None => (head_start + offset, self.octets),
        }
    }

    /// The offset of the octet at this position: the inverse of [`MessageEntry::position_of`].
    pub(crate) fn offset_of(&self, position: u32) -> u32 {
        let head_start = self.octets.saturating_sub(self.head().octets());
        if position < head_start { position + self.head().octets() } else { position - head_start }
    }

    /// The message as callers see it. `store`: the upper half of the GUID.
    pub(crate) fn info(&self, store: u64) -> MessageInfo {
        MessageInfo {
            uid: Uid(self.uid),
            octets: self.octets,
            head: self.head().octets(),
            internal_date: UnixTime::from_seconds(u64::from(self.date)),
            modseq: Modseq(self.modseq()),
            flags: Flags(self.flags()),
            keywords: self.keywords(),
            guid: Guid(u128::from(store) << 64 | u128::from(self.guid())),
            conversation: self.conversation,
        }
    }

    pub(crate) fn modseq(&self) -> u64 {
        self.modseq_and_keywords & LOW_48
    }

    pub(crate) fn keywords(&self) -> u16 {
        (self.modseq_and_keywords >> 48) as u16
    }

    pub(crate) fn guid(&self) -> u64 {
        self.guid_and_flags & LOW_48
    }

    pub(crate) fn flags(&self) -> u8 {
        (self.guid_and_flags >> FLAGS_SHIFT) as u8
    }

    pub(crate) fn is_seen(&self) -> bool {
        self.flags() & Flags::SEEN.0 != 0
    }

    pub(crate) fn marks(&self) -> Marks {
        Marks { flags: Flags(self.flags()), keywords: self.keywords() }
    }

    /// The same message with these marks.
    pub(crate) fn with_marks(self, Marks { flags, keywords }: Marks) -> MessageEntry {
        let mut entry = self;
        entry.set_flags(flags.0, keywords, self.modseq());
        entry
    }

    pub(crate) fn set_flags(&mut self, flags: u8, keywords: u16, modseq: u64) {
        self.modseq_and_keywords = modseq & LOW_48 | u64::from(keywords) << 48;
        self.guid_and_flags = self.guid_and_flags & !FLAGS_MASK | u64::from(flags) << FLAGS_SHIFT;
    }

    /// The entry of the message after a move to another mailbox. The move clears the flags of a
    /// delayed send.
    pub(crate) fn filed(&self, uid: u32, modseq: u64) -> MessageEntry {
        let mut filed = MessageEntry { uid, ..*self };
        filed.set_flags(Flags(self.flags()).without(Flags::ON_ITS_WAY).0, self.keywords(), modseq);
        filed
    }

    pub(crate) fn to_bytes(self) -> [u8; ENTRY_BYTES] {
        let mut bytes = [0; ENTRY_BYTES];
        crate::bytes::HeaderWriter::of(&mut bytes)
            .u32(self.uid)
            .u32(self.octets)
            .u32(self.page)
            .u32(self.date)
            .u64(self.modseq_and_keywords)
            .u64(self.guid_and_flags)
            .u64(self.conversation);
        bytes
    }

    pub(crate) fn from_bytes(bytes: &[u8; ENTRY_BYTES]) -> MessageEntry {
        let Some(entry) = MessageEntry::read(crate::bytes::FieldReader::new(bytes)) else {
            unreachable!("an entry that is shorter than its fields")
        };
        entry
    }

    fn read(mut reader: crate::bytes::FieldReader<'_>) -> Option<MessageEntry> {
        Some(MessageEntry {
            uid: reader.u32()?,
            octets: reader.u32()?,
            page: reader.u32()?,
            date: reader.u32()?,
            modseq_and_keywords: reader.u64()?,
            guid_and_flags: reader.u64()?,
            conversation: reader.u64()?,
        })
    }
}

/// All messages of a mailbox.
#[derive(Debug, Default)]
pub(crate) struct Messages {
    blocks: Vec<Vec<MessageEntry>>,
    count: u32,
    unseen: u32,
    octets: u64,
    /// The number of pairs of neighbours in which the first has the later date. See `by_date`.
    inversions: u32,
}

impl Messages {
    pub(crate) fn len(&self) -> u32 {
        self.count
    }

    /// The number of messages without the flag `\\Seen`.
    pub(crate) fn unseen(&self) -> u32 {
        self.unseen
    }

    pub(crate) fn octets(&self) -> u64 {
        self.octets
    }

    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = &MessageEntry> {
        self.blocks.iter().flatten()
    }

    /// The entries from `uid` on.
    pub(crate) fn iter_from(&self, uid: u32) -> impl Iterator<Item = &MessageEntry> {
        let (_, blocks) = self.blocks.split_at(self.block_of(uid));
        let (first, others) =
            blocks.split_first().map_or((&[][..], &[][..]), |(first, others)| (first, others));
        let start = first.partition_point(|entry| entry.uid < uid);
        first.iter().skip(start).chain(others.iter().flatten())
    }

    /// The entries below `uid`, or all entries, the highest first.
    pub(crate) fn iter_below(&self, uid: Option<u32>) -> impl Iterator<Item = &MessageEntry> {
        let blocks = self.blocks.get(..=self.block_of(uid.unwrap_or(u32::MAX))).unwrap_or_default();
        let entries = blocks.iter().rev().flat_map(|block| block.iter().rev());
        entries.skip_while(move |entry| uid.is_some_and(|uid| entry.uid >= uid))
    }

    /// The entry at `index`, counted from the lowest UID.
    pub(crate) fn nth(&self, mut index: usize) -> Option<&MessageEntry> {
        for block in &self.blocks {
            match block.get(index) {
                Some(entry) => return Some(entry),
                None => index -= block.len(),
            }
        }
        None
    }

    pub(crate) fn find(&self, uid: u32) -> Option<&MessageEntry> {
        let block = self.blocks.get(self.block_of(uid))?;
        block.get(block.binary_search_by_key(&uid, |entry| entry.uid).ok()?)
    }

    pub(crate) fn find_mut(&mut self, uid: u32) -> Option<&mut MessageEntry> {
        let number = self.block_of(uid);
        let block = self.blocks.get_mut(number)?;
        let index = block.binary_search_by_key(&uid, |entry| entry.uid).ok()?;
        block.get_mut(index)
    }

    /// Changes a message's marks, if the message exists.
    pub(crate) fn mark(&mut self, uid: u32, change: MarkChange, modseq: u64) {
        let Some(entry) = self.find_mut(uid) else { return };
        let was_seen = entry.is_seen();
        let Marks { flags, keywords } = change.applied(entry.marks());
        entry.set_flags(flags.0, keywords, modseq.max(entry.modseq()));
        let is_seen = entry.is_seen();
        self.unseen = self.unseen + u32::from(was_seen) - u32::from(is_seen);
    }

    /// Inserts an entry in its place. Returns false if its UID is taken.
    pub(crate) fn insert(&mut self, entry: MessageEntry) -> bool {
        // The usual case, when mail arrives and in a replay: the UID is higher than all others.
        if let Some(block) = self.blocks.last_mut()
            && block.len() < BLOCK_ENTRIES
            && block.last().is_some_and(|last| last.uid < entry.uid)
        {
            self.inversions += by_date::inversions(block.last(), Some(&entry));
            block.push(entry);
            self.counted(&entry);
            return true;
        }
        let number = self.block_of(entry.uid);
        let [before, after] = self.neighbours(entry.uid, entry.uid);
        let Some(block) = self.blocks.get_mut(number) else {
            self.blocks.push(alloc::vec![entry]);
            self.counted(&entry);
            return true;
        };
        let Err(index) = block.binary_search_by_key(&entry.uid, |known| known.uid) else {
            return false;
        };
        if block.len() < BLOCK_ENTRIES {
            block.insert(index, entry);
        } else if index == BLOCK_ENTRIES {
            self.blocks.insert(number + 1, alloc::vec![entry]);
        } else {
            let mut upper = block.split_off(BLOCK_ENTRIES / 2);
            match index.checked_sub(BLOCK_ENTRIES / 2) {
                Some(index) => upper.insert(index, entry),
                None => block.insert(index, entry),
            }
            self.blocks.insert(number + 1, upper);
        }
        let [before, after] = [before.as_ref(), after.as_ref()];
        self.inversions +=
            by_date::inversions(before, Some(&entry)) + by_date::inversions(Some(&entry), after);
        self.inversions -= by_date::inversions(before, after);
        self.counted(&entry);
        true
    }

    /// The entries before `first` and after `last`.
    fn neighbours(&self, first: u32, last: u32) -> [Option<MessageEntry>; 2] {
        let after = last.checked_add(1).and_then(|next| self.iter_from(next).next());
        [self.iter_below(Some(first)).next().copied(), after.copied()]
    }

    /// Removes the entries with UIDs from `first` to `last`, and calls `removed` with each of them.
    pub(crate) fn remove(
        &mut self,
        first: u32,
        last: u32,
        removed: &mut impl FnMut(&MessageEntry),
    ) {
        let (mut count, mut unseen, mut octets) = (0, 0, 0);
        let [before, after] = self.neighbours(first, last);
        let (mut previous, mut inversions) = (before, 0);
        let start = self.block_of(first);
        let mut end = start;
        for block in self.blocks.iter_mut().skip(start) {
            if block.first().is_none_or(|entry| entry.uid > last) {
                break;
            }
            end += 1;
            block.retain(|entry| {
                let stays = entry.uid < first || entry.uid > last;
                if !stays {
                    count += 1;
                    unseen += u32::from(!entry.is_seen());
                    octets += u64::from(entry.octets);
                    inversions += by_date::inversions(previous.as_ref(), Some(entry));
                    previous = Some(*entry);
                    removed(entry);
                }
                stays
            });
        }
        if count > 0 {
            inversions += by_date::inversions(previous.as_ref(), after.as_ref());
            self.inversions += by_date::inversions(before.as_ref(), after.as_ref());
            self.inversions -= inversions;
            self.count -= count;
            self.unseen -= unseen;
            self.octets -= octets;
            self.merge(start, end);
        }
    }

    fn counted(&mut self, entry: &MessageEntry) {
        self.count += 1;
        self.unseen += u32::from(!entry.is_seen());
        self.octets += u64::from(entry.octets);
    }

    /// The number of the block that contains `uid`, or into which it would be inserted.
    fn block_of(&self, uid: u32) -> usize {
        self.blocks
            .partition_point(|block| block.first().is_some_and(|entry| entry.uid <= uid))
            .saturating_sub(1)
    }

    /// Joins neighbouring blocks that fit into one, after a removal from the blocks `start..end`.
    /// All other blocks are unchanged.
    fn merge(&mut self, start: usize, end: usize) {
        let places = start.saturating_sub(1)..(end + 1).min(self.blocks.len());
        let Some(touched) = self.blocks.get_mut(places.clone()) else {
            unreachable!("blocks after the last one")
        };
        let mut merged: Vec<Vec<MessageEntry>> = Vec::with_capacity(touched.len());
        for mut block in touched.iter_mut().map(core::mem::take) {
            match merged.last_mut() {
                Some(before) if before.len() + block.len() <= BLOCK_ENTRIES => {
                    before.append(&mut block)
                }
                _ if block.is_empty() => {}
                _ => merged.push(block),
            }
        }
        for block in &mut merged {
            block.shrink_to(block.len() * 2);
        }
        self.blocks.splice(places, merged);
    }
}

#[cfg(test)]
mod tests;
