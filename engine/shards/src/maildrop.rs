//! A maildrop: an inbox as it was when a session opened it, and what of it is marked as deleted.

use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::vec;
use alloc::vec::Vec;

use store::{AccountId, INBOX, MailboxInfo, MessageInfo, Store, Uid, UidRange};

/// Messages of all maildrops of a machine that are open at the same time: 12 bytes each.
const OPEN_MESSAGES_MAX: usize = 4 << 20;

/// One message of it.
#[derive(Clone, Copy, Debug)]
struct Letter {
    uid: Uid,
    octets: u32,
    mark: Mark,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mark {
    None,
    Deleted,
}

/// The snapshot. Messages that arrive later are for the next session; one that was removed
/// meanwhile cannot be read.
#[derive(Debug)]
pub struct Maildrop {
    account: AccountId,
    uid_validity: u32,
    letters: Vec<Letter>,
}

/// Which maildrops of this core's accounts are open, on all cores.
#[derive(Debug)]
pub struct Maildrops {
    /// Those that a POP3 session has locked (RFC 1939 section 4).
    locked: BTreeSet<AccountId>,
    /// Messages in all of them, and how many that may be.
    messages: usize,
    messages_max: usize,
}

/// Why a maildrop is not open.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NotOpened {
    /// Another session has it.
    InUse,
    /// Too much is open already, or the account is not there.
    TooMuch,
}

impl Maildrops {
    /// `cores`: how many share what there may be of open maildrops.
    pub(crate) fn new(cores: u8) -> Maildrops {
        Maildrops {
            locked: BTreeSet::new(),
            messages: 0,
            messages_max: OPEN_MESSAGES_MAX / usize::from(cores),
        }
    }

    /// Opens and locks the inbox of `account`.
    ///
    /// Errors: another session has it, or too much is open already.
    pub(crate) fn open(
        &mut self,
        store: &Store,
        account: AccountId,
    ) -> Result<Box<Maildrop>, NotOpened> {
        let inbox = store.mailbox(account, INBOX).ok_or(NotOpened::TooMuch)?;
        let messages = self.messages + inbox.messages as usize;
        if messages > self.messages_max {
            return Err(NotOpened::TooMuch);
        }
        if !self.locked.insert(account) {
            return Err(NotOpened::InUse);
        }
        self.messages = messages;
        Ok(Box::new(Maildrop::new(account, &inbox, store.messages(account, INBOX))))
    }

    /// Unlocks a maildrop.
    pub(crate) fn close(&mut self, maildrop: &Maildrop) {
        self.messages -= maildrop.len();
        self.locked.remove(&maildrop.account);
    }

    /// How many are locked.
    pub fn count(&self) -> usize {
        self.locked.len()
    }

    /// Messages in all that are locked.
    pub fn messages(&self) -> usize {
        self.messages
    }
}

impl Maildrop {
    fn new(
        account: AccountId,
        mailbox: &MailboxInfo,
        messages: impl Iterator<Item = MessageInfo>,
    ) -> Maildrop {
        let mut letters = Vec::with_capacity(mailbox.messages as usize);
        // A mailbox's messages lie in blocks, which `for_each` goes through one by one, and
        // `extend` asks for each message.
        messages.for_each(|message| {
            letters.push(Letter { uid: message.uid, octets: message.octets, mark: Mark::None });
        });
        Maildrop { account, uid_validity: mailbox.uid_validity, letters }
    }

    /// Whose it is.
    pub fn account(&self) -> AccountId {
        self.account
    }

    /// How many messages it has.
    #[expect(clippy::len_without_is_empty, reason = "nothing asks")]
    pub fn len(&self) -> usize {
        self.letters.len()
    }

    /// The length of all of its messages together, in octets.
    pub fn octets_of_all(&self) -> u64 {
        self.letters.iter().map(|letter| u64::from(letter.octets)).sum()
    }

    /// The length of the message in this place, counted from zero; 0 if there is none.
    pub fn octets(&self, place: usize) -> u32 {
        self.letters.get(place).map_or(0, |letter| letter.octets)
    }

    /// The UID of the message in this place.
    pub fn uid(&self, place: usize) -> Option<Uid> {
        self.letters.get(place).map(|letter| letter.uid)
    }

    /// The UIDVALIDITY of the inbox.
    pub fn uid_validity(&self) -> u32 {
        self.uid_validity
    }

    /// Whether the message in this place is marked as deleted.
    pub fn is_marked(&self, place: usize) -> bool {
        self.letters.get(place).is_some_and(|letter| letter.mark == Mark::Deleted)
    }

    /// Marks the message in this place as deleted.
    pub fn mark(&mut self, place: usize) {
        if let Some(letter) = self.letters.get_mut(place) {
            letter.mark = Mark::Deleted;
        }
    }

    /// Takes all marks away.
    pub fn unmark_all(&mut self) {
        self.letters.iter_mut().for_each(|letter| letter.mark = Mark::None);
    }

    /// The marked messages, as few ranges of UIDs as cover no other message.
    pub fn marked(&self) -> Vec<UidRange> {
        let mut ranges = vec![];
        for run in self.letters.chunk_by(|one, next| one.mark == next.mark) {
            if let [first, .., last] | [first @ last] = run
                && first.mark == Mark::Deleted
            {
                ranges.push(UidRange { first: first.uid, last: last.uid });
            }
        }
        ranges
    }
}
