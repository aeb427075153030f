//! The totals of a list row: the count and the flags of its conversation.

use store::{AccountId, DRAFTS, Flags, JUNK, MailboxId, MessageInfo, OUTBOX, Store, TRASH, Uid};

/// The maximum number of messages of a conversation that are counted for its row.
const COUNTED_MAX: usize = 200;
/// The maximum number of counted messages for which flags are read.
const MARKS_MAX: usize = 50;

/// The totals of the messages of a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct RowTotals {
    pub(super) messages: u32,
    /// The highest UID of the messages in the mailbox. An action on the row applies to the messages
    /// up to it.
    pub(super) last: Uid,
    pub(super) is_unread: bool,
    pub(super) is_starred: bool,
    pub(super) is_answered: bool,
}

impl RowTotals {
    /// The totals of one message.
    pub(super) fn alone(mailbox: MailboxId, info: &MessageInfo) -> RowTotals {
        if mailbox == OUTBOX {
            // The message is also in Sent, and only the row in Sent shows its flags.
            return RowTotals {
                messages: 1,
                last: info.uid,
                is_unread: false,
                is_starred: false,
                is_answered: false,
            };
        }
        let [is_seen, is_starred, is_answered] =
            [Flags::SEEN, Flags::FLAGGED, Flags::ANSWERED].map(|flag| info.flags.contains(flag));
        RowTotals { messages: 1, last: info.uid, is_unread: !is_seen, is_starred, is_answered }
    }

    /// The totals of the message's conversation: the number of its messages in all mailboxes, and
    /// the flags of its messages in `mailbox`.
    pub(super) fn of(
        store: &Store,
        account: AccountId,
        mailbox: MailboxId,
        info: &MessageInfo,
    ) -> RowTotals {
        let messages = counted(store, account, mailbox, info.conversation).count() as u32;
        if messages <= 1 {
            return RowTotals::alone(mailbox, info);
        }
        let here = store.conversation_in(account, mailbox, info.conversation).rev().take(MARKS_MAX);
        let here = here
            .filter_map(|uid| store.message(account, mailbox, uid))
            .map(|info| RowTotals::alone(mailbox, &info));
        let unmarked = RowTotals {
            messages,
            last: info.uid,
            is_unread: false,
            is_starred: false,
            is_answered: false,
        };
        here.fold(unmarked, |together, one| RowTotals {
            messages,
            last: together.last.max(one.last),
            is_unread: together.is_unread | one.is_unread,
            is_starred: together.is_starred | one.is_starred,
            is_answered: together.is_answered | one.is_answered,
        })
    }
}

/// The messages of a conversation that count for its row in `mailbox`.
pub(super) fn counted(
    store: &Store,
    account: AccountId,
    mailbox: MailboxId,
    conversation: u64,
) -> impl Iterator<Item = (MailboxId, Uid)> {
    let counts =
        move |id: MailboxId| id == mailbox || id != DRAFTS && id != OUTBOX && !is_trash_or_junk(id);
    store.conversation(account, conversation).take(COUNTED_MAX).filter(move |(id, _)| counts(*id))
}

/// Whether the mailbox is Trash or Junk.
pub(super) fn is_trash_or_junk(mailbox: MailboxId) -> bool {
    mailbox == TRASH || mailbox == JUNK
}
