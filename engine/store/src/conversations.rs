//! The messages of each conversation, in all mailboxes of an account.
//!
//! Every message names its conversation. Without this file, a search for the messages of a
//! conversation would look at every message of the account. So an account also has an ordered set
//! of conversation, mailbox and UID. The messages of one conversation are adjacent in this set, and
//! one search finds them, in a mailbox of 200,000 messages as in a mailbox of 20. The set is not
//! stored on the disk, because it follows from the messages.
//!
//! The upper 48 bits of the number of a conversation identify a thread. The lower 16 bits are zero
//! for answers. For a first message they are a digest, which is never zero. First messages of one
//! thread with different digests are different messages with one identifier, as some scanners send
//! them. Each of them begins a conversation of its own. The answers belong to the one with the
//! lowest digest. Section 5 of `docs/format.md`.
//!
//! Invariant: a message is in the set exactly as long as it is in its mailbox (`account` inserts
//! and removes it).

use crate::messages::MessageEntry;
use crate::types::Place;
use alloc::collections::BTreeSet;
use alloc::collections::btree_set::Range;

/// The most bytes that a message takes in the set, if the nodes of the set are as empty as
/// possible. A leaf has 192 bytes for 5 messages, and every other node has 288.
pub(crate) const CONVERSED_BYTES: usize = 48;

/// The bits of a number that hold the digest of a first message.
const DIGEST_BITS: u64 = 0xffff;
/// A number below 2^48 is the GUID number of a message without an identifier. It has no digest.
const UNTHREADED_BITS: u32 = 48;

/// The messages of an account by conversation.
#[derive(Debug, Default)]
pub(crate) struct Conversations(BTreeSet<(u64, Place)>);

impl Conversations {
    pub(crate) fn insert(&mut self, mailbox: u32, entry: &MessageEntry) {
        self.0.insert((entry.conversation, Place { mailbox, uid: entry.uid }));
    }

    pub(crate) fn remove(&mut self, mailbox: u32, entry: &MessageEntry) {
        self.0.remove(&(entry.conversation, Place { mailbox, uid: entry.uid }));
    }

    /// The places of a conversation in the mailboxes from `first` to `last`, ascending.
    pub(crate) fn within(
        &self,
        number: u64,
        first: u32,
        last: u32,
    ) -> impl DoubleEndedIterator<Item = Place> {
        let range = |number| {
            let from = (number, Place { mailbox: first, uid: 0 });
            self.0.range(from..=(number, Place { mailbox: last, uid: u32::MAX }))
        };
        Merged { one: range(number), other: self.other_number(number).map(range) }
    }

    /// The other number of the same conversation, if it has two: the number of its first message,
    /// and the number of the answers.
    fn other_number(&self, number: u64) -> Option<u64> {
        let answers = number & !DIGEST_BITS;
        if answers >> UNTHREADED_BITS == 0 {
            return None;
        }
        let (from, to) = (answers | 1, answers | DIGEST_BITS);
        let place = |mailbox, uid| Place { mailbox, uid };
        let first_messages = (from, place(0, 0))..=(to, place(u32::MAX, u32::MAX));
        let (lowest, _) = self.0.range(first_messages).next()?;
        match number {
            _ if number == answers => Some(*lowest),
            _ if number == *lowest => Some(answers),
            _ => None,
        }
    }
}

/// Two ascending ranges as one.
struct Merged<'a> {
    one: Range<'a, (u64, Place)>,
    other: Option<Range<'a, (u64, Place)>>,
}

impl Iterator for Merged<'_> {
    type Item = Place;

    fn next(&mut self) -> Option<Place> {
        let other_first = self.other.as_ref().and_then(|other| other.clone().next());
        let range = match (self.one.clone().next(), other_first, &mut self.other) {
            (Some((_, one)), Some((_, first)), Some(other)) if first < one => other,
            (None, Some(_), Some(other)) => other,
            _ => &mut self.one,
        };
        range.next().map(|(_, place)| *place)
    }
}

impl DoubleEndedIterator for Merged<'_> {
    fn next_back(&mut self) -> Option<Place> {
        let other_last = self.other.as_ref().and_then(|other| other.clone().next_back());
        let range = match (self.one.clone().next_back(), other_last, &mut self.other) {
            (Some((_, one)), Some((_, last)), Some(other)) if last > one => other,
            (None, Some(_), Some(other)) => other,
            _ => &mut self.one,
        };
        range.next_back().map(|(_, place)| *place)
    }
}
