//! A maildrop as a POP3 session sees it: the inbox as it was at login, and what of it is marked as deleted.

use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::vec;
use alloc::vec::Vec;

use pop3::{LoginRefusal, MessageNumber};
use store::{AccountId, INBOX, MailboxInfo, MessageInfo, Store, Uid, UidRange};

use crate::archive::{Archive, Own, Question};

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

/// The snapshot. Messages that arrive later are for the next session; one that was removed meanwhile cannot be read.
#[derive(Debug)]
pub(crate) struct Maildrop {
    pub(crate) account: AccountId,
    uid_validity: u32,
    letters: Vec<Letter>,
}

/// Which maildrops of this core's accounts are open, on all cores.
#[derive(Debug)]
pub(crate) struct Maildrops {
    /// Those that a POP3 session has locked (RFC 1939 section 4).
    locked: BTreeSet<AccountId>,
    /// Messages in all of them, and how many that may be.
    messages: usize,
    messages_max: usize,
}

/// The inbox of an account is to be opened and locked.
pub(crate) struct OpenMaildrop(pub(crate) AccountId);

/// It is, or another session has it, or too much is open already.
pub(crate) type Opened = Result<Box<Maildrop>, LoginRefusal>;

impl Question for OpenMaildrop {
    type Reply = Opened;

    fn account(&self) -> AccountId {
        self.0
    }

    fn answer(self, own: &mut Own) -> Opened {
        own.maildrops.open(&own.store, self.0)
    }

    fn unwanted(opened: Opened, archive: &mut Archive) {
        if let Ok(maildrop) = opened {
            archive.close_maildrop(maildrop);
        }
    }
}

impl Maildrops {
    /// `cores`: how many share what there may be of open maildrops.
    pub(crate) fn new(cores: u8) -> Maildrops {
        Maildrops { locked: BTreeSet::new(), messages: 0, messages_max: OPEN_MESSAGES_MAX / usize::from(cores) }
    }

    /// Opens and locks the inbox of `account`.
    ///
    /// Errors: another session has it, or too much is open already.
    pub(crate) fn open(&mut self, store: &Store, account: AccountId) -> Opened {
        let inbox = store.mailbox(account, INBOX).ok_or(LoginRefusal::TryLater)?;
        let messages = self.messages + inbox.messages as usize;
        if messages > self.messages_max {
            return Err(LoginRefusal::TryLater);
        }
        if !self.locked.insert(account) {
            return Err(LoginRefusal::InUse);
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
    pub(crate) fn count(&self) -> usize {
        self.locked.len()
    }

    /// Messages in all that are locked.
    pub(crate) fn messages(&self) -> usize {
        self.messages
    }
}

impl Maildrop {
    fn new(account: AccountId, mailbox: &MailboxInfo, messages: impl Iterator<Item = MessageInfo>) -> Maildrop {
        let mut letters = Vec::with_capacity(mailbox.messages as usize);
        // A mailbox's messages lie in blocks, which `for_each` goes through one by one, and `extend` asks for each message.
        messages.for_each(|message| {
            letters.push(Letter { uid: message.uid, octets: message.octets, mark: Mark::None });
        });
        Maildrop { account, uid_validity: mailbox.uid_validity, letters }
    }

    pub(crate) fn len(&self) -> usize {
        self.letters.len()
    }

    pub(crate) fn describe(&self) -> pop3::Maildrop {
        let bytes = self.letters.iter().map(|letter| u64::from(letter.octets)).sum();
        pop3::Maildrop { messages: self.letters.len() as u32, bytes }
    }

    pub(crate) fn octets(&self, message: MessageNumber) -> u32 {
        self.letters.get(message.index()).map_or(0, |letter| letter.octets)
    }

    pub(crate) fn uid(&self, message: MessageNumber) -> Option<Uid> {
        self.letters.get(message.index()).map(|letter| letter.uid)
    }

    pub(crate) fn unique_id(&self, message: MessageNumber) -> pop3::UniqueId {
        pop3::UniqueId::from_uid(self.uid_validity, self.uid(message).map_or(0, |uid| uid.0))
    }

    pub(crate) fn is_marked(&self, message: MessageNumber) -> bool {
        self.letters.get(message.index()).is_some_and(|letter| letter.mark == Mark::Deleted)
    }

    pub(crate) fn mark(&mut self, message: MessageNumber) {
        if let Some(letter) = self.letters.get_mut(message.index()) {
            letter.mark = Mark::Deleted;
        }
    }

    pub(crate) fn unmark_all(&mut self) {
        self.letters.iter_mut().for_each(|letter| letter.mark = Mark::None);
    }

    /// The marked messages, as few ranges of UIDs as cover no other message.
    pub(crate) fn marked(&self) -> Vec<UidRange> {
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
