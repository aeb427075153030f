//! A maildrop as a POP3 session sees it: the inbox as it was at login, and what of it is marked as deleted.

use alloc::vec;
use alloc::vec::Vec;

use pop3::MessageNumber;
use store::{AccountId, MailboxInfo, MessageInfo, Uid, UidRange};

/// Messages of all maildrops that are open at the same time: 12 bytes each.
pub(crate) const OPEN_MESSAGES_MAX: usize = 4 << 20;

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

impl Maildrop {
    pub(crate) fn new(
        account: AccountId,
        mailbox: &MailboxInfo,
        messages: impl Iterator<Item = MessageInfo>,
    ) -> Maildrop {
        let mut letters = Vec::with_capacity(mailbox.messages as usize);
        letters.extend(messages.map(|message| Letter { uid: message.uid, octets: message.octets, mark: Mark::None }));
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
