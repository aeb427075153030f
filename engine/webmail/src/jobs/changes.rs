//! Changes of messages: moves them, changes their flags, and deletes them.
//!
//! Invariants:
//! - A message is deleted only from Trash or Junk. A deletion from another mailbox moves the
//!   message to Trash.
//! - A message that is in transit is not changed: `undo_send` and the crate `submission` decide
//!   about it.

use alloc::collections::VecDeque;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use store::{
    AccountId, BUILT_IN, DRAFTS, Filed, Flags, INBOX, JUNK, MailboxId, MarkChange, Marks, OUTBOX,
    Refusal, Store, TRASH, Uid, UidRange,
};

use crate::MessageKey;
use crate::answer;
use crate::context::JobContext;
use crate::flash::MessageRange;
use crate::flash::{FlashMessage, UndoAction};
use crate::layout::display_name;
use crate::step::{JobProgress, READS_MAX, why};

use super::undo_send::Transit;

/// The messages to change.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Selection {
    /// The messages in these ranges.
    These(Vec<MessageRange>),
    /// The conversations of these messages. A conversation includes only messages in the same
    /// mailbox that did not arrive later, since the user has not seen later messages.
    Conversations(Vec<MessageKey>),
}

/// The maximum number of messages of a conversation that are changed at a time.
const CONVERSATION_MAX: usize = 1000;
/// The maximum number of messages of a conversation that are examined.
const LOOKED_AT_MAX: usize = 5000;

/// The maximum number of messages that one store request deletes.
const ERASED_MAX: usize = 500;

/// The maximum number of ranges that one store request moves.
const RANGES_MAX: usize = 256;

/// The messages with these keys. Consecutive UIDs become one range.
pub(crate) fn ranges_of(mut keys: Vec<MessageKey>) -> Vec<MessageRange> {
    keys.sort_unstable();
    keys.dedup();
    let mut all: Vec<MessageRange> = Vec::new();
    for key in keys {
        let (mailbox, uid) = key.in_store();
        match all.last_mut() {
            Some(last)
                if last.mailbox == mailbox && last.uids.last.0.checked_add(1) == Some(key.uid) =>
            {
                last.uids.last = uid;
            }
            _ => all.push(MessageRange { mailbox, uids: UidRange::one(uid) }),
        }
    }
    all
}

/// A change of messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Change {
    /// Move the messages to this mailbox.
    File(MailboxId),
    /// Delete the messages permanently.
    Erase,
    /// Set these flags.
    Flag(Flags),
    /// Clear these flags.
    Unflag(Flags),
    /// Toggle the star of each message.
    Star,
}

/// A change in progress.
#[derive(Debug)]
pub(crate) struct ChangeJob {
    change: Change,
    /// Messages with conversations that must still be looked up.
    conversations: Vec<MessageKey>,
    left: VecDeque<MessageRange>,
    /// Whether messages in transit were left out already.
    is_filtered: bool,
    /// The number of ranges at the front of `left` that are being moved.
    filing: usize,
    next_page: String,
    count: u32,
    undo: Option<UndoAction>,
    refused: Option<Refusal>,
}

impl ChangeJob {
    pub(super) fn new(change: Change, selection: Selection, next_page: String) -> ChangeJob {
        let (messages, conversations) = match selection {
            Selection::These(messages) => (messages, Vec::new()),
            Selection::Conversations(keys) => (Vec::new(), keys),
        };
        ChangeJob {
            change,
            conversations,
            left: messages.into(),
            is_filtered: false,
            filing: 0,
            next_page,
            count: 0,
            undo: None,
            refused: None,
        }
    }

    pub(super) fn ask(
        &mut self,
        account: AccountId,
        under_way: &mut usize,
        cx: &mut JobContext<'_, '_>,
    ) -> JobProgress {
        self.resolve_conversations(account, cx.store());
        self.skip_messages_on_their_way(account, cx.store());
        while self.refused.is_none()
            && let Some(messages) = self.left.front().copied()
        {
            // A completion does not name its range: completions belong to ranges by their order. So
            // only one move is in progress at a time.
            let most = if self.changes_flags() { READS_MAX } else { 1 };
            if *under_way >= most {
                return JobProgress::Waiting;
            }
            match self.ask_for(account, messages, cx) {
                Ok(true) => *under_way += 1,
                Ok(false) => {}
                Err(Refusal::Busy) => return JobProgress::Yield,
                Err(refusal) => self.refused = Some(refusal),
            }
        }
        JobProgress::Waiting
    }

    /// Resolves conversations. A change applies to each message of the conversation, with two
    /// exceptions. "Unread" applies only to the newest message. The star is cleared from all
    /// starred messages, or set on the newest message if no message has a star.
    fn resolve_conversations(&mut self, account: AccountId, store: &Store) {
        let keys = core::mem::take(&mut self.conversations);
        if keys.is_empty() {
            return;
        }
        let is_alone = matches!(self.change, Change::Unflag(_));
        let of = |key: &MessageKey| {
            if is_alone { alloc::vec![*key] } else { conversation(store, account, *key) }
        };
        let mut all: Vec<MessageKey> = keys.iter().flat_map(of).collect();
        if self.change == Change::Star {
            let is_starred = |key: &MessageKey| {
                let (mailbox, uid) = key.in_store();
                store
                    .message(account, mailbox, uid)
                    .is_some_and(|info| info.flags.contains(Flags::FLAGGED))
            };
            all.retain(is_starred);
            if all.is_empty() {
                all = keys;
            }
        }
        self.left = ranges_of(all).into();
    }

    /// Leaves out the drafts and outbox messages that are in transit. Does so only once.
    fn skip_messages_on_their_way(&mut self, account: AccountId, store: &Store) {
        if core::mem::replace(&mut self.is_filtered, true) {
            return;
        }
        let may_leave = |messages: &MessageRange| [DRAFTS, OUTBOX].contains(&messages.mailbox);
        let leaves = move |mailbox: MailboxId, (uid, flags, _): &(Uid, Flags, u16)| {
            Transit::of(store, account, mailbox, (*uid, *flags)) != Transit::None
        };
        let is_touched = |messages: &MessageRange| {
            let mut meant = in_range(store, account, *messages);
            may_leave(messages) && meant.any(|one| leaves(messages.mailbox, &one))
        };
        if !self.left.iter().any(is_touched) {
            return;
        }
        let (meant, others): (Vec<MessageRange>, Vec<MessageRange>) =
            self.left.drain(..).partition(may_leave);
        let keys = meant.into_iter().flat_map(|messages| {
            let staying = in_range(store, account, messages)
                .filter(move |one| !leaves(messages.mailbox, one));
            staying.map(move |(uid, ..)| MessageKey { mailbox: messages.mailbox.0, uid: uid.0 })
        });
        self.left = ranges_of(keys.collect()).into_iter().chain(others).collect();
    }

    fn changes_flags(&self) -> bool {
        matches!(self.change, Change::Flag(_) | Change::Unflag(_) | Change::Star)
    }

    /// Asks the store for the next change of the first range in `left`. Returns false if nothing
    /// must be changed.
    fn ask_for(
        &mut self,
        account: AccountId,
        messages: MessageRange,
        cx: &mut JobContext<'_, '_>,
    ) -> Result<bool, Refusal> {
        let MessageRange { mailbox, uids } = messages;
        let continuation = cx.continuation();
        match self.target(mailbox) {
            Some(to) if to == mailbox => {
                self.left.pop_front();
                return Ok(false);
            }
            Some(to) => {
                // One request moves all ranges of a mailbox, so that one undo action can move them
                // back.
                let of_mailbox =
                    self.left.iter().take_while(|messages| messages.mailbox == mailbox);
                let ranges: Vec<UidRange> =
                    of_mailbox.take(RANGES_MAX).map(|messages| messages.uids).collect();
                cx.store_mut().file(account, mailbox, &ranges, to, continuation)?;
                self.filing = ranges.len();
            }
            None if self.change == Change::Erase => {
                let first = in_range(cx.store(), account, messages).take(ERASED_MAX);
                let (count, last) =
                    first.fold((0, uids.last), |(count, _), one| (count + 1, one.0));
                let uids = UidRange { first: uids.first, last };
                cx.store_mut().remove(account, mailbox, &[uids], continuation)?;
                self.count += count;
                match last.0.checked_add(1) {
                    Some(next) if last < messages.uids.last => {
                        if let Some(rest) = self.left.front_mut() {
                            rest.uids.first = Uid(next);
                        }
                    }
                    _ => drop(self.left.pop_front()),
                }
            }
            None => return self.ask_for_flags(account, messages, cx),
        }
        Ok(true)
    }

    fn ask_for_flags(
        &mut self,
        account: AccountId,
        messages: MessageRange,
        cx: &mut JobContext<'_, '_>,
    ) -> Result<bool, Refusal> {
        let Some(message) = in_range(cx.store(), account, messages).next() else {
            self.left.pop_front();
            return Ok(false);
        };
        let (uid, flags, keywords) = message;
        let change = match self.change {
            Change::Flag(flags) => MarkChange::set(flags),
            Change::Unflag(flags) => MarkChange::clear(flags),
            Change::Star if flags.contains(Flags::FLAGGED) => MarkChange::clear(Flags::FLAGGED),
            Change::Star => MarkChange::set(Flags::FLAGGED),
            Change::File(_) | Change::Erase => MarkChange::default(),
        };
        let before = Marks { flags, keywords };
        let is_change = change.applied(before) != before;
        if is_change {
            let continuation = cx.continuation();
            cx.store_mut().mark(account, messages.mailbox, uid, change, continuation)?;
            self.count += 1;
        }
        if let Some(first) = self.left.front_mut() {
            first.uids.first = Uid(uid.0.saturating_add(1));
        }
        Ok(is_change)
    }

    /// The mailbox to which messages of the mailbox `from` are moved.
    fn target(&self, from: MailboxId) -> Option<MailboxId> {
        match self.change {
            Change::File(to) => Some(to),
            Change::Erase if from != TRASH && from != JUNK => Some(TRASH),
            Change::Erase | Change::Flag(_) | Change::Unflag(_) | Change::Star => None,
        }
    }

    /// Records that the store has moved some of the first messages in `left`.
    pub(super) fn filed(&mut self, filed: Filed) {
        let Some(from) = self.left.front().map(|messages| messages.mailbox) else { return };
        self.count += filed.count;
        while self.filing > 0
            && let Some(messages) = self.left.front_mut()
        {
            if filed.last < messages.uids.last {
                messages.uids.first = messages.uids.first.max(Uid(filed.last.0.saturating_add(1)));
                break;
            }
            self.left.pop_front();
            self.filing -= 1;
        }
        // A move that needed several requests cannot be undone by one action.
        let is_first = self.count == filed.count;
        if let Some(to) = self.target(from) {
            self.undo = is_first.then_some(UndoAction::Filing {
                messages: MessageRange { mailbox: to, uids: filed.now },
                to: from,
            });
        }
    }

    pub(super) fn refused(&mut self, refusal: Refusal) {
        // The messages no longer exist, so they need no change.
        if refusal == Refusal::NoSuchMessage {
            self.left.drain(..self.filing.max(1).min(self.left.len()));
            self.filing = 0;
        } else {
            self.refused = Some(refusal);
        }
    }

    pub(super) fn done(&mut self, account: AccountId, store: &Store) -> JobProgress {
        let flash = match self.refused {
            Some(refusal) => Some(FlashMessage::failure(why(refusal))),
            None if self.change == Change::Star => None,
            None if self.changes_flags() && self.count > 0 => {
                Some(FlashMessage::success(&self.success_text(account, store)))
            }
            None if self.changes_flags() => None,
            None if self.count == 0 => Some(FlashMessage::success(
                "No messages selected, or the selected ones cannot be changed.",
            )),
            None => Some(FlashMessage {
                undo: self.undo.take(),
                ..FlashMessage::success(&self.success_text(account, store))
            }),
        };
        match flash {
            Some(flash) => JobProgress::Redirect(self.next_page.clone(), flash),
            None => JobProgress::Reply(answer::redirect(&self.next_page)),
        }
    }

    /// The text of the flash message about the change.
    fn success_text(&self, account: AccountId, store: &Store) -> String {
        let what = match self.count {
            1 => String::from("Message"),
            count => format!("{count} messages"),
        };
        match self.change {
            Change::Erase => format!("{what} deleted forever."),
            Change::File(TRASH) => format!("{what} moved to Trash."),
            Change::File(JUNK) => format!("{what} moved to Junk."),
            Change::File(INBOX) => format!("{what} moved to Inbox."),
            Change::File(to) => {
                let built_in = BUILT_IN.iter().find(|(id, _)| *id == to).map(|(_, name)| *name);
                let known = store.account(account);
                let own = known.and_then(|known| {
                    known.mailboxes().find(|(id, _)| *id == to).map(|(_, name)| name)
                });
                format!(
                    "{what} moved to {}.",
                    display_name(built_in.or(own).unwrap_or("another folder"))
                )
            }
            Change::Flag(_) => "Marked as read.".into(),
            Change::Unflag(_) => "Marked as unread.".into(),
            Change::Star => String::new(),
        }
    }
}

/// The messages of the conversation of `key`, in its mailbox and up to `key`.
fn conversation(store: &Store, account: AccountId, key: MessageKey) -> Vec<MessageKey> {
    let (mailbox, uid) = key.in_store();
    let Some(info) = store.message(account, mailbox, uid) else { return Vec::new() };
    let all = store.conversation_in(account, mailbox, info.conversation).rev();
    let seen = all.take(LOOKED_AT_MAX).skip_while(|other| *other > uid).take(CONVERSATION_MAX);
    seen.map(|Uid(uid)| MessageKey { uid, ..key }).collect()
}

/// The existing messages in a range, with their flags and keywords.
fn in_range(
    store: &Store,
    account: AccountId,
    MessageRange { mailbox, uids }: MessageRange,
) -> impl Iterator<Item = (Uid, Flags, u16)> {
    let there = store
        .messages_from(account, mailbox, uids.first)
        .take_while(move |message| message.uid <= uids.last);
    there.map(|message| (message.uid, message.flags, message.keywords))
}
