//! The messages of each conversation, in all mailboxes of an account.
//!
//! Every message names its conversation. Without this file, a search for the messages of a
//! conversation would look at every message of the account. So an account also has an ordered set
//! of conversation, mailbox and UID. The messages of one conversation are adjacent in this set, and
//! one search finds them, in a mailbox of 200,000 messages as in a mailbox of 20. The set is not
//! stored on the disk, because it follows from the messages.
//!
//! Invariant: a message is in the set exactly as long as it is in its mailbox (`account` inserts
//! and removes it).

use crate::messages::MessageEntry;
use crate::types::Place;
use alloc::collections::BTreeSet;

/// The most bytes that a message takes in the set, if the nodes of the set are as empty as
/// possible. A leaf has 192 bytes for 5 messages, and every other node has 288.
pub(crate) const CONVERSED_BYTES: usize = 48;

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
        conversation: u64,
        first: u32,
        last: u32,
    ) -> impl DoubleEndedIterator<Item = Place> {
        let from = (conversation, Place { mailbox: first, uid: 0 });
        let to = (conversation, Place { mailbox: last, uid: u32::MAX });
        self.0.range(from..=to).map(|(_, place)| *place)
    }
}
