//! A maildrop: the snapshot of an inbox from the time when a session opened it. The session marks
//! messages in it as deleted.

use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::vec;
use alloc::vec::Vec;

use store::{AccountId, INBOX, MailboxInfo, MessageInfo, Store, Uid, UidRange};

/// The most messages in all open maildrops of a machine, 12 bytes each.
const OPEN_MESSAGES_MAX: usize = 4 << 20;

/// One message of a maildrop.
#[derive(Clone, Copy, Debug)]
struct MaildropEntry {
    uid: Uid,
    octets: u32,
    mark: DeletionMark,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum DeletionMark {
    None,
    Deleted,
}

/// The snapshot of a maildrop. A message that arrives later is for the next session. A message that
/// was removed after the snapshot cannot be read.
#[derive(Debug)]
pub struct MaildropSnapshot {
    account: AccountId,
    uid_validity: u32,
    entries: Vec<MaildropEntry>,
}

/// The open maildrops of this core's accounts. Sessions of any core may have opened them.
#[derive(Debug)]
pub struct Maildrops {
    /// Maildrops that a POP3 session has locked (RFC 1939 section 4).
    locked: BTreeSet<AccountId>,
    /// The number of messages in all open maildrops, and its limit.
    messages: usize,
    messages_max: usize,
}

/// The reason why a maildrop is not opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NotOpened {
    /// Another session has locked the maildrop.
    InUse,
    /// Too many messages are open already, or the account does not exist.
    TooMuch,
}

impl Maildrops {
    /// `cores`: the number of cores that share the limit.
    pub(crate) fn new(cores: u8) -> Maildrops {
        Maildrops {
            locked: BTreeSet::new(),
            messages: 0,
            messages_max: OPEN_MESSAGES_MAX / usize::from(cores),
        }
    }

    /// Opens and locks the inbox of `account`.
    ///
    /// Errors: another session has locked it, or too many messages are open already.
    pub(crate) fn open(
        &mut self,
        store: &Store,
        account: AccountId,
    ) -> Result<Box<MaildropSnapshot>, NotOpened> {
        let inbox = store.mailbox(account, INBOX).ok_or(NotOpened::TooMuch)?;
        let messages = self.messages + inbox.messages as usize;
        if messages > self.messages_max {
            return Err(NotOpened::TooMuch);
        }
        if !self.locked.insert(account) {
            return Err(NotOpened::InUse);
        }
        self.messages = messages;
        Ok(Box::new(MaildropSnapshot::new(account, &inbox, store.messages(account, INBOX))))
    }

    /// Unlocks a maildrop.
    pub(crate) fn close(&mut self, maildrop: &MaildropSnapshot) {
        self.messages -= maildrop.len();
        self.locked.remove(&maildrop.account);
    }

    /// The number of locked maildrops.
    pub fn count(&self) -> usize {
        self.locked.len()
    }

    /// The number of messages in all locked maildrops.
    pub fn messages(&self) -> usize {
        self.messages
    }
}

impl MaildropSnapshot {
    fn new(
        account: AccountId,
        mailbox: &MailboxInfo,
        messages: impl Iterator<Item = MessageInfo>,
    ) -> MaildropSnapshot {
        let mut entries = Vec::with_capacity(mailbox.messages as usize);
        // The messages are stored in blocks. `for_each` walks each block in a loop, which is faster
        // than the single steps of `extend`.
        messages.for_each(|message| {
            entries.push(MaildropEntry {
                uid: message.uid,
                octets: message.octets,
                mark: DeletionMark::None,
            });
        });
        MaildropSnapshot { account, uid_validity: mailbox.uid_validity, entries }
    }

    /// The account that owns the maildrop.
    pub fn account(&self) -> AccountId {
        self.account
    }

    /// The number of messages.
    #[expect(clippy::len_without_is_empty, reason = "nothing asks")]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// The length of all messages together, in octets.
    pub fn octets_of_all(&self) -> u64 {
        self.entries.iter().map(|entry| u64::from(entry.octets)).sum()
    }

    /// The length of the message in this place, counted from zero; 0 if no message is there.
    pub fn octets(&self, place: usize) -> u32 {
        self.entries.get(place).map_or(0, |entry| entry.octets)
    }

    /// The UID of the message in this place.
    pub fn uid(&self, place: usize) -> Option<Uid> {
        self.entries.get(place).map(|entry| entry.uid)
    }

    /// The UIDVALIDITY of the inbox.
    pub fn uid_validity(&self) -> u32 {
        self.uid_validity
    }

    /// Whether the message in this place is marked as deleted.
    pub fn is_marked(&self, place: usize) -> bool {
        self.entries.get(place).is_some_and(|entry| entry.mark == DeletionMark::Deleted)
    }

    /// Marks the message in this place as deleted.
    pub fn mark(&mut self, place: usize) {
        if let Some(entry) = self.entries.get_mut(place) {
            entry.mark = DeletionMark::Deleted;
        }
    }

    /// Clears all marks.
    pub fn unmark_all(&mut self) {
        self.entries.iter_mut().for_each(|entry| entry.mark = DeletionMark::None);
    }

    /// The marked messages, as the fewest ranges of UIDs that cover no other message.
    pub fn marked(&self) -> Vec<UidRange> {
        let mut ranges = vec![];
        for run in self.entries.chunk_by(|one, next| one.mark == next.mark) {
            if let [first, .., last] | [first @ last] = run
                && first.mark == DeletionMark::Deleted
            {
                ranges.push(UidRange { first: first.uid, last: last.uid });
            }
        }
        ranges
    }
}
